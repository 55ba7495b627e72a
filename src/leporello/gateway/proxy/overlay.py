"""A folded view laid over the client's own list: what is shown as it was stays the client's text, byte for byte.

Folds and shortened messages are written in the dialect's form; they are the same bytes each time, because a view does
not change between compactions. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from leporello.caching import MARK, marker
from leporello.dialects import Dialect, Target
from leporello.dialects.anthropic.blocks import THINKING, can_carry
from leporello.gateway.proxy.request import CODECS, Body, WireRequest
from leporello.messages import Message, calls_of, is_result, result_id
from leporello.store.records import ViewLine
from leporello.summaries.fold import fold_message, read_fold

MOST_MARKS = 4
TAIL_MARKS = 3
_STANDIN: Message = {"role": "user", "content": "."}


@dataclass(frozen=True, slots=True)
class OverlayItem:
    """One item of the new list: the client's own (by its place), or one that is written here."""

    place: int | None
    text: bytes
    role: str = ""
    fold: bool = False


def is_folded(lines: Sequence[ViewLine]) -> bool:
    """Whether a view shows anything else than the messages themselves, all of them, in order."""
    return any(line.shortened or line.number != k for k, line in enumerate(lines, 1))


def with_footers(lines: Sequence[ViewLine], *, callable_here: bool) -> list[ViewLine]:
    """Folds name the recovery calls exactly where the model can make them, whatever held when they were made."""
    return [_with_footer(line, callable_here) if line.fold else line for line in lines]


def _with_footer(line: ViewLine, callable_here: bool) -> ViewLine:
    content = line.message.get("content")
    if not isinstance(content, str) or ("lcm_expand(" in content) is callable_here:
        return line
    fold = read_fold(line.message)
    if fold is None:
        return line
    return replace(line, message=fold_message(fold, str(line.message.get("role")), recall=callable_here))


def apply_view(request: WireRequest, lines: Sequence[ViewLine], *, ttl: str = "5m", lay_marks: bool = False) -> bytes:
    """The body that shows the view instead of the whole conversation."""
    body = request.body()
    if body is None or not request.messages:
        return request.data
    start = request.spans[0][0]
    pieces = [OverlayItem(place, body.items[place]) for place in range(start)]
    pieces += _pieces(request, body, lines)
    if request.dialect is Dialect.ANTHROPIC:
        pieces = _alternating(_user_first(pieces), start)
        if lay_marks:
            return _marked(request, body, pieces, start, ttl)
    return body.with_items(piece.text for piece in pieces)


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
            for item in encode(request.dialect, [line.message for line in members], target):
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


def encode(dialect: Dialect, messages: Sequence[Message], target: Target) -> list[dict[str, Any]]:
    """Messages as items of a dialect's list, under the ids they have: their counterparts are sent as the client wrote
    them."""
    if dialect is Dialect.ANTHROPIC:
        opened = [_STANDIN, *messages] if messages[0].get("role") == "assistant" else list(messages)
        turns: list[dict[str, Any]] = CODECS[dialect].encode_request(opened, target=target)["messages"]
        return turns[len(opened) - len(messages) :]
    if dialect is Dialect.OPENAI_CHAT:
        listed: list[dict[str, Any]] = CODECS[dialect].encode_request(messages, target=target)["messages"]
        return [_with_ids(item, messages) for item in listed]
    items: list[dict[str, Any]] = CODECS[dialect].encode_request(messages, target=target)["input"]
    return _with_call_ids(items, messages)


def _with_ids(item: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """Long ids are not shortened here as they would be for a history of another provider's."""
    if len(messages) != 1:
        return item
    message = messages[0]
    if is_result(message) and "tool_call_id" in item:
        return {**item, "tool_call_id": result_id(message)}
    if item.get("tool_calls"):
        named = zip(item["tool_calls"], calls_of(message), strict=True)
        return {**item, "tool_calls": [{**call, "id": own.id} for call, own in named]}
    return item


def _with_call_ids(items: list[dict[str, Any]], messages: Sequence[Message]) -> list[dict[str, Any]]:
    if len(messages) != 1:
        return items
    message = messages[0]
    ids = iter([result_id(message)] if is_result(message) else [call.id for call in calls_of(message)])
    return [{**item, "call_id": next(ids, item["call_id"])} if "call_id" in item else item for item in items]


def _alternating(pieces: Sequence[OverlayItem], start: int) -> list[OverlayItem]:
    """Neighbours in one role become one turn where one of them was written here; the client's own are left alone."""
    turns: list[OverlayItem] = list(pieces[:start])
    for piece in pieces[start:]:
        last = turns[-1] if len(turns) > start else None
        if last is not None and None in (last.place, piece.place) and _role(last) == _role(piece):
            turns[-1] = _joined(last, piece)
        else:
            turns.append(piece)
    return turns


def _user_first(pieces: Sequence[OverlayItem]) -> list[OverlayItem]:
    """A view shows instructions of the folded part at its front; here they may only stand behind a user's turn."""
    first = next((k for k, piece in enumerate(pieces) if _role(piece) == "user"), 0)
    leading, rest = list(pieces[:first]), list(pieces[first:])
    if not leading or any(_role(piece) != "system" for piece in leading):
        return [*pieces]
    moved = leading[0]
    follows = rest[1:2] if len(rest) > 1 and _role(rest[1]) == "system" else []
    for piece in [*leading[1:], *follows]:
        moved = _joined(moved, piece)
    return [rest[0], moved, *rest[1 + len(follows) :]]


def _role(piece: OverlayItem) -> str:
    return piece.role or str(orjson.loads(piece.text).get("role", ""))


def _joined(first: OverlayItem, second: OverlayItem) -> OverlayItem:
    blocks = [*_blocks(first), *_blocks(second)]
    # The API wants results before the words of a turn.
    blocks.sort(key=lambda block: block.get("type") != "tool_result")
    role = _role(first)
    return OverlayItem(None, orjson.dumps({"role": role, "content": blocks}), role, first.fold or second.fold)


def _blocks(piece: OverlayItem) -> list[dict[str, Any]]:
    content = orjson.loads(piece.text).get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


# -- breakpoints


def _marked(request: WireRequest, body: Body, pieces: Sequence[OverlayItem], start: int, ttl: str) -> bytes:
    """With the client's own breakpoints where they stand; with ours where it has none, or room for one on the fold."""
    texts = [piece.text for piece in pieces]
    if MARK in request.fields:
        # The provider places breakpoints by itself.
        return body.with_items(texts)
    outside = _count(body.fields.get("system", b"")) + _count(body.fields.get("tools", b""))
    inside = [_count(text) for text in texts]
    own = outside + sum(inside)
    if own:
        fold = next((k for k, piece in enumerate(pieces) if piece.fold), None)
        if fold is not None and own < MOST_MARKS and not inside[fold]:
            # Marks of a longer life must stand first: ours copies the first of the client's.
            texts[fold] = _with_mark(texts[fold], _first_mark(request) or marker(ttl))
        return body.with_items(texts)
    mark = marker(ttl)
    for k in range(max(start, len(texts) - TAIL_MARKS), len(texts)):
        texts[k] = _with_mark(texts[k], mark)
    system = _marked_system(request.fields.get("system"), mark)
    return body.with_items(texts, **({"system": orjson.dumps(system)} if system else {}))


def _count(text: bytes) -> int:
    """How many marks a piece of a request carries; words that merely look like one are not counted."""
    if b'"cache_control"' not in text:
        return 0
    return sum(1 for _ in _marks(orjson.loads(text)))


def _marks(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if isinstance(value.get(MARK), dict):
            yield value[MARK]
        yield from _marks(value.get("content"))
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)


def _first_mark(request: WireRequest) -> dict[str, Any] | None:
    for name in ("tools", "system", "messages"):
        found = next(_marks(request.fields.get(name)), None)
        if found is not None:
            return dict(found)
    return None


def _with_mark(text: bytes, mark: dict[str, Any]) -> bytes:
    turn = orjson.loads(text)
    content = turn.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    place = next((k for k in range(len(blocks) - 1, -1, -1) if can_carry(blocks[k])), None)
    if place is None:
        return text
    blocks[place] = {**blocks[place], MARK: mark}
    return orjson.dumps({**turn, "content": blocks})


def _marked_system(system: Any, mark: dict[str, Any]) -> list[dict[str, Any]] | None:
    if isinstance(system, str) and system.strip():
        return [{"type": "text", "text": system, MARK: mark}]
    if isinstance(system, list) and system and isinstance(system[-1], dict) and can_carry(system[-1]):
        return [*system[:-1], {**system[-1], MARK: mark}]
    return None


# -- signed thinking


def without_thinking(data: bytes, key: str = "messages") -> bytes:
    """The body without signed thinking: newer models bind it to everything before it and refuse it after a fold."""
    body = Body.read(data, key)
    if body is None:
        return data
    return body.with_items(_thoughtless(text) for text in body.items)


def _thoughtless(text: bytes) -> bytes:
    if b"thinking" not in text:
        return text
    turn = orjson.loads(text)
    content = turn.get("content")
    if turn.get("role") != "assistant" or not isinstance(content, list):
        return text
    kept = [block for block in content if not (isinstance(block, dict) and block.get("type") in THINKING)]
    if len(kept) == len(content) or not kept:
        return text
    return orjson.dumps({**turn, "content": kept})
