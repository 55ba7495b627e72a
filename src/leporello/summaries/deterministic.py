"""The summariser without a model: a handoff from the ledger alone, within a token budget."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import common_folder, one_line
from leporello.ledger.days import carried, day_before, told_with_day
from leporello.ledger.importance import LINE_OVERHEAD
from leporello.ledger.ledger import Ledger
from leporello.ledger.ranking import RankedUnit, Ranking, is_talk
from leporello.ledger.units import sentences_of
from leporello.ledger.values import LATER, MARK, unmarked
from leporello.summaries import requests, sections, unverified, work_state
from leporello.summaries.answers import objected, unsettled
from leporello.summaries.decisions import Decision, decisions_among
from leporello.summaries.episodes import Story, done_so_far, plan_lines
from leporello.summaries.handoff import APPENDICES, Handoff, HandoffLine, LineOrigin, Section, joined, render
from leporello.summaries.value_marks import change_lines, marked

CountText = Callable[[str], int]
MakeLines = Callable[[Ledger, Collection[int]], Sequence[HandoffLine]]
ENTRY_OVERHEAD = 4
"""Id and newline of an entry."""
FOCUS_SHARE = 0.65
GAP = " … "
BETWEEN = {1: " ", 2: "\n"}
"""What stands between sentences by the distance of their places: one line, the next line, something left out."""


class Pick(Struct):
    """Chosen units by message, and what they cost."""

    units: dict[int, list[RankedUnit]] = field(default_factory=lambda: defaultdict(list))
    tokens: int = 0
    beside: dict[int, str] = field(default_factory=dict)
    """What is told of later messages beside chosen units."""

    alike: Counter[tuple[int, str]] = field(default_factory=Counter)
    """How many lines of a result were looked at that differ in their figures only."""

    def numbers(self) -> list[int]:
        """The messages something was chosen from, in order."""
        return sorted(self.units)

    def tell_beside(self, number: int, text: str, count: CountText) -> None:
        """Note what is told beside a chosen unit; it stands there alone."""
        self.beside[number] = text
        told = [unit for unit in self.units.get(number, ()) if unmarked(unit.text).rstrip(" .。") in text]
        if told:
            self.units[number] = [unit for unit in self.units[number] if unit not in told]
            self.tokens -= sum(count(unit.text) + LINE_OVERHEAD for unit in told)
        if not self.units.get(number, True):
            del self.units[number]

    def without_repeated(self, unit: RankedUnit) -> RankedUnit:
        """Of what is told beside a chosen unit already the id is enough."""
        number, text = unit.beside
        if not number or self.beside.get(number) != text:
            return unit
        shorter = unit.text.replace(f"{LATER}{number}: {text})", f"{LATER}{number})", 1)
        return replace(unit, unit=replace(unit.unit, text=shorter), beside=(0, ""))

    def text(self, number: int) -> str:
        """The chosen units of a message in their order: output line by line, prose with a mark for what is left out."""
        chosen = sorted(self.units[number], key=lambda unit: unit.position)
        if chosen[0].role == "tool":
            return "\n".join(unit.text for unit in chosen)
        pieces = [chosen[0].text]
        for before, unit in pairwise(chosen):
            pieces += [BETWEEN.get(unit.position - before.position, GAP), unit.text]
        return "".join(pieces)


def quoted(text: str) -> list[str]:
    """The units of a quotation of prose: the inverse of `Pick.text`, and of the lines that 0.1 wrote."""
    pieces = (piece for line in text.split("\n") if line != GAP.strip() for piece in line.split(GAP))
    units: list[str] = []
    for unit in (unit for piece in pieces if piece != "[…]" for unit in sentences_of(piece)):
        if unit.startswith((MARK.lstrip(), LATER.lstrip())) and units:
            units[-1] += f" {unit}"
        else:
            units.append(unit)
    return units


def choose(
    ranked: Iterable[RankedUnit],
    budget: int,
    count: CountText,
    *,
    focus: Collection[str] = (),
    taken: Collection[str] = (),
    beside: Mapping[int, str] = MappingProxyType({}),
    first: tuple[Iterable[RankedUnit], int] = ((), 0),
) -> Pick:
    """The first candidates within a budget; they come in the order of their worth.

    Texts in `taken` and of messages `beside` other lines stand elsewhere in the handoff. With a focus all candidates
    are read. `first`: candidates with a budget of their own, whatever there is for the others.
    """
    pick = Pick(beside=dict(beside))
    seen = set(map(unmarked, taken))
    _fill(pick, *first, count, seen)
    if focus:
        ranked = list(ranked)
        words = [word.casefold() for word in focus]
        about = [c for c in ranked if any(word in c.text.casefold() for word in words)]
        _fill(pick, about, int(budget * FOCUS_SHARE), count, seen)
    _fill(pick, ranked, budget, count, seen)
    return pick


def _fill(pick: Pick, ranked: Iterable[RankedUnit], budget: int, count: CountText, seen: set[str]) -> None:
    misses = 0
    for ranked_unit in ranked:
        candidate = pick.without_repeated(ranked_unit)
        said = unmarked(candidate.text)
        if said in seen or said.rstrip(" .。") in pick.beside.get(candidate.number, ""):
            continue
        if candidate.role == "tool":
            template = candidate.text.translate(_WITHOUT_FIGURES)
            if pick.alike[candidate.number, template] >= MOST_ALIKE:
                continue
            pick.alike[candidate.number, template] += 1
        cost = count(candidate.text) + LINE_OVERHEAD
        if candidate.number not in pick.units:
            cost += ENTRY_OVERHEAD + (count(candidate.heading) if candidate.heading else 0)
        if pick.tokens + cost > budget:
            misses += 1
            # Nearly full: only small pieces could still enter, and looking for them costs more than they bring.
            if misses > 50 or pick.tokens > budget * 0.99:
                return
            continue
        seen.add(said)
        pick.units[candidate.number].append(candidate)
        pick.tokens += cost
        if candidate.beside[0]:
            pick.tell_beside(*candidate.beside, count)


_WITHOUT_FIGURES = dict.fromkeys(map(ord, "0123456789"))
MOST_ALIKE = 2
"""Of lines of one output that differ in their figures only the rest tells little; who needs it opens the message."""
RULE_SHARE = 0.60
PIN_SHARE = 0.80
"""Of what rules may take. Pins are bounded when they are set; this is for a window that became smaller since."""
UNVERIFIED_RULE_SHARE, UNVERIFIED_PIN_SHARE = 0.6, 0.3
"""Of what rules may take: up to here lines of unverified summaries fill what the user's own rules and pins leave."""
ACTION_SHARE = 0.12
LEAST_STORY = 120
FILE_SHARE = 0.08
STATE_SHARE = 0.05
TASK_SHARE = 0.55
LEAST_PROGRESS = 80
"""Tokens for what was about to be done: a short fold needs it as much as a long one."""
CHANGE_SHARE = 0.04
RESOLVED_SHARE = 0.02
STATED_SHARE, STATED_TOKENS, MOST_FIXED = 0.2, 400, 0.9
"""What values that the user stated may take in any case, and how much they and the rules may take together."""
RECORD_SHARE, RECORD_SHARE_BESIDE_FILES = 0.45, 0.04
WHERE_TOKENS = 1_500
ANNOUNCED_SHARE = 0.03
TOLD_CHARS = 80
"""So much of a sentence that the story has too is enough to know it by."""
ROUNDS = 4
OVERSHOOT = 0.004
FULL_SHARE = 0.985
"""A handoff of that much of its budget is full: another round would bring a line or two."""


def build(
    ledger: Ledger,
    covered: Collection[int],
    budget: int,
    count: CountText,
    focus: str = "",
    summary: Handoff | None = None,
    shortened: Collection[int] = (),
    read: str = "",
) -> Handoff:
    """The handoff for the covered messages in at most `budget` tokens, around a model's narrative when there is one.

    Of messages that are `shortened` where they stand, the lines that tell most are quoted too. `read` is what stands
    beside the handoff.
    """
    room = float(budget)
    rules = int(budget * RULE_SHARE)
    source = SectionSource(ledger, covered, shortened)
    fixed = plain_sections(source, 0, count, rules)
    stated = max(0, min(int(budget * STATED_SHARE), STATED_TOKENS, int(budget * MOST_FIXED) - count(render(fixed))))
    ranking = Ranking(ledger, {*covered, *shortened}, "\n".join(line.text for line in fixed[Section.CONSTRAINTS]))
    fitting: Handoff | None = None
    most = before = -1
    for _ in range(ROUNDS):
        handoff = _build(source, _Budget(int(room), rules, stated), count, focus, summary, ranking, read)
        size = count(render(handoff))
        if most < size <= budget:
            fitting, most = handoff, size
        if size == before or FULL_SHARE * budget <= size <= budget:
            break
        # A little more than it is too much: a line less would else be looked for where none ends.
        room += (budget - size) * 1.1 - OVERSHOOT * budget if size > budget else (budget - size) * 0.95
        before = size
    if fitting is not None:
        return fitting
    return _build(source, _Budget(max(0, int(room * 0.7)), rules, stated), count, focus, summary, ranking, read)


class _Budget(Struct, frozen=True):
    """Tokens of the whole, which shrinks until everything fits, and of what never gives way: rules, values stated."""

    total: int
    rules: int
    stated: int


def _build(
    source: SectionSource,
    budget: _Budget,
    count: CountText,
    focus: str,
    summary: Handoff | None,
    ranking: Ranking,
    read: str,
) -> Handoff:
    facts = plain_sections(source, budget.total, count, budget.rules)
    if summary is not None:
        facts = merge(facts, summary)
    stated = render(facts)
    room = budget.total - count(stated)
    taken = {line.text for section in (Section.CONSTRAINTS, Section.CRITICAL) for line in facts[section]}
    story = "\n".join(line.text for line in facts[Section.COMPLETED])
    announced = source.lines(sections.announced_lines)
    taken.update(line.text for line in announced if _stands_in(line, story))
    taken.update(sections.told_as_records(source.ledger, facts[Section.CRITICAL]))
    decisions = summary is None and not is_talk(source.ledger)
    values = source.ledger.values
    beside = dict(
        values.shown_beside(line.sources[0], line.text) for line in facts[Section.CONSTRAINTS] if line.sources
    )
    words = quotations(
        source.ledger,
        ranking,
        room,
        count,
        focus=focus,
        taken=taken,
        beside=beside,
        decisions=decisions,
        least=budget.stated,
        read=f"{stated}\n{read}",
    )
    return joined(facts, words)


def quotations(
    ledger: Ledger,
    ranking: Ranking,
    room: int,
    count: CountText,
    *,
    focus: str = "",
    taken: Collection[str] = (),
    beside: Mapping[int, str] = MappingProxyType({}),
    decisions: bool = True,
    least: int = 0,
    read: str = "",
) -> Handoff:
    """The messages' own words that are worth most: the user's, the assistant's decisions, and the index of facts.

    Texts in `taken` and of messages `beside` other lines stand elsewhere. Without `decisions` those of the assistant
    stay in the index: a model tells them, or it is a talk, where "so I" and "because" settle nothing. Up to `least`
    tokens are for values that the user stated, unless it is a talk: there they compete with each other only. `read` is
    what is read beside these words: a line of it is not told once more in the index.
    """
    stated = (ranking.stated(), least) if least and not is_talk(ledger) else ((), 0)
    pick = choose(ranking, room, count, focus=focus.split(), taken=taken, beside=beside, first=stated)
    told = _earlier(pick)
    return joined(told, _split(pick, ledger, decisions, read))


def _earlier(pick: Pick) -> Handoff:
    """What was chosen from unverified summaries, taken out of the pick: line by line, each in its own section."""
    made: dict[Section, list[HandoffLine]] = {}
    for number in pick.numbers():
        units = pick.units.pop(number)
        for unit in sorted(units, key=lambda unit: unit.position):
            if unit.section:
                made.setdefault(Section(unit.section), []).append(
                    HandoffLine(unit.text, (number,), LineOrigin.UNVERIFIED)
                )
        own = [unit for unit in units if not unit.section]
        if own:
            pick.units[number] = own
    return Handoff({section: tuple(lines) for section, lines in made.items()})


class SectionSource:
    """The messages that sections tell of; the lines of a kind are made once, however often they are fitted in."""

    def __init__(self, ledger: Ledger, covered: Collection[int], shortened: Collection[int] = ()) -> None:
        self.ledger = ledger
        self.covered = covered
        self.unseen = frozenset((*covered, *shortened))
        """Messages that don't stand whole in the view: folded ones, and those that are shortened where they stand."""
        self._made: dict[MakeLines, Sequence[HandoffLine]] = {}

    def lines(self, make: MakeLines) -> Sequence[HandoffLine]:
        if make not in self._made:
            self._made[make] = make(self.ledger, self.covered)
        return self._made[make]


def plain_sections(source: SectionSource, budget: int, count: CountText, rule_room: int | None = None) -> Handoff:
    """What the ledger states as plain facts: rules, asks, files, actions, state, open work; each within its share."""
    room = int(budget * RULE_SHARE) if rule_room is None else rule_room

    def fitting(make: MakeLines, share: float, *, newest_first: bool = False) -> list[HandoffLine]:
        return sections.within(source.lines(make), int(share), count, newest_first=newest_first)

    records = RECORD_SHARE_BESIDE_FILES if source.ledger.files else RECORD_SHARE
    made = {
        **_where_we_are(source, budget, count),
        Section.CONSTRAINTS: fitting(sections.rule_lines, room, newest_first=True)
        + fitting(sections.ended_rule_lines, budget * 0.03, newest_first=True),
        Section.COMPLETED: fitting(Story, max(LEAST_STORY, int(budget * ACTION_SHARE)), newest_first=True),
        Section.PENDING: fitting(requests.pending_asks, budget * 0.15, newest_first=True),
        Section.RESOLVED: fitting(sections.resolved_questions, budget * RESOLVED_SHARE, newest_first=True),
        Section.FILES: fitting(sections.attached_and_file_lines, budget * FILE_SHARE),
        Section.PINNED: fitting(sections.pin_lines, room * PIN_SHARE, newest_first=True),
        Section.CRITICAL: [
            *fitting(change_lines, budget * CHANGE_SHARE),
            *fitting(sections.record_lines, budget * records),
            *fitting(sections.announced_lines, budget * ANNOUNCED_SHARE),
        ],
    }
    story = "\n".join(line.text for line in made[Section.COMPLETED])
    made[Section.CRITICAL] = [line for line in made[Section.CRITICAL] if not _stands_in(line, story)]
    at_hand = {number for line in made[Section.ACTIVE_TASK] for number in line.sources}
    made[Section.PENDING] = [line for line in made[Section.PENDING] if not at_hand.issuperset(line.sources)]
    # Whoever is sent to look again was not answered yet.
    made[Section.RESOLVED] = [line for line in made[Section.RESOLVED] if at_hand.isdisjoint(line.sources[1:])]
    for section in (Section.GOAL, Section.CONSTRAINTS, Section.PENDING):
        # What somebody wants done is no statement that a later one could be about.
        related = source.covered if section is Section.CONSTRAINTS else ()
        made[section] = marked(source.ledger, related, made[section])
    shares = {
        Section.GOAL: int(budget * 0.1),
        Section.CONSTRAINTS: int(room * UNVERIFIED_RULE_SHARE),
        Section.COMPLETED: int(budget * ACTION_SHARE),
        Section.PENDING: int(budget * 0.15),
        Section.FILES: int(budget * FILE_SHARE),
        Section.PINNED: int(room * UNVERIFIED_PIN_SHARE),
    }
    for section, share in shares.items():
        stated = unverified.stated(source.ledger, source.covered, section)
        made[section] = unverified.beside(made[section], stated, share, count)
    return Handoff({section: tuple(lines) for section, lines in made.items() if lines})


def _stands_in(line: HandoffLine, story: str) -> bool:
    """Whether the story tells what the assistant announced when it was done."""
    told = one_line(line.text.strip("*_# -").replace("**", ""), TOLD_CHARS).rstrip("…")
    return line.origin is LineOrigin.ASSISTANT and told in story


def _where_we_are(source: SectionSource, budget: int, count: CountText) -> dict[Section, list[HandoffLine]]:
    """The sections at the top, each within its share and all together within `WHERE_TOKENS`; the first come first."""
    begun, waiting = plan_lines(source.ledger)
    task = source.lines(requests.active_task)
    asked = {line.sources for line in task}
    left = work_state.things_left(source.ledger) if task else []
    parts = {
        Section.ACTIVE_TASK: (task, TASK_SHARE),
        Section.GOAL: ([line for line in source.lines(requests.goal) if line.sources not in asked], 0.1),
        Section.IN_PROGRESS: ([*begun, *source.lines(done_so_far), *work_state.at_work(source.ledger)], STATE_SHARE),
        Section.STATE: (work_state.state_lines(source.ledger), STATE_SHARE),
        Section.BLOCKED: (work_state.blocked(source.ledger, source.unseen), STATE_SHARE),
        Section.REMAINING: ([*left, *waiting], STATE_SHARE),
    }
    most = WHERE_TOKENS
    made: dict[Section, list[HandoffLine]] = {}
    for section, (lines, share) in parts.items():
        newest_first = section is Section.ACTIVE_TASK
        least = min(LEAST_PROGRESS, budget // 4) if section in (Section.IN_PROGRESS, Section.REMAINING) else 0
        room = min(most, max(least, int(budget * share)))
        made[section] = sections.within(lines, room, count, newest_first=newest_first)
        most -= sum(count(line.text) + 6 for line in made[section])
    return made


def _split(pick: Pick, ledger: Ledger, with_decisions: bool, read: str) -> Handoff:
    """What was decided in a section of its own, the user's other words in theirs, everything else in the index."""
    against = unsettled(ledger)
    everything = (unit for units in pick.units.values() for unit in units)
    decided = decisions_among(everything, ledger) if with_decisions else []
    told = {(decision.unit.number, decision.unit.position) for decision in decided}
    told |= {(decision.unit.number, decision.reason.position) for decision in decided if decision.reason}
    made: dict[Section, list[HandoffLine]] = {Section.DECISIONS: list(map(_decision_line, decided))}
    root, days = common_folder(ledger.files), carried(ledger.days)
    words = frozenset(read.split())
    for number in _without_passed(pick, ledger):
        left = [unit for unit in pick.units[number] if (number, unit.position) not in told]
        if number not in against:
            left = [unit for unit in left if not _is_read(unit, read, words)]
        kept = _without_lead_ins(left)
        if not kept:
            continue
        facts = ledger.facts[number]
        body, answers = Pick({number: kept}).text(number), facts.answers
        if answers is None:
            body = told_with_day(body, facts.day or day_before(number, days))
        if kept[0].role == "user":
            made.setdefault(Section.USER_SAID, []).append(HandoffLine(body, (number,), LineOrigin.USER))
        elif answers is not None:
            index = HandoffLine(f"{answers.heading_within(root)}\n{body}", (number,), LineOrigin.TOOL)
            made.setdefault(Section.INDEX, []).append(index)
        else:
            body += objected(ledger, number, against, quoted=against.get(number) in pick.units)
            made.setdefault(Section.INDEX, []).append(HandoffLine(body, (number,), LineOrigin.ASSISTANT))
    return Handoff({section: tuple(lines) for section, lines in made.items() if lines})


def _decision_line(decision: Decision) -> HandoffLine:
    return HandoffLine(decision.text, (decision.unit.number,), LineOrigin(decision.unit.role))


def _without_passed(rest: Pick, ledger: Ledger) -> list[int]:
    """The messages of a pick, without runs of a check of which one line is told, if a later run passed too."""
    passed: dict[str, int] = {}
    gone: set[int] = set()
    for number in rest.numbers():
        facts = ledger.facts[number]
        if facts.answers is None or facts.answers.work != "check":
            continue
        if not facts.failed and passed.get(facts.answers.target):
            gone.add(passed[facts.answers.target])
        passed[facts.answers.target] = number if len(rest.units[number]) == 1 and not facts.failed else 0
    return [number for number in rest.numbers() if number not in gone]


_LEAD_IN = lazy_regex(r"\b(?:here(?:['’]s| is| are)|the following|as follows|below)\b[^:]{0,200}:$", re.IGNORECASE)


def _without_lead_ins(units: list[RankedUnit]) -> list[RankedUnit]:
    """What the assistant said, without sentences that only lead to what is left out ("Here are the steps:")."""
    places = {unit.position for unit in units}
    return [
        unit
        for unit in units
        if unit.role != "assistant"
        or not places.isdisjoint((unit.position + 1, unit.position + 2))
        or not _LEAD_IN.search(unit.text)
    ]


SURELY_SAME = 24
"""Characters of a line that stands in another text by no accident."""


def _is_read(unit: RankedUnit, read: str, words: Set[str]) -> bool:
    """Whether a line stands whole in a text with these words; what the user said keeps its place."""
    if unit.role == "user" or len(unit.text) < SURELY_SAME:
        return False
    # Its first and its last word may be parts of longer ones.
    return words >= {*unit.text.split()[1:-1]} and unit.text in read


def merge(facts: Handoff, summary: Handoff) -> Handoff:
    """The program's facts with a model's verified narrative set into them. What the user asked stays the program's."""
    merged = dict(facts.sections)
    for section, lines in summary.sections.items():
        if section in (Section.ACTIVE_TASK, Section.PENDING, *APPENDICES):
            continue
        if section is Section.CONSTRAINTS:
            known = " ".join(line.text for line in facts[section])
            merged[section] = (*facts[section], *(line for line in lines if line.text not in known))
        else:
            # A model was not shown what nobody vouches for, nor which values changed: they stand beside its words.
            told = (
                line for line in facts[section] if line.origin is LineOrigin.UNVERIFIED or section is Section.CRITICAL
            )
            merged[section] = (*told, *lines)
    return Handoff(merged)
