"""Session hygiene: before an agent sees a message, a conversation that is nearly full is folded.

It stands deliberately above the agent's own threshold: it catches what escaped (a session that grew overnight, a
smaller model) and must not fire on every turn.
"""

from __future__ import annotations

from leporello.agent.agent import Agent
from leporello.events import CompactionReport

SHARE = 0.85
LEAST_MESSAGES = 4


def is_due(*, enabled: bool, messages: int, tokens: int, window: int) -> bool:
    """Whether a conversation must be folded before it goes on."""
    return enabled and messages >= LEAST_MESSAGES and tokens >= SHARE * window


def clean(agent: Agent) -> CompactionReport | None:
    """Fold a conversation that needs it; None when it does not."""
    talk = agent.talk
    reading = agent.measure()
    # The provider's own count of the last request where there is one; else all is an estimate.
    due = is_due(
        enabled=talk.settings.compression.enabled,
        messages=len(talk.view.lines),
        tokens=reading.tokens,
        window=talk.limits.window,
    )
    return talk.shrink("hygiene") if due else None
