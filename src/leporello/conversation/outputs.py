"""Where a conversation keeps large outputs: a folder of its own, and the store."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from leporello.config import Home
from leporello.store.base import Store

_SAFE = re.compile(r"[A-Za-z0-9._-]{1,80}")


def outputs_folder(home: Home, conversation: str) -> Path:
    """The folder for saved outputs: named by the id when it is harmless, else by a digest of it."""
    if _SAFE.fullmatch(conversation) and conversation not in (".", ".."):
        return home.outputs_dir / conversation
    digest = hashlib.blake2b(conversation.encode("utf-8", "surrogatepass"), digest_size=16)
    return home.outputs_dir / digest.hexdigest()


@dataclass(frozen=True, slots=True)
class StoredArtifacts:
    """Keeps whole outputs in the conversation's store."""

    store: Store
    conversation: str

    def put(self, data: bytes) -> str:
        """Store the bytes and return their handle."""
        return self.store.artifacts.put(self.conversation, data)
