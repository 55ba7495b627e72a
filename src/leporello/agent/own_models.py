"""Models that come with the program: the one on this machine, and the scripted one for demonstrations."""

from __future__ import annotations

from leporello.agent.demo import PREFIX
from leporello.agent.demo import WINDOW as DEMO_WINDOW
from leporello.local.model_file import SMOLLM2
from leporello.local.provider import NAME as LOCAL


def own_window(model: str | None) -> int | None:
    """The window of a model of our own; None for all others."""
    if not model:
        return None
    if model == LOCAL:
        return SMOLLM2.window
    return DEMO_WINDOW if model.startswith(PREFIX) else None
