"""Secrets to plant, and a reader of everything that a store derives from them. Made at run time: none stands here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from leporello.errors import StoreCorrupt
from leporello.messages import Message, encode_json, parse_json
from leporello.redact import redact
from leporello.store.sql.encoding import unpack_body
from tests.redact import secrets

FORMS = (
    "DB_PASSWORD={}",
    'password = "{}"',
    "client_secret: {}",
    '"api_key": "{}"',
    "tool --password {} --verbose",
    "mysql -u root -p{} shop",
    "sshpass -p {} ssh ada@host",
    "curl -u ada:{} http://host/x",
    "machine host login ada password {}",
    "ALTER ROLE ada WITH PASSWORD '{}';",
    "<password>{}</password>",
    "ENV ADMIN_PASSWORD {}",
    "postgresql://ada:{}@db.example:5432/shop",
    "redis://:{}@cache:6379/0",
    "Server=db;User Id=sa;Password={};Encrypt=true",
    "the password is {}",
    "AWS_SECRET_ACCESS_KEY={}",
    "Authorization: Bearer {}",
    "https://host/cb?access_token={}&state=5",
    "//npm.example/:_authToken={}",
    "AccountName=shop;AccountKey={};EndpointSuffix=example",
    "Cookie: theme=dark; session={}",
    "https://hooks.slack.com/services/{}",
)
RAW_TABLES = frozenset(("messages", "artifacts", "prompts"))
"""The log itself and what was said beside it: stored as it was."""
WITHOUT_TEXT = frozenset(("words", "fragments"))
"""Indexes that hold no text of their own; the words of one are in `vocabulary`, the other has three letters of each."""
PIECE = 12
"""So many characters of a secret in a row are a leak."""


def lines() -> dict[str, tuple[str, str]]:
    """By kind: a line as it stands in a text, and the secret in it."""
    made = {kind: (f"use {key} here", key) for kind, key in secrets.vendor_keys().items()}
    for place, form in enumerate(FORMS):
        secret = secrets.rand(24, seed=100 + place)
        made[form] = (form.format(secret), secret)
    assert all(secret not in redact(line) for line, secret in made.values())
    return made


def key_block(seed: int, indent: str = "") -> tuple[str, str]:
    """A private key as it stands in a file, indented as in YAML, and its body without line ends."""
    rows = [secrets.rand(64, secrets.BASE64, seed * 50 + row) for row in range(8)]
    kind = "RSA PRIVATE KEY"
    context = [f"-----BEGIN {kind}-----", *rows, f"-----END {kind}-----"]
    return "\n".join(indent + row for row in context), "\n".join(rows)


def pieces(secret: str) -> Iterator[str]:
    """Every stretch of a secret that is long enough to count, line by line."""
    for row in secret.split("\n"):
        yield from (row[start : start + PIECE] for start in range(len(row) - PIECE + 1))


class Traces:
    """Looks for pieces of many secrets in many texts at once."""

    def __init__(self, planted: Iterable[str]) -> None:
        self._pieces = {piece for secret in planted for piece in pieces(secret.casefold())}

    def of(self, text: str) -> set[str]:
        """The pieces of secrets in a text, large or small letters."""
        text = text.casefold()
        return {text[start : start + PIECE] for start in range(len(text) - PIECE + 1)} & self._pieces


def stored_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Everything in a store but the log, decoded, with the table where it stands. New tables come by themselves."""
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert {"ledgers", "attempts", "folds", "generations", "sessions", "vocabulary"} <= set(tables)
    for table in tables:
        if table not in RAW_TABLES | WITHOUT_TEXT:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield from ((table, text) for value in row for text in decoded(value))
    connection.close()


def decoded(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from _inside_json(value)
    if not isinstance(value, bytes):
        return
    yield value.decode("utf-8", "replace")
    for data in _unpacked(value):
        text = data.decode("utf-8", "replace")
        yield text
        yield from _inside_json(text)


def _unpacked(value: bytes) -> Iterator[bytes]:
    try:
        data = unpack_body(value, "a test")
    except StoreCorrupt:
        return
    yield data
    try:
        # A ledger is compressed by itself; the strings of its msgpack stand in the bytes as they are.
        yield zstandard.decompress(data)
    except zstandard.ZstdError:
        return


def _inside_json(text: str) -> Iterator[str]:
    stack = [parse_json(text)]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str):
            yield value
            inner = parse_json(value)
            stack += [inner] if isinstance(inner, dict | list) else []


def asked(line: str) -> Message:
    """The user says it."""
    return {"role": "user", "content": f"Never lose this setting of the build:\n{line}\nNow go on."}


def answered(line: str) -> Message:
    """The assistant says it."""
    return {"role": "assistant", "content": f"I decided to keep this because the build needs it:\n{line}\nDone."}


def ran(id: str, arguments: dict[str, Any], result: str) -> list[Message]:
    """A call with its result."""
    function = {"name": "terminal", "arguments": encode_json(arguments).decode()}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]
