"""Content parts as Anthropic content blocks, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.caching import MARK
from leporello.dialects.base import Wire
from leporello.dialects.parts import as_json_text, data_url, decoded_text, file_note, note, text_part

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
        return _text(part)
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


def _text(part: Mapping[str, Any]) -> Wire | None:
    text = part.get("text")
    if not isinstance(text, str) or not text.strip():
        return None
    return text_part(text) if part.get("type") != "text" else dict(part)


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


def part_of(block: Mapping[str, Any]) -> Wire:
    """One user block as a content part; only plain images have an OpenAI form that loses nothing."""
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
