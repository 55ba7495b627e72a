"""A recorded file read once, safe looks into its JSON, the session that is made of it, and what a format is."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from leporello.billing import CacheBill
from leporello.errors import InputError
from leporello.files import Decoded, NotText, decode_text
from leporello.messages import Message, encode_json, is_instruction, parse_json, text_of
from leporello.usage import CanonicalUsage


class Record(dict[str, Any]):
    """An object of a recorded file. What is missing, or is of another kind than asked for, reads as empty."""

    @property
    def kind(self) -> str:
        return self.text("type")

    def text(self, *keys: str) -> str:
        """The first text under the keys that is not empty."""
        return next((value for key in keys if (value := text(self.get(key)))), "")

    def as_text(self, key: str) -> str:
        return as_text(self.get(key))

    def id(self, *keys: str) -> str:
        """The id under the first of the keys that holds anything; it may be recorded as text or as a number."""
        value = None
        for key in keys:
            value = value or self.get(key)
        return identifier(value)

    def number(self, *keys: str) -> float | None:
        """The value under the first of the keys that is there, when it is a number."""
        return amount(next((self[key] for key in keys if key in self), None))

    def inner(self, key: str) -> Record:
        return mapping(self.get(key))

    def sequence(self, key: str) -> list[Any]:
        return sequence(self.get(key))

    def objects(self, key: str) -> list[Record]:
        return objects(self.get(key))


def mapping(value: Any) -> Record:
    """The value when it is an object, else an empty one."""
    return Record(value) if isinstance(value, dict) else Record()


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[Record]:
    """The objects of a list; anything else in it is left out."""
    return [Record(item) for item in sequence(value) if isinstance(item, dict)]


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_text(value: Any) -> str:
    """Any value as readable text: strings as they are, nothing for null, everything else as JSON."""
    return "" if value is None else value if isinstance(value, str) else encode_json(value).decode()


def identifier(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def amount(value: Any) -> float | None:
    """A price, or None when the value is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_MILLISECONDS = 1e11  # seconds since the epoch stay below this for three thousand years


def moment(value: Any) -> float | None:
    """A time as seconds since the epoch: from ISO text (UTC unless it says otherwise), seconds or milliseconds."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    seconds = amount(value)
    if seconds is None or not 0 < seconds < _MILLISECONDS * 1_000:
        return None
    return seconds / 1_000 if seconds > _MILLISECONDS else seconds


_LONGEST_CHARACTER = 4  # bytes of a character in UTF-8


class SourceFile:
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
    def _lines(self) -> tuple[list[Record], int]:
        records = []
        broken = 0
        for line in self.text.split("\n"):
            if not line.strip():
                continue
            record = parse_json(line)
            if isinstance(record, dict):
                records.append(Record(record))
                continue
            glued, remainder = _unglue(line)
            records.extend(glued)
            broken += remainder
        return records, broken

    @property
    def records(self) -> list[Record]:
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


def _unglue(line: str) -> tuple[list[Record], int]:
    """Objects written one behind the other in a single line (a lost line end), and 1 if anything else is left."""
    found: list[Record] = []
    decoder = json.JSONDecoder()
    place = 0
    while place < len(line):
        try:
            value, place = decoder.raw_decode(line, place)
        except (ValueError, RecursionError):
            return found, 1
        if not isinstance(value, dict):
            return found, 1
        found.append(Record(value))
        while place < len(line) and line[place].isspace():
            place += 1
    return found, 0


@dataclass(frozen=True, slots=True)
class CallUsage:
    """What one call to the model used. `index` is the assistant message (in `messages`) that the call produced."""

    index: int
    usage: CanonicalUsage
    model: str = ""
    cost: float | None = None
    written_1h: int = 0
    """Of the cache writes, tokens for an hour, which cost more; 0 where the file doesn't tell lifetimes apart."""

    @property
    def bill(self) -> CacheBill:
        """Its prompt, by the price that each part of it has."""
        used = self.usage
        return CacheBill(used.cache_read_tokens, used.cache_write_tokens, used.input_tokens, self.written_1h)


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """One recorded session.

    `messages` are in the order a request would carry them; a recorded system prompt is the first of them. Nothing of
    the recording is silently changed: `skipped_lines` counts input that could not be read at all, `notes` says what
    was left out or mended, and how often.
    """

    messages: list[Message]
    format: str
    id: str = ""
    kind: str = "main"
    """`main`, or what stands beside it in the same file: `sub-agent`, or `branch` (turns the user went back on)."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: tuple[CallUsage, ...] = ()
    times: tuple[float | None, ...] = ()
    """For each message when it was recorded, in seconds since the epoch; None where the file does not say."""
    models: tuple[str, ...] = ()
    skipped_lines: int = 0
    notes: tuple[str, ...] = ()
    title: str = ""
    started: str = ""
    """When the recording began, as the file writes it; empty when it does not say."""
    window: int | None = None
    """Tokens of the window that the client worked with; None where the file neither says nor shows it."""

    @property
    def system(self) -> str:
        """The recorded system prompt; empty when the format does not record it."""
        leading = []
        for message in self.messages:
            if not is_instruction(message):
                break
            leading.append(text_of(message))
        return "\n\n".join(leading)


Reader: TypeAlias = Callable[[SourceFile], list[ImportedSession]]


def any_line(looks_so: Callable[[Record], bool], first: int) -> Callable[[SourceFile], bool]:
    """Recognises a format by one of the file's first lines."""
    return lambda source: any(map(looks_so, source.records[:first]))


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of recording: how to recognise it by its content, and how to read it."""

    name: str
    matches: Callable[[SourceFile], bool]
    read: Reader
