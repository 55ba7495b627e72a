"""Which plugins are there and what their plugin.yaml says. Looks, but runs none of their code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from leporello.config import Home
from leporello.config.load import ENGINE_ENTRY_POINTS
from leporello.plugins.manifest import Manifest, read_manifest

ENGINES_FOLDER = "context_engine"
GENERAL_ENTRY_POINTS = "leporello.plugins"
PACKAGE_PLUGINS = Path(__file__).parent


class Kind(StrEnum):
    """What a plugin is."""

    ENGINE = "engine"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that is there, in a folder or in an installed distribution."""

    name: str
    kind: Kind
    manifest: Manifest
    folder: Path | None = None
    root: Path | None = None
    """The folder below which its folders must be trustworthy."""
    entry_point: EntryPoint | None = None

    @property
    def where(self) -> str:
        """For people: the folder, or the distribution."""
        if self.folder is not None:
            return str(self.folder)
        dist = self.entry_point.dist if self.entry_point else None
        return f"package {dist.name}" if dist else "an installed package"


def find_engines(home: Home) -> list[Found]:
    """Every engine plugin, in the order in which a name is looked up; the first of a name counts."""
    found: dict[str, Found] = {}
    for plugins, root in ((home.plugins_dir, home.path), (PACKAGE_PLUGINS, PACKAGE_PLUGINS)):
        for folder in _folders(plugins / ENGINES_FOLDER):
            found.setdefault(folder.name, _in_folder(folder, root, Kind.ENGINE))
    for point in entry_points(group=ENGINE_ENTRY_POINTS):
        found.setdefault(point.name, _installed(point, Kind.ENGINE))
    return list(found.values())


def find_general(home: Home) -> list[Found]:
    """Every general plugin, whether enabled or not."""
    found: dict[str, Found] = {}
    for folder in _folders(home.plugins_dir):
        if folder.name != ENGINES_FOLDER:
            found.setdefault(folder.name, _in_folder(folder, home.path, Kind.GENERAL))
    for point in entry_points(group=GENERAL_ENTRY_POINTS):
        found.setdefault(point.name, _installed(point, Kind.GENERAL))
    return list(found.values())


def _folders(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(path for path in place.iterdir() if path.is_dir() and path.name[:1] not in "._")


def _in_folder(folder: Path, root: Path, kind: Kind) -> Found:
    return Found(folder.name, kind, read_manifest(folder), folder, root)


def _installed(point: EntryPoint, kind: Kind) -> Found:
    version = point.dist.version if point.dist else ""
    about = point.dist.metadata["Summary"] if point.dist and "Summary" in point.dist.metadata else ""
    return Found(point.name, kind, Manifest(point.name, about, version), entry_point=point)
