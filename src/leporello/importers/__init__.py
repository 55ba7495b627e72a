"""Reads recorded sessions of many agents into OpenAI-format messages.

    session = load_session("rollout.jsonl")
    session.messages, session.usage, session.notes

The format is found by looking at the content, never at the name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leporello.errors import InputError
from leporello.importers.documents import AIDER, GEMINI, OPENCODE
from leporello.importers.event_logs import ANTIGRAVITY, CODEX, COPILOT, DROID, GROK, KIMI
from leporello.importers.linked_logs import CLAUDE_CODE, PI
from leporello.importers.openai_json import EXPORTED, HERMES, MINI_SWE, OPENAI, SWE_AGENT, TAU
from leporello.importers.source import CallUsage, Format, ImportedSession, SourceFile

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


class UnknownFormat(InputError):
    """A file is no recording of any known format; the text lists what can be read, `reason` does not."""

    reason = "is no recording of a known format"

    def __init__(self, where: str) -> None:
        names = ", ".join(known.name for known in FORMATS)
        super().__init__(f"{self.reason} (known: {names})", where)


_DOCUMENTS = (MINI_SWE, SWE_AGENT, GEMINI, OPENCODE, HERMES, TAU)
_LINES = (EXPORTED, CLAUDE_CODE, CODEX, COPILOT, KIMI, ANTIGRAVITY, PI, DROID, GROK)
FORMATS: tuple[Format, ...] = (*_DOCUMENTS, *_LINES, AIDER, OPENAI)
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
