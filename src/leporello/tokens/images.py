"""What an image costs, by the provider's formula. The length of its base64 text has nothing to do with it."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

DEFAULT_SIZE = (1_024, 1_024)
"""Taken when the picture lies behind a URL and nobody has seen its size."""

_HEADER_BYTES = 64 * 1_024


class ImageRule(StrEnum):
    """Whose formula is used."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GOOGLE = "google"


def image_tokens(raw: Any, rule: ImageRule) -> int:
    """Tokens of one image part of any dialect."""
    size = image_size(raw) or DEFAULT_SIZE
    if rule is ImageRule.ANTHROPIC:
        return _anthropic(*size)
    if rule is ImageRule.GOOGLE:
        return _google(*size)
    return _openai(*size, detail=_detail(raw))


def _anthropic(width: int, height: int) -> int:
    # The longest edge is brought to 1,568 pixels, then a token pays for 750 pixels; about 1,600 is the most.
    scale = min(1.0, 1_568 / max(width, height))
    return max(1, min(1_600, math.ceil(width * scale * height * scale / 750)))


def _openai(width: int, height: int, detail: str) -> int:
    # Low detail is flat; else the picture is fitted into 2,048 x 2,048, its short side into 768, and cut into tiles.
    if detail == "low":
        return 85
    scale = min(1.0, 2_048 / max(width, height))
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    scale = min(1.0, 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * tiles


def _google(width: int, height: int) -> int:
    # Small pictures are one tile of 258 tokens, larger ones are cut into tiles of 768 pixels.
    if width <= 384 and height <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)


def _detail(raw: Any) -> str:
    if not isinstance(raw, Mapping):
        return "auto"
    inner = raw.get("image_url")
    for holder in (inner, raw):
        if isinstance(holder, Mapping) and isinstance(holder.get("detail"), str):
            return str(holder["detail"])
    return "auto"


def image_size(raw: Any) -> tuple[int, int] | None:
    """Width and height of an inline image, read from its first bytes; None for a link or an unknown format."""
    data = _inline_data(raw)
    if not data:
        return None
    # 4 base64 characters hold 3 bytes; a torn last group is cut off.
    head = data[: _HEADER_BYTES // 3 * 4]
    try:
        return _size_from_bytes(base64.b64decode(head[: len(head) // 4 * 4], validate=False))
    except (binascii.Error, struct.error, ValueError, IndexError):
        return None


def _inline_data(raw: Any) -> str:
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
    if form == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
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
        position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return None
