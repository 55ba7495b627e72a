"""Which nodes stand in the frontier: new leaves at the end, old ones merged when there are too many. Pure.

Merging goes by age: where more than `FAN` nodes stand at one level, the oldest `FAN` of them become one node of the
next level with fewer tokens than they had together. The frontier has a cap in tokens, whatever the length of the
history: above it nodes of one level are merged earlier. Whatever stands before the merged nodes is not touched, so the
oldest and largest part of the frontier changes most rarely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.compaction.view import Item
from leporello.records import Span
from leporello.summary.frontier import Node

FAN = 4
"""More nodes than this at one level are merged."""
LEAVES = 5
"""How many leaves of usual size fill the frontier's cap."""
MERGED_SHARE = 0.65
"""What a merged node may take of the tokens of the nodes it is made of."""
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
    node: Node | None = None
    parts: tuple[Branch, ...] = ()
    items: tuple[Item, ...] = ()
    """Raw messages of this view, for a new leaf."""
    also: tuple[int, ...] = ()

    @property
    def children(self) -> tuple[str, ...]:
        """The ids of the standing nodes it is made of."""
        return tuple(node.id for node in self.nodes())

    def nodes(self) -> Iterable[Node]:
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


def standing(node: Node, size: int) -> Branch:
    """A node of the frontier as it is."""
    return Branch(node.span, node.level, node.source, size, node=node, also=node.also)


def leaf_size(source: int, cap: int, usual: int) -> int:
    """Tokens for a leaf: its share of the cap, by what it stands for; `usual` is the source of a leaf of usual size."""
    share = int(cap * source / (LEAVES * max(1, usual)))
    return min(max(share, LEAST_NODE_TOKENS), max(1, int(source * MOST_OF_SOURCE)))


def grow(branches: Sequence[Branch], leaves: Sequence[Branch], cap: int) -> list[Branch]:
    """The frontier with new leaves in at most `cap` tokens; leaf after leaf, as if they had come one by one."""
    grown = _fitted(list(branches), cap)
    for leaf in leaves:
        grown = _fitted([*grown, leaf], cap)
    return grown


def _fitted(branches: list[Branch], cap: int) -> list[Branch]:
    while True:
        run = _crowded(branches) or (_run_to_merge(branches) if sum(b.size for b in branches) > cap else None)
        if run is None:
            return branches
        start, stop = run
        branches = [*branches[:start], _merged(branches[start:stop], cap), *branches[stop:]]


def _crowded(branches: Sequence[Branch]) -> tuple[int, int] | None:
    """The oldest nodes of the lowest level that has too many."""
    for level in sorted({branch.level for branch in branches}):
        run = _level_run(branches, level)
        if run[1] - run[0] > FAN:
            return run[0], run[0] + FAN
    return None


def _run_to_merge(branches: Sequence[Branch]) -> tuple[int, int]:
    """What to merge when the tokens are too many: the lowest level with several nodes, else the newest two."""
    if len(branches) == 1:
        return 0, 1
    for level in sorted({branch.level for branch in branches}):
        start, stop = _level_run(branches, level)
        if stop - start > 1:
            return start, min(stop, start + FAN)
    return len(branches) - 2, len(branches)


def _level_run(branches: Sequence[Branch], level: int) -> tuple[int, int]:
    """The first run of neighbours at a level."""
    start = next(index for index, branch in enumerate(branches) if branch.level == level)
    stop = start
    while stop < len(branches) and branches[stop].level == level:
        stop += 1
    return start, stop


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
