"""Compactions as a test needs them: one of a plain list, or a session that grows and is compacted as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.compaction.pipeline import CompactionResult
from leporello.compaction.view import number_messages
from leporello.engines.compressor import ContextCompressor
from leporello.events import CompactionReport
from leporello.messages import Message
from leporello.policy.state import MANUAL
from tests.support.checks import cut_points


def fold_once(messages: Sequence[Message], window: int, *, trigger: str = MANUAL, **options: Any) -> CompactionResult:
    """One compaction by a fresh engine that sees only the list; as the user asked for it, unless told otherwise."""
    return ContextCompressor(window, **options).compact(number_messages(messages), trigger=trigger)


@dataclass(frozen=True, slots=True)
class Round:
    """One compaction of a growing session."""

    seen: int
    """How many messages of the session had arrived."""
    before: list[Message]
    after: list[Message]
    report: CompactionReport


def rounds(
    messages: Sequence[Message], window: int, times: int, *, fresh: bool = False, **options: Any
) -> Iterator[Round]:
    """The messages arrive in equal parts, each followed by a manual compaction.

    With `fresh` every part is handled by another engine, as after a restart without a store: what it knows of the
    beginning is what the list tells it.
    """
    points = cut_points(messages)
    engine = ContextCompressor(window, **options)
    context: list[Message] = []
    seen = 0
    for number in range(1, times + 1):
        stop = points[len(points) * number // times - 1]
        context = [*context, *messages[seen:stop]]
        seen = stop
        if fresh:
            engine = ContextCompressor(window, **options)
        after = engine.compress(context, force=True)
        assert engine.last_report is not None
        yield Round(seen, context, after, engine.last_report)
        context = after
