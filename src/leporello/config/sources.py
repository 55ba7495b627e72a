"""Where a setting's value came from, in a form that a person can act on; and the right key that somebody probably meant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class Origin(StrEnum):
    """The four places, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Source:
    """One place: a flag, a variable, a line of config.yaml, or the built-in default."""

    origin: Origin
    where: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.where}" if self.where else str(self.origin)


DEFAULT = Source(Origin.DEFAULT)
FLAG = Source(Origin.FLAG)


def in_file(path: Path, line: int) -> Source:
    """A line of a file, counted from 1."""
    return Source(Origin.FILE, f"{path}, line {line}")


def in_environment(variable: str) -> Source:
    """An environment variable."""
    return Source(Origin.ENVIRONMENT, variable)


@dataclass(frozen=True, slots=True)
class Given:
    """A raw value that somebody set, before it is checked."""

    key: str
    value: Any
    source: Source
    is_text: bool = False
    """True when the value is the text of a variable or flag and still has to be read as its kind."""
