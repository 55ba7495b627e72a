"""The ledger: what a conversation holds, kept up to date message by message, without a model; and its form as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import msgspec
import zstandard

from leporello.fingerprint import is_stored_as, stored_fingerprint
from leporello.ledger import rule_conflicts as conflicts
from leporello.ledger import rules as phrasing
from leporello.ledger.calls import CallFacts, one_line
from leporello.ledger.facts import EarlierLine, MessageFacts, extract, storable
from leporello.ledger.importance import Vocabulary, words_of
from leporello.ledger.line_patterns import COMMITTED, EXCEPTION, FAILED_TEST, SUMMARY_LINE
from leporello.ledger.user_text import prose, strip_injected
from leporello.ledger.values import Values
from leporello.messages import Message, ToolCall, calls_of, is_result, result_id, role_of, text_of
from leporello.redact.messages import masked, masked_call

MOST_COMPARED = 200
OUTCOME_CHARS = 90
SPOKEN_CHARS = 20_000
MOST_SETTINGS = 400
"""Lines of a call in which settings are looked for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing constraint or preference in the user's own words."""

    number: int
    text: str
    ended_by: int | None = None
    """The message that took it back or replaced it."""
    kind: phrasing.RuleKind = phrasing.RuleKind.CONSTRAINT


@dataclass(frozen=True, slots=True)
class Ask:
    """A user message as a request. `answered_by` is the assistant message that closed its turn."""

    number: int
    text: str
    answered_by: int | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """A call that changed something or checked something, and how it ended."""

    number: int
    call: CallFacts
    ended: str
    failed: bool
    outcome: str = ""
    """The line of the output that says how it went, when there is one."""


@dataclass(slots=True)
class FileFacts:
    path: str
    reads: int = 0
    edits: int = 0
    last: int = 0
    spans: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pinned:
    """A message a person wants kept word for word."""

    role: str
    text: str


class Ledger:
    def __init__(self, *, renumbers: bool = True, like: Ledger | None = None) -> None:
        """`like` is a ledger of the same list before it was edited: what was extracted by content is still known."""
        self._renumbers = renumbers
        """Whether the list may be numbered afresh; a conversation in a store never is, and remembers less."""
        self.facts: dict[int, MessageFacts] = {}
        self.hashes: dict[int, str] = {}
        self.rules: list[Rule] = []
        self.asks: list[Ask] = []
        self.actions: list[Action] = []
        self.files: dict[str, FileFacts] = {}
        self.todo: tuple[int, ToolCall] | None = None
        self.last = 0
        self.vocabulary: Vocabulary = like.vocabulary if like else Vocabulary()
        self.spoken: dict[str, int] = {}
        """The last message in which the assistant used a word, in what it said or in the arguments of a call."""
        self.waiting: list[ToolCall] = []
        self.values = Values()
        """What was said about things, and what replaced it."""
        self.pins: dict[int, Pinned] = {}
        """Messages that are kept word for word, whatever they are worth."""
        self.earlier: dict[int, tuple[EarlierLine, ...]] = {}
        """What unverified summaries say, by the message that carries them."""
        self._memo: dict[str, MessageFacts] = like._memo if like else {}
        """Extraction by content, for lists that get renumbered."""

    def knows(self, number: int, message: Message) -> bool:
        """Whether a message that says the same was already added under this number."""
        known = self.hashes.get(number)
        return known is not None and is_stored_as(known, message)

    def add(self, number: int, message: Message, *, read: bool = True) -> None:
        """Take one message in. Messages come in the order of their numbers. Of secrets nothing is kept.

        With `read` false nothing is taken from its text: what it says is told by somebody else.
        """
        if not read:
            self._put(number, stored_fingerprint(message), MessageFacts(""))
            return
        if self.knows(number, message):
            self._follow_calls(message)
            return
        digest = stored_fingerprint(message)
        message = masked(message)
        call = self._take_call(message) if is_result(message) else None
        facts = self._extract(digest, message, call)
        self._put(number, digest, facts)
        self.values.add(number, facts.role, (unit.text for unit in facts.units))
        if facts.role == "user":
            self._note_user(number, storable(text_of(message)))
        elif facts.role == "assistant":
            self._note_assistant(number, message)
        elif facts.role == "tool":
            self._note_result(number, facts)

    def _put(self, number: int, digest: str, facts: MessageFacts) -> None:
        self.hashes[number] = digest
        self.facts[number] = facts
        self.last = max(self.last, number)

    def _extract(self, digest: str, message: Message, call: ToolCall | None) -> MessageFacts:
        if not self._renumbers:
            return extract(message, self.vocabulary, call)
        key = f"{digest}{call.name}{call.arguments[:200]}" if call else digest
        if key not in self._memo:
            self._memo[key] = extract(message, self.vocabulary, call)
        return self._memo[key]

    def _follow_calls(self, message: Message) -> None:
        if is_result(message):
            self._take_call(message)
        elif role_of(message) == "assistant":
            self.waiting = [masked_call(call) for call in calls_of(message)]

    def _take_call(self, message: Message) -> ToolCall | None:
        wanted = result_id(message)
        for index, call in enumerate(self.waiting):
            if wanted in (call.id, call.name):
                return self.waiting.pop(index)
        return None

    def _note_user(self, number: int, text: str) -> None:
        words = strip_injected(text)
        if not words.strip():
            # Only what a program put there: nobody asked for anything.
            return
        if phrasing.is_cancel(words):
            self._close_asks(number, cancelled=True)
            self.asks.append(Ask(number, words, answered_by=number, cancelled=True))
            return
        self.asks.append(Ask(number, words))
        for sentence in phrasing.rule_sentences(prose(words)):
            said = phrasing.read(sentence)
            ended = self._end_rules(number, sentence, said) if said.rule or said.revokes else False
            # What only takes a rule back is no rule itself: the rule it ended says so.
            if said.rule and not (ended and said.kind is phrasing.RuleKind.CONSTRAINT and said.revokes):
                self._add_rule(number, sentence, said)

    def _end_rules(self, number: int, sentence: str, said: phrasing.RuleReading) -> bool:
        """Mark the rules that a sentence ends; of several that it may replace only the newest is meant."""
        self._end_unverified(sentence)
        ended = False
        replaced = False
        compared = 0
        # What takes a rule back may mean any of them; whether two rules contradict is asked of the newest ones.
        most = len(self.rules) if said.revokes or phrasing.permits(sentence) else MOST_COMPARED
        for index in range(len(self.rules) - 1, -1, -1):
            rule = self.rules[index]
            if rule.ended_by is not None or rule.text == sentence:
                continue
            compared += 1
            if compared > most:
                break
            another_value = not replaced and said.rule and conflicts.replaces(rule.text, sentence)
            if another_value or conflicts.ends(rule.text, sentence):
                self.rules[index] = replace(rule, ended_by=number)
                ended = True
                replaced = replaced or another_value
        return ended

    def _end_unverified(self, sentence: str) -> None:
        """Drop what unverified summaries call a rule where the user's sentence ends it.

        The sentence itself stays what it is: a summary that anybody may have written decides nothing about it.
        """
        for number, lines in self.earlier.items():
            self.earlier[number] = tuple(
                line for line in lines if not (line.is_rule and conflicts.ends(line.text, sentence))
            )

    def _add_rule(self, number: int, sentence: str, said: phrasing.RuleReading) -> None:
        for index, rule in enumerate(self.rules):
            if rule.text == sentence:
                self.rules[index] = replace(rule, ended_by=None)
                return
        self.rules.append(Rule(number, sentence, kind=said.kind or phrasing.RuleKind.CONSTRAINT))

    def _note_assistant(self, number: int, message: Message) -> None:
        self.waiting = list(calls_of(message))
        texts = [text_of(message), *(call.arguments for call in self.waiting)]
        self.spoken.update((word, number) for text in texts for word in words_of(storable(text[:SPOKEN_CHARS])))
        for call in self.waiting:
            self.values.add(number, "tool", _settings(call))
            if "todo" in call.name.casefold() or call.name == "update_plan":
                self.todo = (number, call)
        if not self.waiting and text_of(message).strip() and self.asks and self.asks[-1].answered_by is None:
            self._close_asks(number)

    def _close_asks(self, number: int, *, cancelled: bool = False) -> None:
        """The newest request is dealt with, and those the user wrote right before it: they are shown as one.

        A stop ends everything that is still open.
        """
        following = None
        for index in range(len(self.asks) - 1, -1, -1):
            ask = self.asks[index]
            if ask.answered_by is not None or ask.cancelled:
                return
            if not cancelled and following is not None and ask.number != following - 1:
                return
            self.asks[index] = replace(ask, cancelled=True) if cancelled else replace(ask, answered_by=number)
            following = ask.number

    def _note_result(self, number: int, facts: MessageFacts) -> None:
        call = facts.answers
        if call is None:
            return
        if call.work in ("edit", "git_write", "check", "install", "agent"):
            self.actions.append(Action(number, call, facts.ended, facts.failed, _outcome(facts)))
        if call.path and not facts.failed:
            known = self.files.setdefault(call.path, FileFacts(call.path))
            known.last = number
            if call.work == "edit":
                known.edits += 1
            else:
                known.reads += 1
                if call.span and call.span not in known.spans:
                    known.spans.append(call.span)

    @property
    def active_rules(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.ended_by is None]


def _settings(call: ToolCall) -> Iterator[str]:
    """Lines of a call that may set something, without those it takes away."""
    for name, text in call.parsed().items():
        if isinstance(text, str) and "=" in text and not name.startswith("old"):
            yield from storable(text).split("\n", MOST_SETTINGS)[:MOST_SETTINGS]


def _outcome(facts: MessageFacts) -> str:
    """The newest line that sums a run up; for a failure without one, the first that names what failed."""
    if facts.answers is None or facts.answers.work not in ("check", "git_write"):
        return ""
    summed = [unit.text for unit in facts.units if SUMMARY_LINE.search(unit.text) or COMMITTED.search(unit.text)]
    broken = [unit.text for unit in facts.units if FAILED_TEST.search(unit.text) or EXCEPTION.search(unit.text)]
    chosen = summed[-1:] or (broken[:1] if facts.failed else [])
    return one_line(chosen[0], OUTCOME_CHARS) if chosen else ""


VERSION = 4
"""Since 2 of masked messages, since 3 with a vocabulary, since 4 with values; earlier ones are made anew."""


@dataclass(slots=True)
class _State:
    """What is stored of a ledger, under the names it has there."""

    facts: dict[int, MessageFacts]
    hashes: dict[int, str]
    rules: list[Rule]
    asks: list[Ask]
    actions: list[Action]
    files: dict[str, FileFacts]
    todo: tuple[int, ToolCall] | None
    last: int
    vocabulary: Vocabulary
    spoken: dict[str, int]
    waiting: list[ToolCall]
    values: Values


def save(ledger: Ledger) -> bytes:
    """The ledger as compressed bytes of this version."""
    state = {stored.name: getattr(ledger, stored.name) for stored in fields(_State)}
    return zstandard.compress(msgspec.msgpack.encode(state))


def load(data: bytes) -> Ledger:
    state = msgspec.msgpack.decode(zstandard.decompress(data), type=_State)
    ledger = Ledger(renumbers=False)
    for stored in fields(_State):
        setattr(ledger, stored.name, getattr(state, stored.name))
    return ledger
