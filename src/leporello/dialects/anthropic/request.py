"""Requests to Anthropic Messages: OpenAI-format messages as turns of blocks, and turns as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from leporello.caching import MARK
from leporello.dialects.anthropic.blocks import RESULT_BLOCKS, USER_BLOCKS, block_of, can_carry, part_of
from leporello.dialects.base import STATE, Target, Wire, WireReply, at, new_state, objects, state_for
from leporello.dialects.dialect import DecodedRequest, Options, Tools
from leporello.dialects.pieces import (
    IdPlan,
    IdRule,
    arguments_object,
    arguments_text,
    chat_function,
    function_of,
    hex_escape,
    note,
    original_id,
    plan_ids,
    text_part,
    wire_name,
)
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Messages, Part, calls_of, is_instruction, is_result, parts_of, role_of

NAME = "anthropic"
IDS = IdRule(lazy_regex(r"(?!lx-)[a-zA-Z0-9_-]+"), hex_escape)
_ELSEWHERE = frozenset(
    "tool_choice parallel_tool_calls stop user response_format reasoning_effort prompt_cache_key stream_options "
    "max_completion_tokens late_system".split()
)
"""Options of the chat form that have another name here, or none."""


def request_options(options: Mapping[str, Any]) -> Wire:
    wire: Wire = {key: value for key, value in options.items() if key not in _ELSEWHERE}
    choice = _tool_choice(options.get("tool_choice"), options.get("parallel_tool_calls"))
    if choice is not None:
        wire["tool_choice"] = choice
    stop = options.get("stop")
    if stop:
        wire["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    if isinstance(options.get("user"), str):
        wire["metadata"] = {**(wire.get("metadata") or {}), "user_id": options["user"]}
    output: Wire = {}
    schema = at(options, "response_format", "json_schema", "schema")
    if isinstance(schema, Mapping):
        output["format"] = {"type": "json_schema", "schema": schema}
    if isinstance(options.get("reasoning_effort"), str):
        output["effort"] = options["reasoning_effort"]
    if output:
        wire["output_config"] = {**(wire.get("output_config") or {}), **output}
    return wire


def _tool_choice(choice: Any, parallel: Any) -> Wire | None:
    """`tool_choice` and `parallel_tool_calls` of the chat form as Anthropic's one field."""
    named = {"auto": "auto", "none": "none", "required": "any"}.get(choice) if isinstance(choice, str) else None
    wire: Wire | None = {"type": named} if named else None
    if isinstance(choice, Mapping):
        function = choice.get("function")
        wire = {"type": "tool", "name": function["name"]} if isinstance(function, Mapping) else dict(choice)
    if parallel is False:
        wire = wire or {"type": "auto"}
        if wire["type"] != "none":
            wire["disable_parallel_tool_use"] = True
    return wire


OPENING = "[The conversation begins here.]"  # stands as the first user turn when the history begins with the assistant
DEFAULT_MAX_TOKENS = 8_192
OPENED: Message = {"role": "user", "content": "."}  # stands before an assistant's message that is encoded alone


class _Block(Struct):
    wire: Wire
    mark: Any = None


class _Turn(Struct):
    role: str
    blocks: list[_Block]

    def ordered(self) -> list[_Block]:
        """Results first: the API wants them before any other content of the turn."""
        if self.role != "user":
            return self.blocks
        return sorted(self.blocks, key=lambda block: block.wire.get("type") != "tool_result")


def encode_request(
    messages: Messages, tools: Tools = (), *, target: Target, max_tokens: int | None = None, options: Options = None
) -> Wire:
    """The body of `POST /v1/messages`. `late_system="system"` among the options keeps instructions that stand behind
    other messages where they are (newer models take that); otherwise they become marked text of the user's turn."""
    chosen = options or {}
    start = next((index for index, message in enumerate(messages) if not is_instruction(message)), len(messages))
    system = [_text_only(block) for message in messages[:start] for block in _content(message)]
    turns = _turns(messages, start, target, chosen.get("late_system", "user"), system)
    _place_marks([*system, *(block for turn in turns for block in turn.ordered())])
    wire: Wire = {"model": target.model, "max_tokens": max_tokens or DEFAULT_MAX_TOKENS}
    if system:
        wire["system"] = [block.wire for block in system]
    wire["messages"] = [{"role": turn.role, "content": [block.wire for block in turn.ordered()]} for turn in turns]
    if tools:
        wire["tools"] = [encode_tool(tool) for tool in tools]
    return {**wire, **request_options(chosen)}


def encode_tool(tool: Mapping[str, Any]) -> Wire:
    function = function_of(tool)
    if function is None:
        return dict(tool)
    if "input_schema" in tool:
        return {**tool, "name": wire_name(function.name)}
    wire = chat_function(function, wire_name(function.name), "input_schema")
    wire["input_schema"] = {**({} if "type" in function.parameters else {"type": "object"}), **function.parameters}
    return {**wire, **function.extra}


def _turns(messages: Messages, start: int, target: Target, late_role: str, system: list[_Block]) -> list[_Turn]:
    plan = plan_ids(messages, IDS)
    turns: list[_Turn] = []
    latest = system[-1] if system else None
    for index in range(start, len(messages)):
        message = messages[index]
        role, blocks = _turn_blocks(message, index, plan, target, late_role)
        mark = message.get(MARK) or None
        if mark is None and not blocks:
            mark = next(filter(None, map(_mark_of, reversed(parts_of(message)))), None)
        if blocks:
            latest = blocks[-1]
        if mark is not None and latest is not None and latest.mark is None:
            # A message that shows nothing can carry no mark: the nearest one before it does.
            latest.mark = mark
        if not blocks:
            if turns and role != "assistant":
                # Sent now, this request would end with the turn before: trimmed then, so trimmed for good.
                _trim_prefill(turns[-1])
            continue
        if turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(_Turn(role, blocks))
    if not turns or turns[0].role != "user":
        turns.insert(0, _Turn("user", [_Block(text_part(OPENING))]))
    _trim_prefill(turns[-1])
    return turns


def _turn_blocks(
    message: Message, index: int, plan: IdPlan, target: Target, late_role: str
) -> tuple[str, list[_Block]]:
    if is_result(message):
        return "user", [_result(message, plan.results.get(index, ""))]
    if role_of(message) == "assistant":
        return "assistant", _assistant(message, plan.calls.get(index, ()), target)
    if is_instruction(message):
        blocks = _content(message)
        if late_role == "system":
            return "system", blocks
        for block in blocks:
            if block.wire.get("type") == "text":
                block.wire = {**block.wire, "text": f"<system-message>\n{block.wire['text']}\n</system-message>"}
        return "user", blocks
    return "user", _content(message)


def _mark_of(part: Part) -> Any:
    return at(part.raw, MARK)


def _text_only(block: _Block) -> _Block:
    """Instructions and the assistant's own words are text only."""
    if block.wire.get("type") == "text":
        return block
    return _Block(note(str(block.wire.get("type")), block.wire), block.mark)


def _content(message: Message, native: frozenset[str] = USER_BLOCKS) -> list[_Block]:
    """The message's content as blocks; the mark of a part that shows nothing moves to the block before it."""
    blocks: list[_Block] = []
    for part in parts_of(message):
        wire, mark = block_of(part.raw, native), _mark_of(part)
        if wire is not None:
            blocks.append(_Block(wire, mark))
        elif mark is not None and blocks and blocks[-1].mark is None:
            blocks[-1].mark = mark
    if is_instruction(message) and blocks and MARK in message:
        blocks[-1].mark = message[MARK]
    return blocks


def _result(message: Message, call_id: str) -> _Block:
    wire: Wire = {"type": "tool_result", "tool_use_id": call_id}
    content = message.get("content")
    mark = None
    if isinstance(content, str):
        if content.strip():
            wire["content"] = content
    else:
        inner = _content(message, RESULT_BLOCKS)
        if inner:
            wire["content"] = [block.wire for block in inner]
        # A result is one block of the turn: a mark on one of its parts is a mark on it.
        mark = next((block.mark for block in reversed(inner) if block.mark is not None), None)
    if message.get("is_error") is True:
        wire["is_error"] = True
    return _Block(wire, mark)


def _assistant(message: Message, ids: Sequence[str], target: Target) -> list[_Block]:
    texts = [_text_only(block) for block in _content(message)]
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        texts.append(_Block(text_part(refusal)))
    audio = message.get("audio")
    if not texts and isinstance(audio, Mapping) and isinstance(audio.get("transcript"), str):
        texts.extend(_content({"role": "assistant", "content": audio["transcript"]}))
    calls = [
        _Block({"type": "tool_use", "id": id, "name": wire_name(call.name), "input": arguments_object(call.arguments)})
        for call, id in zip(calls_of(message), ids, strict=True)
    ]
    layout = at(state_for(message, NAME, target), "layout")
    if not isinstance(layout, list):
        return texts + calls
    by_part = [
        _text_only(_Block(wire, _mark_of(part))) if (wire := block_of(part.raw)) is not None else None
        for part in parts_of(message)
    ]
    return _by_layout(layout, by_part, calls) or texts + calls


def _by_layout(layout: Iterable[Any], texts: Sequence[_Block | None], calls: Sequence[_Block]) -> list[_Block]:
    """The turn in its original order with its opaque blocks; empty when the layout doesn't fit the message."""
    blocks: list[_Block] = []
    for entry in layout:
        if not isinstance(entry, Mapping):
            return []
        if isinstance(entry.get("block"), Mapping):
            blocks.append(_Block(dict(entry["block"])))
            continue
        pool: Sequence[_Block | None] = texts if "text" in entry else calls
        position = entry.get("text", entry.get("call"))
        if not isinstance(position, int) or not 0 <= position < len(pool):
            return []
        block = pool[position]
        if block is not None:
            extra = entry.get("with")
            block.wire = {**block.wire, **extra} if isinstance(extra, Mapping) else block.wire
            blocks.append(block)
    return blocks


def _trim_prefill(turn: _Turn) -> None:
    """The API refuses a final assistant text that ends in white space."""
    last = turn.blocks[-1].wire
    if turn.role == "assistant" and last.get("type") == "text":
        turn.blocks[-1].wire = {**last, "text": last["text"].rstrip()}


def _place_marks(blocks: Sequence[_Block]) -> None:
    """Each mark on its block, or on the nearest one before it that can carry one."""
    for index in range(len(blocks) - 1, -1, -1):
        mark = blocks[index].mark
        if mark is None:
            continue
        place = next((k for k in range(index, -1, -1) if can_carry(blocks[k].wire)), None)
        if place is not None and MARK not in blocks[place].wire:
            blocks[place].wire = {**blocks[place].wire, MARK: mark}


OUTPUT_CAPS = ("max_tokens",)
INPUT_JSON = "input_json"
"""Key of an assembled `tool_use` block that holds the arguments exactly as the model streamed them."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "pause",
    "refusal": "content_filter",
    "model_context_window_exceeded": "context_window_exceeded",
}


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A whole `Message` object, from a plain answer or assembled from a stream."""
    message = assistant_message(objects(wire.get("content")), target)
    finish = _FINISH.get(str(wire.get("stop_reason")), "stop")
    return WireReply.read(wire, message, finish, wire.get("usage"), target)


def assistant_message(blocks: Sequence[Any], target: Target) -> Message:
    """The blocks of one assistant turn. Texts and calls become the message; all else is opaque state."""
    texts: list[Wire] = []
    calls: list[Wire] = []
    layout: list[Wire] = []
    mark: Any = None
    for block in blocks:
        if not isinstance(block, Mapping):
            continue
        if block.get("type") == "text":
            layout.append(_entry("text", len(texts), block, ("type", "text", MARK)))
            texts.append({key: block[key] for key in ("type", "text", MARK) if key in block})
        elif block.get("type") == "tool_use":
            layout.append(_entry("call", len(calls), block, ("type", "id", "name", "input", INPUT_JSON, MARK)))
            raw = block.get(INPUT_JSON)
            arguments = raw if isinstance(raw, str) else arguments_text(block.get("input"))
            function = {"name": str(block.get("name", "")), "arguments": arguments}
            calls.append({"id": original_id(str(block.get("id", ""))), "type": "function", "function": function})
            mark = block.get(MARK, mark)
        else:
            layout.append({"block": dict(block)})
    content: Any = texts or (None if calls else "")
    if len(texts) == 1 and MARK not in texts[0]:
        content = texts[0]["text"]
    message: Message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    if mark is not None:
        message[MARK] = mark
    if layout != [{"text": k} for k in range(len(texts))] + [{"call": k} for k in range(len(calls))]:
        message[STATE] = new_state(message, NAME, target, {"layout": layout})
    return message


def _entry(kind: str, position: int, block: Mapping[str, Any], known: tuple[str, ...]) -> Wire:
    extra = {key: value for key, value in block.items() if key not in known and value is not None}
    return {kind: position, "with": extra} if extra else {kind: position}


def decode_request(wire: Mapping[str, Any], provider: str = "") -> DecodedRequest:
    """A client's request. Assistant turns keep their opaque blocks for the same provider and model family."""
    target = Target(provider, str(wire.get("model") or ""))
    messages: list[Message] = []
    origins: list[int] = []
    if wire.get("system"):
        messages.append({"role": "system", "content": wire["system"]})
        origins.append(-1)
    for index, item in enumerate(wire.get("messages") or ()):
        found = _messages_of(item, target) if isinstance(item, Mapping) else []
        messages.extend(found)
        origins.extend([index] * len(found))
    return DecodedRequest.read(wire, messages, origins, OUTPUT_CAPS, ("system", "messages"))


def _messages_of(item: Mapping[str, Any], target: Target) -> list[Message]:
    role, content = str(item.get("role", "")), item.get("content")
    if not isinstance(content, list) or role not in ("user", "assistant"):
        return [{"role": role, "content": content}]
    if role == "assistant":
        return [assistant_message(content, target)]
    found: list[Message] = []
    others: list[Any] = []
    for block in content:
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            found.append(_result_message(block))
        else:
            others.append(part_of(block))
    return [*found, {"role": "user", "content": others}] if others or not found else found


def _result_message(block: Mapping[str, Any]) -> Message:
    content = block.get("content", "")
    if isinstance(content, list):
        content = [part_of(part) for part in content]
    message: Message = {
        "role": "tool",
        "tool_call_id": original_id(str(block.get("tool_use_id", ""))),
        "content": "" if content is None else content,
    }
    if block.get("is_error") is True:
        message["is_error"] = True
    if MARK in block:
        message[MARK] = block[MARK]
    return message


def encode_items(messages: Sequence[Message], target: Target) -> list[Wire]:
    opened = [OPENED, *messages] if messages[0].get("role") == "assistant" else list(messages)
    turns: list[Wire] = encode_request(opened, target=target)["messages"]
    return turns[len(opened) - len(messages) :]
