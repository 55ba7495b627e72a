"""`compress`: one call, no store, no model, no set-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.engines.builtin import make_builtin
from leporello.messages import Message, Messages
from leporello.models import resolve_limits
from leporello.records import CompactionReport
from leporello.summary.base import Narrator
from leporello.tokens import TokenCounter

DEFAULT_WINDOW = 128_000


class Compressed(list[Message]):
    """The messages to go on with: a plain list, with the report of what was done as `report`."""

    def __init__(self, messages: Sequence[Message], report: CompactionReport) -> None:
        super().__init__(messages)
        self.report = report

    @property
    def messages(self) -> list[Message]:
        """The same messages as an ordinary list."""
        return list(self)


def compress(
    messages: Messages,
    *,
    window: int | None = None,
    model: str | None = None,
    focus: str = "",
    tools: Sequence[dict[str, Any]] = (),
    system: str = "",
    engine: str = "compressor",
    narrator: Narrator | None = None,
) -> Compressed:
    """Fold a message list now, whatever its size. The input is left alone; without gain it is returned as it was."""
    counter = TokenCounter.for_model(model)
    declared = window if window or model else DEFAULT_WINDOW
    limits = resolve_limits(model, declared_window=declared)
    folder = make_builtin(engine, limits, counter, narrator)
    folder.tool_tokens = counter.tools(tools)
    folder.system_tokens = counter.text(system) if system else 0
    result = folder.compress(list(messages), focus_topic=focus or None, force=True)
    assert folder.last_report is not None
    return Compressed(result, folder.last_report)
