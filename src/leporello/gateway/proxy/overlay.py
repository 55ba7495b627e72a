"""A folded view laid over the client's own list: what is shown as it was stays the client's text, byte for byte.

Folds and shortened messages are written in the dialect's form; they are the same bytes each time, because a view does
not change between compactions. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from leporello.caching import marker
from leporello.dialects import Dialect
from leporello.dialects.dialect import Body, OverlayItem
from leporello.gateway.proxy.request import WireRequest
from leporello.store.records import ViewLine


def is_folded(lines: Sequence[ViewLine]) -> bool:
    """Whether a view shows anything else than the messages themselves, all of them, in order."""
    return any(line.shortened or line.number != k for k, line in enumerate(lines, 1))


def apply_view(request: WireRequest, lines: Sequence[ViewLine], *, ttl: str = "5m", lay_marks: bool = False) -> bytes:
    """The body that shows the view instead of the whole conversation."""
    body = request.body()
    if body is None or not request.messages:
        return request.data
    start = request.spans[0][0]
    pieces = [OverlayItem(place, body.items[place]) for place in range(start)]
    pieces += _pieces(request, body, lines)
    return request.dialect.items.lay_out(body, pieces, start, marker(ttl) if lay_marks else None)


def _pieces(request: WireRequest, body: Body, lines: Sequence[ViewLine]) -> Iterator[OverlayItem]:
    """Runs of lines that stand in one item go together; a whole run is the item itself."""
    target = request.target()
    k = 0
    while k < len(lines):
        run = _run(request, lines, k)
        first, last = request.spans[run[0] - 1] if run else (0, 0)
        if run and _is_whole(request, run):
            yield from (OverlayItem(place, body.items[place]) for place in range(first, last))
        else:
            members = lines[k : k + max(1, len(run))]
            fold = any(line.fold for line in members)
            for item in request.dialect.items.encode([line.message for line in members], target):
                yield OverlayItem(None, orjson.dumps(item), str(item.get("role", "")), fold)
        k += max(1, len(run))


def _run(request: WireRequest, lines: Sequence[ViewLine], k: int) -> list[int]:
    """Numbers of the lines from here on that stand in the same item unchanged; none for what a compaction wrote."""
    numbers: list[int] = []
    for line in lines[k:]:
        if line.number is None or line.shortened or line.number > len(request.spans):
            break
        if numbers and request.spans[line.number - 1] != request.spans[numbers[0] - 1]:
            break
        if numbers and line.number != numbers[-1] + 1:
            break
        numbers.append(line.number)
    return numbers


def _is_whole(request: WireRequest, run: Sequence[int]) -> bool:
    span = request.spans[run[0] - 1]
    before = run[0] > 1 and request.spans[run[0] - 2] == span
    after = run[-1] < len(request.spans) and request.spans[run[-1]] == span
    return not before and not after


def without_thinking(data: bytes, dialect: Dialect) -> bytes:
    """The body without signed thinking, in a dialect that binds it to what stands before it."""
    drop = dialect.items.without_thinking
    body = Body.read(data, dialect.fields.conversation) if drop else None
    return body.with_items(map(drop, body.items)) if drop and body else data
