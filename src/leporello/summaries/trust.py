"""Which folds in a message list are believed.

Anybody can write a fold into a list: its checksum only tells a whole one from a damaged one. A fold is believed when
the engine at hand wrote it itself, or when it is signed with the caller's key. The key is given to the core as bytes;
where it is kept is the caller's affair.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable

MAC_PATTERN = r"(?: mac=[0-9a-f]{32})?"
"""The signature in a block's mark, for the patterns that read marks; it stands last."""
_SIGNED = re.compile(r"(?P<mark><leporello-[a-z]+ [^>\n]*) mac=(?P<mac>[0-9a-f]{32})>\n")


def signed(block: str, key: bytes | None) -> str:
    """The block with a signature over all of its text at the end of its mark; as it is when there is no key."""
    if not key:
        return block
    mark, _, rest = block.partition(">\n")
    return f"{mark} mac={_mac(block, key)}>\n{rest}"


def is_signed(block: str, key: bytes | None) -> bool:
    match = _SIGNED.match(block)
    if match is None or not key:
        return False
    return hmac.compare_digest(match["mac"], _mac(f"{match['mark']}>\n{block[match.end() :]}", key))


class Trust:
    """What one engine believes: the blocks it wrote itself, and those that bear its key's signature."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key
        self._written: set[str] = set()

    def remember(self, blocks: Iterable[str]) -> None:
        self._written.update(map(_digest, blocks))

    def forget(self) -> None:
        """Another conversation begins; what was written in the last one has no business in it."""
        self._written.clear()

    def believes(self, blocks: Iterable[str]) -> bool:
        return all(_digest(block) in self._written or is_signed(block, self.key) for block in blocks)


def _digest(block: str) -> str:
    return hashlib.sha256(block.encode("utf-8", "surrogatepass")).hexdigest()


def _mac(block: str, key: bytes) -> str:
    return hmac.new(key, block.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
