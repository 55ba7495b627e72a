"""A screenshot as a data URL: a real PNG, small or large, whose bytes mean nothing."""

from __future__ import annotations

import base64
import struct
import zlib
from random import Random

_SIZES = ((640, 400), (1280, 800), (1568, 980))


def screenshot(rng: Random) -> str:
    """A data URL of a grey-scale PNG with some noise in it, so that its base64 is as long as that of a real one."""
    width, height = rng.choice(_SIZES)
    noisy = 12 + rng.randrange(30)
    rows = [b"\0" + (rng.randbytes(width) if row < noisy else bytes(width)) for row in range(height)]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
            _chunk(b"IDAT", zlib.compress(b"".join(rows), 1)),
            _chunk(b"IEND", b""),
        )
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
