"""Files from outside and files that are written: clear errors on the way in, all or nothing on the way out."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, BinaryIO

from leporello.errors import InputError
from leporello.messages import Message, encode_json, parse_json
from leporello.turns import Fault, validate


@dataclass(frozen=True, slots=True)
class Document:
    """A message list as it came: bare, or inside an object whose other fields are kept."""

    messages: list[Message]
    wrapper: dict[str, Any] | None = None
    epilogue: tuple[Message, ...] = ()
    """Closing records of a trajectory (role `exit`): no part of the conversation, kept behind it."""
    in_lines: bool = False
    """Whether each message stands on a line of its own (JSON lines)."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Tool schemas beside the messages."""
        tools = (self.wrapper or {}).get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    @property
    def system(self) -> str:
        """A system prompt beside the messages."""
        system = (self.wrapper or {}).get("system")
        return system if isinstance(system, str) else ""

    def with_messages(self, messages: list[Message]) -> Document:
        """The same document with other messages."""
        wrapper = None if self.wrapper is None else {**self.wrapper, "messages": [*messages, *self.epilogue]}
        return replace(self, messages=messages, wrapper=wrapper)

    def encoded(self) -> bytes:
        """JSON in the shape of the input."""
        if self.in_lines:
            return b"".join(encode_json(message) + b"\n" for message in self.messages)
        return encode_json(self.messages if self.wrapper is None else self.wrapper) + b"\n"


def read_document(source: str) -> Document:
    """A message list from a file or `-` for standard input; an error names the place."""
    name = "standard input" if source == "-" else source
    value, in_lines = _parse(_read(source), name)
    if in_lines:
        document = Document(value, in_lines=True)
    elif isinstance(value, dict):
        messages = value.get("messages")
        if not isinstance(messages, list):
            raise InputError('has no "messages" list; expected a list of messages or {"messages": [...]}', name)
        stop = len(messages)
        while stop and isinstance(messages[stop - 1], dict) and messages[stop - 1].get("role") == "exit":
            stop -= 1
        document = Document(messages[:stop], value, tuple(messages[stop:]))
    elif isinstance(value, list):
        document = Document(value)
    else:
        raise InputError(f"holds a {type(value).__name__}, expected a list of messages", name)
    for violation in validate(document.messages):
        if violation.fault in (Fault.NOT_A_MESSAGE, Fault.UNKNOWN_ROLE):
            # People see messages numbered as in reports: m1 is the first.
            raise InputError(violation.reason, f"{name}: m{violation.index + 1}")
    return document


def _read(source: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), source) from error


def _parse(data: bytes, name: str) -> tuple[Any, bool]:
    """The JSON value of a file, or the messages of its lines; and which of the two."""
    try:
        text = data.decode("utf-8-sig")
        value = loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text at byte {error.start}", name) from error
    except JSONDecodeError as error:
        lines = _json_lines(text)
        if lines is None:
            where = f"{name}: line {error.lineno}, column {error.colno}"
            raise InputError(f"is not JSON: {error.msg}", where) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", name) from error
    else:
        if not (isinstance(value, dict) and "messages" not in value and isinstance(value.get("role"), str)):
            return value, False
        lines = [value]
    if not all(isinstance(line.get("role"), str) for line in lines):
        raise InputError(
            "holds JSON lines that are no messages. If an agent recorded it, `leporello import` reads it into the "
            "store, and `leporello chat --resume` folds it there",
            name,
        )
    return lines, True


def _json_lines(text: str) -> list[dict[str, Any]] | None:
    """The objects of a file with one on each line; None when it is no such file."""
    lines = [parse_json(line) for line in text.split("\n") if line.strip()]
    objects = [line for line in lines if isinstance(line, dict)]
    return objects if len(objects) == len(lines) > 1 else None


def write_atomically(path: Path, data: bytes) -> None:
    """The whole file or nothing."""
    with open_atomically(path) as stream:
        stream.write(data)


def must_be_new(path: Path, remedy: str) -> None:
    """Refuse to write over something that is there."""
    if path.exists() or path.is_symlink():
        raise InputError(f"is there already, and nothing was written. {remedy}", str(path))


@contextlib.contextmanager
def open_atomically(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """The whole file or nothing: written beside it, flushed, then put in its place when the block ends well.

    A private one can be read only by its owner.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent or Path(), prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path)) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            Path(temporary).chmod(_mode_for(path))
        Path(temporary).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        if isinstance(error, OSError):
            raise InputError(error.strerror or str(error), str(path)) from error
        raise


def _mode_for(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
