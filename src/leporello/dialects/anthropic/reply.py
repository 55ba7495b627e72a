"""An answer as Anthropic's `Message` object: written for clients, put together from events, merged of rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from leporello.dialects.anthropic.blocks import THINKING, blocks_in
from leporello.dialects.anthropic.request import INPUT_JSON, OPENED, encode_request
from leporello.dialects.base import ERROR_TYPES, Event, StreamIncomplete, Target, Wire, encode_event, objects
from leporello.dialects.dialect import HiddenCall, RecallCall, ReplyMerge, with_calls
from leporello.dialects.pieces import json_text, pieces
from leporello.messages import Message, parse_json
from leporello.usage import CanonicalUsage

_ERROR_TYPES = {**ERROR_TYPES, 413: "request_too_large", 503: "overloaded_error", 529: "overloaded_error"}
_STOP = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
    "context_window_exceeded": "model_context_window_exceeded",
}


def encode_reply(
    message: Message, *, target: Target, finish_reason: str = "stop", usage: CanonicalUsage | None = None
) -> Wire:
    turn = encode_request([OPENED, message], target=target)["messages"][1:]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": target.model,
        "content": turn[0]["content"] if turn else [],
        "stop_reason": _STOP.get(finish_reason, "end_turn"),
        "stop_sequence": None,
        "usage": wire_usage(usage or CanonicalUsage()),
    }


def wire_usage(usage: CanonicalUsage) -> Wire:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def reply_events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    usage = reply.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    opened = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opened}
    for index, block in enumerate(reply["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": reply["stop_reason"], "stop_sequence": reply.get("stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _opened(block: Wire) -> Wire:
    kind = block.get("type")
    empty: dict[str, Any] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **empty.get(str(kind), {})}


def _deltas(block: Wire) -> Iterator[Wire]:
    kind = block.get("type")
    if kind == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind == "tool_use":
        for piece in pieces(json_text(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


class Assembler:
    """Takes events one by one; `reply` is the whole `Message` object, or an error when the stream was cut."""

    def __init__(self) -> None:
        self._message: Wire = {}
        self._blocks: dict[int, Wire] = {}
        self._usage: Wire = {}
        self._ended = False
        self.events = 0

    def feed(self, event: Mapping[str, Any]) -> str:
        self.events += 1
        kind = event.get("type")
        if kind == "message_start":
            self._message = dict(event.get("message") or {})
            self._count(self._message.get("usage"))
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            return self._delta(self._blocks.setdefault(event["index"], {}), event.get("delta") or {})
        elif kind == "message_delta":
            self._message.update({key: value for key, value in (event.get("delta") or {}).items() if value is not None})
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self._ended = True
        return ""

    def _count(self, usage: Any) -> None:
        # Later counts are cumulative, and leave out what did not change.
        if isinstance(usage, Mapping):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    @staticmethod
    def _delta(block: Wire, delta: Mapping[str, Any]) -> str:
        kind = delta.get("type")
        if kind == "text_delta":
            block["text"] = block.get("text", "") + delta.get("text", "")
            return str(delta.get("text", ""))
        if kind == "input_json_delta":
            block[INPUT_JSON] = block.get(INPUT_JSON, "") + delta.get("partial_json", "")
        elif kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.get("thinking", "")
        elif kind == "signature_delta":
            block["signature"] = block.get("signature", "") + delta.get("signature", "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        return ""

    def reply(self) -> Wire:
        """The message. A stream without its end raises; a call cut short by the output limit is left out."""
        if not self._ended:
            raise StreamIncomplete("the stream ended before the message did")
        blocks = [block for block in (self._finished(self._blocks[index]) for index in sorted(self._blocks)) if block]
        return {**self._message, "content": blocks, "usage": self._usage or None}

    def _finished(self, block: Wire) -> Wire | None:
        if INPUT_JSON not in block:
            return block
        value = parse_json(block[INPUT_JSON]) if block[INPUT_JSON].strip() else {}
        if value is None:
            if self._message.get("stop_reason") != "max_tokens":
                raise StreamIncomplete(f"the arguments of call {block.get('name')!r} end in the middle")
            return None
        if block.get("type") == "tool_use":
            return {**block, "input": value, INPUT_JSON: block[INPUT_JSON] or "{}"}
        return {**{key: item for key, item in block.items() if key != INPUT_JSON}, "input": value}


def error_body(status: int, code: str | None, message: str) -> Wire:
    return {"type": "error", "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}}


def is_end(event: Event) -> bool:
    return b"message_stop" in event.data[:200] and event.json().get("type") == "message_stop"


class AnthropicMerge(ReplyMerge):
    """Content blocks keep their order; their indices are counted through all rounds.

    Thinking behind an inner exchange is not shown: its signature is bound to calls that the client does not have, and
    the provider would refuse it when the client sends it back. The thinking before the first exchange stays.
    """

    def __init__(self, hidden: Collection[str], fields: Mapping[str, Any]) -> None:
        super().__init__(hidden, fields)
        self._places: dict[int, int | None] = {}
        """For each block of this round the index the client knows it by; None for what is not shown."""
        self._shown = 0
        self._end: list[Event] = []

    def feed(self, event: Event) -> bytes:
        """Blocks of ours are left out, the others renumbered; the end is held back until it is the end."""
        body = event.json()
        kind = body.get("type")
        if self._assembler is None:
            self._assembler, self._places, self._end = Assembler(), {}, []
        if kind in ("error", None):
            return event.encode()
        self._assembler.feed(body)
        if kind == "message_start":
            return event.encode() if not self._replies else b""
        if kind in ("message_delta", "message_stop"):
            self._end.append(event)
            return b""
        if kind == "content_block_start":
            hidden = self._is_hidden(body.get("content_block") or {}, bool(self._replies))
            self._places[body["index"]] = None if hidden else self._shown
            self._shown += not hidden
            self.visible = self.visible or not hidden
        return self._renumbered(event, body) if "index" in body else event.encode()

    def _renumbered(self, event: Event, body: Wire) -> bytes:
        place = self._places.get(body["index"], body["index"])
        if place is None:
            return b""
        return event.encode() if place == body["index"] else encode_event({**body, "index": place}, event.name)

    def _is_hidden(self, block: Wire, later: bool) -> bool:
        kind = block.get("type")
        return (kind == "tool_use" and block.get("name") in self._hidden) or (later and kind in THINKING)

    def _calls(self, reply: Wire) -> list[RecallCall]:
        if reply.get("stop_reason") != "tool_use":
            return []
        return [
            RecallCall(
                str(block.get("id")),
                str(block.get("name")),
                block.get(INPUT_JSON) or json_text(block.get("input")),
                _sendable(block),
            )
            for block in objects(reply.get("content"))
            if block.get("type") == "tool_use"
        ]

    def carried(self) -> list[Wire]:
        """The turn with its thinking and signatures; only text that says nothing is left out, which the API refuses."""
        blocks = [
            _sendable(block)
            for block in objects(self._replies[-1].get("content"))
            if block.get("type") != "text" or str(block.get("text", "")).strip()
        ]
        return [{"role": "assistant", "content": blocks}]

    def result(self, call: RecallCall, text: str) -> Wire:
        return {"type": "tool_result", "tool_use_id": call.id, "content": text}

    def answered(self, results: Sequence[Wire]) -> list[Wire]:
        return [{"role": "user", "content": list(results)}]

    def _stop(self) -> Wire:
        """Why it ended; a turn whose only calls were ours has simply ended."""
        last = self._replies[-1]
        left = any(block.get("type") == "tool_use" for block in self._content())
        reason = last.get("stop_reason")
        return {
            "stop_reason": "end_turn" if reason == "tool_use" and not left else reason,
            "stop_sequence": last.get("stop_sequence"),
        }

    def _content(self) -> list[Wire]:
        return [
            _sendable(block)
            for number, reply in enumerate(self._replies)
            for block in objects(reply.get("content"))
            if not self._is_hidden(block, number > 0)
        ]

    def ending(self) -> bytes:
        """As it came when there was one round and nothing is hidden; else with the sum of all rounds."""
        found = b""
        for event in self._end:
            body = event.json()
            if body.get("type") == "message_delta":
                if len(self._replies) > 1:
                    body["usage"] = self._usage()
                body["delta"] = {**(body.get("delta") or {}), **self._stop()}
                found += encode_event(body, event.name)
            else:
                found += event.encode()
        return found

    def whole(self) -> Wire:
        return {
            **self._replies[0],
            **{key: value for key, value in self._replies[-1].items() if key not in ("id", "model", "content")},
            "content": self._content(),
            **self._stop(),
            "usage": self._usage(),
        }


def _sendable(block: Wire) -> Wire:
    return {key: value for key, value in block.items() if key != INPUT_JSON} if INPUT_JSON in block else block


def insert_hidden(item: bytes, turns: Mapping[str, list[HiddenCall]], waiting: list[HiddenCall]) -> list[bytes]:
    """A turn with its hidden calls; their results wait for the turn that follows it."""
    if waiting:
        turn = orjson.loads(item)
        results = [own["result"] for own in waiting]
        waiting.clear()
        return [orjson.dumps({**turn, "content": [*results, *blocks_in(turn)]})]
    if b'"tool_use"' not in item:
        return [item]
    turn = orjson.loads(item)
    calls = [str(block.get("id")) for block in objects(turn.get("content")) if block.get("type") == "tool_use"]
    hidden = [own for id in calls for own in turns.get(id, ())]
    if not hidden:
        return [item]
    waiting += hidden
    return [orjson.dumps({**turn, "content": with_calls(turn["content"], hidden)})]
