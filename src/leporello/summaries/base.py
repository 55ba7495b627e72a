"""The port between the compaction pipeline and whoever writes the narrative of a handoff."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import Struct

from leporello.cancel import CancelToken
from leporello.errors import Cancelled, LeporelloError
from leporello.events import Verification
from leporello.messages import Message
from leporello.providers.base import ModelRequest, Provider
from leporello.redact import redact
from leporello.redact.messages import Given, masked
from leporello.summaries.handoff import Handoff, redacted
from leporello.usage import CanonicalUsage


class LivePrefix(Struct, frozen=True):
    """A conversation as its own model has it in its prompt cache: a call that begins with it is billed as read."""

    provider: Provider
    request: ModelRequest


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
    given: Mapping[int, str] = field(default_factory=dict)
    """Messages that answer a question for a secret, as the ledger knows them."""
    live: Callable[[], object] | None = field(default=None, compare=False)
    """A `LivePrefix` while the conversation is warm in a cache, else None; only its own model is sent it."""

    def __post_init__(self) -> None:
        """A summariser sees no secret: it reads masked messages, and what it writes is checked against the same."""
        object.__setattr__(self, "messages", self._masked())
        object.__setattr__(self, "focus", redact(self.focus))

    def _masked(self) -> list[tuple[int, Message]]:
        return [(number, masked(message, Given(self.given.get(number, "")))) for number, message in self.messages]


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


class Told(Struct, frozen=True):
    """A narrative that is there already, for folding once more."""

    summary: Summary

    def summarise(self, task: SummaryTask) -> Summary:
        """The same, whatever the task."""
        return self.summary


class Stoppable(Struct, frozen=True):
    """A narrator that a token can stop: what is told after that is not used."""

    summariser: Summariser
    token: CancelToken

    def summarise(self, task: SummaryTask) -> Summary:
        """The narrative for a task; raises `Cancelled` when the token was cancelled meanwhile."""
        told = self.summariser.summarise(replace(task, cancel=self.token))
        if self.token.cancelled:
            raise Cancelled("The folding was stopped; nothing was changed.")
        return told


LATE = "The model's summary is late; one without a model stands in for it."
TICK = 0.25


class LateSummary:
    """Gives what a summariser writes within `seconds`, else none; what comes later is given when it is asked again."""

    def __init__(self, summariser: Summariser, seconds: float) -> None:
        self._summariser = summariser
        self._seconds = seconds
        self._came = threading.Event()
        self._began = False
        self.missed = False
        """Whether it did not come in time."""
        self._told: Summary | None = None
        self._cancel = CancelToken()

    def summarise(self, task: SummaryTask) -> Summary:
        """The narrative for the one task it is used for."""
        if not self._began:
            self._began = True
            self._cancel = CancelToken(task.cancel)
            own = replace(task, cancel=self._cancel)
            # A daemon: a summary that never comes must not keep the program alive.
            threading.Thread(target=self._write, args=(own,), name="leporello-summary", daemon=True).start()
            self.missed = not self._came.wait(self._seconds)
            if self.missed:
                return Summary(None, warnings=(LATE,))
        return self._told if self._came.is_set() and self._told else Summary(None)

    def _write(self, task: SummaryTask) -> None:
        try:
            self._told = self._summariser.summarise(task)
        except (Cancelled, LeporelloError):
            self._told = None
        finally:
            self._cancel.release()
            self._came.set()

    def comes(self, seconds: float, wanted: Callable[[], bool]) -> bool:
        """Wait for it as long as it is wanted; whether it came with anything in it."""
        waited = 0.0
        while not self._came.is_set() and waited < seconds and not self._cancel.cancelled and wanted():
            self._came.wait(TICK)
            waited += TICK
        if not self._came.is_set():
            # Nobody wants it any more, so it need not be paid for to its end.
            self._cancel.cancel()
        return self._came.is_set() and self._told is not None and self._told.handoff is not None
