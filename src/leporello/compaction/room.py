"""The room of a compaction: what must be sent whatever is folded, and the limits that follow from the rest. Pure.

The shares of a window are meant for a conversation that has most of it. Where system prompt, tools, the newest request
or open calls take a large part, head, summary and tail share what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leporello.compaction.plan import Measure, newest_user
from leporello.compaction.view import Item
from leporello.errors import FixedPartTooLarge
from leporello.messages import is_instruction, message_hash
from leporello.models import Limits
from leporello.turns import open_group

USUAL_SHARE = 0.5
"""What head, summary and tail take of the window together, seldom more."""


def fixed_parts(items: Sequence[Item], measure: Measure, system: int, tools: int) -> dict[str, int]:
    """Tokens that no compaction can take away, by what they are for."""
    instructions = {message_hash(item.message): item.message for item in items if is_instruction(item.message)}
    parts = {"system": system + sum(map(measure, instructions.values())), "tools": tools}
    newest = newest_user(items)
    parts["newest user message"] = measure(items[newest].message) if newest is not None else 0
    busy = open_group([item.message for item in items])
    if busy is not None:
        parts["open calls"] = sum(measure(items[index].message) for index in range(busy.start, busy.stop))
    return parts


def too_large(window: int, parts: Mapping[str, int]) -> FixedPartTooLarge | None:
    """The error when the fixed part alone exceeds the window."""
    return FixedPartTooLarge(window, parts) if sum(parts.values()) > window else None


def fitted(limits: Limits, parts: Mapping[str, int]) -> Limits:
    """The limits for what the fixed part leaves of the window."""
    left = max(0, limits.hard_tokens - sum(parts.values()))
    return scaled(limits, min(1.0, left / (limits.window * USUAL_SHARE)))


def scaled(limits: Limits, share: float) -> Limits:
    """Limits with every budget at a share of what it was."""
    if share >= 1:
        return limits

    def less(tokens: int) -> int:
        return max(1, int(tokens * share))

    return replace(
        limits,
        window=less(limits.window),
        tail_tokens=less(limits.tail_tokens),
        summary_floor=less(limits.summary_floor),
        summary_ceiling=less(limits.summary_ceiling),
        head_message_tokens=less(limits.head_message_tokens),
        head_tokens=less(limits.head_tokens),
        aim_tokens=less(limits.aim_tokens),
    )
