"""How a store is opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is opened."""

    wait_seconds: float = 10.0
    """How long a call waits for another process before it raises `StoreBusy`."""
    read_only: bool = False
    synchronous: str = "FULL"
    """SQLite only: `FULL` (an acknowledged write survives a power cut) or `NORMAL`."""
    connections: int = 8
    """PostgreSQL only: the most connections this process opens."""
    clock: Callable[[], float] = time.time
