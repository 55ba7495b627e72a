"""aider's chat history: Markdown, one heading per chat, `####` before what the user typed, `>` before its output."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.source import Format, ImportedSession, SourceFile
from leporello.messages import role_of

_END = "  "
_START = re.compile(r"^# aider chat started at (.*\S)\s*$", re.MULTILINE)


def _is_aider(source: SourceFile) -> bool:
    """The heading that opens every chat."""
    return source.text[:1] not in ("{", "[") and bool(_START.search(source.text))


def _read_aider(source: SourceFile) -> list[ImportedSession]:
    """One session per chat in which the user said anything; the others hold aider's greeting and no more."""
    starts = list(_START.finditer(source.text))
    ends = [start.start() for start in starts[1:]] + [len(source.text)]
    sessions = [
        _chat(start[1], source.text[start.end() : end].strip("\n").split("\n"))
        for start, end in zip(starts, ends, strict=True)
    ]
    return [session for session in sessions if any(role_of(message) == "user" for message in session.messages)]


def _chat(started: str, lines: list[str]) -> ImportedSession:
    builder = TranscriptBuilder("aider")
    builder.id = builder.started = started
    builder.at(started)
    answer: list[str] = []
    for kind, piece in [*_pieces(lines), ("end", [])]:
        if kind in ("", "assistant"):
            answer.extend(piece)
            continue
        if any(answer):
            builder.assistant().text("\n".join(answer).strip("\n"))
        answer = []
        words = "\n".join(piece)
        if kind == "user":
            builder.message("user", words)
        elif words.strip():
            builder.exchange("aider_console", {}, words)
    return builder.build()


def _pieces(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Runs of lines of one kind, marks taken off."""
    reader = _LineReader()
    kind, piece = "", list[str]()
    for line in lines:
        now, words = reader.classify(line)
        if now != kind:
            if piece:
                yield kind, piece
            kind, piece = now, []
        piece.append(words)
    if piece:
        yield kind, piece


class _LineReader:
    """Tells whose words a line holds.

    aider ends each thing it writes with two spaces. Output of several lines is marked on its first line only and ends
    at the two spaces; a mark without them inside a code fence belongs to the code.
    """

    def __init__(self) -> None:
        self._in_fence = False
        self._in_output = False

    def classify(self, line: str) -> tuple[str, str]:
        """The kind of the line and its words: `user`, `console`, `assistant`, or `` for an empty line between."""
        is_end = line.endswith(_END)
        if self._in_output:
            self._in_output = not is_end
            return "console", line.removesuffix(_END)
        if line.startswith("#### ") and is_end:
            self._in_fence = False
            return "user", line[5:].removesuffix(_END)
        if line.startswith("> ") and (is_end or not self._in_fence):
            self._in_output = not is_end
            return "console", line[2:].removesuffix(_END)
        if line.startswith("```"):
            self._in_fence = not self._in_fence
        return ("assistant" if line or self._in_fence else "", line)


AIDER = Format("aider", _is_aider, _read_aider)
