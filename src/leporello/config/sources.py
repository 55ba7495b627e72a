"""Where a setting's value came from, in a form that a person can act on.

The right key that somebody probably meant.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from leporello.config.catalogue import PROVIDER_FIELDS, SETTINGS, is_section


class SourceKind(StrEnum):
    """The four places, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingSource:
    """One place: a flag, a variable, a line of config.yaml, or the built-in default."""

    origin: SourceKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.where}" if self.where else str(self.origin)


DEFAULT = SettingSource(SourceKind.DEFAULT)
FLAG = SettingSource(SourceKind.FLAG)


def in_file(path: Path, line: int) -> SettingSource:
    """A line of a file, counted from 1."""
    return SettingSource(SourceKind.FILE, f"{path}, line {line}")


def in_environment(variable: str) -> SettingSource:
    """An environment variable."""
    return SettingSource(SourceKind.ENVIRONMENT, variable)


@dataclass(frozen=True, slots=True)
class RawValue:
    """A raw value that somebody set, before it is checked."""

    key: str
    value: Any
    source: SettingSource
    is_text: bool = False
    """True when the value is the text of a variable or flag and still has to be read as its kind."""


def nearest_key(key: str) -> str | None:
    """The known key or section closest to a mistyped one; None when nothing is close."""
    parts = key.split(".")
    if parts[0] == "providers" and len(parts) == 3:
        field = closest_word(parts[2], list(PROVIDER_FIELDS))
        return f"providers.{parts[1]}.{field}" if field else None
    names = [setting.name for setting in SETTINGS if not setting.is_pattern]
    sections = sorted({name.rsplit(".", 1)[0] for name in names if "." in name} | {"auxiliary", "providers"})
    whole = closest_word(key, [*names, *sections])
    if whole is not None:
        return whole
    # The last word may be right (or nearly so) under another section, or with none at all.
    endings = {name.rsplit(".", 1)[-1]: name for name in reversed(names)}
    ending = closest_word(parts[-1], list(endings))
    return endings[ending] if ending else None


def closest_word(word: str, candidates: list[str]) -> str | None:
    """The candidate that a mistyped word most resembles; None when nothing is close."""
    lowered = word.lower().replace("-", "_")
    if lowered in candidates and (lowered != word or not is_section(word)):
        return lowered
    found = difflib.get_close_matches(lowered, candidates, n=1, cutoff=0.72)
    return found[0] if found else None
