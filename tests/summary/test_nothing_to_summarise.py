"""A span without messages of its own (only a fold of another engine in it) asks no model."""

from __future__ import annotations

from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.base import SummaryTask
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter


def test_no_message_no_call() -> None:
    provider = ScriptedProvider([])
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4o", 8_000)], TokenCounter.for_model(None))
    made = summariser.summarise(SummaryTask([], None, 500))
    assert (made.handoff, made.warnings, provider.requests) == (None, (), [])
