"""One call to the model with recovery: what a provider refuses as too large is folded and sent again.

Input over the window: fold and retry, at most three times. Output cap: lower this call's `max_tokens` only. A limit the
provider states is remembered; nothing is ever guessed. Everything else goes to the caller as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leporello.agent.events import Notice, TextDelta, Watcher
from leporello.conversation import Conversation
from leporello.errors import LeporelloError
from leporello.events import CompactionReport, Outcome
from leporello.providers.base import ModelReply, ModelRequest, Provider
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict

MOST_RECOVERIES = 3
LEAST_OUTPUT = 64

RequestMaker = Callable[[int | None], ModelRequest]
"""Builds the request for the view as it is now, with at most so many output tokens."""


class StillTooLong(LeporelloError):
    """The request is refused as too long even after folding."""

    def __init__(self, verdict: ErrorVerdict, foldings: int, why: str) -> None:
        times = f"after {foldings} foldings" if foldings else "and it was not folded"
        super().__init__(
            f"The model refuses the request as too long {times} ({why or verdict.message}). "
            "Start afresh with /new, or fold by hand with /compress."
        )
        self.verdict = verdict


@dataclass(slots=True)
class Caller:
    """Sends requests of one conversation."""

    talk: Conversation
    provider: Provider
    watch: Watcher
    learn: Callable[[int], None]
    """Takes a window the provider stated."""

    def call(self, make: RequestMaker, max_tokens: int | None) -> ModelReply:
        """The answer, after as many recoveries as are allowed."""
        foldings = 0
        capped = 0
        while True:
            try:
                reply = self.provider.complete(make(max_tokens), lambda text: self.watch(TextDelta(text)))
            except CallFailed as error:
                verdict = error.verdict
                if verdict.kind is ErrorKind.OUTPUT_CAP and capped < MOST_RECOVERIES:
                    capped += 1
                    max_tokens = self._lower(verdict, max_tokens)
                    continue
                if not verdict.foldable:
                    raise
                report = None if foldings >= MOST_RECOVERIES else self._fold(verdict, foldings)
                if report is None or not report.committed:
                    raise StillTooLong(verdict, foldings, report.reason if report else "") from error
                foldings += 1
                continue
            return reply

    def _lower(self, verdict: ErrorVerdict, max_tokens: int | None) -> int:
        """Input is fine, input and output together are not: ask for less output, change nothing else."""
        allowed = verdict.allowed_output
        if allowed is None or allowed < 1 or (max_tokens is not None and allowed >= max_tokens):
            allowed = (max_tokens or self.talk.limits.output_reserve) // 2
        lowered = max(LEAST_OUTPUT, allowed)
        self.watch(Notice(f"The model allows at most {lowered:,} output tokens here; asking again with that."))
        return lowered

    def _fold(self, verdict: ErrorVerdict, foldings: int) -> CompactionReport:
        """Make the view smaller, if that is allowed and helps."""
        if not self.talk.settings.compression.enabled:
            return CompactionReport(Outcome.BLOCKED, "compression.enabled is false")
        if verdict.stated_limit is not None and verdict.stated_limit < self.talk.limits.window:
            self.learn(verdict.stated_limit)
            self.watch(Notice(f"The model's window is {verdict.stated_limit:,} tokens, as it says itself; remembered."))
        self.watch(Notice("The request was too long for the model; folding and sending it again."))
        return self.talk.shrink(f"overflow {foldings + 1}")
