"""Anthropic's content blocks: made of content parts and read back, laid out in alternating turns with cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from leporello.caching import MARK
from leporello.dialects.base import Wire
from leporello.dialects.dialect import Body, OverlayItem
from leporello.dialects.pieces import as_json_text, data_url, decoded_text, file_note, note, text_part

USER_BLOCKS = frozenset(("text", "image", "document", "search_result", "container_upload", "tool_result"))
RESULT_BLOCKS = frozenset(("text", "image", "document", "search_result", "tool_reference", "browser_state"))
IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
THINKING = frozenset(("thinking", "redacted_thinking"))


def block_of(part: Any, native: frozenset[str] = USER_BLOCKS) -> Wire | None:
    """One content part as a block without its mark; None for what is empty or belongs to another provider."""
    if isinstance(part, str):
        return text_part(part) if part.strip() else None
    if not isinstance(part, Mapping):
        return as_json_text(part)
    if MARK in part:
        # A mark that moves on must leave no trace, not even in the size a note states.
        part = {key: value for key, value in part.items() if key != MARK}
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        text = part.get("text")
        if not isinstance(text, str) or not text.strip():
            return None
        return text_part(text) if kind != "text" else dict(part)
    if kind == "refusal":
        return block_of(part.get("refusal") or "")
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return None
    if kind in ("image_url", "input_image"):
        return _image(part)
    if kind in ("file", "input_file"):
        return _file(part)
    if kind in ("input_audio", "audio"):
        return note("audio", part)
    if kind == "image" and not _can_be_seen(part):
        return note("image", part)
    return dict(part) if kind in native else as_json_text(part)


def _image(part: Mapping[str, Any]) -> Wire:
    value = part.get("image_url")
    url = value.get("url") if isinstance(value, Mapping) else value
    inline = data_url(url)
    if inline is not None and inline.media_type in IMAGES:
        source = {"type": "base64", "media_type": inline.media_type, "data": inline.data}
        return {"type": "image", "source": source}
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return note("image", part)


def _can_be_seen(block: Mapping[str, Any]) -> bool:
    source = block.get("source")
    if not isinstance(source, Mapping):
        return False
    return source.get("type") != "base64" or source.get("media_type") in IMAGES


def _file(part: Mapping[str, Any]) -> Wire:
    inner = part.get("file")
    body: Mapping[str, Any] = inner if isinstance(inner, Mapping) else part
    inline = data_url(body.get("file_data"))
    if inline is None:
        return file_note(part)
    if inline.media_type == "application/pdf":
        source = {"type": "base64", "media_type": inline.media_type, "data": inline.data}
    else:
        text = decoded_text(inline.data)
        if text is None:
            return file_note(part)
        source = {"type": "text", "media_type": "text/plain", "data": text}
    named = {"title": body["filename"]} if isinstance(body.get("filename"), str) else {}
    return {"type": "document", "source": source, **named}


def part_of(block: Any) -> Any:
    """One user block as a content part; only plain images have an OpenAI form that loses nothing."""
    if not isinstance(block, Mapping):
        return block
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, Mapping) or set(block) - {"type", "source", MARK}:
        return dict(block)
    mark = {MARK: block[MARK]} if MARK in block else {}
    if source.get("type") == "base64" and set(source) == {"type", "media_type", "data"}:
        url = f"data:{source['media_type']};base64,{source['data']}"
    elif source.get("type") == "url" and set(source) == {"type", "url"}:
        url = str(source["url"])
    else:
        return dict(block)
    return {"type": "image_url", "image_url": {"url": url}, **mark}


def blocks_in(turn: Mapping[str, Any]) -> list[Any]:
    """The content of a turn as blocks; a plain text is one."""
    content = turn.get("content")
    return [text_part(content)] if isinstance(content, str) else list(content or ())


def can_carry(block: Mapping[str, Any]) -> bool:
    """Whether a cache mark may stand on a block: never on thinking, never on empty content."""
    kind = block.get("type")
    if kind in THINKING:
        return False
    if kind == "text":
        return bool(str(block.get("text", "")).strip())
    if kind == "tool_result":
        return bool(block.get("content"))
    return True


MOST_MARKS = 4
TAIL_MARKS = 3


def lay_out(body: Body, items: Sequence[OverlayItem], start: int, mark: Wire | None) -> bytes:
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
            written = (body.fields.get("tools", b"null"), body.fields.get("system", b"null"), *body.items)
            theirs = next((found for text in written for found in _marks(orjson.loads(text))), mark)
            texts[fold] = _with_mark(texts[fold], dict(theirs))
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
