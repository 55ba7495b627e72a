"""plugin.yaml: what a plugin says of itself, for display only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

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
