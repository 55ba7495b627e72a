"""Which plugins are there and what their plugin.yaml says. Looks, but runs none of their code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import yaml

from leporello.config import Home
from leporello.config.load import ENGINE_ENTRY_POINTS

FILE = "plugin.yaml"
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Manifest:
    """Name, description and version; empty where nothing is said."""

    name: str = ""
    description: str = ""
    version: str = ""
    trouble: str = ""
    """Why the file could not be read."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a plugin folder; a missing or damaged one never keeps a plugin from working."""
    path = folder / FILE
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Manifest()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return Manifest(trouble=f"{FILE} can't be read: {' '.join(str(error).split())}")
    if not isinstance(loaded, dict):
        return Manifest(trouble=f"{FILE} must hold name, description and version")
    return Manifest(*(_text(loaded.get(key)) for key in ("name", "description", "version")))


def _text(value: object) -> str:
    text = " ".join(str(value).split()) if value is not None else ""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


ENGINES_FOLDER = "context_engine"
GENERAL_ENTRY_POINTS = "leporello.plugins"
PACKAGE_PLUGINS = Path(__file__).parent


class PluginKind(StrEnum):
    ENGINE = "engine"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    name: str
    kind: PluginKind
    manifest: Manifest
    folder: Path | None = None
    root: Path | None = None
    """The folder below which its folders must be trustworthy."""
    entry_point: EntryPoint | None = None

    @property
    def where(self) -> str:
        if self.folder is not None:
            return str(self.folder)
        dist = self.entry_point.dist if self.entry_point else None
        return f"package {dist.name}" if dist else "an installed package"


def find_engines(home: Home) -> list[FoundPlugin]:
    """Every engine plugin, in the order in which a name is looked up; the first of a name counts."""
    found: dict[str, FoundPlugin] = {}
    for plugins, root in ((home.plugins_dir, home.path), (PACKAGE_PLUGINS, PACKAGE_PLUGINS)):
        for folder in _folders(plugins / ENGINES_FOLDER):
            found.setdefault(folder.name, _in_folder(folder, root, PluginKind.ENGINE))
    for point in entry_points(group=ENGINE_ENTRY_POINTS):
        found.setdefault(point.name, _installed(point, PluginKind.ENGINE))
    return list(found.values())


def find_general(home: Home) -> list[FoundPlugin]:
    found: dict[str, FoundPlugin] = {}
    for folder in _folders(home.plugins_dir):
        if folder.name != ENGINES_FOLDER:
            found.setdefault(folder.name, _in_folder(folder, home.path, PluginKind.GENERAL))
    for point in entry_points(group=GENERAL_ENTRY_POINTS):
        found.setdefault(point.name, _installed(point, PluginKind.GENERAL))
    return list(found.values())


def _folders(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(path for path in place.iterdir() if path.is_dir() and path.name[:1] not in "._")


def _in_folder(folder: Path, root: Path, kind: PluginKind) -> FoundPlugin:
    return FoundPlugin(folder.name, kind, read_manifest(folder), folder, root)


def _installed(point: EntryPoint, kind: PluginKind) -> FoundPlugin:
    version = point.dist.version if point.dist else ""
    about = point.dist.metadata["Summary"] if point.dist and "Summary" in point.dist.metadata else ""
    return FoundPlugin(point.name, kind, Manifest(point.name, about, version), entry_point=point)
