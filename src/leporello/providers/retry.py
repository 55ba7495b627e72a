"""How often and how soon a failed call is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.providers.errors import ErrorVerdict


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounded tries with growing waits, for failures that pass by themselves. Nothing else is ever repeated."""

    tries: int = 4
    first: float = 0.5
    growth: float = 2.0
    longest: float = 60.0
    """A provider that asks for a longer wait than this gets none: the caller hears of it at once."""

    def wait(self, verdict: ErrorVerdict, done: int, jitter: float) -> float | None:
        """Seconds before the next try, or None when there is none. `jitter` in 0..1 spreads waits that nobody asked
        for, so that many clients don't come back together."""
        if not verdict.retryable or verdict.cause == "memory" or done + 1 >= self.tries:
            return None
        if verdict.retry_after is not None:
            return verdict.retry_after if verdict.retry_after <= self.longest else None
        return min(self.longest, self.first * self.growth**done) * (0.5 + jitter / 2)
