"""Which lines of a recording are on the branch that was gone on with, and which the user went back on.

Files that allow going back keep every line and link each to its parent. A fork is two children of one line that are
rivals: the file's format says which children are (parallel tool results hang on one line too, and are none).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.source import Record

Rivals: TypeAlias = Callable[[Record, Record], bool]


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """A line of the file with its links; `parent` is empty at the beginning."""

    id: str
    parent: str
    record: Record


@dataclass(frozen=True, slots=True)
class Branches:
    """The lines that were gone on with, and for each fork the lines that one saw who was on the other way."""

    active: list[Record]
    abandoned: list[list[Record]]


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads the threads of one file: `fill` puts lines into a transcript."""

    format: str
    fill: Callable[[TranscriptBuilder, list[Record]], None]

    def read(self, records: list[Record], kind: str, suffix: str, skipped_lines: int = 0) -> TranscriptBuilder:
        """One thread; `suffix` tells its id from that of the main one."""
        builder = TranscriptBuilder(self.format, kind, skipped_lines)
        self.fill(builder, records)
        builder.id += suffix
        return builder

    def branches(self, nodes: Sequence[RecordedLine], rivals: Rivals, skipped_lines: int) -> list[TranscriptBuilder]:
        """The branch that was gone on with, and then those that the user left."""
        found = split(nodes, rivals)
        left = [self.read(way, "branch", f"/branch{number}") for number, way in enumerate(found.abandoned, 1)]
        return [self.read(found.active, "main", "", skipped_lines), *left]


def split(nodes: Sequence[RecordedLine], rivals: Rivals) -> Branches:
    """Follow the newest child at every fork; lines whose parent is unknown follow the line before them."""
    parents = _parents(nodes)
    children: dict[int, list[int]] = defaultdict(list)
    for index, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(index)
    dead = _dead_ends(nodes, children, rivals)
    owner = _owners(parents, dead)
    active = [node.record for index, node in enumerate(nodes) if owner[index] is None]
    return Branches(active, [_branch(nodes, parents, owner, root) for root in sorted(dead)])


def _parents(nodes: Sequence[RecordedLine]) -> list[int | None]:
    places: dict[str, int] = {}
    parents: list[int | None] = []
    for index, node in enumerate(nodes):
        known = places.get(node.parent, index - 1)
        parents.append(known if known >= 0 else None)
        if node.id:
            places[node.id] = index
    return parents


def _dead_ends(nodes: Sequence[RecordedLine], children: dict[int, list[int]], rivals: Rivals) -> set[int]:
    """First lines of abandoned branches: at a fork only the last of the rivals was gone on with."""
    dead = set()
    for siblings in children.values():
        for position, child in enumerate(siblings):
            later = siblings[position + 1 :]
            if any(rivals(nodes[child].record, nodes[other].record) for other in later):
                dead.add(child)
    return dead


def _owners(parents: list[int | None], dead: set[int]) -> list[int | None]:
    """For each line the dead end it belongs to, if any. Parents always stand before their children."""
    owner: list[int | None] = []
    for index, parent in enumerate(parents):
        inherited = owner[parent] if parent is not None else None
        owner.append(index if index in dead else inherited)
    return owner


def _branch(
    nodes: Sequence[RecordedLine], parents: list[int | None], owner: list[int | None], root: int
) -> list[Record]:
    """What stood in the file before the branch, other branches aside, and then the branch itself."""
    lineage: set[int | None] = {None}
    place = parents[root]
    while place is not None:
        lineage.add(owner[place])
        place = parents[place]
    return [
        node.record
        for index, node in enumerate(nodes)
        if owner[index] == root or (index < root and owner[index] in lineage)
    ]
