"""Checking a model's narrative against the turns it covers. Deterministic; what has no support goes.

A line stays when the turns hold every name, number and quotation in it, when they say the same of them (not the
opposite, not of something else, not as a plan what it calls done), and when whoever it says asked for something did so.
Instructions come from the user alone: a line among the constraints, tasks and pending asks must be in a user's words.
What the model left out and a successor needs is counted, and named.
"""

from __future__ import annotations

from dataclasses import replace

from leporello.records import Verification
from leporello.summary.base import SummaryTask
from leporello.summary.handoff import Handoff, Line, Origin, Section
from leporello.summary.support.evidence import Evidence, fold
from leporello.summary.support.judge import Judge, Verdict
from leporello.summary.support.reading import is_name
from leporello.summary.support.speakers import Speakers

INSTRUCTIONS = (Section.ACTIVE_TASK, Section.CONSTRAINTS, Section.PENDING)
"""Sections that a successor may read as orders: only the user's words belong there."""
LEAST_MENTIONS = 3
LEAST_NAME_CHARS = 5
MOST_NAMED = 8


def verify(handoff: Handoff, task: SummaryTask) -> tuple[Handoff, Verification]:
    """The handoff without unsupported lines and with the names it lacked, and the counts."""
    source = Source(task)
    kept: dict[Section, list[Line]] = {}
    dropped: list[str] = []
    checked = 0
    for section, line in handoff.lines():
        checked += 1
        if source.supports(line, section):
            kept.setdefault(section, []).append(source.located(line))
        else:
            dropped.append(line.text)
    told = fold("\n".join(line.text for lines in kept.values() for line in lines))
    lacking = [name for name in source.heavy_names() if name not in told][:MOST_NAMED]
    if lacking:
        line = Line("Also named more than once: " + ", ".join(lacking), (), Origin.PROGRAM)
        kept.setdefault(Section.CRITICAL, []).append(line)
    return Handoff({section: tuple(kept[section]) for section in Section if section in kept}), Verification(
        lines_checked=checked,
        lines_dropped=len(dropped),
        rules_added=sum(fold(rule) not in told for rule in task.rules),
        identifiers_added=len(lacking),
        dropped=tuple(dropped),
    )


class Source:
    """The covered turns, prepared for look-ups."""

    def __init__(self, task: SummaryTask) -> None:
        self.evidence = Evidence(task.messages, task.previous)
        self.judge = Judge(self.evidence)
        self.speakers = Speakers(self.evidence)
        self._verdicts: dict[Line, Verdict] = {}

    def supports(self, line: Line, section: Section) -> bool:
        """Whether a line may stay where it stands."""
        return not self.why_not(line, section)

    def why_not(self, line: Line, section: Section) -> str:
        """Why a line can't stay where it stands; empty when it can."""
        if section in INSTRUCTIONS and not self.speakers.said_by("user", line.text, line.sources):
            return "not the user's words"
        if section is Section.GOAL and self.speakers.only_a_tool(line):
            return "only a tool's words"
        if not self.speakers.rightly_named(line):
            return "said by somebody else"
        return self._verdict(line).why_not

    def _verdict(self, line: Line) -> Verdict:
        known = self._verdicts.get(line)
        if known is None:
            known = self._verdicts[line] = self.judge.judge(line)
        return known

    def located(self, line: Line) -> Line:
        """The line with the ids where it is supported, when the ids it came with are wrong."""
        found = self._verdict(line).sources
        return replace(line, sources=found) if found else line

    def heavy_names(self) -> list[str]:
        """Names that the user or the assistant spoke of and that turn up in several messages, most often first."""
        heavy: list[tuple[int, str]] = []
        for key, posting in self.evidence.postings.items():
            if len(posting) < LEAST_MENTIONS or len(key) < LEAST_NAME_CHARS or key[0] == "-" or not is_name(key):
                continue
            places = [self.evidence.segments[place] for place in posting]
            count = len({segment.number for segment in places})
            if count >= LEAST_MENTIONS and any(segment.role in ("user", "assistant") for segment in places):
                heavy.append((count, key))
        return [name for _, name in sorted(heavy, key=lambda entry: (-entry[0], entry[1]))]
