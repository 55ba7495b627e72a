"""A rewritten list of turns as Anthropic takes it: alternating roles, the user first, cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from leporello.caching import MARK
from leporello.dialects.anthropic.blocks import THINKING, blocks_in, can_carry
from leporello.dialects.anthropic.encode import encode_request
from leporello.dialects.base import Target, Wire
from leporello.dialects.parts import text_part
from leporello.dialects.request import Body, OverlayItem
from leporello.messages import Message

MOST_MARKS = 4
TAIL_MARKS = 3
_STANDIN: Message = {"role": "user", "content": "."}


def encode_items(messages: Sequence[Message], target: Target) -> list[Wire]:
    """Messages as turns."""
    opened = [_STANDIN, *messages] if messages[0].get("role") == "assistant" else list(messages)
    turns: list[Wire] = encode_request(opened, target=target)["messages"]
    return turns[len(opened) - len(messages) :]


def lay_out(body: Body, items: Sequence[OverlayItem], start: int, mark: Wire | None) -> bytes:
    """The body with another list; with cache marks where a mark is given."""
    turns = _alternating(_user_first(items), start)
    if mark is not None:
        return _marked(body, turns, start, mark)
    return body.with_items(turn.text for turn in turns)


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
    blocks = [*blocks_in(orjson.loads(first.text)), *blocks_in(orjson.loads(second.text))]
    # The API wants results before the words of a turn.
    blocks.sort(key=lambda block: block.get("type") != "tool_result")
    role = _role(first)
    return OverlayItem(None, orjson.dumps({"role": role, "content": blocks}), role, first.fold or second.fold)


def _marked(body: Body, turns: Sequence[OverlayItem], start: int, mark: Wire) -> bytes:
    """With the client's own breakpoints where they stand; with ours where it has none, or room for one on the fold."""
    texts = [turn.text for turn in turns]
    if MARK in body.fields:
        # The provider places breakpoints by itself.
        return body.with_items(texts)
    outside = _count(body.fields.get("system", b"")) + _count(body.fields.get("tools", b""))
    inside = [_count(text) for text in texts]
    own = outside + sum(inside)
    if own:
        fold = next((k for k, turn in enumerate(turns) if turn.fold), None)
        if fold is not None and own < MOST_MARKS and not inside[fold]:
            # Marks of a longer life must stand first: ours copies the first of the client's.
            texts[fold] = _with_mark(texts[fold], _first_mark(body) or mark)
        return body.with_items(texts)
    for k in range(max(start, len(texts) - TAIL_MARKS), len(texts)):
        texts[k] = _with_mark(texts[k], mark)
    system = _marked_system(orjson.loads(body.fields.get("system", b"null")), mark)
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


def _first_mark(body: Body) -> Wire | None:
    for text in (body.fields.get("tools", b"null"), body.fields.get("system", b"null"), *body.items):
        found = next(_marks(orjson.loads(text)), None)
        if found is not None:
            return dict(found)
    return None


def _with_mark(text: bytes, mark: Wire) -> bytes:
    turn = orjson.loads(text)
    blocks = blocks_in(turn)
    place = next((k for k in range(len(blocks) - 1, -1, -1) if can_carry(blocks[k])), None)
    if place is None:
        return text
    blocks[place] = {**blocks[place], MARK: mark}
    return orjson.dumps({**turn, "content": blocks})


def _marked_system(system: Any, mark: Wire) -> list[Wire] | None:
    if isinstance(system, str) and system.strip():
        return [{**text_part(system), MARK: mark}]
    if isinstance(system, list) and system and isinstance(system[-1], dict) and can_carry(system[-1]):
        return [*system[:-1], {**system[-1], MARK: mark}]
    return None


def without_thinking(text: bytes) -> bytes:
    """A turn without signed thinking: newer models bind it to everything before it and refuse it after a fold."""
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
