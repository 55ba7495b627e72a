"""One call to the model with recovery: what a provider refuses is mended as `recovery` says, and sent again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leporello.agent.events import Notice, TextDelta, Watcher
from leporello.conversation import Conversation
from leporello.conversation.recovery import Facts, OutputCap, Recovery, Remedy, Step, next_step
from leporello.errors import LeporelloError
from leporello.events import CompactionReport
from leporello.providers.base import ModelReply, ModelRequest, Provider
from leporello.providers.errors import CallFailed, ErrorVerdict

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
        recovery = Recovery()
        while True:
            try:
                return self.provider.complete(make(max_tokens), lambda text: self.watch(TextDelta(text)))
            except CallFailed as error:
                step = next_step(recovery, error.verdict, self._facts(max_tokens))
                if step.remedy is Remedy.LOWER_CAP:
                    max_tokens = step.cap
                    allowed = f"The model allows at most {step.cap:,} output tokens here"
                    self.watch(Notice(f"{allowed}; asking again with that."))
                elif step.remedy is Remedy.COMPACT:
                    report = self._compact(step)
                    if not report.committed:
                        raise StillTooLong(error.verdict, recovery.compactions, report.reason) from error
                elif step.remedy is Remedy.EXHAUSTED:
                    raise StillTooLong(error.verdict, recovery.compactions, step.reason) from error
                else:
                    raise
                recovery = step.after

    def _facts(self, max_tokens: int | None) -> Facts:
        runtime = self.talk.runtime
        limits = runtime.sizes.limits
        output = OutputCap(max_tokens, limits.output_reserve)
        return Facts(limits.window, runtime.settings.compression.enabled, output)

    def _compact(self, step: Step) -> CompactionReport:
        if step.stated_window is not None:
            self.learn(step.stated_window)
            self.watch(Notice(f"The model's window is {step.stated_window:,} tokens, as it says itself; remembered."))
        self.watch(Notice("The request was too long for the model; folding and sending it again."))
        return self.talk.runtime.compactor.shrink(step.trigger)
