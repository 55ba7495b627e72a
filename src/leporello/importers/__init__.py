"""Reads recorded sessions of many agents into OpenAI-format messages.

    session = load_session("rollout.jsonl")
    session.messages, session.usage, session.notes

The format is found by looking at the content, never at the name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from leporello.errors import InputError
from leporello.importers import (
    aider,
    antigravity,
    claude_code,
    codex,
    copilot,
    droid,
    exported,
    gemini,
    grok,
    hermes,
    kimi,
    mini_swe,
    openai_json,
    opencode,
    pi,
    swe_agent,
    tau,
)
from leporello.importers.source import CallUsage, ImportedSession, SourceFile

__all__ = [
    "FORMATS",
    "CallUsage",
    "Format",
    "ImportedSession",
    "UnknownFormat",
    "detect",
    "load_session",
    "load_sessions",
    "looks_recorded",
]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of recording: how to recognise it, and how to read it."""

    name: str
    matches: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], list[ImportedSession]]


class UnknownFormat(InputError):
    """A file is no recording of any known format; the text lists what can be read, `reason` does not."""

    reason = "is no recording of a known format"

    def __init__(self, where: str) -> None:
        names = ", ".join(known.name for known in FORMATS)
        super().__init__(f"{self.reason} (known: {names})", where)


def _format(module: ModuleType) -> Format:
    return Format(module.NAME, module.matches, module.read)


_DOCUMENTS = (mini_swe, swe_agent, gemini, opencode, hermes, tau)
_LINES = (exported, claude_code, codex, copilot, kimi, antigravity, pi, droid, grok)
FORMATS: tuple[Format, ...] = tuple(map(_format, (*_DOCUMENTS, *_LINES, aider, openai_json)))
"""In the order in which they are tried: the most specific first, bare messages last."""


def detect(source: SourceFile) -> Format:
    """The format of a file; `InputError` for an empty one, `UnknownFormat` when nothing here can read it."""
    if not source.text.strip():
        raise InputError("is empty", str(source.path))
    for known in FORMATS:
        if known.matches(source):
            return known
    raise UnknownFormat(str(source.path))


def load_sessions(path: str | Path, encoding: str | None = None) -> list[ImportedSession]:
    """Every session of a file: some formats hold many, some hold sub-agents and branches beside the main thread.

    The file is UTF-8, or what its byte order mark says, or in the `encoding` that is named; `NotText` (an `InputError`)
    when it is not. What is not plain UTF-8 has a note that says how it was read.
    """
    source = SourceFile(Path(path), encoding)
    sessions = detect(source).read(source)
    if not source.remark:
        return sessions
    return [replace(session, notes=(source.remark, *session.notes)) for session in sessions]


def looks_recorded(path: Path) -> bool:
    """Whether a file that can't be decoded is a recording all the same: the marks of all formats are plain ASCII."""
    source = SourceFile(path, "latin-1")
    return any(known.matches(source) for known in FORMATS)


def load_session(path: str | Path, encoding: str | None = None) -> ImportedSession:
    """The main session of a file that holds exactly one."""
    main = [session for session in load_sessions(path, encoding) if session.kind == "main"]
    if len(main) != 1:
        raise InputError(f"holds {len(main)} sessions where one is expected", str(path))
    return main[0]
