"""Sections of a handoff that the ledger can state as plain facts: rules, answers, files, records, announcements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.importance import words_of
from leporello.ledger.ledger import FileFacts, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.rules import MESSAGES_LOOKED_AT, is_small_talk
from leporello.ledger.value_patterns import ANNOUNCED
from leporello.summaries.answers import (
    ANSWER_CHARS,
    HEADS_OR_ASKS,
    answer_to,
    is_claim,
    is_question,
    unsettled,
)
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

CountText = Callable[[str], int]
SUBJECT_CHARS = 80
MOST_RESOLVED = 12
SAME_RECORD = 0.5
ROOT_LINE = "All paths below are inside "
MOST_DETAILED = 8
MOST_CHANGES = 2
MOST_READ = 12
ATTACHED = "Attached: "
MOST_ATTACHED = 8


def within(
    lines: Sequence[HandoffLine], budget: int, count: CountText, *, newest_first: bool = False
) -> list[HandoffLine]:
    """As many lines as fit, in their order; `newest_first` gives up the oldest ones instead of the last."""
    chosen: list[HandoffLine] = []
    used = 0
    for line in reversed(lines) if newest_first else lines:
        cost = count(line.text) + 6
        if used + cost > budget:
            if line.ordinal:
                break  # a story has no gaps
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


def pin_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Pinned messages that are folded, word for word."""
    return [
        HandoffLine(pinned.text, (number,), LineOrigin(pinned.role))
        for number, pinned in sorted(ledger.pins.items())
        if number in covered and pinned.text.strip()
    ]


def chats(ledger: Ledger) -> bool:
    """Whether people talk about life, and do no work."""
    return is_talk(ledger) and is_small_talk([ask.text for ask in ledger.asks[-MESSAGES_LOOKED_AT:]])


def resolved_questions(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What the user asked as a question and the assistant answered, with the sentence that answers it.

    An answer that the user did not accept resolved nothing, and small talk has nothing to resolve.
    """
    lines: list[HandoffLine] = []
    against = unsettled(ledger)
    for ask in () if chats(ledger) else reversed(ledger.asks):
        if ask.answered_by not in covered or ask.answered_by in against or not is_question(ledger, ask):
            continue
        answer = answer_to(ledger, ask)
        if answer and ask.answered_by:
            text = f"“{one_line(ask.text.strip(), SUBJECT_CHARS)}” → {answer}"
            lines.append(HandoffLine(text, (ask.answered_by, ask.number), LineOrigin.ASSISTANT))
            if len(lines) == MOST_RESOLVED:
                break
    return lines[::-1]


def announced_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Sentences that say how something is from here on, those that tell most first.

    Where nothing is done, in a talk, only the user's: an assistant that only advises changes nothing. Where work is
    done, of the assistant's only claims of the words that closed a turn, unless they did not hold: what it says between
    its calls is on the way. In small talk nothing is announced that work could depend on.
    """
    if chats(ledger):
        return []
    talk, against = is_talk(ledger), unsettled(ledger)
    closing = {ask.answered_by for ask in ledger.asks} - against.keys()
    found = [
        (unit.score, number, facts.role, unit.text)
        for number, facts in ledger.facts.items()
        if number in covered
        if facts.role == "user" or (facts.role == "assistant" and not talk and number in closing)
        # Most messages announce nothing: the automaton reads each as a whole.
        if ANNOUNCED.may_match("\n".join(unit.text for unit in facts.units))
        for unit in facts.units
        # What was only pasted is nobody's word for it.
        if len(unit.text) <= ANSWER_CHARS
        and unit.position not in facts.quoted
        and ANNOUNCED.search(unit.text)
        and not HEADS_OR_ASKS.search(unit.text)
        and ("?" not in unit.text if facts.role == "user" else is_claim(unit.text))
    ]
    found.sort(key=lambda line: (-line[0], line[1]))
    return [HandoffLine(text, (number,), LineOrigin(role)) for _, number, role, text in found]


def record_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What tools said of things with an id, as told last; those first that stand in most messages."""
    newest: dict[str, list[tuple[int, list[str]]]] = {}
    for number, facts in sorted(ledger.facts.items()):
        for about, told in facts.records:
            parts = told.split("; ")
            names = {part.partition(" ")[0] for part in parts}
            # Another tool may have told something else of the same thing: what is not told anew still holds.
            others = [(n, old) for n, old in newest.get(about, ()) if _share(old, names) < SAME_RECORD]
            newest[about] = [*others, (number, parts)]
    said: set[str] = set()
    lines = []
    spoken = ledger.vocabulary.frequency
    for about in sorted(newest, key=lambda about: -spoken.get(words_of(about)[-1], 0)):
        for number, facets in newest[about]:
            if number in covered:
                parts = [part for part in facets if not (part in said and _OWNER.match(part))]
                said.update(parts)
                lines.append(HandoffLine(f"{about}: {'; '.join(parts)}", (number,), LineOrigin.TOOL))
    return lines


def told_as_records(ledger: Ledger, lines: Iterable[HandoffLine]) -> Iterator[str]:
    """The output that need not be quoted: what stands among these lines as records, all of it.

    Without files nothing but records tells how things stand, and they say more in less room than their output: none of
    it is quoted.
    """
    told = Counter(line.sources[0] for line in lines if line.origin is LineOrigin.TOOL)
    for number in told if ledger.files else ledger.facts:
        facts = ledger.facts[number]
        if facts.records and (len(facts.records) <= told[number] or not ledger.files):
            yield from (unit.text for unit in facts.units)


_OWNER = lazy_regex(r"\w{1,60}_id |address ")
"""What many records of one person say alike."""


def _share(parts: Collection[str], names: Collection[str]) -> float:
    return sum(part.partition(" ")[0] in names for part in parts) / len(parts)


def attached_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Images, documents and sound that are folded away; their message, opened again, has them whole."""
    found = [
        HandoffLine(f"{ATTACHED}{told}; the message holds it whole", (number,), LineOrigin.PROGRAM)
        for number in sorted(covered)
        if number in ledger.facts
        for told in ledger.facts[number].media
    ]
    return found[-MOST_ATTACHED:]


def attached_and_file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    return [*attached_lines(ledger, covered), *file_lines(ledger, covered)]


def file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Files by what was done to them: changed ones first, newest first; those too that are still being worked on."""
    known = [
        entry
        for entry in ledger.files.values()
        if entry.last in covered or (entry.edits and (entry.first or entry.last) in covered)
    ]
    known.sort(key=lambda entry: (entry.edits == 0, -entry.last))
    del known[sum(entry.edits > 0 for entry in known) + MOST_READ :]
    root = common_folder(ledger.files)
    lines = [HandoffLine(f"{ROOT_LINE}{root}", (known[0].last,), LineOrigin.PROGRAM)] if root and known else []
    commits = any(entry.committed for entry in ledger.files.values())
    for place, entry in enumerate(known):
        done = _done(entry, commits=commits, changes=MOST_CHANGES if place < MOST_DETAILED else 0)
        told = f"{inside(entry.path, root)} ({'; '.join(done)})"
        sources = (entry.last,) if entry.last in covered else (entry.first, entry.last)
        lines.append(HandoffLine(told, sources, LineOrigin.PROGRAM))
    return lines


def _done(entry: FileFacts, *, commits: bool, changes: int) -> Iterator[str]:
    """What was done to a file, and the newest changes; whether it was committed is told where commits were made."""
    if entry.edits:
        what = ", then ".join(list(filter(None, entry.changes))[-changes:]) if changes else ""
        yield f"changed ×{entry.edits}" + (f": {what}" if what else "")
        if entry.committed >= entry.edited:
            yield f"committed m{entry.committed}"
        elif commits:
            yield "changed since the commit" if entry.committed else "not committed"
    if entry.reads:
        yield f"read{''.join(entry.spans[-2:])}" if entry.spans else "read"


def read_file_line(line: HandoffLine, root: str) -> FileFacts:
    """The file that a line of `file_lines` tells of."""
    told = _TOLD.search(line.text)
    path = line.text[: told.start()] if told else line.text
    done = line.text[told.end() :] if told else ""
    path = path if path.startswith("/") else root + path
    entry = FileFacts(path, first=line.sources[0], last=line.sources[-1])
    for part in done.removesuffix(")").split("; "):
        if changed := _CHANGED_TIMES.match(part):
            entry.edits, entry.edited = int(changed[1]), entry.last
            entry.changes = changed[2].split(", then ") if changed[2] else []
        elif part.startswith("committed m"):
            entry.committed = entry.last + 1
        elif part.startswith("read"):
            entry.reads = 1
    return entry


_TOLD = lazy_regex(r" \((?=changed ×|read)")
_CHANGED_TIMES = lazy_regex(r"changed ×(\d{1,6})(?:: (.*))?")
