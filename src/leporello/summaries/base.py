"""The port between the compaction pipeline and whoever writes the narrative of a handoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from leporello.cancel import CancelToken
from leporello.errors import Cancelled
from leporello.events import Verification
from leporello.messages import Message
from leporello.redact import redact
from leporello.redact.messages import masked
from leporello.summaries.handoff import Handoff, redacted
from leporello.usage import CanonicalUsage


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """What is to be summarised: numbered messages, the earlier handoff to update, and how much room there is."""

    messages: Sequence[tuple[int, Message]]
    previous: Handoff | None
    budget: int
    focus: str = ""
    rules: tuple[str, ...] = ()
    """The user's standing rules; the verifier makes sure that the narrative contradicts none of them."""
    cancel: CancelToken | None = field(default=None, compare=False)
    """Stops the work; whoever hears it raises `Cancelled`."""

    def __post_init__(self) -> None:
        """A summariser sees no secret: it reads masked messages, and what it writes is checked against the same."""
        object.__setattr__(self, "messages", [(number, masked(message)) for number, message in self.messages])
        object.__setattr__(self, "focus", redact(self.focus))


@dataclass(frozen=True, slots=True)
class Summary:
    """A verified narrative, or none with the reason; who wrote it and what it cost."""

    handoff: Handoff | None
    summariser: str = "model-free"
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)
    cost: float | None = None
    verification: Verification = field(default_factory=Verification)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Whoever wrote it: no secret gets into a fold that way."""
        if self.handoff is not None:
            object.__setattr__(self, "handoff", redacted(self.handoff))


class Summariser(Protocol):
    """Writes the narrative. Never raises for a model's failure: a warning says what happened, and the fold goes on."""

    def summarise(self, task: SummaryTask) -> Summary:
        """The narrative for a task."""


@dataclass(frozen=True, slots=True)
class Stoppable:
    """A narrator that a token can stop: what is told after that is not used."""

    summariser: Summariser
    token: CancelToken

    def summarise(self, task: SummaryTask) -> Summary:
        """The narrative for a task; raises `Cancelled` when the token was cancelled meanwhile."""
        told = self.summariser.summarise(replace(task, cancel=self.token))
        if self.token.cancelled:
            raise Cancelled("The folding was stopped; nothing was changed.")
        return told
