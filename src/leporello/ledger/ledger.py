"""The ledger: what a conversation holds, kept up to date message by message, without a model; and its form as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import msgspec
import zstandard
from msgspec import Struct

from leporello.fingerprint import is_stored_as, stored_fingerprint
from leporello.lazy_regex import lazy_regex
from leporello.ledger import rule_conflicts as conflicts
from leporello.ledger import rules as phrasing
from leporello.ledger.calls import REFUSED, CallFacts, one_line, state_of
from leporello.ledger.facts import EarlierLine, MessageFacts, extract, shown_facts, storable
from leporello.ledger.importance import Vocabulary, words_of
from leporello.ledger.pasted import PASTED, pasted_sentences
from leporello.ledger.plan import PlanStep, plan_after
from leporello.ledger.quoted import prose
from leporello.ledger.units import ALL_PASSED, BROKEN_RUN, COMMITTED, EXCEPTION, FAILED_TEST, SUMMARY_LINE
from leporello.ledger.user_text import says_something, strip_injected
from leporello.ledger.values import Values
from leporello.messages import Message, ToolCall, calls_of, is_result, result_id, role_of, text_of, without_thoughts
from leporello.redact.messages import Given, given_after, masked, masked_call
from leporello.text_features.rare import RarePattern

LONG_MESSAGE, AROUND = 60, 5
"""Sentences of a message beyond which only its first and last ones are read for rules, and how many."""
MOST_COMPARED = 200
MOST_CHANGES = 3
_COMMIT = lazy_regex(r"\bgit (?:-\S+ )*commit\b")
_ADDED = lazy_regex(r"\bgit (?:-\S+ )*(?:add|rm|mv) ([^;&|\n]{1,2000})")
_ADDS_ALL = lazy_regex(r"\bgit (?:-\S+ )*(?:add (?:-A|--all|-u|\.(?:\s|$))|commit (?:-\S+ )*-\w{0,9}a)")
_PATTERN = frozenset("*?[")
_INSTRUCTIONS = lazy_regex(r"\A\s{0,8}<(\w{1,30}[_-]instructions)>.{0,200000}</\1>\s{0,8}\Z", re.DOTALL | re.IGNORECASE)
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


class Action(Struct, frozen=True):
    """A call that changed something or checked something, and how it ended."""

    number: int
    call: CallFacts
    ended: str
    failed: bool
    outcome: str = ""
    """The line of the output that says how it went, when there is one."""


class FileFacts(Struct):
    path: str
    reads: int = 0
    edits: int = 0
    last: int = 0
    spans: list[str] = msgspec.field(default_factory=list)
    changes: list[str] = msgspec.field(default_factory=list)
    """What the newest edits changed, in a few words."""
    edited: int = 0
    """The message of the newest edit."""
    first: int = 0
    """The message it came up in."""
    committed: int = 0
    """The message of the newest commit since its first edit."""


class Pinned(Struct, frozen=True):
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
        self.plan: tuple[PlanStep, ...] = ()
        self.last = 0
        self.vocabulary: Vocabulary = like.vocabulary if like else Vocabulary()
        self.spoken: dict[str, int] = {}
        """For words of requests the last message in which the assistant used them, in words or in a call; or 0."""
        self.waiting: list[ToolCall] = []
        self.expected = Given.NOTHING
        """What the next message may give of secrets, bare."""
        self.given: dict[int, Given] = {}
        """Messages that were read as giving what was asked for."""
        self.stated = Values()
        """What was said about things; `values` has noted what changed."""
        self.pins: dict[int, Pinned] = {}
        """Messages that are kept word for word, whatever they are worth."""
        self.days: dict[int, str] = {}
        """The days on which messages were said, by the messages that tell it."""
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
        given, self.expected = self.expected, given_after(message, self.expected)
        if given:
            self.given[number] = given
        if not read:
            self._put(number, stored_fingerprint(message), MessageFacts(""))
            return
        if self.knows(number, message):
            self._follow_calls(message)
            return
        digest = stored_fingerprint(message)
        call = self._take_call(message) if is_result(message) else None
        facts = shown_facts(message, call) if call else None
        if facts is None:
            # Of what is left unread nothing is kept either, and nothing is made of thoughts.
            message = masked(without_thoughts(message), given)
            facts = self._extract(digest, message, call)
        self._put(number, digest, facts)
        if facts.role != "assistant":
            # What an assistant writes in its answers are examples; what it does stands in its calls.
            self.stated.set(number, (unit.text for unit in facts.units))
        if facts.role == "user":
            self._note_user(number, storable(text_of(message)))
        elif facts.role == "assistant":
            self._note_assistant(number, message)
        elif facts.role == "tool":
            self._note_result(number, facts)
        self.stated.read_ahead(self.facts, number)

    def _put(self, number: int, digest: str, facts: MessageFacts) -> None:
        self.hashes[number] = digest
        self.facts[number] = facts
        if facts.day:
            self.days[number] = facts.day
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
        if not says_something(words):
            # Only what a program put there, or a command that nothing was typed behind: nobody asked for anything.
            return
        if phrasing.is_cancel(words):
            self._close_asks(number, cancelled=True)
            self.asks.append(Ask(number, words, answered_by=number, cancelled=True))
            return
        if not _INSTRUCTIONS.match(words):
            # What a client sends along from a file is to be kept, and asks for nothing.
            self.add_ask(Ask(number, words))
        newest = [ask.text for ask in self.asks[-phrasing.MESSAGES_LOOKED_AT :]]
        own = prose(words)
        sentences = phrasing.rule_sentences(own)
        if len(sentences) > LONG_MESSAGE:
            # Most of it was written by somebody else, for other readers; what is asked stands around it.
            sentences = [*sentences[:AROUND], *sentences[-AROUND:]]
        company, brief = phrasing.company_of(sentences), len(sentences) <= phrasing.BRIEF
        pasted: frozenset[str] | None = None
        for sentence in sentences:
            said = phrasing.read(sentence, company=company, brief=brief)
            if said.rule and phrasing.is_small_talk(newest):
                # There a sentence has to tell more plainly that it is one.
                said = phrasing.read(sentence, small_talk=True, company=company, brief=brief)
            # What gives leave ends a ban, whether or not it is to be kept itself.
            ends = said.rule or said.revokes or phrasing.permits(sentence)
            if ends and pasted is None:
                # Few messages say anything that binds: the others are not asked whose words they hold.
                pasted = pasted_sentences(words, own)
            if ends and sentence in (pasted or ()):
                # Whosever words these are: they end no rule, and it is said that they may not be the user's.
                if said.rule:
                    self._add_rule(number, PASTED + sentence, said)
                continue
            ended = self._end_rules(number, sentence, said) if ends else False
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
            # Two sentences of one message rarely contradict each other; a word that takes back means an earlier one.
            if rule.ended_by is not None or rule.text == sentence or (rule.number == number and not said.revokes):
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
        for text in texts:
            asked = self.spoken.keys() & set(words_of(storable(text[:SPOKEN_CHARS])))
            self.spoken.update(dict.fromkeys(asked, number))
        for call in self.waiting:
            self.stated.set(number, _settings(call))
            self.plan = plan_after(self.plan, number, call)
        if not self.waiting and text_of(message).strip() and self.asks and self.asks[-1].answered_by is None:
            self._close_asks(number)

    def add_ask(self, ask: Ask) -> None:
        self.asks.append(ask)
        for word in words_of(ask.text):
            self.spoken.setdefault(word, 0)

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

    def was_worked_on(self, place: int) -> bool:
        """Whether files were changed for a request before the user went on."""
        begin, end = self.asks[place].number, self.asks[place + 1].number
        edits = (action for action in self.actions if action.call.edits and not action.failed)
        return any(begin < action.number < end for action in edits)

    def _note_commit(self, number: int) -> None:
        """Files that a commit took in: those that were added by name since the commit before, or else all changed."""
        added: list[str] = []
        for earlier in range(number, 0, -1):
            answers = self.facts[earlier].answers if earlier in self.facts else None
            command = answers.command if answers else ""
            if earlier < number and _COMMIT.search(command):
                break
            if _ADDS_ALL.search(command):
                added = []
                break
            added += [
                word.strip("'\"").removeprefix("./") for named in _ADDED.findall(command) for word in named.split()
            ]
        for file in self.files.values():
            if file.edits and (not added or any(_names(word, file.path) for word in added)):
                file.committed = number

    def _note_result(self, number: int, facts: MessageFacts) -> None:
        call = facts.answers
        if call is None:
            return
        if call.work in ("edit", "git_write", "check", "install", "agent", "act"):
            self.actions.append(Action(number, call, facts.ended, facts.failed, _outcome(facts)))
        if facts.failed:
            return
        for path, change in call.edits:
            file = self._file(path, number)
            file.edits += 1
            file.edited = number
            file.changes = [*(told for told in file.changes if told != change), change][-MOST_CHANGES:]
        if call.work == "git_write" and _COMMIT.search(call.command):
            self._note_commit(number)
        if (call.path or call.shown) and not call.edits and not _is_missing(facts, call.path or call.shown):
            file = self._file(call.path or call.shown, number)
            file.reads += 1
            if call.span and call.span not in file.spans:
                file.spans.append(call.span)

    def _file(self, path: str, number: int) -> FileFacts:
        known = self.files.get(path)
        if known is None and not path.startswith("/"):
            known = next((file for file in self.files.values() if file.path.endswith(f"/{path}")), None)
        if known is None:
            known = self.files[path] = FileFacts(path, first=number)
        known.last = number
        return known

    @property
    def values(self) -> Values:
        """What was said about things, and what replaced it."""
        self.stated.read_on(self.facts, self.last)
        return self.stated

    @property
    def active_rules(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.ended_by is None]


def _names(word: str, path: str) -> bool:
    """Whether a word of `git add` names a file: itself, its end, a folder it lies in, or a pattern it fits."""
    if path.endswith(word) or f"/{word.rstrip('/')}/" in f"/{path}":
        return True
    return not _PATTERN.isdisjoint(word) and (fnmatchcase(path, word) or fnmatchcase(path, f"*/{word}"))


def _is_missing(facts: MessageFacts, path: str) -> bool:
    """Whether one of several commands did not find the file it was to show."""
    return any(unit.text.endswith(f" {path}: No such file or directory") for unit in facts.units)


def _settings(call: ToolCall) -> Iterator[str]:
    """Lines of a call that may set something, without those it takes away."""
    for name, text in call.parsed().items():
        if isinstance(text, str) and "=" in text and "_" in text and not name.startswith("old"):
            yield from storable(text).split("\n", MOST_SETTINGS)[:MOST_SETTINGS]


_SUMS, _BREAKS = RarePattern(SUMMARY_LINE), RarePattern(BROKEN_RUN)
"""Most outputs have no such line."""


def _outcome(facts: MessageFacts) -> str:
    """The newest line that sums a run up; where part of it failed, the line that says so."""
    if facts.ended.startswith(REFUSED):
        return REFUSED
    if facts.answers is None or facts.answers.work not in ("check", "git_write", "act"):
        return ""
    if facts.records:
        return one_line(state_of(facts.records[0]), OUTCOME_CHARS)
    lines = [unit.text for unit in facts.units]
    whole = "\n".join(lines)
    sums = _SUMS.may_match(whole)
    summed = [line for line in lines if (sums and SUMMARY_LINE.search(line)) or COMMITTED.match(line)]
    broken = [line for line in summed if BROKEN_RUN.search(line)]
    if any(ALL_PASSED.search(line) and line not in broken for line in summed):
        chosen = summed[-1:]  # a log may tell of errors that were wanted
    elif broken or not _BREAKS.may_match(whole):
        chosen = broken[-1:] or summed[-1:]
    else:
        chosen = list(islice((line for line in lines if BROKEN_RUN.search(line)), 1)) or summed[-1:]
    if not chosen and facts.failed:
        chosen = [line for line in lines if FAILED_TEST.match(line) or EXCEPTION.match(line)]
    return one_line(chosen[0], OUTCOME_CHARS) if chosen else ""


VERSION = 17
"""Of what is read from a message. Whoever changes that, be it code, weights or the things of `things.txt`, counts on;
what another version read is made anew."""


@dataclass(slots=True)
class _State:
    """What is stored of a ledger, under the names it has there."""

    facts: dict[int, MessageFacts]
    hashes: dict[int, str]
    rules: list[Rule]
    asks: list[Ask]
    actions: list[Action]
    files: dict[str, FileFacts]
    plan: tuple[PlanStep, ...]
    last: int
    vocabulary: Vocabulary
    spoken: dict[str, int]
    waiting: list[ToolCall]
    stated: Values
    expected: Given = Given.NOTHING
    given: dict[int, Given] = field(default_factory=dict)
    days: dict[int, str] = field(default_factory=dict)


def save(ledger: Ledger) -> bytes:
    """The ledger as compressed bytes of this version."""
    state = {stored.name: getattr(ledger, stored.name) for stored in fields(_State)}
    try:
        encoded = msgspec.msgpack.encode(state)
    except UnicodeEncodeError:
        # Half a character in what a message gave, a tool's arguments for example.
        encoded = msgspec.msgpack.encode(_whole_characters(msgspec.to_builtins(state)))
    return zstandard.compress(encoded)


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return [_whole_characters(item) for item in value] if isinstance(value, list | tuple) else value


def load(data: bytes) -> Ledger:
    state = msgspec.msgpack.decode(zstandard.decompress(data), type=_State)
    ledger = Ledger(renumbers=False)
    for stored in fields(_State):
        setattr(ledger, stored.name, getattr(state, stored.name))
    return ledger
