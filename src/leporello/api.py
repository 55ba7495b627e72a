"""`compress`: one call, no store, no model, no set-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message, Messages
from leporello.models import resolve_limits
from leporello.records import CompactionReport
from leporello.summary.base import Narrator
from leporello.tokens import TokenCounter

DEFAULT_WINDOW = 128_000


@dataclass(frozen=True, slots=True)
class Compressed:
    """The messages to go on with, and the report of what was done."""

    messages: list[Message]
    report: CompactionReport


def compress(
    messages: Messages,
    *,
    window: int | None = None,
    model: str | None = None,
    focus: str = "",
    tools: Sequence[dict[str, Any]] = (),
    system: str = "",
    narrator: Narrator | None = None,
) -> Compressed:
    """Fold a message list now, whatever its size. The input is left alone; without gain it is returned as it was."""
    counter = TokenCounter.for_model(model)
    declared = window if window or model else DEFAULT_WINDOW
    limits = resolve_limits(model, declared_window=declared)
    engine = ContextCompressor(limits=limits, counter=counter, narrator=narrator)
    engine.tool_tokens = counter.tools(tools)
    engine.system_tokens = counter.text(system) if system else 0
    result = engine.compress(list(messages), focus_topic=focus or None, force=True)
    assert engine.last_report is not None
    return Compressed(result, engine.last_report)
