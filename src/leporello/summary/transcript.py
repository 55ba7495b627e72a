"""The folded turns as text for a summary model: numbered and pruned. A summary task holds no secrets to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from leporello.ledger.calls import describe, one_line, result_text
from leporello.ledger.line_features import clip
from leporello.messages import Message, calls_of, is_result, role_of, text_of

CountText = Callable[[str], int]
RESULT_CHARS = 1_600
TEXT_CHARS = 6_000
CALL_CHARS = 240


def turn_text(number: int, message: Message) -> str:
    """One message as a paragraph that begins with its id and role."""
    if is_result(message):
        return f"[m{number} tool] {clip(result_text(message), RESULT_CHARS)}"
    parts = [f"[m{number} {role_of(message)}] {clip(text_of(message), TEXT_CHARS)}"]
    for call in calls_of(message):
        parts.append(f"  calls {call.name}: {one_line(describe(call).target, CALL_CHARS)}")
    return "\n".join(parts)


def chunks(turns: Iterable[tuple[int, Message]], budget: int, count: CountText) -> list[str]:
    """The turns as texts of at most `budget` tokens each; a turn that is larger by itself is clipped to fit."""
    out: list[list[str]] = [[]]
    used = 0
    for number, message in turns:
        text = turn_text(number, message)
        size = count(text) + 1
        while size > budget and len(text) > 200:
            text = clip(text, max(200, int(len(text) * budget / size * 0.9)))
            size = count(text) + 1
        if used + size > budget and out[-1]:
            out.append([])
            used = 0
        out[-1].append(text)
        used += size
    return ["\n".join(piece) for piece in out if piece]


def thin(pieces: Sequence[str], most: int) -> list[str]:
    """At most so many pieces: the newest whole, older ones evenly spaced. The index covers what is skipped."""
    if len(pieces) <= most:
        return list(pieces)
    newest = max(1, most // 3)
    older = pieces[:-newest]
    step = len(older) / (most - newest)
    return [older[int(k * step)] for k in range(most - newest)] + list(pieces[-newest:])
