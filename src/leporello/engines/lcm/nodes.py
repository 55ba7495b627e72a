"""The nodes of the tree: which stand in the view, and how each is written, by a model or without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from msgspec import Struct, field

from leporello.compaction.view import Item
from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.ledger.ranking import Ranking
from leporello.messages import Message
from leporello.summaries import sections, unverified
from leporello.summaries.base import Summariser, Summary, SummaryTask
from leporello.summaries.deterministic import (
    ACTION_SHARE,
    CountText,
    merge,
    quotations,
    quoted,
)
from leporello.summaries.episodes import episode_lines
from leporello.summaries.fold import SummaryNode, make_node
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section, joined, render

LEAVES = 12
"""How many leaves of usual size fill the frontier's cap."""
LARGEST_LEAF = 2
"""A leaf over an unusually long span has the room of this many."""
AGE_POWER = 0.5
"""How strongly age counts: 0 keeps all spans alike, 1 makes each as long as everything after it."""
MERGED_SHARE = 0.5
"""What a merged node may take of the tokens of the two it is made of."""
LEAST_NODE_TOKENS = 240
"""A smaller node would be all mark and headings."""
MOST_OF_SOURCE = 0.4
"""A node never takes more than this share of what it stands for."""


class Branch(Struct, frozen=True):
    """A node that stands (`node`), or one that is to be written over `parts` or over `items`."""

    span: Span
    level: int
    source: int
    """Tokens of the messages it stands for."""
    size: int
    """Tokens it takes, or may take."""
    node: SummaryNode | None = None
    parts: tuple[Branch, ...] = ()
    items: tuple[Item, ...] = ()
    """Raw messages of this view, for a new leaf."""
    also: tuple[int, ...] = ()

    @property
    def children(self) -> tuple[str, ...]:
        """The ids of the standing nodes it is made of."""
        return tuple(node.id for node in self.nodes())

    def nodes(self) -> Iterable[SummaryNode]:
        """The standing nodes it is made of, or it is."""
        if self.node is not None:
            yield self.node
        for part in self.parts:
            yield from part.nodes()

    def raw(self) -> Iterable[Item]:
        """The raw messages of this view in it."""
        yield from self.items
        for part in self.parts:
            yield from part.raw()

    def numbers(self) -> set[int]:
        """The messages it stands for."""
        return {*range(self.span.first, self.span.last + 1), *self.also}


def standing(node: SummaryNode, size: int) -> Branch:
    """A node of the frontier as it is."""
    return Branch(node.span, node.level, node.source, size, node=node, also=node.also)


def leaf_size(source: int, cap: int, usual: int) -> int:
    """Tokens for a leaf: its share of the cap, by what it stands for; `usual` is the source of a leaf of usual size."""
    share = int(cap / LEAVES * min(source / max(1, usual), LARGEST_LEAF))
    return min(max(share, LEAST_NODE_TOKENS), max(1, int(source * MOST_OF_SOURCE)))


def grow(branches: Sequence[Branch], leaves: Sequence[Branch], cap: int, usual: int, max_nodes: int) -> list[Branch]:
    """The frontier with new leaves in at most `cap` tokens; leaf after leaf, as if they had come one by one."""
    grown = _fitted(list(branches), cap, usual, max_nodes)
    for leaf in leaves:
        grown = _fitted([*grown, leaf], cap, usual, max_nodes)
    return grown


def _fitted(branches: list[Branch], cap: int, usual: int, max_nodes: int) -> list[Branch]:
    while len(branches) > max_nodes or sum(branch.size for branch in branches) > cap:
        if len(branches) == 1:
            return [_merged(branches, cap)]
        place = _smallest_for_its_age(branches, usual)
        branches = [*branches[:place], _merged(branches[place : place + 2], cap), *branches[place + 2 :]]
    return branches


def _smallest_for_its_age(branches: Sequence[Branch], usual: int) -> int:
    """Where the two neighbours stand whose joint span is shortest compared with all that came after it."""
    newer = 0
    best, place = float("inf"), 0
    for index in range(len(branches) - 2, -1, -1):
        both = branches[index].source + branches[index + 1].source
        worth = both / (newer + usual) ** AGE_POWER
        if worth < best:
            best, place = worth, index
        newer += branches[index + 1].source
    return place


def _merged(parts: Sequence[Branch], cap: int) -> Branch:
    span = Span(min(part.span.first for part in parts), max(part.span.last for part in parts))
    size = max(LEAST_NODE_TOKENS, int(sum(part.size for part in parts) * MERGED_SHARE))
    return Branch(
        span=span,
        level=max(part.level for part in parts) + 1,
        source=sum(part.source for part in parts),
        size=min(size, cap),
        parts=tuple(parts),
        also=tuple(sorted({number for part in parts for number in part.also if number not in span})),
    )


LASTING = (Section.COMPLETED, Section.DECISIONS, Section.RESOLVED, Section.FILES, Section.CRITICAL)
"""What a model may say in a node."""
PASSING = (Section.STATE, Section.IN_PROGRESS, Section.BLOCKED, Section.REMAINING)
"""What a model says of the newest span and the state shows until the next compaction."""
QUOTING = (Section.USER_SAID, Section.DECISIONS, Section.INDEX)
PROSE_SHARE = 0.5
TERSE_SHARE = 0.4
"""A second, shorter try, when the first answer was unusable or too long."""
MOST_BY_A_MODEL = 4
"""How many nodes of one compaction a model writes, side by side; older ones of a long backlog need none."""
MARK_TOKENS = 60
ROUNDS = 4


class NodeWriter(Struct, frozen=True):
    """What is needed to write nodes."""

    ledger: Ledger
    count: CountText
    hidden: frozenset[int]
    """Messages that are shown beside the frontier: no node speaks of them."""
    summariser: Summariser | None = None
    focus: str = ""
    key: bytes | None = None
    """What nodes are signed with."""


class Written(Struct):
    """The new nodes by branch, and what the models among their writers had to say."""

    nodes: list[tuple[Branch, SummaryNode]] = field(default_factory=list)
    summary: Summary = field(default_factory=lambda: Summary(None))
    passing: Handoff = field(default_factory=Handoff)


def write(writer: NodeWriter, branches: Sequence[Branch], number: int) -> Written:
    """Nodes for the branches that have none, oldest first, numbered from `number` on."""
    new = [branch for branch in branches if branch.node is None]
    told = _summaries(writer, new)
    written = Written(summary=_together(list(told.values())))
    if new and id(new[-1]) in told and told[id(new[-1])].handoff is not None:
        written.passing = _only(told[id(new[-1])].handoff, PASSING)
    taken = said(branch.node for branch in branches if branch.node is not None)
    taken |= {rule.text for rule in writer.ledger.rules}
    for branch in new:
        summary = told[id(branch)].handoff if id(branch) in told else None
        node = _node(writer, branch, number, taken, summary)
        taken |= said([node])
        written.nodes.append((branch, node))
        number += 1
    return written


def _pieces(line: HandoffLine) -> list[str]:
    if line.origin is LineOrigin.UNVERIFIED:
        return [line.text]
    return line.text.split("\n") if line.origin is LineOrigin.TOOL else quoted(line.text)


def said(nodes: Iterable[SummaryNode]) -> set[str]:
    """The pieces of text that nodes quote, so that nothing is quoted twice. Unverified lines are quoted whole."""
    return {
        piece
        for node in nodes
        for section, line in node.handoff.lines()
        if section in QUOTING or line.origin is LineOrigin.UNVERIFIED
        for piece in _pieces(line)
    }


def _node(
    writer: NodeWriter, branch: Branch, number: int, taken: Collection[str], summary: Handoff | None
) -> SummaryNode:
    """The node within its size: what doesn't fit is left to the state and to recall."""
    room = float(branch.size)
    covered = frozenset(branch.numbers() - writer.hidden)
    ranking = Ranking(writer.ledger, covered)
    for _ in range(ROUNDS):
        handoff = _handoff(writer, covered, ranking, taken, int(room), summary)
        node = make_node(number, branch.level, branch.span, branch.source, handoff, branch.also, writer.key)
        size = writer.count(node.text)
        if size <= branch.size:
            return node
        room -= (size - branch.size) * 1.1 + 1
    handoff = _handoff(writer, covered, ranking, taken, int(max(0.0, room) * 0.7), None)
    return make_node(number, branch.level, branch.span, branch.source, handoff, branch.also, writer.key)


def _handoff(
    writer: NodeWriter,
    covered: frozenset[int],
    ranking: Ranking,
    taken: Collection[str],
    budget: int,
    summary: Handoff | None,
) -> Handoff:
    story = episode_lines(writer.ledger, covered)
    done = sections.within(story, int(budget * ACTION_SHARE), writer.count, newest_first=True)
    told = unverified.stated(writer.ledger, covered, Section.COMPLETED)
    done = unverified.beside(done, told, int(budget * ACTION_SHARE), writer.count)
    facts = Handoff({Section.COMPLETED: tuple(done)} if done else {})
    if summary is not None:
        facts = merge(facts, summary)
    room = budget - MARK_TOKENS - writer.count(render(facts, ()))
    words = quotations(
        writer.ledger, ranking, room, writer.count, focus=writer.focus, taken=taken, decisions=summary is None
    )
    return joined(facts, words)


# -- what a model writes


def _summaries(writer: NodeWriter, new: Sequence[Branch]) -> dict[int, Summary]:
    """Summaries of the newest branches, by the branch's identity."""
    summariser = writer.summariser
    if summariser is None or not new:
        return {}
    chosen = new[-MOST_BY_A_MODEL:]
    if len(chosen) == 1:
        return {id(chosen[0]): escalate(writer, summariser, chosen[0])}
    with ThreadPoolExecutor(max_workers=len(chosen)) as pool:
        told = pool.map(lambda branch: escalate(writer, summariser, branch), chosen)
        return {id(branch): summary for branch, summary in zip(chosen, told, strict=True)}


def escalate(writer: NodeWriter, summariser: Summariser, branch: Branch) -> Summary:
    """A model's summary that fits: detailed, else terse; else none, and the node is written without a model."""
    messages = _material(branch)
    prose = int(branch.size * PROSE_SHARE)
    rules = tuple(rule.text for rule in writer.ledger.active_rules)
    tries: list[Summary] = []
    for budget in (prose, int(prose * TERSE_SHARE)):
        told = summariser.summarise(SummaryTask(messages, None, budget, writer.focus, rules, given=writer.ledger.given))
        lasting = _only(told.handoff, (*LASTING, *PASSING))
        tries.append(replace(told, handoff=None))
        if not lasting.empty and writer.count(render(_only(lasting, LASTING), ())) <= budget:
            return replace(_together(tries), handoff=lasting, summariser=told.summariser)
    return replace(_together(tries), summariser="model-free")


def _only(handoff: Handoff | None, wanted: Collection[Section]) -> Handoff:
    if handoff is None:
        return Handoff()
    return Handoff({section: lines for section, lines in handoff.sections.items() if section in wanted})


def _material(branch: Branch) -> list[tuple[int, Message]]:
    """What a model reads: raw messages for a leaf, for a merge what the merged nodes say."""
    turns = [(item.number, item.message) for item in branch.raw() if not item.is_summary]
    for node in branch.nodes():
        known = node.handoff.verified
        for line in known[Section.USER_SAID]:
            number = line.sources[0] if line.sources else node.span.first
            turns.append((number, {"role": "user", "content": line.text}))
        rest = _only(known, set(Section) - {Section.USER_SAID, Section.INDEX})
        if not rest.empty:
            turns.append((node.span.last, {"role": "assistant", "content": render(rest, ())}))
    return sorted(turns, key=lambda turn: turn[0])


def _together(told: Sequence[Summary]) -> Summary:
    """Several summaries in one account: who wrote, what it cost, what was checked and what went wrong."""
    total = Summary(None)
    for one in told:
        cost = None if one.cost is None and total.cost is None else (one.cost or 0.0) + (total.cost or 0.0)
        total = Summary(
            None,
            one.summariser if one.summariser != "model-free" else total.summariser,
            total.usage + one.usage,
            cost,
            total.verification + one.verification,
            tuple(dict.fromkeys((*total.warnings, *one.warnings))),
        )
    return total
