"""What an image costs, by the provider's formula. The length of its base64 text has nothing to do with it."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

DEFAULT_SIZE = (1_024, 1_024)
"""Taken when the picture lies behind a link and nobody has seen its size."""

_HEADER_CHARACTERS = 256 * 1_024


class ImageRule(Protocol):
    """A provider's formula."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Tokens of a picture of this size."""


@dataclass(frozen=True, slots=True)
class Patches:
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


@dataclass(frozen=True, slots=True)
class Tiles:
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


@dataclass(frozen=True, slots=True)
class LargeTiles:
    """Small pictures are one tile, larger ones are cut into tiles of 768 pixels."""

    tile: int = 258

    def tokens(self, width: int, height: int, detail: str) -> int:
        if width <= 384 and height <= 384:
            return self.tile
        return self.tile * math.ceil(width / 768) * math.ceil(height / 768)


def image_tokens(raw: Any, rule: ImageRule) -> int:
    """Tokens of one image part of any dialect."""
    width, height = image_size(raw) or DEFAULT_SIZE
    return rule.tokens(width, height, _detail(raw))


def _detail(raw: Any) -> str:
    if not isinstance(raw, Mapping):
        return "auto"
    for holder in (raw.get("image_url"), raw):
        if isinstance(holder, Mapping) and isinstance(holder.get("detail"), str):
            return str(holder["detail"])
    return "auto"


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
