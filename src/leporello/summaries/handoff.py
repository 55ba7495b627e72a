"""The handoff: the typed summary that stands for a folded span.

Thirteen sections, in the order a successor needs them, plus appendices that the program fills from the ledger: pinned
messages, what the user said, and an index of facts. Every line carries the ids of the messages it comes from, and who
said it, so that text from a tool can never turn into an instruction. `render` and `parse` are inverse to each other: a
plain list of messages carries its own state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from leporello.lazy_regex import lazy_regex
from leporello.redact import redact


class Section(StrEnum):
    """The sections, named and ordered as they are printed.

    Where the work stands, rules, open asks, decisions, files, the story of the work, and only then single facts.
    """

    ACTIVE_TASK = "Active Task"
    GOAL = "Goal"
    IN_PROGRESS = "In Progress"
    STATE = "Active State"
    BLOCKED = "Blocked"
    REMAINING = "Remaining Work"
    CONSTRAINTS = "Constraints & Preferences"
    PENDING = "Pending User Asks"
    RESOLVED = "Resolved Questions"
    DECISIONS = "Key Decisions"
    FILES = "Relevant Files"
    COMPLETED = "Completed Actions"
    CRITICAL = "Critical Context"
    PINNED = "Pinned Messages"
    USER_SAID = "User Messages"
    INDEX = "Index"


APPENDICES = (Section.PINNED, Section.USER_SAID, Section.INDEX)

ENDED = "No longer in force since m"
"""How the line of a rule begins that was taken back."""
NONE_LINE = "None."
SAYS_NONE = (Section.ACTIVE_TASK, Section.PENDING)
"""Sections that say so when they are empty: silence there would be read as an open question."""


class LineOrigin(StrEnum):
    """Who a line of a handoff comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    MODEL = "model"
    PROGRAM = "program"
    UNVERIFIED = "unverified"
    """An earlier summary in the list that nobody vouches for, whoever it says the words come from."""


USUAL_ORIGIN = {
    Section.ACTIVE_TASK: LineOrigin.USER,
    Section.CONSTRAINTS: LineOrigin.USER,
    Section.PENDING: LineOrigin.USER,
    Section.PINNED: LineOrigin.USER,
    Section.USER_SAID: LineOrigin.USER,
    Section.COMPLETED: LineOrigin.PROGRAM,
    Section.STATE: LineOrigin.PROGRAM,
    Section.BLOCKED: LineOrigin.TOOL,
    Section.REMAINING: LineOrigin.ASSISTANT,
    Section.DECISIONS: LineOrigin.ASSISTANT,
    Section.RESOLVED: LineOrigin.ASSISTANT,
    Section.FILES: LineOrigin.PROGRAM,
    Section.INDEX: LineOrigin.TOOL,
}
"""Who the lines of a section come from unless the line says otherwise; printing it each time would cost tokens."""


@dataclass(frozen=True, slots=True)
class HandoffLine:
    """One line of a handoff. `sources` are message numbers; program-made lines may have none."""

    text: str
    sources: tuple[int, ...] = ()
    origin: LineOrigin = LineOrigin.MODEL
    ordinal: int = field(default=0, compare=False)
    """The number of a completed action, counted over the whole conversation; 0: not known."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """Lines by section; sections without lines are absent."""

    sections: Mapping[Section, tuple[HandoffLine, ...]] = field(default_factory=dict)

    def __getitem__(self, section: Section) -> tuple[HandoffLine, ...]:
        return self.sections.get(section, ())

    def lines(self) -> Iterator[tuple[Section, HandoffLine]]:
        for section in Section:
            for line in self[section]:
                yield section, line

    def replace(self, section: Section, lines: Iterable[HandoffLine]) -> Handoff:
        changed = dict(self.sections)
        changed[section] = tuple(lines)
        return Handoff({key: value for key, value in changed.items() if value})

    @property
    def verified(self) -> Handoff:
        """Only the lines somebody vouches for."""
        kept = {
            s: tuple(x for x in lines if x.origin is not LineOrigin.UNVERIFIED) for s, lines in self.sections.items()
        }
        return Handoff({section: lines for section, lines in kept.items() if lines})

    @property
    def unverified(self) -> int:
        """How many lines nobody vouches for."""
        return sum(line.origin is LineOrigin.UNVERIFIED for _, line in self.lines())

    @property
    def empty(self) -> bool:
        return not any(self.sections.values())


def joined(*handoffs: Handoff) -> Handoff:
    """Several handoffs as one: section by section, in the order given."""
    made: dict[Section, tuple[HandoffLine, ...]] = {}
    for handoff in handoffs:
        for section, lines in handoff.sections.items():
            made[section] = (*made.get(section, ()), *lines)
    return Handoff(made)


def redacted(handoff: Handoff) -> Handoff:
    """The handoff without secrets: a masked value, the line stays."""
    return Handoff(
        {
            section: tuple(replace(line, text=redact(line.text)) for line in lines)
            for section, lines in handoff.sections.items()
            if lines
        }
    )


_ORIGINS = "|".join(LineOrigin)
_TAG = lazy_regex(rf" ?\[(m\d{{1,9}}(?:,m\d{{1,9}})*)?(?: ?({_ORIGINS}))?\]$")
_NUMBER = lazy_regex(r"^(\d{1,9})\. ")
_BULLET = lazy_regex(r"[-*•] (?=\S)")
_QUOTED = (Section.USER_SAID, Section.INDEX)
"""Sections of many short quotations: the id stands before the words, which takes less room than bullet and tag."""
_LEAD = lazy_regex(rf"m(\d{{1,9}})(?: ({_ORIGINS}))?: ")


def render(handoff: Handoff, says_none: Collection[Section] = SAYS_NONE) -> str:
    """The handoff as Markdown. Completed actions are numbered; continuation lines are indented by two spaces."""
    out: list[str] = []
    for section in Section:
        lines = handoff[section]
        if not lines and section not in says_none:
            continue
        out.append(f"## {section.value}")
        if not lines:
            out.append(NONE_LINE)
        for number, line in enumerate(lines, 1):
            text = _verbatim(line.text) if section is Section.PINNED else _indent(line.text)
            if section in _QUOTED and len(line.sources) == 1:
                out.append(f"{_said_in(line, section)}: {text}")
                continue
            lead = f"{line.ordinal or number}. " if section is Section.COMPLETED else "- "
            if section is not Section.PINNED:
                # What was an item of a list where it was said is one here.
                bullet = _BULLET.match(text)
                text = text[bullet.end() :] if bullet else text
            said = _said_in(line, section)
            out.append(lead + text + (f" [{said}]" if said else ""))
    return "\n".join(out)


def parse(text: str, origin: LineOrigin | None = None) -> Handoff:
    """The handoff in a Markdown text. `origin` is who wrote it; without it, it is one of our own folds.

    Text before the first known heading is left out; unknown headings are read as lines.
    """
    sections: dict[Section, list[HandoffLine]] = {}
    current: Section | None = None
    pending: list[str] = []

    def flush() -> None:
        if current is not None and pending:
            line = _read_line("\n".join(pending), current, origin)
            if line is not None:
                sections.setdefault(current, []).append(line)
        pending.clear()

    for raw in text.split("\n"):
        heading = _heading(raw)
        if heading is not None:
            flush()
            current = heading
        elif raw.startswith("  ") and pending:
            pending.append(raw[2:])
        elif raw.strip():
            flush()
            pending.append(raw if current is Section.PINNED else raw.rstrip())
        elif pending:
            flush()
    flush()
    return Handoff({section: tuple(lines) for section, lines in sections.items() if lines})


_BY_NAME = {section.value.casefold(): section for section in Section}
_HEADING = lazy_regex(r"^(?:#{1,4}\s++|\*\*)(?:\d++[.)]\s*+)?(.*?)(?:\*\*)?:?$")


def _heading(raw: str) -> Section | None:
    match = _HEADING.match(raw.rstrip())
    if not match:
        return None
    return _BY_NAME.get(match.group(1).replace(" and ", " & ").strip().casefold())


def _read_line(text: str, section: Section, written_by: LineOrigin | None) -> HandoffLine | None:
    usual = written_by or USUAL_ORIGIN.get(section, LineOrigin.MODEL)
    lead = _LEAD.match(text) if section in _QUOTED else None
    if lead:
        return HandoffLine(text[lead.end() :], (int(lead[1]),), LineOrigin(lead[2]) if lead[2] else usual)
    numbered = _NUMBER.match(text)
    ordinal = int(numbered[1]) if numbered else 0
    text = text[numbered.end() :] if numbered else text.removeprefix("- ")
    if text.strip().casefold().rstrip(".") in ("none", "n/a", "(none)", ""):
        return None
    match = _TAG.search(text)
    if not match or not (match.group(1) or match.group(2)):
        return HandoffLine(text, (), usual, ordinal)
    numbers = tuple(int(part[1:]) for part in match.group(1).split(",")) if match.group(1) else ()
    return HandoffLine(text[: match.start()], numbers, LineOrigin(match.group(2)) if match.group(2) else usual, ordinal)


def _indent(text: str) -> str:
    # Empty lines would end the entry when it is read back.
    return "\n  ".join(line for line in text.splitlines() if line.strip())


def _verbatim(text: str) -> str:
    """Every line as it is, empty ones too: they are indented like the others and so belong to the entry."""
    return "\n  ".join(text.split("\n"))


def _said_in(line: HandoffLine, section: Section) -> str:
    """The ids of a line, and who it comes from where that is not usual."""
    words = [",".join(f"m{number}" for number in line.sources)] if line.sources else []
    if line.origin is not USUAL_ORIGIN.get(section):
        words.append(line.origin.value)
    return " ".join(words)


def to_json(handoff: Handoff) -> dict[str, list[dict[str, object]]]:
    """The handoff as a JSON value, for the store and for programs."""
    return {
        section.value: [
            {"text": line.text, "sources": list(line.sources), "origin": line.origin.value} for line in handoff[section]
        ]
        for section in Section
        if handoff[section]
    }
