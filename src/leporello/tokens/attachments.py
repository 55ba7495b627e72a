"""What sound, documents and parts of unknown kinds cost. Sizes are estimated from bytes, never from base64 as text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

DATA_LENGTH = 1_024
"""A shorter string is taken for words whatever it looks like."""

_DATA = re.compile(r"[A-Za-z0-9+/_=\r\n-]+\Z")
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_BYTES_PER_SECOND = {"wav": 48_000, "pcm16": 48_000, "flac": 32_000}
_COMPRESSED_SOUND = 16_000
_BYTES_PER_PAGE = 50_000
_MOST_READ = 32 << 20


def audio_seconds(raw: Any) -> float:
    """How long a sound is: by the header of a WAV file, else by the usual bytes per second of its format."""
    inner = raw.get("input_audio") if isinstance(raw, Mapping) else None
    holder = inner if isinstance(inner, Mapping) else raw
    data = _longest_data(holder)
    size = len(data) * 3 // 4
    kind = str(holder.get("format", "")).lower() if isinstance(holder, Mapping) else ""
    head = _decoded(data[:64])
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and len(head) >= 32:
        rate = int.from_bytes(head[28:32], "little")
        if rate:
            return size / rate
    return size / _BYTES_PER_SECOND.get(kind, _COMPRESSED_SOUND)


def document_pages(raw: Any) -> int:
    """Pages of an inline document; 1 at least, because a mere reference still brings a document along."""
    data = _longest_data(raw)
    found = len(_PAGE.findall(_decoded(data[:_MOST_READ])))
    return found or max(1, len(data) * 3 // 4 // _BYTES_PER_PAGE)


def words_of(raw: Any) -> str:
    """The readable strings of a value of any shape and depth, keys included, data left out; one per line."""
    found = []
    for item in _leaves(raw, keys=True):
        if isinstance(item, str):
            if not is_data(item):
                found.append(item)
        elif isinstance(item, int | float):
            found.append(str(item))
    return "\n".join(found)


def _leaves(raw: Any, keys: bool = False) -> Iterator[Any]:
    # By hand instead of by recursion, and each container once: values from outside may be deep, or hold themselves.
    stack = [raw]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if not isinstance(item, Mapping | list | tuple):
            yield item
        elif id(item) not in seen:
            seen.add(id(item))
            if isinstance(item, Mapping):
                if keys:
                    yield from map(str, item)
                stack.extend(item.values())
            else:
                stack.extend(item)


def is_data(text: str) -> bool:
    """Whether a string is encoded bytes: a data URL, or a long run of base64 characters."""
    if text.startswith("data:") and ";base64," in text[:128]:
        return True
    return len(text) >= DATA_LENGTH and _DATA.match(text[:DATA_LENGTH]) is not None


def _longest_data(raw: Any) -> str:
    longest = max((item for item in _leaves(raw) if isinstance(item, str)), key=len, default="")
    return longest.partition(",")[2] if longest.startswith("data:") else longest


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4].encode("ascii", "ignore"), validate=False)
    except (binascii.Error, ValueError):
        return b""
