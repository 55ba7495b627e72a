"""The port of the job queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Handler: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Does a job, in a thread. A `LeporelloError` means that it did not work this time."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done by whoever has time."""

    kind: str
    """Which handler does it."""
    key: str
    """What it is about: while one job of a key waits, another adds nothing."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the handler."""


class Queue(Protocol):
    """Takes jobs, and does them while it is serving."""

    def submit(self, job: Job) -> bool:
        """Take a job in, or know it already; False when that is impossible now.

        Call it from a thread, not from the event loop: it may wait for a database.
        """

    def serving(self, handlers: Mapping[str, Handler]) -> AbstractAsyncContextManager[None]:
        """Do jobs while the block runs. At its end those under way are finished."""
