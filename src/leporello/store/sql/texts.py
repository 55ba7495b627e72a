"""Small values on their way into and out of SQL columns: texts, ids, times, money.

Any Python string is data here. PostgreSQL refuses NUL in a text, SQLite's functions stop at it, and neither takes half
of a surrogate pair; such characters, and the mark itself, are written as a mark and four hexadecimal digits. Ordinary
text is stored as it is, so that the tables stay readable.
"""

from __future__ import annotations

import hashlib
import re

from leporello.errors import InputError

_MARK = "\x1a"
_SPECIAL = re.compile("[\x00\x1a\ud800-\udfff]")
_MARKED = re.compile("\x1a([0-9a-f]{4})")

LONGEST_KEY = 200
"""Texts that are part of a key are cut to this many characters: PostgreSQL bounds the size of an index entry."""

NANOS = 1_000_000_000
_FAR_AWAY = 1e12
_VERY_RICH = 1e9


def pack(text: str) -> str:
    """A string that every database accepts and `unpack` turns back."""
    return _SPECIAL.sub(lambda match: f"{_MARK}{ord(match.group()):04x}", text)


def unpack(text: str) -> str:
    """The string that `pack` was given."""
    return _MARKED.sub(lambda match: chr(int(match.group(1), 16)), text) if _MARK in text else text


def pack_key(text: str) -> str:
    """`pack` for a text that is part of a key; a long one keeps its beginning and a hash of the whole."""
    packed = pack(text)
    if len(packed) <= LONGEST_KEY:
        return packed
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{packed[: LONGEST_KEY - 20]}...{digest}"


def name_key(id: str) -> bytes:
    """The key of an id in the directory: fixed in size whatever the id looks like."""
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def hash_key(tagged: str) -> bytes:
    """A tagged hash (`b2:<hex>`) as bytes, the tag kept in front."""
    tag, _, digest = tagged.partition(":")
    return tag.encode("ascii") + b":" + bytes.fromhex(digest)


def hash_text(key: bytes) -> str:
    """The tagged hash that `hash_key` was given."""
    tag, _, digest = key.partition(b":")
    return f"{tag.decode('ascii')}:{digest.hex()}"


def millis(seconds: float) -> int:
    """A time as stored."""
    if not abs(seconds) < _FAR_AWAY:
        raise InputError(f"{seconds} is not a time in seconds.")
    return round(seconds * 1000)


def seconds(stored: int) -> float:
    """A stored time as seconds."""
    return stored / 1000


def nanos(cost: float) -> int:
    """Money as stored: whole billionths of a dollar, so that sums don't depend on the order of adding."""
    if not abs(cost) < _VERY_RICH:
        raise InputError(f"{cost} is not an amount of dollars.")
    return round(cost * NANOS)


def dollars(stored: int) -> float:
    """Stored money as dollars."""
    return stored / NANOS
