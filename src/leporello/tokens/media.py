"""What images, sound and documents cost, by the provider's formula or from their bytes, never from base64 as text."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from leporello.lazy_regex import lazy_regex

DEFAULT_SIZE = (1_024, 1_024)  # taken when the picture lies behind a link and nobody has seen its size

_HEADER_CHARACTERS = 256 * 1_024


class ImageRule(Protocol):
    def tokens(self, width: int, height: int, detail: str) -> int:
        """Tokens of a picture of this size."""


class Patches(Struct, frozen=True):
    """The picture is cut into square patches, one token each, and made smaller until it fits the budget."""

    side: int
    budget: int
    long_edge: int
    factor: float = 1.0
    original_budget: int = 0
    """The budget at detail `original`, where there is such a detail."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        budget, edge = self.budget, self.long_edge
        if detail == "original" and self.original_budget:
            budget, edge = self.original_budget, 6_000
        scale = min(1.0, edge / max(width, height), math.sqrt(budget * self.side**2 / (width * height)))
        # Rounding up at the edges may step over the budget by a row; the provider shrinks a little further then.
        patches = math.ceil(width * scale / self.side) * math.ceil(height * scale / self.side)
        return max(1, math.ceil(min(patches, budget) * self.factor))


class Tiles(Struct, frozen=True):
    """A flat price plus one per tile of 512 pixels, after fitting into 2,048 squared and 768 on the short side."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        if detail == "low":
            return self.base
        scale = min(1.0, 2_048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        across = math.ceil(max(1.0, width * scale) / 512)
        return self.base + self.tile * across * math.ceil(max(1.0, height * scale) / 512)


class LargeTiles(Struct, frozen=True):
    """Small pictures are one tile, larger ones are cut into tiles of 768 pixels."""

    tile: int = 258

    def tokens(self, width: int, height: int, detail: str) -> int:
        if width <= 384 and height <= 384:
            return self.tile
        return self.tile * math.ceil(width / 768) * math.ceil(height / 768)


def image_tokens(raw: Any, rule: ImageRule) -> int:
    width, height = image_size(raw) or DEFAULT_SIZE
    holders = (raw.get("image_url"), raw) if isinstance(raw, Mapping) else ()
    details = (holder.get("detail") for holder in holders if isinstance(holder, Mapping))
    return rule.tokens(width, height, next((detail for detail in details if isinstance(detail, str)), "auto"))


def image_size(raw: Any) -> tuple[int, int] | None:
    """Width and height of an inline image, read from its first bytes; None for a link or an unknown format."""
    data = inline_data(raw)[:_HEADER_CHARACTERS]
    if not data:
        return None
    try:
        # 4 base64 characters hold 3 bytes; a torn last group is cut off.
        return _size_from_bytes(base64.b64decode(data[: len(data) // 4 * 4], validate=False))
    except (binascii.Error, struct.error, ValueError, IndexError):
        return None


def inline_data(raw: Any) -> str:
    """The base64 text that a part carries, in any dialect; empty when it only links."""
    if not isinstance(raw, Mapping):
        return ""
    source = raw.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("data"), str):
        return str(source["data"])
    link = raw.get("image_url", raw.get("url"))
    if isinstance(link, Mapping):
        link = link.get("url")
    if isinstance(link, str) and link.startswith("data:"):
        return link.partition(",")[2]
    data = raw.get("data")
    return data if isinstance(data, str) else ""


def _size_from_bytes(head: bytes) -> tuple[int, int] | None:
    size: tuple[int, int] | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = struct.unpack(">II", head[16:24])
    elif head[:6] in (b"GIF87a", b"GIF89a"):
        size = struct.unpack("<HH", head[6:10])
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp(head)
    elif head[:2] == b"\xff\xd8":
        size = _jpeg(head)
    return size if size and size[0] > 0 and size[1] > 0 else None


def _webp(head: bytes) -> tuple[int, int] | None:
    form = head[12:16]
    if form == b"VP8X" and len(head) >= 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(head) and head[position] == 0xFF:
        marker = head[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[position + 5 : position + 9])
            return width, height
        position += 2 + max(1, int.from_bytes(head[position + 2 : position + 4], "big"))
    return None


DATA_LENGTH = 1_024  # a shorter string is taken for words whatever it looks like

_DATA = lazy_regex(r"[A-Za-z0-9+/_=\r\n-]+\Z")
_PAGE = lazy_regex(rb"/Type\s*/Page(?![a-zA-Z])")
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
