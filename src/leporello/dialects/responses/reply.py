"""An answer as a `response` object: written for clients, whole or as events, and put together from events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leporello.dialects.base import Event, StreamIncomplete, Target, Wire
from leporello.dialects.parts import pieces
from leporello.dialects.responses.request import encode_request
from leporello.messages import Message, parse_json
from leporello.usage import CanonicalUsage

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}


def encode_reply(
    message: Message,
    *,
    target: Target,
    finish_reason: str = "stop",
    usage: CanonicalUsage | None = None,
    id: str = "resp_1",
) -> Wire:
    items = encode_request([message], target=target)["input"]
    cut = finish_reason in ("length", "content_filter", "context_window_exceeded")
    reason = "content_filter" if finish_reason == "content_filter" else "max_output_tokens"
    return {
        "id": id,
        "object": "response",
        "created_at": 0,
        "model": target.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": reason} if cut else None,
        "error": None,
        "output": [_named(item, position) for position, item in enumerate(items)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": wire_usage(usage or CanonicalUsage()),
    }


def _named(item: Wire, position: int) -> Wire:
    named = {"id": f"{_PREFIXES.get(str(item.get('type')), 'item')}_{position}", "status": "completed", **item}
    return {key: value for key, value in named.items() if item.get("type") != "reasoning" or key != "status"}


def wire_usage(usage: CanonicalUsage) -> Wire:
    """Counts in this dialect's names: the input includes what was cached."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def reply_events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    for number, event in enumerate(_events(reply)):
        yield {**event, "sequence_number": number}


def _events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    opened = {**reply, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opened}
    for index, item in enumerate(reply["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
        yield from _deltas(item, index)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    last = "response.incomplete" if reply["status"] == "incomplete" else "response.completed"
    yield {"type": last, "response": dict(reply)}


def _deltas(item: Mapping[str, Any], index: int) -> Iterator[Wire]:
    place = {"item_id": item.get("id", ""), "output_index": index}
    if item.get("type") == "message":
        for position, part in enumerate(item["content"]):
            for piece in pieces(str(part.get("text", ""))):
                kind = "response.output_text.delta"
                yield {"type": kind, **place, "content_index": position, "delta": piece, "logprobs": []}
    elif item.get("type") == "function_call":
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}


ANNOUNCED = ("response.created", "response.in_progress", "response.queued")
LAST = ("response.completed", "response.incomplete", "response.failed")


class Assembler:
    """Takes events one by one; `reply` is the whole `response`, `error` the error a stream carried."""

    def __init__(self) -> None:
        self._response: Wire | None = None
        self._items: dict[int, Wire] = {}
        self.error: Any = None
        self.events = 0

    def feed(self, event: Mapping[str, Any]) -> str:
        self.events += 1
        kind = str(event.get("type", ""))
        if kind == "response.output_text.delta":
            return str(event.get("delta") or "")
        if kind == "response.output_item.done" and isinstance(event.get("item"), Mapping):
            index = event.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = dict(event["item"])
        elif kind in LAST and isinstance(event.get("response"), Mapping):
            self._response = dict(event["response"])
            self.error = self._response.get("error") if kind == "response.failed" else None
        elif kind == "error":
            self.error = event.get("error") or {key: event.get(key) for key in ("code", "message", "param")}
        return ""

    def reply(self) -> Wire:
        """The response; raises when the stream ended before it did, or in the middle of a call."""
        if self._response is None:
            raise StreamIncomplete("the stream ended before the response did")
        if not self._response.get("output"):
            # Some servers leave the items out of the last event.
            self._response["output"] = [self._items[index] for index in sorted(self._items)]
        if self._response.get("status") != "incomplete":
            for item in self._response["output"]:
                _check(item)
        return self._response


def _check(item: Any) -> None:
    if not isinstance(item, Mapping) or item.get("type") != "function_call":
        return
    arguments = str(item.get("arguments") or "").strip()
    if arguments.startswith("{") and not arguments.endswith("}") and parse_json(arguments) is None:
        raise StreamIncomplete(f"the arguments of call {item.get('name')!r} end in the middle")


def error_event(status: int, code: str | None, message: str) -> Wire:
    return {"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}


def is_end(event: Event) -> bool:
    return any(kind.encode() in event.data[:200] for kind in LAST) and event.json().get("type") in LAST
