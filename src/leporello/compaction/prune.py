"""Pruning without a model: results become one informative line, huge arguments lose their bulk, images become notes.

What is shown of a message is shortened; the message itself is never changed. Arguments stay valid JSON, and what was
left out is named beside the arguments, never inside a value where a model could copy it into a file. What is shortened
is derived text: secrets in it are masked first. A message that is shown whole is shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leporello.ledger.calls import UNKNOWN_CALL, describe, ended
from leporello.ledger.facts import told
from leporello.ledger.units import CUT_MARK
from leporello.messages import (
    Message,
    PartKind,
    ToolCall,
    calls_of,
    encode_json,
    is_result,
    parse_json,
    parts_of,
    role_of,
    text_of,
)
from leporello.redact import redact
from leporello.redact.messages import masked_arguments

LONG_ARGUMENT_CHARS = 1_200
MOST_NAMED = 3
OMITTED_KEY = "_left_out"
_CUT_LINE = f"\n{CUT_MARK.strip()}\n"
MOST_TRIMMED = 4  # blanks that a host may have taken from the end of a text that an earlier version clipped
IMAGE_NOTE = "[image of an earlier turn: "
_WORDS = (PartKind.TEXT, PartKind.THINKING)
_THINKING_KEYS = ("reasoning_content", "reasoning", "thinking_blocks", "reasoning_details", "provider_state")


def pointer(message: Message, call: ToolCall | None, number: int, same_as: int | None = None) -> Message:
    """The result with its body replaced by one line: which tool ran on what, how it ended, where the text is."""
    facts = describe(call) if call else UNKNOWN_CALL
    if same_as is not None:
        note = f"[{facts.heading} → same output as m{same_as}]"
    elif call is None and not text_of(message):
        note = "[old tool output cleared]"
    else:
        note = f"[{facts.heading} → {ended(message)}; output cleared here, kept as m{number}]"
    return {**message, "content": note}


def is_pointer(message: Message, number: int) -> bool:
    """Whether a result is shown as `pointer` shows it: its text is elsewhere."""
    content = message.get("content")
    ending = f"; output cleared here, kept as m{number}]"
    return is_result(message) and isinstance(content, str) and content.endswith(ending)


def is_shortened(message: Message, number: int) -> bool:
    """Whether a pointer or `clipped` shows a message: not all of its text is there."""
    return is_pointer(message, number) or (role_of(message) == "assistant" and _is_clipped(message))


def _is_clipped(message: Message) -> bool:
    """Whether a text is cut as `clipped` cuts it: with the mark behind two thirds of what is shown.

    Who writes may leave something out too and mark it alike; such a line hardly ever stands in that very place. Views
    that were stored before hold the same mark, and so do lists that a host brings back.
    """
    text = next((part.text for part in parts_of(message)), "")
    shown = len(text) - len(_CUT_LINE)
    places = {_front_of(shown + trimmed) for trimmed in range(MOST_TRIMMED + 1)}
    return shown > 0 and any(text.startswith(_CUT_LINE, place) for place in places)


def _front_of(max_chars: int) -> int:
    """How many characters of a clipped text stand before the mark."""
    return max(1, max_chars * 2 // 3)


def without_images(message: Message) -> Message:
    """The message with each image replaced by a note; text and unknown parts stay."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [
        {"type": "text", "text": f"{IMAGE_NOTE}{told(part)}]"} if part.kind is PartKind.IMAGE else part.raw
        for part in parts_of(message)
    ]
    return {**message, "content": parts} if parts != content else message


def shorten_arguments(message: Message) -> Message:
    """The assistant message with huge argument values left out; small ones and the JSON stay as they were."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    changed = [_shorten_call(item, call) for item, call in zip(calls, calls_of(message), strict=False)]
    return message if changed == calls else {**message, "tool_calls": changed}


def _shorten_call(item: Any, call: ToolCall) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("function"), dict):
        return item
    arguments = item["function"].get("arguments")
    if not isinstance(arguments, str) or len(arguments) <= LONG_ARGUMENT_CHARS:
        return item
    edits = ", ".join(f"{path} {change}".strip() for path, change in describe(call).edits[:MOST_NAMED])
    lighter = _lighter(_exact(masked_arguments(arguments)), len(arguments), f"; changes {edits}" if edits else "")
    short = json.dumps(lighter, separators=(",", ":"))
    return {**item, "function": {**item["function"], "arguments": short}}


def _exact(arguments: str) -> dict[str, Any]:
    """The arguments with every number as it was written: orjson makes floats of integers beyond 64 bits."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lighter(arguments: Mapping[str, Any], size: int, deed: str) -> dict[str, Any]:
    if not arguments:
        return {OMITTED_KEY: f"{size:,} characters of arguments{deed}"}
    kept: dict[str, Any] = {}
    omitted: dict[str, str] = {}
    for key, value in arguments.items():
        length = len(value) if isinstance(value, str) else len(encode_json(value))
        if length > LONG_ARGUMENT_CHARS // 4:
            omitted[key] = f"{length:,} characters{deed}"
            deed = ""
        else:
            kept[key] = value
    return {**kept, OMITTED_KEY: omitted} if omitted else kept


def repair_arguments(message: Message) -> Message:
    """The assistant message with every argument text valid JSON: what is not becomes a quoted string in an object."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    fixed = [_repair_call(item, call) for item, call in zip(calls, calls_of(message), strict=False)]
    return message if fixed == calls else {**message, "tool_calls": fixed}


def _repair_call(item: Any, call: ToolCall) -> Any:
    body = item.get("function") if isinstance(item, dict) else None
    if not isinstance(body, dict):
        return item
    raw = body.get("arguments")
    if isinstance(raw, str) and (not raw.strip() or is_json(raw)):
        return item
    text = call.arguments if not isinstance(raw, str) and is_json(call.arguments) else None
    # As escapes, so that half a surrogate pair stays what it was.
    arguments = text or json.dumps({"invalid_json": call.arguments}, separators=(",", ":"))
    return {**item, "function": {**body, "arguments": arguments}}


def is_json(text: str) -> bool:
    """Whether a text is JSON that providers take."""
    return text.strip() == "null" or parse_json(text) is not None


def clipped(message: Message, max_chars: int, *, answered: bool = True) -> Message:
    """The message with its text cut to a beginning and an end around a visible mark.

    Thinking goes whole, but not where the model has not yet gone on from it: providers want it back with the results.
    """
    text = text_of(message)
    slim = {key: value for key, value in message.items() if not answered or key not in _THINKING_KEYS}
    if len(text) > max_chars:
        clean = redact(text)
        shown = min(max_chars, len(clean))
        front = _front_of(shown)
        cut = clean[:front] + _CUT_LINE + clean[-max(1, shown - front) :]
        parts = parts_of(without_images(message))
        others = [part.raw for part in parts if part.kind not in _WORDS or part.text.startswith(IMAGE_NOTE)]
        slim["content"] = [{"type": "text", "text": cut}, *others] if others else cut
    return shorten_arguments(slim)


def result_bodies(messages: list[Message]) -> dict[int, int]:
    """For each result whose text repeats a later one: the index of that later one."""
    latest: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for index in range(len(messages) - 1, -1, -1):
        text = text_of(messages[index]) if is_result(messages[index]) else ""
        if len(text) > 200 and latest.setdefault(text, index) != index:
            repeats[index] = latest[text]
    return repeats
