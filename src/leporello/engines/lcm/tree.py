"""Which nodes stand in the frontier: new leaves at the end, neighbours merged when there is no more room. Pure.

The frontier has a cap in tokens, whatever the length of the history. When a new leaf doesn't fit, two neighbours become
one node with half their tokens: the two that stand for least, measured against how long ago it was. So spans grow with
age and the old is told more coarsely than the new; a message is summarised again each time the history has grown by a
factor, and not at every compaction; and whatever stands before the merged nodes is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.compaction.view import Item
from leporello.events import Span
from leporello.summaries.summary_tree import SummaryNode

LEAVES = 12
"""How many leaves of usual size fill the frontier's cap."""
LARGEST_LEAF = 2
"""A leaf over an unusually long span has the room of this many."""
AGE_POWER = 0.5
"""How strongly age counts: 0 keeps all spans alike, 1 makes each as long as everything after it."""
MOST_NODES = 12
"""More blocks than this would take more in marks than they bring, and caches look back only so many blocks."""
MERGED_SHARE = 0.5
"""What a merged node may take of the tokens of the two it is made of."""
LEAST_NODE_TOKENS = 240
"""A smaller node would be all mark and headings."""
MOST_OF_SOURCE = 0.4
"""A node never takes more than this share of what it stands for."""


@dataclass(frozen=True, slots=True)
class Branch:
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


def grow(branches: Sequence[Branch], leaves: Sequence[Branch], cap: int, usual: int) -> list[Branch]:
    """The frontier with new leaves in at most `cap` tokens; leaf after leaf, as if they had come one by one."""
    grown = _fitted(list(branches), cap, usual)
    for leaf in leaves:
        grown = _fitted([*grown, leaf], cap, usual)
    return grown


def _fitted(branches: list[Branch], cap: int, usual: int) -> list[Branch]:
    while len(branches) > MOST_NODES or sum(branch.size for branch in branches) > cap:
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
