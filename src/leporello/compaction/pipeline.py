"""One compaction from view to view: plan, summarise, assemble, check, measure. Nothing is stored here.

The result is either a shorter valid view with its report, or the reason why there is none. The input is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeAlias

from msgspec import Struct, structs

from leporello.compaction.assemble import assemble, settle, standing_text
from leporello.compaction.plan import (
    POINTER_TOKENS,
    SLIM_TOKENS,
    CompactionPlan,
    Measure,
    Protection,
    fitted,
    fixed_parts,
    make_plan,
    pruned_tokens,
    scaled,
    too_large,
)
from leporello.compaction.prune import is_pointer, is_shortened
from leporello.compaction.view import Item, Origin, is_opening, join_neighbours
from leporello.errors import FixedPartTooLarge
from leporello.events import CompactionReport, Outcome, Span
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, is_instruction
from leporello.models import Limits
from leporello.policy.decision import LEAST_SAVING, saves_enough
from leporello.policy.state import MANUAL
from leporello.summaries import unverified
from leporello.summaries.base import LivePrefix, Summariser, Summary, SummaryTask, Told
from leporello.summaries.deterministic import build
from leporello.summaries.fold import Fold, SummaryTree, ViewFold, fold_message, fold_text
from leporello.summaries.handoff import Handoff, Section
from leporello.summaries.import_fold import inherit
from leporello.tokens import TokenCounter
from leporello.turns import ViolationKind, validate

CONTENT_SHARE = 0.20
FOLD_SHARE_OF_CONTENT = 0.5
LEAST_FOLD_SHARE = 0.075
AIM_SHARE = 0.95
"""A little less than the aim: what is sent as JSON weighs more than what is counted as text."""
MOST_FOLD_TOKENS = 32_000
FOLD_FRAME_TOKENS = 220
FAR_BEHIND = 3
"""Places between what is shown of a message and what a fold tells of it: something was left out there."""
CHARS_PER_TOKEN = 3
TIGHTER = (0.5, 0.2, 0.05)
"""Shares of the budgets that are tried when the folded list doesn't fit after all: one huge group in the tail."""
DEEPER = (0.9, 0.8, 0.65, 0.5)
"""The same for a compaction that was asked for and would save less than the tenth."""


@dataclass(frozen=True, slots=True)
class CompactionTask:
    items: Sequence[Item]
    limits: Limits
    counter: TokenCounter
    measure: Measure
    """Tokens of a message, as the counter says."""
    ledger: Ledger
    protection: Protection = field(default_factory=Protection)
    summariser: Summariser | None = None
    focus: str = ""
    fold_number: int = 1
    engine: str = "compressor"
    trigger: str = "manual"
    system_tokens: int = 0
    tool_tokens: int = 0
    recall: bool = False
    """Whether the model can call the recall tools; only then the fold names them."""
    key: bytes | None = None
    """What folds are signed with."""
    live: Callable[[], LivePrefix | None] | None = None
    """The conversation as its model has it in its cache, for a summary call that begins with it."""
    depth: int = 0
    """Foldable tokens that it aims to leave, as the policy says; 0: as the limits suggest."""

    @property
    def aim(self) -> int:
        return self.depth or self.limits.aim_tokens

    @property
    def tail_chars(self) -> int:
        """The longest a single message of the tail may be."""
        return self.limits.tail_tokens * CHARS_PER_TOKEN


class NewFold(Struct, frozen=True):
    """A fold that a compaction wrote: what it says, its text as shown, and the ids of the folds it was made of."""

    fold: Fold
    text: str
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoldedSpan:
    """A new view that is not judged yet. `fold` stands for everything that is folded in it, as one."""

    shown: tuple[Item, ...]
    fold: Fold | None
    """None when the tail was only pruned."""
    summary: Summary
    folds: tuple[NewFold, ...] = ()
    tokens: int = 0
    """What the folds take up in the view."""
    pruned: int = 0
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What came of it. Without a commit `shown` is the view as it was."""

    report: CompactionReport
    shown: tuple[Item, ...]
    fold: Fold | None = None
    folds: tuple[NewFold, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return _sent(self.shown)


Folder: TypeAlias = Callable[[CompactionTask, CompactionPlan], FoldedSpan | None]
"""Shows the middle of a plan as summaries; None when nothing of it can be folded."""


def compact(job: CompactionTask, folder: Folder | None = None) -> CompactionResult:
    """Fold the middle of a view; into one handoff unless another folder is given."""
    items = [item for item in job.items if not is_opening(item.message)]
    before = foldable(job, [item.message for item in items])
    parts = fixed_parts(items, job.measure, job.system_tokens, job.tool_tokens)
    error = too_large(job.limits.window, parts)
    if error is not None:
        return _refused(job, Outcome.BLOCKED, str(error), before, {"parts": error.parts})
    roomy = replace(job, limits=fitted(job.limits, parts, job.aim))
    folder = folder or fold_in_one
    folded = _fold_to_fit(job, roomy, items, folder)
    if folded is not None and folder is fold_in_one and job.trigger == MANUAL:
        folded = _deep_enough(roomy, items, folded, before)
    if folded is None:
        reason = "The first and the newest messages always stay, and there is nothing between them."
        return _refused(job, Outcome.NOTHING_TO_DO, reason, before)
    return _judge(job, folded, before, parts)


def _fold_to_fit(
    job: CompactionTask, roomy: CompactionTask, items: Sequence[Item], folder: Folder
) -> FoldedSpan | None:
    """The folded list; with tighter budgets, and without asking a model again, when it would not fit the window."""
    first = folded = _fold(roomy, items, folder)
    for share in TIGHTER:
        if folded is None or request_tokens(job, _sent(folded.shown)) <= job.limits.hard_tokens:
            break
        tighter = _fold(replace(roomy, limits=scaled(roomy.limits, share), summariser=None), items, folder)
        if tighter is None:
            break
        folded = tighter
    if folded is None or first is None or folded is first:
        return folded
    spent = first.summary
    return replace(folded, summary=replace(spent, handoff=None, summariser=folded.summary.summariser))


def _deep_enough(roomy: CompactionTask, items: Sequence[Item], folded: FoldedSpan, before: int) -> FoldedSpan:
    """What the user asked for is not refused because the view stands near its aim: then it is made a little smaller.

    A fold that is written anew tells what has happened since, the end of the work for example. No rule and no pin is
    given up for it.
    """
    bound = _binding(folded)
    told = replace(roomy, summariser=Told(folded.summary))
    for share in DEEPER if folded.fold else ():
        if saves_enough(before, foldable(roomy, _sent(folded.shown))):
            break
        deeper = _fold(replace(told, limits=scaled(roomy.limits, share)), items, fold_in_one)
        if deeper is None or not bound <= _binding(deeper):
            break
        folded = deeper
    return folded


def _binding(folded: FoldedSpan) -> set[tuple[int, ...]]:
    """What a fold tells of the user's rules and pins: no room is worth one of them."""
    handoff = folded.fold.handoff if folded.fold else Handoff()
    return {line.sources for section in (Section.CONSTRAINTS, Section.PINNED) for line in handoff[section]}


def _fold(job: CompactionTask, items: Sequence[Item], folder: Folder) -> FoldedSpan | None:
    plan = make_plan(items, job.measure, job.limits, job.protection)
    return folder(job, plan) or _prune_only(job, plan)


def _sent(shown: Sequence[Item]) -> list[Message]:
    return [item.message for item in join_neighbours(shown)]


def request_tokens(job: CompactionTask, messages: Sequence[Message]) -> int:
    """Tokens of a request with these messages."""
    return job.system_tokens + job.tool_tokens + sum(map(job.measure, messages))


def _prune_only(job: CompactionTask, plan: CompactionPlan) -> FoldedSpan | None:
    """One oversized turn has no middle; what can be shortened in its tail is."""
    if plan.lifted is not None or plan.middle:
        return None
    shown = assemble(plan, (), job.tail_chars)
    changed = sum(item.origin is not Origin.LOG and item.fold_id is None for item in shown)
    if not changed:
        return None
    # The ledger reads messages as they were said: in the new view they are shortened, and the next one goes by it.
    catch_up(job.ledger, plan.items)
    return FoldedSpan(tuple(shown), None, Summary(None), pruned=changed)


def fold_in_one(job: CompactionTask, plan: CompactionPlan) -> FoldedSpan | None:
    """The middle as one handoff, made from the facts themselves; an earlier fold goes into it."""
    plan, role = settle(plan)
    if plan.nothing_new:
        return None
    catch_up(job.ledger, plan.items)
    middle = plan.pick(*plan.middle)
    lasts = (item.fold.span.last if item.fold else item.number for item in middle)
    span = Span(min(item.number for item in middle), max(lasts))
    total = fold_budget(job, plan)
    narrative = Summary(None)
    if job.summariser is not None:
        narrative = job.summariser.summarise(_task(job, middle, total))
    covered = frozenset(range(span.first, span.last + 1)) - plan.shown
    read = standing_text(plan, job.tail_chars)
    handoff = build(job.ledger, covered, total, job.counter.text, job.focus, narrative.handoff, plan.shortened, read)
    behind = plan.pick(plan.lifted, *plan.tail)
    kept = tuple(item.number for item in behind if not item.fold and item.number in span)
    fold = Fold(job.fold_number, span, handoff, kept)
    text = fold_text(fold, recall=job.recall, key=job.key)
    return FoldedSpan(
        shown=tuple(assemble(plan, [fold_item(job, fold, role)], job.tail_chars)),
        fold=fold,
        summary=narrative,
        folds=(NewFold(fold, text, folds_of(plan.items)),),
        tokens=job.counter.text(text),
        pruned=len(plan.pointers),
        details=left_out(job.ledger, covered, handoff),
    )


def fold_item(job: CompactionTask, fold: ViewFold, role: str) -> Item:
    """A new fold as a line of the view."""
    message = fold_message(fold, role, recall=job.recall, key=job.key)
    return Item(fold.span.first, message, fold, Origin.WRITTEN)


def left_out(ledger: Ledger, covered: Collection[int], handoff: Handoff) -> dict[str, Any]:
    """Standing rules and pins that no longer fit into the fold: named in the report, never dropped without a word."""
    wanted = {
        "rules_left_out": ({rule.number for rule in ledger.active_rules}, Section.CONSTRAINTS),
        "pins_left_out": ({number for number, pin in ledger.pins.items() if pin.text.strip()}, Section.PINNED),
    }
    found: dict[str, Any] = {}
    for name, (numbers, section) in wanted.items():
        told = {line.sources[0] for line in handoff[section] if line.sources}
        lost = sorted(numbers.intersection(covered) - told)
        if lost:
            found[name] = lost
    return found


def catch_up(ledger: Ledger, items: Sequence[Item]) -> None:
    """Take everything of a view into the ledger that it doesn't know: messages, and what folds say of older ones."""
    folds = [item.fold for item in items if item.fold]
    shortened = {
        item.number for item in items if item.number not in ledger.hashes and is_shortened(item.message, item.number)
    }
    for item in items:
        if item.fold is None:
            if item.number in ledger.hashes:
                continue
            if item.unverified is not None:
                ledger.add(item.number, item.message, read=False)
                unverified.take_over(ledger, item.number, item.unverified)
            elif item.number in shortened:
                _add_shortened(ledger, item)
            else:
                ledger.add(item.number, item.message)
        elif folds:
            inherit(ledger, *folds, shortened=shortened)
            folds = []


def _add_shortened(ledger: Ledger, item: Item) -> None:
    """A message that is shown in part: what a fold before it tells of it stays known."""
    told = ledger.facts.get(item.number)
    ledger.add(item.number, item.message)
    if told is None:
        return
    facts = ledger.facts[item.number]
    shown = () if is_pointer(item.message, item.number) else facts.units
    behind = shown[-1].position + FAR_BEHIND if shown else 0
    units = (*shown, *(structs.replace(unit, position=unit.position + behind) for unit in told.units))
    ledger.facts[item.number] = replace(facts, units=units)
    if facts.role == "tool":
        ledger.stated.set(item.number, (unit.text for unit in units))


def folds_of(items: Sequence[Item]) -> tuple[str, ...]:
    """The ids of the folds that stand in a view, oldest first."""
    ids: list[str] = []
    for item in items:
        if isinstance(item.fold, SummaryTree):
            ids.extend(node.id for node in item.fold.nodes)
        elif item.fold is not None:
            ids.append(item.fold.id)
    return tuple(dict.fromkeys(ids))


def _task(job: CompactionTask, middle: Sequence[Item], total: int) -> SummaryTask:
    # A model sees nothing that nobody vouches for: in its own words it would no longer be marked.
    previous: Handoff | None = next((item.fold.handoff.verified for item in middle if item.fold), None)
    messages = [(item.number, item.message) for item in middle if not item.is_summary]
    content = sum(job.measure(message) for _, message in messages)
    prose = max(job.limits.summary_floor, min(int(content * CONTENT_SHARE), job.limits.summary_ceiling))
    rules = tuple(rule.text for rule in job.ledger.active_rules)
    return SummaryTask(
        messages, previous, min(prose, total // 2), job.focus, rules, given=job.ledger.given, live=job.live
    )


def fold_budget(job: CompactionTask, plan: CompactionPlan) -> int:
    """Tokens of the handoff: what the aim leaves beside head and tail, bounded by what is folded."""
    stays = head_tokens(job, plan)
    tail = sum(_shown_tokens(job, plan, index) for index in plan.tail)
    tail += sum(job.measure(item.message) for item in plan.pick(plan.lifted))
    # A fold that is folded again may keep its size: it is dense already.
    content = sum(
        job.measure(item.message) * (1.0 if item.is_summary else FOLD_SHARE_OF_CONTENT)
        for item in plan.pick(*plan.middle)
    )
    free = int(job.limits.aim_tokens * AIM_SHARE) - stays - tail - FOLD_FRAME_TOKENS
    least = max(job.limits.summary_ceiling, int(job.limits.window * LEAST_FOLD_SHARE))
    return int(min(max(free, least), MOST_FOLD_TOKENS, content))


def head_tokens(job: CompactionTask, plan: CompactionPlan) -> int:
    """What the head costs as it will be shown, without instructions."""
    head = (item.message for item in plan.pick(*plan.head))
    return sum(pruned_tokens(message, job.measure) for message in head if not is_instruction(message))


def _shown_tokens(job: CompactionTask, plan: CompactionPlan, index: int) -> int:
    """What a message of the tail costs as it will be shown."""
    if index in plan.pointers:
        return POINTER_TOKENS
    whole = job.measure(plan.items[index].message)
    return min(whole, SLIM_TOKENS) if index in plan.clipped else whole


def foldable(job: CompactionTask, messages: Sequence[Message]) -> int:
    """Tokens of the messages that are no instructions."""
    return sum(job.measure(message) for message in messages if not is_instruction(message))


def _judge(job: CompactionTask, folded: FoldedSpan, before: int, parts: dict[str, int]) -> CompactionResult:
    messages = _sent(folded.shown)
    narrative = folded.summary
    after = foldable(job, messages)
    broken = validate(messages)
    if broken:
        # What the input had already is the caller's affair; a compaction adds no fault of its own.
        given = {v.fault for v in validate([item.message for item in job.items])} & TOLERATED
        broken = [v for v in broken if v.fault not in given]
    if broken:
        reason = f"The folded list would be refused: {broken[0]}"
        return _refused(job, Outcome.FAILED, reason, before, summary=narrative)
    if not saves_enough(before, after):
        reason = f"Folding would leave {after:,} of {before:,} tokens; that saves less than {LEAST_SAVING:.0%}."
        return _refused(job, Outcome.NO_GAIN, reason, before, summary=narrative)
    whole = request_tokens(job, messages)
    if whole > job.limits.window:
        shown = {**parts, "summary and newest messages": whole - sum(parts.values())}
        reason = str(FixedPartTooLarge(job.limits.window, shown))
        return _refused(job, Outcome.BLOCKED, reason, before, {"parts": shown}, narrative)
    handoff = folded.fold.handoff if folded.fold else Handoff()
    done = replace(
        report(job, Outcome.COMMITTED, _whole_before(job, before), narrative),
        messages_after=len(messages),
        tokens_after=whole,
        covered=folded.fold.span if folded.fold else None,
        fold=folded.fold.id if folded.fold else "",
        pruned=folded.pruned,
        warnings=(*narrative.warnings, *_warnings(folded)),
        details={
            "foldable_before": before,
            "foldable_after": after,
            "above_aim": after > job.aim,
            "written": _written(job, messages),
            "fold_tokens": folded.tokens,
            "unverified": handoff.unverified,
            "sections": {section.value: len(lines) for section, lines in handoff.sections.items()},
            **folded.details,
        },
    )
    return CompactionResult(done, folded.shown, folded.fold, folded.folds)


def _written(job: CompactionTask, messages: Sequence[Message]) -> int:
    """Tokens behind the part of the view that stays as it was: what a prompt cache has to take in anew."""
    old = [item.message for item in job.items]
    same = next((k for k, (was, now) in enumerate(zip(old, messages, strict=False)) if was != now), len(messages))
    written = sum(map(job.measure, messages[same:]))
    if same < min(len(old), len(messages)):
        was, now = old[same].get("content"), messages[same].get("content")
        if isinstance(was, list) and isinstance(now, list):
            stays = takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False))
            written -= sum(job.counter.text(str(part.get("text", ""))) for part, _ in stays)
    return max(0, written)


TOLERATED = {ViolationKind.UNKNOWN_ROLE, ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER}


def _warnings(folded: FoldedSpan) -> tuple[str, ...]:
    words = {"rules_left_out": "rules of the user", "pins_left_out": "pinned messages"}
    lost = {what: folded.details[name] for name, what in words.items() if name in folded.details}
    return tuple(
        f"{len(numbers)} {what} no longer fit into the fold ({listed(numbers)})." for what, numbers in lost.items()
    )


def listed(numbers: Sequence[int]) -> str:
    """Ids of messages for people, the first few of them."""
    return ", ".join(f"m{number}" for number in numbers[:8])


def _whole_before(job: CompactionTask, before: int) -> int:
    """Tokens of the request as it was, from what can be folded of it."""
    instructions = sum(job.measure(item.message) for item in job.items if is_instruction(item.message))
    return before + instructions + job.system_tokens + job.tool_tokens


def report(job: CompactionTask, outcome: Outcome, total: int, summary: Summary | None = None) -> CompactionReport:
    """What is known before anything is changed; `total` are the tokens of the request as it was.

    What a summary model cost is owed whether or not its summary was of use.
    """
    told = summary or Summary(None, summariser="")
    return CompactionReport(
        outcome,
        engine=job.engine,
        summariser=told.summariser,
        trigger=job.trigger,
        focus=job.focus,
        messages_before=len(job.items),
        messages_after=len(job.items),
        tokens_before=total,
        tokens_after=total,
        usage=told.usage,
        cost=told.cost,
        verification=told.verification,
        warnings=told.warnings,
    )


def _refused(
    job: CompactionTask,
    outcome: Outcome,
    reason: str,
    before: int,
    details: dict[str, Any] | None = None,
    summary: Summary | None = None,
) -> CompactionResult:
    done = report(job, outcome, _whole_before(job, before), summary)
    return CompactionResult(replace(done, reason=reason, details=details or {}), tuple(job.items))
