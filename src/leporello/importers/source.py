"""A recorded file read once, safe looks into its JSON, and the session that an importer makes of it."""

from __future__ import annotations

import codecs
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from leporello.decoding import Decoded, NotText, decode_text
from leporello.errors import InputError
from leporello.messages import parse_json

_LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8."""


class Source:
    """One file on disk. Reading is lazy and each view is computed once.

    It is UTF-8 unless it has another byte order mark or `encoding` names another.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        self._encoding = encoding

    @property
    def text(self) -> str:
        """The whole text; `NotText` when it can't be decoded."""
        return self._decoded.text

    @property
    def remark(self) -> str:
        """What should be said about how it was decoded; mostly nothing."""
        return self._decoded.remark

    @cached_property
    def _decoded(self) -> Decoded:
        try:
            data = self.path.read_bytes()
        except IsADirectoryError as error:
            raise InputError("is a directory, not a recorded session", str(self.path)) from error
        except OSError as error:
            raise InputError(f"can't be read: {error.strerror or error}", str(self.path)) from error
        try:
            return decode_text(data, str(self.path), self._encoding)
        except NotText as error:
            whole_lines = _torn(data, error.offset) if self._encoding is None else None
            if whole_lines is None:
                raise
            return whole_lines

    @cached_property
    def value(self) -> Any:
        """The file as one JSON value, or None when it is not one."""
        return parse_json(self.text) if self.text.lstrip()[:1] in ("{", "[") else None

    @cached_property
    def _lines(self) -> tuple[list[dict[str, Any]], int]:
        records = []
        broken = 0
        for line in self.text.split("\n"):
            if not line.strip():
                continue
            record = parse_json(line)
            if isinstance(record, dict):
                records.append(record)
                continue
            glued, remainder = _unglue(line)
            records.extend(glued)
            broken += remainder
        return records, broken

    @property
    def records(self) -> list[dict[str, Any]]:
        """The objects of a JSON-lines file, in order; broken lines are left out."""
        return self._lines[0]

    @property
    def broken_lines(self) -> int:
        """How many non-empty lines were not a JSON object."""
        return self._lines[1]


def _torn(data: bytes, offset: int) -> Decoded | None:
    """JSON lines whose writer died inside the last character; None when the fault is any other.

    The last line has no end anyway: what is left of it is counted as broken.
    """
    rest = data[offset:]
    if not data.lstrip().startswith(b"{") or len(rest) >= _LONGEST_CHARACTER or b"\n" not in data[:offset]:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(rest)
    except UnicodeDecodeError:
        return None
    return Decoded(data[:offset].decode())


def _unglue(line: str) -> tuple[list[dict[str, Any]], int]:
    """Objects written one behind the other in a single line (a lost line end), and 1 if anything else is left."""
    found: list[dict[str, Any]] = []
    decoder = json.JSONDecoder()
    place = 0
    while place < len(line):
        try:
            value, place = decoder.raw_decode(line, place)
        except (ValueError, RecursionError):
            return found, 1
        if not isinstance(value, dict):
            return found, 1
        found.append(value)
        while place < len(line) and line[place].isspace():
            place += 1
    return found, 0
