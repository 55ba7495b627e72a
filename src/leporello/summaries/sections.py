"""Sections of a handoff that the ledger can state as plain facts: rules, asks, files, actions, state, open work."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.importance import COURTESY, words_of
from leporello.ledger.ledger import Ask, Ledger
from leporello.ledger.line_patterns import QUESTION
from leporello.ledger.rules import RuleKind, read
from leporello.ledger.units import clip
from leporello.ledger.value_patterns import ANNOUNCED
from leporello.ledger.values import Change
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

CountText = Callable[[str], int]
ASK_CHARS = 1_200
ACTION_CHARS = 110
ANSWER_CHARS = 200
SUBJECT_CHARS = 80
MOST_PENDING = 12
MOST_REPLIES = 8
"""How far back the request is looked for that a reply goes on with."""
REPLY_WORDS = 5
RARE_SHARE = 20
"""A word is rare that stands in at most one of so many messages."""
DEALT_SHARE = 0.5
REPEAT_SHARE = 0.8
RECENT_ASKS = 4
"""So many of the newest requests belong to the work at hand, whatever was said of them since."""
OPEN_REASON = " (no answer before the user went on)"
ROOT_LINE = "All paths below are inside "


def within(
    lines: Iterable[HandoffLine], budget: int, count: CountText, *, newest_first: bool = False
) -> list[HandoffLine]:
    """As many lines as fit, in their order; `newest_first` gives up the oldest ones instead of the last."""
    chosen: list[HandoffLine] = []
    used = 0
    ordered = list(lines)
    for line in reversed(ordered) if newest_first else ordered:
        cost = count(line.text) + 6
        if used + cost > budget:
            continue
        used += cost
        chosen.append(line)
    return chosen[::-1] if newest_first else chosen


def rule_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Rules that still stand, verbatim; those taken back are marked as such."""
    lines = []
    for rule in ledger.rules:
        if rule.number not in covered:
            continue
        if rule.ended_by is None:
            lines.append(HandoffLine(rule.text, (rule.number,), LineOrigin.USER))
    return lines


def ended_rule_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Rules the user took back or replaced: shown as ended, so that nobody follows an old copy of them."""
    return [
        HandoffLine(f"{ENDED}{rule.ended_by}: {rule.text}", (rule.number,), LineOrigin.USER)
        for rule in ledger.rules
        if rule.number in covered and rule.ended_by is not None
    ]


def active_task(ledger: Ledger) -> list[HandoffLine]:
    """The newest request that is not answered yet; nothing after a stop or a mere thank you.

    A short reply ("yes", "its loaded") says nothing by itself: before it stand the request it goes on with and what the
    assistant had asked.
    """
    newest = ledger.asks[-1] if ledger.asks else None
    if newest is None or newest.cancelled or newest.answered_by is not None:
        return []
    if not is_reply(newest.text):
        return [_ask_line(newest)]
    if is_courtesy(newest.text):
        return []
    asked = _last_question(ledger, newest.number)
    return [*map(_ask_line, _gone_on_with(ledger.asks[-MOST_REPLIES:-1])), *asked, _ask_line(newest)]


def _gone_on_with(asks: Sequence[Ask]) -> list[Ask]:
    """What a reply goes on with: the last thing the user said of some length, and the last plain request up to it."""
    said = [ask for ask in asks if not is_reply(ask.text)]
    requests = [ask for ask in said if not QUESTION.search(ask.text)]
    return sorted({*said[-1:], *requests[-1:]}, key=lambda ask: ask.number)


def is_reply(text: str) -> bool:
    """Whether a message of the user is too short to say what is wanted."""
    return len(words_of(text)) < REPLY_WORDS and "\n" not in text.strip()


def is_courtesy(text: str) -> bool:
    return all(word in COURTESY for word in words_of(text))


def _last_question(ledger: Ledger, before: int) -> list[HandoffLine]:
    """What the assistant asked last, when it asked something."""
    number = next((n for n in range(before - 1, 0, -1) if _speaks(ledger, n)), 0)
    units = ledger.facts[number].units if number else ()
    questions = [unit.text for unit in units if QUESTION.search(unit.text)]
    return [HandoffLine(questions[-1], (number,), LineOrigin.ASSISTANT)] if questions else []


def _speaks(ledger: Ledger, number: int) -> bool:
    facts = ledger.facts.get(number)
    return facts is not None and facts.role == "assistant" and bool(facts.units)


def pin_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Pinned messages that are folded, word for word."""
    return [
        HandoffLine(pinned.text, (number,), LineOrigin(pinned.role))
        for number, pinned in sorted(ledger.pins.items())
        if number in covered and pinned.text.strip()
    ]


def pending_asks(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Older requests that nobody answered before the user went on, and that nothing since has dealt with."""
    recent = {ask.number for ask in ledger.asks[-RECENT_ASKS:]}
    waiting = [
        ask
        for place, ask in enumerate(ledger.asks[:-1])
        if ask.answered_by is None
        and not ask.cancelled
        and ask.number in covered
        and not is_reply(ask.text)
        and not _only_rules(ask)
        and not any(_repeats(later.text, ask.text) for later in ledger.asks[place + 1 : place + RECENT_ASKS])
        and (ask.number in recent or not dealt_with(ledger, ask))
    ]
    return [_ask_line(ask, OPEN_REASON) for ask in waiting[-MOST_PENDING:]]


def _repeats(later: str, earlier: str) -> bool:
    """Whether a later request says again what an earlier one said."""
    words = set(words_of(earlier))
    return len(words & set(words_of(later))) >= REPEAT_SHARE * len(words)


def dealt_with(ledger: Ledger, ask: Ask) -> bool:
    """Whether most of the telling words of a request stand in what the assistant said or did after it."""
    rare = max(3, ledger.vocabulary.messages // RARE_SHARE)
    telling = {
        word for word in words_of(ask.text) if len(word) > 2 and ledger.vocabulary.frequency.get(word, 0) <= rare
    }
    later = sum(ledger.spoken.get(word, 0) > ask.number for word in telling)
    return later >= DEALT_SHARE * len(telling)


def _only_rules(ask: Ask) -> bool:
    sentences = [sentence for sentence in _SENTENCES.split(ask.text) if sentence.strip()]
    return bool(sentences) and all(read(sentence).kind in _STANDING for sentence in sentences)


_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_STANDING = (RuleKind.CONSTRAINT, RuleKind.PREFERENCE)


def goal(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What the conversation set out to do: the first request, when it is folded."""
    first = next((ask for ask in ledger.asks if ask.text.strip()), None)
    return [_ask_line(first)] if first is not None and first.number in covered else []


def _ask_line(ask: Ask, reason: str = "") -> HandoffLine:
    return HandoffLine(clip(ask.text.strip(), ASK_CHARS) + reason, (ask.number,), LineOrigin.USER)


def change_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Values that were replaced, newest change first: what holds now, and what held before."""
    lines = []
    for change in ledger.values.latest():
        if change.was_since in covered:
            subject = one_line(change.subject, SUBJECT_CHARS)
            told = f"{subject}: now {change.value} [m{change.since}], was {change.was} until then"
            lines.append(HandoffLine(told, (change.was_since,), LineOrigin.PROGRAM))
    return lines


def announced_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Sentences that say how something is from here on, those that tell most first."""
    found = [
        (unit.score, number, facts.role, unit.text)
        for number, facts in ledger.facts.items()
        if number in covered and facts.role in ("user", "assistant")
        for unit in facts.units
        if ANNOUNCED.search(unit.text) and len(unit.text) <= ANSWER_CHARS
    ]
    found.sort(key=lambda line: (-line[0], line[1]))
    return [HandoffLine(text, (number,), LineOrigin(role)) for _, number, role, text in found]


def read_change(line: HandoffLine) -> Change | None:
    """The change that a line of `change_lines` tells."""
    subject, now, rest = line.text.partition(": now ")
    found = _CHANGED.search(rest)
    if line.origin is not LineOrigin.PROGRAM or not line.sources or not now or found is None:
        return None
    was = rest[found.end() :].removesuffix(" until then")
    return Change(subject, rest[: found.start()], int(found[1]), was, line.sources[0], subject, "")


_CHANGED = re.compile(r" \[m(\d{1,9})\], was ")


def marked(ledger: Ledger, lines: Iterable[HandoffLine]) -> list[HandoffLine]:
    """The user's lines, with a mark behind each value that was replaced since."""
    return [
        replace(line, text=ledger.values.marked(line.sources[0], line.text))
        if line.sources and line.origin is LineOrigin.USER and not line.text.startswith(ENDED)
        else line
        for line in lines
    ]


def file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Files by what was done to them: changed ones first, newest first."""
    known = [entry for entry in ledger.files.values() if entry.last in covered]
    known.sort(key=lambda entry: (entry.edits == 0, -entry.last))
    root = common_folder(ledger.files)
    lines = [HandoffLine(f"{ROOT_LINE}{root}", (known[0].last,), LineOrigin.PROGRAM)] if root and known else []
    for entry in known:
        done = [f"changed ×{entry.edits}"] if entry.edits else []
        if entry.reads:
            done.append(f"read{''.join(entry.spans[-3:])}" if entry.spans else "read")
        lines.append(HandoffLine(f"{inside(entry.path, root)} ({', '.join(done)})", (entry.last,), LineOrigin.PROGRAM))
    return lines


def state_lines(ledger: Ledger) -> list[HandoffLine]:
    """Where the work stands: the last check and the last repository action."""
    lines = []
    for label, works in (("Last check", ("check",)), ("Last repository action", ("git_write",))):
        action = next((a for a in reversed(ledger.actions) if a.call.work in works), None)
        if action is not None:
            what = one_line(inside(action.call.target, common_folder(ledger.files)), ACTION_CHARS)
            lines.append(
                HandoffLine(f"{label}: {what} → {action.outcome or action.ended}", (action.number,), LineOrigin.PROGRAM)
            )
    return lines


def todo_lines(ledger: Ledger) -> list[HandoffLine]:
    """The open items of the agent's own to-do list, as it last stood."""
    if ledger.todo is None:
        return []
    number, call = ledger.todo
    items = next((v for v in call.parsed().values() if isinstance(v, list)), [])
    lines = []
    for item in items:
        if not isinstance(item, dict):
            continue
        text = next((item[key] for key in ("content", "step", "text", "title") if isinstance(item.get(key), str)), "")
        status = str(item.get("status", ""))
        if text and status not in ("completed", "done", "cancelled"):
            lines.append(
                HandoffLine(f"{one_line(text, ANSWER_CHARS)} ({status or 'open'})", (number,), LineOrigin.ASSISTANT)
            )
    return lines
