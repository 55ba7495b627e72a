"""A request as the row of content blocks that a prompt cache sees: tools, then system, then the messages.

Cache marks are read from where Leporello puts them (`cache_control` on a part, on a message, or on a tool schema) and
are not part of a block's bytes: moving a mark does not change the prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from leporello.messages import Message, encode_json, is_instruction
from leporello.providers.base import ModelRequest
from leporello.providers.cache_sim import SHORT, Block
from leporello.tokens import TokenCounter

MARK = "cache_control"


def blocks_of(request: ModelRequest, counter: TokenCounter) -> list[Block]:
    """The blocks of a request; their tokens add up to the counter's count of the request."""
    system = [message for message in request.messages if is_instruction(message)]
    rest = [message for message in request.messages if not is_instruction(message)]
    blocks = list(
        chain(
            _tools(request.tools, counter),
            *(_message(message, counter) for message in system),
            *(_message(message, counter) for message in rest),
        )
    )
    missing = counter.request(request.messages, request.tools) - sum(block.tokens for block in blocks)
    if blocks and missing:
        # Framing of the request as a whole belongs to nobody in particular.
        blocks[0] = Block(blocks[0].data, blocks[0].tokens + missing, blocks[0].mark)
    return blocks


def _tools(schemas: Sequence[Mapping[str, Any]], counter: TokenCounter) -> Iterator[Block]:
    for schema in schemas:
        bare = _unmarked(schema)
        yield Block(encode_json(bare), counter.tools([bare]), _mark(schema))


def _message(message: Message, counter: TokenCounter) -> Iterator[Block]:
    pieces = list(_pieces(message))
    bare = [_unmarked(piece) for piece in pieces]
    sizes = [counter.message(piece) for piece in bare]
    # The framing of the message is counted once, with its first piece.
    sizes[0] += counter.message(_unmarked(message)) - sum(sizes)
    for index, (piece, whole, size) in enumerate(zip(bare, pieces, sizes, strict=True)):
        own = _mark(message) if index == len(pieces) - 1 else None
        yield Block(encode_json(piece), max(0, size), _part_mark(whole) or own)


def _pieces(message: Message) -> Iterator[Message]:
    """The message as messages of one block each: content parts first, then tool calls."""
    frame = {key: value for key, value in message.items() if key not in ("content", "tool_calls", MARK)}
    content, calls = message.get("content"), message.get("tool_calls")
    count = 0
    if isinstance(content, list) and frame.get("role") != "tool":
        for part in content:
            count += 1
            yield {**frame, "content": [part]}
    elif content or not calls:
        count += 1
        yield {**frame, "content": content}
    for call in calls if isinstance(calls, list) else ():
        count += 1
        yield {**frame, "tool_calls": [call]}
    if not count:
        yield {**frame, "content": content}


def _unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: item for key, item in value.items() if key != MARK}
    content = bare.get("content")
    if isinstance(content, list):
        bare["content"] = [_unmarked(part) if isinstance(part, Mapping) else part for part in content]
    return bare


def _part_mark(piece: Message) -> str | None:
    content = piece.get("content")
    return _mark(content[-1]) if isinstance(content, list) and content else None


def _mark(value: Any) -> str | None:
    control = value.get(MARK) if isinstance(value, Mapping) else None
    return str(control.get("ttl") or SHORT) if isinstance(control, Mapping) else None
