"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the newest level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec import Struct

from leporello.compaction.assemble import assemble
from leporello.compaction.pipeline import (
    AIM_SHARE,
    FOLD_FRAME_TOKENS,
    MOST_FOLD_TOKENS,
    CompactionTask,
    FoldedSpan,
    NewFold,
    catch_up,
    fold_budget,
    fold_item,
    head_tokens,
    left_out,
)
from leporello.compaction.plan import CompactionPlan
from leporello.compaction.view import Item
from leporello.config.catalogue import number
from leporello.config.sources import closest_word
from leporello.engines.compressor import BuiltinEngine, ContextCompressor
from leporello.engines.lcm.nodes import LEAST_NODE_TOKENS, Branch, NodeWriter, Written, grow, leaf_size, said, standing
from leporello.engines.lcm.nodes import write as write_nodes
from leporello.events import Span
from leporello.ledger.ranking import Ranking
from leporello.summaries.deterministic import SectionSource, merge, plain_sections, quotations
from leporello.summaries.fold import Fold, RunningState, SummaryNode, SummaryTree, prompt, state_text
from leporello.summaries.handoff import Handoff, Section, joined, render
from leporello.turns import closing_role, groups

ROUNDS = 4
MOST_NODES = 12
"""More blocks than this would take more in marks than they bring, and caches look back only so many blocks."""


class LcmSettings(Struct, frozen=True):
    """What the tree of summaries looks like."""

    leaf_tokens: int | None = None
    """Tokens of the messages that one leaf stands for; None: as many as a compaction aims to leave."""
    max_nodes: int = MOST_NODES


def plain(writer: NodeWriter, covered: Collection[int], whole: int) -> Handoff:
    """Rules, requests, files and open work, with the shares of the whole that they have in any fold."""
    facts = plain_sections(SectionSource(writer.ledger, covered), whole, writer.count)
    return Handoff({section: lines for section, lines in facts.sections.items() if section is not Section.COMPLETED})


def write(
    writer: NodeWriter,
    covered: Collection[int],
    nodes: Collection[SummaryNode],
    whole: int,
    most: int,
    passing: Handoff,
    shortened: Collection[int] = (),
) -> Handoff:
    """The state's handoff in at most so many tokens; `whole`: tokens of everything that is folded."""
    facts = merge(plain(writer, covered, whole), passing)
    taken = said(nodes) | {rule.text for rule in writer.ledger.rules}
    fixed = writer.count(render(facts))
    room = float(most - fixed)
    handoff = facts
    ranking = Ranking(writer.ledger, {*covered, *shortened})
    for _ in range(ROUNDS):
        words = quotations(writer.ledger, ranking, max(0, int(room)), writer.count, focus=writer.focus, taken=taken)
        handoff = joined(facts, words)
        tokens = writer.count(render(handoff))
        if tokens <= most:
            return handoff
        room -= (tokens - most) * 1.1 + 1
    return facts if room < 0 else handoff


NODE_SHARE = 0.2
"""What the nodes may take of the tokens that are folded; the rest is the state's, which can choose anew each time.

Measured with the exam: what a node keeps was chosen before anybody knew what would matter, so that small nodes and a
large state keep most."""
LEAST_NODES, MOST_NODE_SHARE = 6, 0.7
"""In a small window the nodes may take more, up to the second figure, so that six can stand side by side."""
LEAST_STATE_SHARE = 0.15
"""What the state has at least for what became important later, beside rules and requests."""
PART_TOKENS = 12
"""What the list around a part costs when the message is sent."""
USUAL_TAIL = 1.15
"""How much of its budget the tail takes on average; the nodes' cap must not move with every tail."""
FOREIGN_DENSITY = 8
"""How many tokens a token of somebody else's fold is taken to stand for."""


class _Ground(Struct, frozen=True):
    """What one compaction folds: the view, the plan, and the messages that will be folded after it."""

    job: CompactionTask
    plan: CompactionPlan
    span: Span

    @property
    def covered(self) -> frozenset[int]:
        """Everything the frontier stands for."""
        return frozenset(range(self.span.first, self.span.last + 1)) - self.plan.shown

    @property
    def kept(self) -> tuple[int, ...]:
        """The newest user message, when it stands behind the frontier and not in its place."""
        return tuple(item.number for item in self.plan.pick(self.plan.lifted) if item.number in self.span)


def fold_into_nodes(job: CompactionTask, plan: CompactionPlan, settings: LcmSettings) -> FoldedSpan | None:
    """The middle as a frontier of nodes and a state. Nodes that stand are kept as they are, unless merged."""
    old = _old_branches(job, plan.items)
    raw = [item for item in plan.pick(*plan.middle) if not item.fold]
    last = max((branch.span.last for branch in old), default=0)
    if plan.nothing_new or all(item.number <= last for item in raw):
        return None
    catch_up(job.ledger, plan.items)
    newest = max(item.number for item in raw)
    span = Span(min(branch.span.first for branch in old) if old else raw[0].number, newest)
    ground = _Ground(job, plan, span)
    worker = NodeWriter(job.ledger, job.counter.text, plan.shown, job.summariser, job.focus, job.key)
    whole = fold_budget(job, plan)
    cap = _nodes_cap(ground, worker, whole)
    usual = settings.leaf_tokens or job.limits.aim_tokens
    branches = grow(old, _leaves(job, raw, last, cap, usual), cap, usual, settings.max_nodes)
    written = write_nodes(worker, branches, job.fold_number)
    nodes = [*_frontier(branches, written)]
    return _folded(ground, nodes, _state(ground, worker, nodes, whole, written.passing), written)


def _state(
    ground: _Ground, writer: NodeWriter, nodes: Sequence[SummaryNode], whole: int, passing: Handoff
) -> RunningState:
    job = ground.job
    # What unverified lines are is told where some are.
    note = prompt("unverified") if any(ground.covered.intersection(job.ledger.earlier)) else ""
    number = max(node.number for node in nodes)
    state = RunningState(number, ground.span, Handoff(), ground.kept, nodes[-1].span.first, note)
    empty = state_text(state, recall=job.recall, key=job.key)
    context = writer.count(prompt("frontier")) + writer.count(empty) + PART_TOKENS * (len(nodes) + 3)
    used = sum(writer.count(node.text) for node in nodes) + context - FOLD_FRAME_TOKENS
    most = max(0, whole - used)
    handoff = write(writer, ground.covered, nodes, whole, most, passing, ground.plan.shortened)
    return replace(state, handoff=handoff)


def _old_branches(job: CompactionTask, items: Sequence[Item]) -> list[Branch]:
    """What is folded already: the nodes of a frontier, or the fold of another engine as a branch to be written."""
    branches: list[Branch] = []
    for item in items:
        if isinstance(item.fold, SummaryTree):
            branches.extend(standing(node, job.counter.text(node.text)) for node in item.fold.nodes)
        elif isinstance(item.fold, Fold):
            size = job.measure(item.message)
            source = size * FOREIGN_DENSITY
            told = SummaryNode(item.fold.number, 1, item.fold.span, source, "", item.fold.handoff)
            branches.append(Branch(told.span, 2, source, size, parts=(standing(told, size),)))
    return branches


def _nodes_cap(ground: _Ground, writer: NodeWriter, whole: int) -> int:
    """Tokens for all nodes together: a share that doesn't move with the tail; less when rules and asks need room."""
    job = ground.job
    head = head_tokens(job, ground.plan)
    usual = job.limits.aim_tokens * AIM_SHARE - head - job.limits.tail_tokens * USUAL_TAIL - FOLD_FRAME_TOKENS
    room = min(max(usual, whole / 2), MOST_FOLD_TOKENS)
    steady = int(max(room * NODE_SHARE, min(room * MOST_NODE_SHARE, LEAST_NODES * LEAST_NODE_TOKENS)))
    fixed = writer.count(render(plain(writer, ground.covered, whole)))
    return max(1, min(steady, whole - fixed - int(whole * LEAST_STATE_SHARE)))


def _leaves(job: CompactionTask, raw: Sequence[Item], last: int, cap: int, usual: int) -> list[Branch]:
    """New messages as leaves of about the usual size, cut between whole groups.

    A message that had been kept standing while its neighbours were folded goes into the first leaf.
    """
    fresh = [item for item in raw if item.number > last]
    sizes = [job.measure(item.message) for item in fresh]
    wanted = sum(sizes) / max(1, round(sum(sizes) / usual))
    cuts = [0]
    used = 0
    for group in groups([item.message for item in fresh]):
        if used >= wanted * len(cuts):
            cuts.append(group.start)
        used += sum(sizes[group.start : group.stop])
    late = [item for item in raw if item.number <= last]
    leaves: list[Branch] = []
    first = min(last + 1, fresh[0].number) if last else fresh[0].number
    for start, stop in pairwise([*cuts, len(fresh)]):
        also = late if not leaves else []
        source = sum(sizes[start:stop]) + sum(job.measure(item.message) for item in also)
        span = Span(first, max(item.number for item in fresh[start:stop]))
        leaves.append(
            Branch(
                span=span,
                level=1,
                source=source,
                size=leaf_size(source, cap, usual),
                items=(*also, *fresh[start:stop]),
                also=tuple(item.number for item in also),
            )
        )
        first = span.last + 1
    return leaves


def _frontier(branches: Sequence[Branch], written: Written) -> Iterator[SummaryNode]:
    made = {id(branch): node for branch, node in written.nodes}
    for branch in branches:
        yield branch.node if branch.node is not None else made[id(branch)]


def _folded(ground: _Ground, nodes: Sequence[SummaryNode], state: RunningState, written: Written) -> FoldedSpan:
    job = ground.job
    role, apart = _roles(ground)
    folds = [fold_item(job, SummaryTree(tuple(nodes), None if apart else state), role)]
    if apart:
        folds.append(fold_item(job, state, "user" if role == "assistant" else "assistant"))
    text = state_text(state, recall=job.recall, key=job.key)
    fold = Fold(state.number, ground.span, joined(*(node.handoff for node in nodes), state.handoff), ground.kept)
    return FoldedSpan(
        shown=tuple(assemble(ground.plan, folds, job.tail_chars)),
        fold=fold,
        summary=written.summary,
        folds=tuple(
            NewFold(Fold(node.number, node.span, node.handoff), node.text, branch.children)
            for branch, node in written.nodes
        ),
        tokens=sum(job.counter.text(node.text) for node in nodes) + job.counter.text(text),
        pruned=len(ground.plan.pointers),
        details={
            "nodes": [{"id": node.id, "level": node.level, "span": str(node.span)} for node in nodes],
            **left_out(job.ledger, ground.covered, state.handoff),
        },
    )


def _roles(ground: _Ground) -> tuple[str, bool]:
    """The frontier's role, and whether the state must stand apart.

    The role follows from the head alone, so that it never changes. Where the message behind has the same role, the
    state stands between the two in the other one.
    """
    plan = ground.plan
    role = "assistant" if closing_role([item.message for item in plan.pick(*plan.head)]) == "user" else "user"
    return role, plan.role_behind == role


__all__ = ["LcmEngine", "LcmSettings", "lcm_engine", "read_settings"]


def lcm_engine(settings: LcmSettings | None = None) -> BuiltinEngine:
    """The engine that folds into nodes as the settings say."""
    return BuiltinEngine("lcm", partial(fold_into_nodes, settings=settings or LcmSettings()))


class LcmEngine(ContextCompressor):
    """Shows the past as a frontier of summaries that stay as they are, byte for byte, until they are merged."""

    def __init__(self, context_length: int = 128_000, *, settings: LcmSettings | None = None, **options: Any) -> None:
        super().__init__(context_length, **options)
        self._engine = lcm_engine(settings)


_KINDS = {
    "leaf_tokens": number(least=500, whole=True, unit="tokens"),
    "max_nodes": number(least=2, most=MOST_NODES, whole=True),
}


def read_settings(section: Mapping[str, Any]) -> tuple[LcmSettings, list[str]]:
    """The settings of a section, and a warning for each line of it that does not count."""
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for key, value in section.items():
        kind = _KINDS.get(key)
        if kind is None:
            nearest = closest_word(key, list(_KINDS))
            known = " and ".join(f"`lcm.{name}`" for name in _KINDS)
            advice = f"Did you mean `lcm.{nearest}`?" if nearest else f"The engine knows {known}."
            warnings.append(f"There is no setting `lcm.{key}`; it is ignored. {advice}")
            continue
        try:
            values[key] = kind.check(value)
        except ValueError:
            warnings.append(f"`lcm.{key}` can't be {value!r}; it is ignored: it must be {kind.allowed}.")
    return LcmSettings(**values), warnings
