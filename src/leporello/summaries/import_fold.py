"""Taking over a believed fold whose messages are not known here: its lines become facts again, with their ids.

That is how a plain list of messages can be folded again and again by programs that never saw the beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import CallFacts
from leporello.ledger.days import split_stamp
from leporello.ledger.facts import MessageFacts, scored_units
from leporello.ledger.importance import Source
from leporello.ledger.ledger import Action, Ask, Ledger, Pinned, Rule
from leporello.summaries import unverified
from leporello.summaries.deterministic import quoted
from leporello.summaries.episodes import TOLD
from leporello.summaries.fold import ViewFold
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin, Section
from leporello.summaries.sections import ATTACHED, ROOT_LINE, read_file_line
from leporello.summaries.value_marks import read_change

_AS_PROSE = (Section.DECISIONS, Section.RESOLVED, Section.CRITICAL, Section.BLOCKED, Section.IN_PROGRESS)
"""Sections whose lines are sentences like any others and compete with them for room."""
_NUMBER = lazy_regex(r"[0-9]{1,9}")


def inherit(ledger: Ledger, *folds: ViewFold, shortened: Collection[int] = ()) -> None:
    """Put what folds say into the ledger, for the messages the ledger doesn't know itself.

    Folds of one view are given together: two of them may speak of the same message. Of messages that are `shortened`
    the ledger knows that they were there, and only folds know all that they say.
    """
    lines = list(_unknown(folds, set(ledger.facts), shortened))
    texts: dict[int, list[tuple[str, str]]] = {}
    headings: dict[int, str] = {}
    media: dict[int, list[str]] = {}
    root = ""
    _inherit_unverified(ledger, folds)
    for section, line in lines:
        number = line.sources[0]
        if section is Section.PINNED:
            ledger.pins.setdefault(number, Pinned(line.origin.value, line.text))
        elif section is Section.CONSTRAINTS and line.origin is LineOrigin.USER:
            _inherit_rule(ledger, number, line.text)
        elif section is Section.USER_SAID:
            texts.setdefault(number, []).extend(("user", part) for part in quoted(line.text))
        elif section in _AS_PROSE:
            _inherit_prose(ledger, section, line, texts)
        elif section is Section.INDEX:
            _inherit_index(number, line, texts, headings)
        elif section is Section.COMPLETED:
            _inherit_action(ledger, number, line)
        elif section is Section.FILES:
            root = _inherit_file(ledger, line, root, media)
        elif section in (Section.PENDING, Section.GOAL):
            _inherit_ask(ledger, number, line.text, answered=section is Section.GOAL)
    for number, pieces in sorted(texts.items()):
        _put(ledger, number, pieces, headings.get(number, ""))
    ledger.facts |= {
        number: replace(ledger.facts.get(number, MessageFacts("")), media=tuple(told)) for number, told in media.items()
    }
    ledger.rules.sort(key=lambda rule: rule.number)
    ledger.asks.sort(key=lambda ask: ask.number)


def _unknown(
    folds: Iterable[ViewFold], known: Collection[int], shortened: Collection[int]
) -> Iterator[tuple[Section, HandoffLine]]:
    """The lines of folds that say something of messages which are not known, or not what they say."""
    for section, line in (pair for fold in folds for pair in fold.handoff.verified.lines()):
        about = line.sources[0] if line.sources else None
        if about is not None and (about not in known or (section is Section.INDEX and about in shortened)):
            yield section, line


def _inherit_unverified(ledger: Ledger, folds: Iterable[ViewFold]) -> None:
    """Lines that nobody vouched for when the folds were written stay what they are."""
    found: dict[int, list[tuple[Section, HandoffLine]]] = {}
    for section, line in (pair for fold in folds for pair in fold.handoff.lines()):
        if line.origin is LineOrigin.UNVERIFIED and line.sources and line.sources[0] not in ledger.facts:
            found.setdefault(line.sources[0], []).append((section, line))
    for number, lines in found.items():
        ledger.facts[number] = MessageFacts("")
        unverified.add(ledger, number, lines)


def _inherit_action(ledger: Ledger, number: int, line: HandoffLine) -> None:
    told = CallFacts("", TOLD, "", line.text, "")
    ledger.actions.append(Action(number, told, "", failed=False, outcome=str(line.ordinal)))


def _inherit_file(ledger: Ledger, line: HandoffLine, root: str, media: dict[int, list[str]]) -> str:
    """Take one file over; the line that names the common folder gives the root of those after it."""
    if line.text.startswith(ROOT_LINE):
        return line.text.removeprefix(ROOT_LINE)
    if line.text.startswith(ATTACHED):
        media.setdefault(line.sources[0], []).append(line.text.removeprefix(ATTACHED).partition("; ")[0])
        return root
    entry = read_file_line(line, root)
    ledger.files.setdefault(entry.path, entry)
    return root


def _inherit_ask(ledger: Ledger, number: int, text: str, *, answered: bool) -> None:
    if all(ask.number != number for ask in ledger.asks):
        ledger.add_ask(Ask(number, text, number if answered else None))


def _inherit_rule(ledger: Ledger, number: int, text: str) -> None:
    if text.startswith(ENDED):
        since, _, rest = text.removeprefix(ENDED).partition(": ")
        ledger.rules.append(Rule(number, rest, int(since) if _NUMBER.fullmatch(since) else number))
    elif all(rule.text != text for rule in ledger.rules):
        ledger.rules.append(Rule(number, text))


def _inherit_prose(
    ledger: Ledger, section: Section, line: HandoffLine, texts: dict[int, list[tuple[str, str]]]
) -> None:
    number = line.sources[0]
    change = read_change(line)
    if change is not None:
        ledger.stated.note(change)
        return
    if section is Section.CRITICAL and line.origin is LineOrigin.TOOL:
        about, _, told = line.text.partition(": ")
        facts = ledger.facts.setdefault(number, MessageFacts(""))
        ledger.facts[number] = replace(facts, records=(*facts.records, (about, told)))
        return
    role = "user" if line.origin is LineOrigin.USER else "assistant"
    texts.setdefault(number, []).append((role, line.text))


def _inherit_index(
    number: int, line: HandoffLine, texts: dict[int, list[tuple[str, str]]], headings: dict[int, str]
) -> None:
    parts = line.text.split("\n")
    if line.origin is LineOrigin.TOOL and len(parts) > 1:
        headings[number] = parts.pop(0)
    role = "tool" if line.origin is LineOrigin.TOOL else "assistant"
    pieces = parts if role == "tool" else quoted("\n".join(parts))
    texts.setdefault(number, []).extend((role, part) for part in pieces)


def _put(ledger: Ledger, number: int, pieces: list[tuple[str, str]], heading: str) -> None:
    role = pieces[0][0]
    day = ""
    if role != "tool":
        day, told = split_stamp(pieces[0][1])
        pieces[0] = (role, told)
    units = [(text, position) for position, (_, text) in enumerate(pieces)]
    name, _, target = heading.partition(": ")
    call = CallFacts(name or "tool", "other", "", target, "") if role == "tool" else None
    source = Source(role, sum(len(text) for text, _ in units), len(units))
    known = ledger.facts.get(number, MessageFacts(""))
    scored = scored_units(ledger.vocabulary, source, units)
    ledger.facts[number] = replace(known, role=role, units=scored, answers=known.answers or call, day=day or known.day)
    ledger.stated.set(number, (text for _, text in pieces))
