"""Messages and settings as derived texts may read them: each text masked as a whole, before anybody cuts it.

    masked(message)   ->   the same message without secrets; the very same object when there are none

Half a key no longer looks like one, so that masking after clipping, splitting or joining comes too late. Whoever makes
something of a message (facts, summaries, one-liners, an index, a preview) therefore begins here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leporello.messages import Message, Part, PartKind, ToolCall, calls_of, parse_json, parts_of
from leporello.redact import redact, redact_spans
from leporello.redact.values import PLACEHOLDER

_TEXT_KEYS = ("text", "refusal", "thinking", "content")
_BESIDE = ("reasoning_content", "reasoning", "refusal")
_DEEPEST = 50


def masked(message: Message) -> Message:
    """The message without secrets. For reading only: it is never sent, and never stored in the log."""
    changed: Message = {}
    content = message.get("content")
    if isinstance(content, str):
        changed["content"] = masked_text(content)
    elif isinstance(content, list):
        changed["content"] = _masked_parts(parts_of(message))
    for key in _BESIDE:
        if isinstance(message.get(key), str):
            changed[key] = redact(message[key])
    if isinstance(message.get("tool_calls"), list) or isinstance(message.get("function_call"), dict):
        changed |= _masked_calls(message)
    return message if all(message.get(key) == value for key, value in changed.items()) else {**message, **changed}


def masked_call(call: ToolCall) -> ToolCall:
    arguments = masked_text(call.arguments)
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def masked_text(text: str) -> str:
    """The text without secrets; inside JSON the texts are read as they are meant, without its escapes."""
    if text.lstrip()[:1] not in ("{", "["):
        return redact(text)
    value = parse_json(text)
    if isinstance(value, dict | list) and _masked_value(value, 0) != value:
        text = _masked_json(text)
    # Once more as a whole: a name and its value stand in two texts of the JSON.
    return redact(text)


def _masked_json(text: str) -> str:
    try:
        # Numbers stay as they were written: orjson makes floats of integers beyond 64 bits.
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_masked_value(value, 0), ensure_ascii=False, separators=(",", ":"))


def _masked_value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, dict):
        return {key: _masked_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        words = [_masked_value(item, depth + 1) for item in value]
        return _masked_words(words) if len(words) > 1 and all(isinstance(word, str) for word in words) else words
    return value


def _masked_words(words: Sequence[str]) -> list[str]:
    """The words of a command, read as the one line they are: `-p` in one announces what stands in the next."""
    spans = redact_spans(" ".join(words))
    if not spans:
        return list(words)
    made = []
    start = 0
    for word in words:
        clean, position = "", 0
        for span in spans:
            first, last = max(span.start - start, position), min(span.end - start, len(word))
            if first < last:
                clean += word[position:first] + PLACEHOLDER
                position = last
        made.append(clean + word[position:])
        start += len(word) + 1
    return made


def _masked_parts(parts: Sequence[Part]) -> list[Any]:
    clean = [_masked_part(part) for part in parts]
    said = [index for index, part in enumerate(parts) if part.kind is PartKind.TEXT and part.text]
    if len(said) < 2:
        return clean
    joined = "\n".join(_text_in(clean[index]) for index in said)
    whole = redact(joined)
    if whole != joined:
        # A secret goes through several parts: the first takes the text of all.
        clean[said[0]] = {"type": "text", "text": whole}
        clean = [part for index, part in enumerate(clean) if index not in said[1:]]
    return clean


def _masked_part(part: Part) -> Any:
    if part.kind not in (PartKind.TEXT, PartKind.THINKING) or not part.text:
        return part.raw
    text = masked_text(part.text)
    if text == part.text:
        return part.raw
    return text if isinstance(part.raw, str) else {**part.raw, _text_key(part.raw): text}


def _text_in(raw: Any) -> str:
    return raw if isinstance(raw, str) else str(raw[_text_key(raw)])


def _text_key(raw: Any) -> str:
    return next(key for key in _TEXT_KEYS if isinstance(raw.get(key), str))


def _masked_calls(message: Message) -> Message:
    calls = calls_of(message)
    clean = tuple(map(masked_call, calls))
    if clean == calls:
        return {}
    written = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in clean
    ]
    if isinstance(message.get("tool_calls"), list):
        return {"tool_calls": written}
    return {"function_call": written[0]["function"]}


def masked_value(name: str, value: Any) -> Any:
    """The value of a setting with all secrets masked; its name tells what its text is."""
    if isinstance(value, dict):
        return {key: masked_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(masked_value(name, inner) for inner in value)
    if not isinstance(value, str):
        return value
    opening = f'{name}: "'
    return redact(f'{opening}{value}"')[len(opening) : -1]
