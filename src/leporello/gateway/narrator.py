"""Who writes the summaries of proxied conversations: the configured summary model, else nobody.

A client's key is never used for calls the client did not make.
"""

from __future__ import annotations

from leporello.agent.session import Chosen, choose_model, summariser_for
from leporello.config import Settings
from leporello.errors import ConfigError
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter


def proxy_narrator(settings: Settings) -> Summariser | None:
    """The summary model of `auxiliary.compression`; None makes summaries without a model."""
    wanted = settings.summary_model.model
    if not wanted:
        return None
    try:
        main: Chosen = choose_model(settings, wanted)
    except ConfigError:
        return None
    return summariser_for(settings, main, TokenCounter.for_model(wanted))
