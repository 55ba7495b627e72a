"""Checking a model's narrative against the turns it covers. Deterministic; quotes when in doubt.

A line stays in the model's words when the turns plainly say it: every name, number, word and "not" of it is accounted
for, of the same things, by whom it says. A line that is wrong or in doubt gives way to the one or two sentences it is
nearest to, verbatim, with their ids and their true origin; when no sentence holds its names and numbers, it goes.
Instructions come from the user alone: a line among the constraints, tasks and pending asks must be in a user's words.
What the model left out and a successor needs is counted, and named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from msgspec import Struct, field

from leporello.events import Verification
from leporello.lazy_regex import lazy_regex
from leporello.ledger.units import clip
from leporello.summaries.base import SummaryTask
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.verify.evidence import Evidence, Segment, fold, plain
from leporello.summaries.verify.judge import Judge, LineVerdict
from leporello.text_features.sentences import ELLIPSIS, QUOTED, Reading, is_name, read

INSTRUCTIONS = (Section.ACTIVE_TASK, Section.CONSTRAINTS, Section.PENDING)
"""Sections that a successor may read as orders: only the user's words belong there."""
LEAST_MENTIONS = 3
LEAST_NAME_CHARS = 5
MOST_NAMED = 8


CHARS_PER_TOKEN = 3
"""A summary in which lines became quotations still has room for this much."""

BACKED_SHARE = 0.6
FOREIGN_SHARE = 0.9
"""Of a claim that cites only messages of somebody else, more must be found in the words of whom it names."""
NOT_LESS_THAN_OTHERS = 0.85
SPEAKERS = ("user", "assistant", "tool")

_NAMED = (
    (
        "user",
        lazy_regex(
            r"\b(?:asked|requested|decided|said|wanted|approved) (?:for )?by the user\b|用户|\b(?:the )?user'?s "
            r"(?:rule|request|decision|preference|wish)\b"
            r"|\b(?:the )?user (?:has |had |have )?(?:\w+ly )?(?!is\b|was\b|'s)[a-z]+\b",
            re.IGNORECASE,
        ),
    ),
    (
        "assistant",
        lazy_regex(
            r"\b(?:the )?(?:assistant|agent|ai|model) (?:\w+ )?(?:asks?|asked|wants?|wanted|says?|said|decides|decided"
            r"|proposes|proposed|suggests?|suggested|reports?|reported|forbids|forbade|recommends?|recommended|explains?"
            r"|explained|concluded|promised|offered|announced|claimed)\b|助手(?:说|建议|提出|认为|决定)",
            re.IGNORECASE,
        ),
    ),
    (
        "tool",
        lazy_regex(
            r"\b(?:the )?(?:tool|tests?|command|build|compiler|linter|logs?|page|web page|server|terminal)"
            r"(?: output| run| log)? (?:asks?|asked|wants?|says?|said|reports?|reported|prints|printed|shows|showed"
            r"|forbids|states|stated|returned)\b|(?:日志|输出|页面)(?:说|显示|要求)",
            re.IGNORECASE,
        ),
    ),
)
"""Who a claim says something was said, asked or done by; whatever the user is said to have done, the user must tell."""


def verify(handoff: Handoff, task: SummaryTask) -> tuple[Handoff, Verification]:
    """The handoff as its source has it, with the names it lacked, and the counts."""
    source = CoveredTurns(task)
    checked = list(handoff.lines())
    made = _Made(spare=task.budget * CHARS_PER_TOKEN - sum(len(line.text) for _, line in checked))
    dropped: list[str] = []
    quoted = 0
    for section, line in checked:
        if source.supports(line, section):
            made.put(section, source.located(line))
        elif made.quote(source.quoted(line, section), len(line.text)):
            quoted += 1
        else:
            dropped.append(line.text)
    told = fold("\n".join(line.text for lines in made.sections.values() for line in lines))
    lacking = [name for name in source.heavy_names() if name not in told][:MOST_NAMED]
    if lacking:
        made.put(
            Section.CRITICAL, HandoffLine("Also named more than once: " + ", ".join(lacking), (), LineOrigin.PROGRAM)
        )
    return made.handoff(), Verification(
        lines_checked=len(checked),
        lines_dropped=len(dropped),
        rules_added=sum(fold(rule) not in told for rule in task.rules),
        identifiers_added=len(lacking),
        dropped=tuple(dropped),
        lines_quoted=quoted,
    )


class _Made(Struct):
    """The handoff in the making. Nothing is quoted twice, and quotations don't take more room than there is."""

    spare: int
    sections: dict[Section, list[HandoffLine]] = field(default_factory=dict)
    _said: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)

    def put(self, section: Section, line: HandoffLine) -> None:
        self.sections.setdefault(section, []).append(line)
        self._said.add((plain(line.text), line.sources))

    def quote(self, quotations: Sequence[tuple[Section, HandoffLine]], freed: int) -> bool:
        """Add what is not there yet in place of a line of so many characters; False when there is none, or no room."""
        new = [(section, line) for section, line in quotations if (plain(line.text), line.sources) not in self._said]
        growth = sum(len(line.text) for _, line in new) - freed
        if not quotations or growth > max(0, self.spare):
            return False
        self.spare -= growth
        for section, line in new:
            self.put(section, line)
        return True

    def handoff(self) -> Handoff:
        return Handoff({section: tuple(self.sections[section]) for section in Section if section in self.sections})


class CoveredTurns:
    def __init__(self, task: SummaryTask) -> None:
        self.evidence = Evidence(task.messages, task.previous)
        self.judge = Judge(self.evidence)
        self.speakers = Speakers(self.evidence)
        self._verdicts: dict[HandoffLine, LineVerdict] = {}

    def supports(self, line: HandoffLine, section: Section) -> bool:
        """Whether a line may stay where it stands, in its own words."""
        return not self.why_not(line, section)

    def why_not(self, line: HandoffLine, section: Section) -> str:
        """Why a line can't stay where it stands; empty when it can."""
        if section in INSTRUCTIONS and not self.speakers.said_by("user", line.text, line.sources):
            return "not the user's words"
        if section is Section.GOAL and self.speakers.only_a_tool(line):
            return "only a tool's words"
        if not self.speakers.rightly_named(line):
            return "said by somebody else"
        return self._verdict(line).doubt

    def quoted(self, line: HandoffLine, section: Section) -> list[tuple[Section, HandoffLine]]:
        """What the turns say in place of a line, with the true ids and origins; empty when nothing is near enough."""
        quotations = []
        for segment in self.judge.near.quotable(line):
            origin = self._origin(segment)
            place = place_for(section, origin)
            if place is None:
                return []
            lead = f"{segment.call}: " if segment.call else ""
            sources = (segment.number,) if segment.number else ()
            quotations.append((place, HandoffLine(clip(lead + segment.text), sources, origin)))
        return quotations

    def _origin(self, segment: Segment) -> LineOrigin:
        if segment.role == "assistant" and self.evidence.roles[segment.number] == "program":
            # A line of an earlier handoff that is neither the user's nor a tool's.
            return LineOrigin.MODEL
        return _ORIGINS.get(segment.role, LineOrigin.ASSISTANT)

    def _verdict(self, line: HandoffLine) -> LineVerdict:
        known = self._verdicts.get(line)
        if known is None:
            known = self._verdicts[line] = self.judge.judge(line)
        return known

    def located(self, line: HandoffLine) -> HandoffLine:
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


class Speakers:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def rightly_named(self, line: HandoffLine) -> bool:
        """Whether the speaker that a line names said it; lines that name nobody are right."""
        unquoted = QUOTED.sub(" ", line.text)
        for role, pattern in _NAMED:
            if pattern.search(unquoted):
                return self.said_by(role, pattern.sub(" ", line.text), line.sources)
        return True

    def said_by(self, role: str, text: str, sources: Collection[int]) -> bool:
        """Whether one role said what a text says: in one message or around the cited ones, and nobody else more so."""
        claim = read(text)
        pieces = [piece for quote in claim.quotes if " " in quote for piece in ELLIPSIS.split(quote) if piece]
        if not all(self.evidence.saying(piece, role=role) for piece in pieces):
            return False
        repeated = self.evidence.repeated(text.strip(" :,-"))
        if repeated and all(segment.role != role for segment in repeated):
            return False
        shares = self._shares(claim, sources, role)
        own = not sources or any(self.evidence.roles.get(number) in (role, "program") for number in sources)
        least = BACKED_SHARE if own else FOREIGN_SHARE
        return shares[role] >= least and shares[role] >= NOT_LESS_THAN_OTHERS * max(shares.values())

    def only_a_tool(self, line: HandoffLine) -> bool:
        """Whether a line comes from a tool's output more than from anybody's words."""
        shares = self._shares(read(line.text), line.sources)
        return shares["tool"] >= BACKED_SHARE and shares["tool"] > max(shares["user"], shares["assistant"])

    def _shares(self, claim: Reading, sources: Collection[int], role: str = "") -> dict[str, float]:
        """How much of a claim each speaker said in one message; `role` may have said it in all around the sources."""
        keys = {token.keys[0] for token in claim.tokens if (token.name or token.content) and token.keys}
        cited = set(self.evidence.region(sources))
        shares = {}
        for speaker in SPEAKERS:
            said: Counter[int] = Counter()
            near = 0
            for key in keys:
                numbers = self.evidence.said(key, speaker)
                said.update(numbers)
                near += not cited.isdisjoint(numbers)
            most = max(near if speaker == role else 0, max(said.values(), default=0))
            shares[speaker] = most / len(keys) if keys else 0.0
        return shares


_ORIGINS = {"user": LineOrigin.USER, "tool": LineOrigin.TOOL}
_FINISHED = (Section.COMPLETED, Section.RESOLVED)


def place_for(section: Section, origin: LineOrigin) -> Section | None:
    """Where a quotation may stand in place of a line of a section; None when nowhere.

    What a tool printed is nobody's order, and what the user said is not done because it was said.
    """
    if section in INSTRUCTIONS and origin is not LineOrigin.USER:
        return None if origin is LineOrigin.TOOL else Section.CRITICAL
    if section is Section.GOAL and origin is LineOrigin.TOOL:
        return Section.CRITICAL
    return Section.CRITICAL if section in _FINISHED and origin is LineOrigin.USER else section
