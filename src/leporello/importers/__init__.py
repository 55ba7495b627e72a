"""Reads recorded sessions of many agents into OpenAI-format messages.

    session = load_session("rollout.jsonl")
    session.messages, session.usage, session.notes

The format is found by looking at the content, never at the name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from leporello.errors import InputError
from leporello.importers import claude_code, codex, mini_swe, pi
from leporello.importers.session import CallUsage, ImportedSession
from leporello.importers.source import Source

__all__ = ["FORMATS", "CallUsage", "Format", "ImportedSession", "detect", "load_session", "load_sessions"]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of recording: how to recognise it, and how to read it."""

    name: str
    matches: Callable[[Source], bool]
    read: Callable[[Source], list[ImportedSession]]


def _format(module: ModuleType) -> Format:
    return Format(module.NAME, module.matches, module.read)


FORMATS: tuple[Format, ...] = tuple(map(_format, (mini_swe, claude_code, codex, pi)))
"""In the order in which they are tried: the most specific first."""


def detect(source: Source) -> Format:
    """The format of a file, or an `InputError` that lists what can be read."""
    for known in FORMATS:
        if known.matches(source):
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise InputError(f"is no recording of a known format (known: {names})", str(source.path))


def load_sessions(path: str | Path) -> list[ImportedSession]:
    """Every session of a file; some formats hold many."""
    source = Source(Path(path))
    return detect(source).read(source)


def load_session(path: str | Path) -> ImportedSession:
    """The session of a file that holds exactly one."""
    sessions = load_sessions(path)
    if len(sessions) != 1:
        raise InputError(f"holds {len(sessions)} sessions where one is expected", str(path))
    return sessions[0]
