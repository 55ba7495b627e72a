"""Message lists from files or standard input, with errors that name the place, and writing them back."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, TypeVar

import click

from leporello.errors import InputError
from leporello.files import Decoded, decode_text, known_encoding, open_atomically
from leporello.messages import Message, encode_json, parse_json
from leporello.turns import ViolationKind, validate

F = TypeVar("F", bound=Callable[..., Any])

_JSON_NAMES = {str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


def encoding_option(function: F) -> F:
    """The `--encoding` option, for files that are not UTF-8."""
    text = "How FILE is encoded (latin-1, cp1252, ...), instead of UTF-8 or what its byte order mark says."
    return click.option("--encoding", metavar="NAME", callback=_encoding, help=text)(function)


def _encoding(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not known_encoding(name):
        raise click.BadParameter(f"{name!r} is not a known encoding; examples: latin-1, cp1252, utf-16.")
    return name


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A message list as it came: bare, or inside an object whose other fields are kept."""

    messages: list[Message]
    wrapper: dict[str, Any] | None = None
    epilogue: tuple[Message, ...] = ()
    """Closing records of a trajectory (role `exit`): no part of the conversation, kept behind it."""
    in_lines: bool = False
    """Whether each message stands on a line of its own (JSON lines)."""
    remark: str = ""
    """What should be said about how it was decoded; mostly nothing."""

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

    def with_messages(self, messages: list[Message]) -> MessageFile:
        wrapper = None if self.wrapper is None else {**self.wrapper, "messages": [*messages, *self.epilogue]}
        return replace(self, messages=messages, wrapper=wrapper)

    def encoded(self) -> bytes:
        """JSON in the shape of the input."""
        if self.in_lines:
            return b"".join(encode_json(message) + b"\n" for message in self.messages)
        return encode_json(self.messages if self.wrapper is None else self.wrapper) + b"\n"


def read_text(source: str, encoding: str | None = None) -> Decoded:
    """The text of a file, or of standard input for `-`; an error names the place."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), source) from error
    return decode_text(data, _name(source), encoding)


def _name(source: str) -> str:
    return "standard input" if source == "-" else source


def read_document(source: str, encoding: str | None = None) -> MessageFile:
    """A message list from a file or `-` for standard input; an error names the place."""
    decoded = read_text(source, encoding)
    return replace(_document(decoded.text, _name(source)), remark=decoded.remark)


def _document(text: str, name: str) -> MessageFile:
    value, in_lines = _parse(text, name)
    if in_lines:
        document = MessageFile(value, in_lines=True)
    elif isinstance(value, dict):
        messages = value.get("messages")
        if not isinstance(messages, list):
            raise InputError('has no "messages" list; expected a list of messages or {"messages": [...]}', name)
        stop = len(messages)
        while stop and isinstance(messages[stop - 1], dict) and messages[stop - 1].get("role") == "exit":
            stop -= 1
        document = MessageFile(messages[:stop], value, tuple(messages[stop:]))
    elif isinstance(value, list):
        document = MessageFile(value)
    else:
        raise InputError(f"contains {_JSON_NAMES[type(value)]}, expected a list of messages", name)
    for violation in validate(document.messages):
        if violation.fault in (ViolationKind.NOT_A_MESSAGE, ViolationKind.UNKNOWN_ROLE):
            # People see messages numbered as in reports: m1 is the first.
            raise InputError(violation.reason, f"{name}: m{violation.index + 1}")
    return document


def _parse(text: str, name: str) -> tuple[Any, bool]:
    """The JSON value of a file, or the messages of its lines; and which of the two."""
    try:
        value = loads(text)
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
            "contains JSON lines that are not messages. If an agent recorded it, `leporello import` reads it into the "
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
    with open_atomically(path) as stream:
        stream.write(data)


def must_be_another(out: Path, source: str, remedy: str) -> None:
    """Refuse to write over the file that is read, whatever name it goes by."""
    try:
        read = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
        same = os.path.samestat(read, os.stat(out)) and stat.S_ISREG(read.st_mode)
    except (OSError, ValueError):
        # One of them is not there (whoever opens it says so), or standard input is no file.
        return
    if same:
        raise InputError(f"is the input file; nothing was written. {remedy}", str(out))
