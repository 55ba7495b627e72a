"""Cache marks for chat endpoints that understand them (OpenRouter for Claude models): on text parts only.

The internal form puts a mark on a part or on the message. On the wire it stands on the message's last text part; a
message without one gives it to the nearest message before it. Text is always sent as a part, marked or not: a mark that
moves on must not change the form of the message it leaves, or the cached prefix would be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import without
from leporello.codecs.openai_chat.parts import MARK
from leporello.codecs.parts import text_part
from leporello.messages import Message


def place_marks(messages: list[Message]) -> list[Message]:
    """The messages with each mark where the wire wants it, all text as parts."""
    placed = list(messages)
    waiting: list[Any] = []
    for index in range(len(placed) - 1, -1, -1):
        message = placed[index]
        waiting.extend(_marks(message))
        message = _as_parts(_unmarked(message))
        if waiting:
            carrying = _marked(message, waiting[0])
            if carrying is not None:
                # Marks that meet on one message are one mark.
                message, waiting = carrying, []
        placed[index] = message
    return placed


def _marks(message: Message) -> list[Any]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    found = [part[MARK] for part in parts if isinstance(part, Mapping) and part.get(MARK)]
    return ([message[MARK]] if message.get(MARK) else []) + found[-1:]


def _unmarked(message: Message) -> Message:
    plain = without(message, MARK)
    content = plain.get("content")
    if isinstance(content, list) and any(isinstance(part, Mapping) and MARK in part for part in content):
        return {**plain, "content": [without(part, MARK) if isinstance(part, dict) else part for part in content]}
    return plain


def _as_parts(message: Message) -> Message:
    content = message.get("content")
    return {**message, "content": [text_part(content)]} if isinstance(content, str) and content else message


def _marked(message: Message, mark: Any) -> Message | None:
    """The message with the mark on its last text, or None when it has no text to carry it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, Mapping) and part.get("type") == "text" and str(part.get("text", "")).strip():
            return {**message, "content": [*parts[:index], {**part, MARK: mark}, *parts[index + 1 :]]}
    return None
