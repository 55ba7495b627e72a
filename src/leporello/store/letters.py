"""Values of the inbox: a letter, and the fence behind which its reader writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leporello.store.records import Lease


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that somebody sent to the agent of a conversation, and how it ended.

    A letter is not yet a message of the log: it may be a command, and it may have to wait.
    """

    conversation: str
    id: str
    """Of the sender's choosing; the same id is the same letter, and can't say something else."""
    number: int
    """Grows in the order of arrival."""
    text: str
    """Empty once the letter has ended: what was said is in the log."""
    attempts: int = 0
    """How often somebody began to answer it."""
    message: int | None = None
    """The number of the message in the log, once it was entered there."""
    cancelled: bool = False
    outcome: Mapping[str, Any] | None = None
    """How it ended; None while it waits or is being answered."""


class Fence:
    """The lease under which somebody writes; it changes from turn to turn, and between turns there is none."""

    __slots__ = ("lease",)

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
