"""Content parts of any dialect as Chat Completions takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import Wire, without
from leporello.codecs.parts import as_json_text, file_note, text_part
from leporello.messages import Message

MARK = "cache_control"
NATIVE_PARTS = frozenset(("text", "image_url", "input_audio", "file", "refusal"))
_ANTHROPIC_ONLY = frozenset(("search_result", "container_upload", "tool_reference", "browser_state"))


def unmarked(message: Message) -> Message:
    """The message as it was before a cache mark was laid on it: marking turns a text into a list of one part."""
    plain = without(message, MARK)
    content = plain.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        part = content[0]
        if set(part) == {"type", "text", MARK} and part["type"] == "text":
            return {**plain, "content": part["text"]}
    return plain


def chat_part(part: Any) -> Wire | None:
    """One part for a user message; None for reasoning of another provider. Kinds nobody here knows go along as they
    are: the endpoint may know them (`video_url`)."""
    if isinstance(part, str):
        return text_part(part)
    if not isinstance(part, Mapping):
        return as_json_text(part)
    if MARK in part:
        # A mark that moves on must leave no trace, not even in the size a note states.
        part = {key: value for key, value in part.items() if key != MARK}
    kind = part.get("type")
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return None
    if kind in ("input_text", "output_text"):
        return text_part(str(part.get("text", "")))
    if kind == "input_image":
        return _image(part)
    if kind == "image":
        return _anthropic_image(part)
    if kind == "input_file":
        named = {key: part[key] for key in ("file_id", "filename", "file_data") if key in part}
        return {"type": "file", "file": named} if named else file_note(part)
    if kind == "document":
        return _document(part)
    if kind in _ANTHROPIC_ONLY:
        return as_json_text(part)
    return part if isinstance(part, dict) else dict(part)


def _image(part: Mapping[str, Any]) -> Wire:
    url = part.get("image_url")
    if not isinstance(url, str):
        return as_json_text(part)
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _anthropic_image(part: Mapping[str, Any]) -> Wire:
    source = part.get("source")
    if isinstance(source, Mapping) and source.get("type") == "base64":
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
    elif isinstance(source, Mapping) and source.get("type") == "url":
        url = str(source.get("url"))
    else:
        return as_json_text(part)
    return {"type": "image_url", "image_url": {"url": url}}


def _document(part: Mapping[str, Any]) -> Wire:
    source = part.get("source")
    if not isinstance(source, Mapping):
        return file_note(part)
    title = str(part.get("title") or "document")
    if source.get("type") == "base64":
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "file", "file": {"filename": title, "file_data": data}}
    if source.get("type") == "text":
        return text_part(f"{title}\n\n{source.get('data', '')}")
    return file_note(part)
