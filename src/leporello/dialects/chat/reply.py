"""An answer as a `chat.completion` object: written for clients, put together from chunks, merged of several rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from leporello.dialects.base import ERROR_TYPES, Event, StreamIncomplete, Target, Wire, at, encode_event, objects
from leporello.dialects.chat.request import encode_request
from leporello.dialects.dialect import HiddenCall, RecallCall, ReplyMerge, ReplyTurn, with_calls
from leporello.dialects.pieces import check_whole, pieces
from leporello.messages import Message
from leporello.usage import CanonicalUsage

DONE = b"data: [DONE]\n\n"
_FINISH = {"pause": "stop", "context_window_exceeded": "length"}


def encode_reply(
    message: Message, *, target: Target, finish_reason: str = "stop", usage: CanonicalUsage | None = None
) -> Wire:
    body = encode_request([message], target=target)["messages"][0]
    choice = {"index": 0, "message": body, "finish_reason": _FINISH.get(finish_reason, finish_reason), "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": target.model,
        "choices": [choice],
        "usage": wire_usage(usage or CanonicalUsage()),
    }


def wire_usage(usage: CanonicalUsage) -> Wire:
    """Counts in this dialect's names: the prompt includes what was cached."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def reply_events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    """The chunks that stream an answer; the last tells the usage if it is known."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]
    for delta in _deltas(choice["message"]):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if "usage" in reply:
        yield {**head, "choices": [], "usage": reply["usage"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[Wire]:
    yield {"role": "assistant"}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            for piece in pieces(value):
                yield {"content": piece}
        elif key == "tool_calls":
            for index, call in enumerate(value):
                yield from _call_deltas(index, call)
        elif key != "role" and value is not None:
            yield {key: value}


def _call_deltas(index: int, call: Mapping[str, Any]) -> Iterator[Wire]:
    function = call.get("function")
    if not isinstance(function, Mapping):
        yield {"tool_calls": [{"index": index, **call}]}
        return
    opened = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
    yield {"tool_calls": [opened]}
    for piece in pieces(function["arguments"]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


class Assembler:
    """Takes chunks one by one; `reply` is the whole `chat.completion`, or an error when the stream was cut."""

    def __init__(self) -> None:
        self._head: Wire = {}
        self._message: Wire = {"role": "assistant", "content": None}
        self._calls: list[Wire] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self.events = 0

    def feed(self, chunk: Mapping[str, Any]) -> str:
        self.events += 1
        for key in ("id", "model", "created", "system_fingerprint"):
            if chunk.get(key):
                self._head[key] = chunk[key]
        # Moonshot reports usage inside the choice, Groq inside a field of its own.
        self._usage = chunk.get("usage") or at(chunk, "x_groq", "usage") or self._usage
        for choice in chunk.get("choices") or ():
            if isinstance(choice, Mapping) and not choice.get("index"):
                return self._choice(choice)
        return ""

    def _choice(self, choice: Mapping[str, Any]) -> str:
        self._usage = choice.get("usage") or self._usage
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or {}
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value or ():
                    self._call(call)
            elif key == "function_call" and isinstance(value, Mapping):
                _join(self._message.setdefault("function_call", {}), value)
            elif key == "audio" and isinstance(value, Mapping):
                _join(self._message.setdefault("audio", {}), value)
            elif key != "role":
                _join(self._message, {key: value})
        return str(delta.get("content") or "")

    def _call(self, delta: Mapping[str, Any]) -> None:
        index = delta.get("index")
        place = self._places.get(index) if isinstance(index, int) else (len(self._calls) - 1 if self._calls else None)
        known = self._calls[place] if place is not None else None
        fresh = delta.get("id")
        # Some servers number every call 0, others don't number at all: a new id is a new call.
        if known is None or (fresh and known.get("id") and fresh != known["id"]):
            known = {}
            self._calls.append(known)
            if isinstance(index, int):
                self._places[index] = len(self._calls) - 1
        for key, value in delta.items():
            if key in ("function", "custom") and isinstance(value, Mapping):
                _join(known.setdefault(key, {}), value, once=("name",))
            elif key != "index" and value not in (None, ""):
                known[key] = value

    def reply(self) -> Wire:
        """The answer; raises when the stream ended before it did, or in the middle of a call."""
        if self._finish is None:
            raise StreamIncomplete("the stream ended before the answer did")
        if self._finish != "length":
            for call in self._calls:
                function = call.get("function") or {}
                if not function.get("name") and "custom" not in call:
                    raise StreamIncomplete("a tool call came without a name")
                check_whole(function.get("name"), function.get("arguments") or "")
        message = {**self._message, **({"tool_calls": self._calls} if self._calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {"object": "chat.completion", **self._head, "choices": [choice], "usage": self._usage}


def _join(into: Wire, delta: Mapping[str, Any], once: tuple[str, ...] = ()) -> None:
    """Texts grow, lists get longer, anything else is replaced."""
    for key, value in delta.items():
        if value is None:
            continue
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str) and key not in once and key not in ("id", "type"):
            into[key] = old + value
        elif isinstance(old, list) and isinstance(value, list):
            into[key] = [*old, *value]
        elif not (key in once and old and not value):
            into[key] = value


def error_body(status: int, code: str | None, message: str) -> Wire:
    kind = ERROR_TYPES.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def is_end(event: Event) -> bool:
    if event.data.strip() == b"[DONE]":
        return True
    if b'"finish_reason"' not in event.data:
        return False
    return any(choice.get("finish_reason") for choice in objects(event.json().get("choices")))


GAP = "\n\n"
CALLS = ("tool_calls", "function_call", "stop")
"""How an answer with calls may end; several compatible servers say `stop`."""
_BOUND = ("reasoning_details", "reasoning_opaque")
"""Signed reasoning, which is worth nothing to a client that does not have the calls before it."""


class ChatMerge(ReplyMerge):
    """Chunks keep the id of the first round; tool calls are counted without ours; a blank line parts two texts."""

    def __init__(self, hidden: Collection[str], fields: Mapping[str, Any]) -> None:
        super().__init__(hidden, fields)
        self._head: Wire = {}
        self._places: dict[int, int | None] = {}
        """For each call of this round the index the client knows it by; None for ours."""
        self._shown = 0
        self._texted = False  # whether the client has words of an earlier round
        self._finish: Wire | None = None
        self._usage_chunk: Wire | None = None

    def feed(self, event: Event) -> bytes:
        """Calls of ours are left out; the end, the usage and `[DONE]` are held back until it is the end."""
        if self._assembler is None:
            self._assembler, self._places, self._finish = Assembler(), {}, None
        if event.data.strip() == b"[DONE]":
            return b""
        chunk = event.json()
        if not chunk or chunk.get("error"):
            return event.encode()
        self._assembler.feed(chunk)
        if not self._head:
            self._head = {key: chunk[key] for key in ("id", "created") if key in chunk}
        choices = chunk.get("choices") or ()
        if not choices:
            if chunk.get("usage"):
                self._usage_chunk = {**chunk, **self._head}
            return b""
        changed = self._changed(chunk, choices[0])
        return event.encode() if changed is chunk else encode_event({**changed, **self._head}) if changed else b""

    def _changed(self, chunk: Wire, choice: Wire) -> Wire | None:
        """What the client gets of a chunk: the same object when nothing is changed, None for nothing."""
        delta: Wire = dict(choice.get("delta") or {})
        later = bool(self._replies)
        if "tool_calls" in delta:
            delta["tool_calls"] = self._own_calls(delta["tool_calls"] or ())
            if not delta["tool_calls"]:
                del delta["tool_calls"]
        if later:
            delta = {key: value for key, value in delta.items() if key != "role" and key not in _BOUND}
            if delta.get("content") and self._texted:
                delta["content"] = GAP + delta["content"]
                self._texted = False
        said = {key: value for key, value in delta.items() if value not in (None, "") and key != "role"}
        self.visible = self.visible or bool(said)
        if choice.get("finish_reason"):
            self._finish = {**chunk, **self._head}
            choice = {**choice, "finish_reason": None}
        elif not later and delta == (choice.get("delta") or {}) and not chunk.get("usage"):
            return chunk
        elif not said and later:
            return None
        if not said and self._finish is not None:
            return None
        kept = {key: value for key, value in chunk.items() if key != "usage"}
        return {**kept, "choices": [{**choice, "delta": delta}]}

    def _own_calls(self, calls: Sequence[Any]) -> list[Wire]:
        """The client's own calls under their numbers; a call is known by its name, which comes first."""
        kept = []
        for call in calls:
            index = call.get("index", 0)
            name = (call.get("function") or {}).get("name")
            if index not in self._places or (call.get("id") and name):
                hidden = name in self._hidden
                self._places[index] = None if hidden else self._shown
                self._shown += not hidden
            place = self._places[index]
            if place is not None:
                kept.append({**call, "index": place} if place != index else call)
        return kept

    def turn(self) -> ReplyTurn:
        turn = super().turn()
        self._texted = bool(self._text())
        return turn

    def _calls(self, reply: Wire) -> list[RecallCall]:
        if _choice(reply).get("finish_reason") not in CALLS:
            return []
        return [
            RecallCall(str(call.get("id")), name, str(at(call, "function", "arguments") or ""), call)
            for name, call in _named_calls(reply)
        ]

    def carried(self) -> list[Wire]:
        message = {key: value for key, value in _message(self._replies[-1]).items() if value is not None}
        return [{"role": "assistant", "content": None, **message}]

    def result(self, call: RecallCall, text: str) -> Wire:
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    def _text(self) -> str:
        said = (_message(reply).get("content") for reply in self._replies)
        return GAP.join(text for text in said if isinstance(text, str) and text)

    def _reason(self) -> Any:
        """Why it ended; an answer whose only calls were ours has simply stopped."""
        reason = _choice(self._replies[-1]).get("finish_reason")
        return "stop" if reason in CALLS and not self._left() else reason

    def _left(self) -> list[Wire]:
        return [call for name, call in _named_calls(self._replies[-1]) if name not in self._hidden]

    def ending(self) -> bytes:
        """The last chunk, the usage of all rounds where the server gave it, and the mark of the end."""
        found = b""
        if self._finish is not None:
            choice = {**self._finish["choices"][0], "delta": {}, "finish_reason": self._reason()}
            chunk = {**self._finish, "choices": [choice]}
            if chunk.get("usage"):
                chunk["usage"] = self._usage()
            found += encode_event(chunk)
        if self._usage_chunk is not None:
            found += encode_event({**self._usage_chunk, "usage": self._usage()})
        return found + DONE

    def whole(self) -> Wire:
        last = self._replies[-1]
        message: Wire = {}
        for number, reply in enumerate(self._replies):
            for key, value in _message(reply).items():
                if key not in ("tool_calls", "content") and not (number and key in _BOUND):
                    message[key] = _longer(message.get(key), value) if key != "role" else value
        calls = self._left()
        message["content"] = self._text() or _message(last).get("content")
        if calls:
            message["tool_calls"] = calls
        choice = {**_choice(last), "message": message, "finish_reason": self._reason()}
        head: Wire = {key: self._replies[0][key] for key in ("id", "created") if key in self._replies[0]}
        return {**last, **head, "choices": [choice], "usage": self._usage()}


def _longer(first: Any, second: Any) -> Any:
    """Texts and lists of two rounds one behind the other; of all else the newer."""
    for kind in (str, list):
        if isinstance(first, kind) and isinstance(second, kind):
            return first + second  # type: ignore[operator]
    return first if second is None else second


def _choice(reply: Wire) -> Wire:
    return (objects(reply.get("choices")) or [{}])[0]


def _message(reply: Wire) -> Wire:
    message = _choice(reply).get("message")
    return message if isinstance(message, dict) else {}


def _named_calls(reply: Wire) -> list[tuple[str, Wire]]:
    return [(str(at(call, "function", "name") or ""), call) for call in objects(_message(reply).get("tool_calls"))]


def insert_hidden(item: bytes, turns: Mapping[str, list[HiddenCall]], _: list[HiddenCall]) -> list[bytes]:
    """A message with the hidden calls of its turn, their results behind it."""
    if b'"tool_calls"' not in item:
        return [item]
    message = orjson.loads(item)
    calls = message.get("tool_calls") or ()
    hidden = [own for call in calls if isinstance(call, Mapping) for own in turns.get(str(call.get("id")), ())]
    if not hidden or message.get("role") != "assistant":
        return [item]
    message["tool_calls"] = with_calls(calls, hidden)
    return [orjson.dumps(message), *(orjson.dumps(own["result"]) for own in hidden)]


_OTHER_FORMS = ("functions", "function_call", "prediction", "audio", "web_search_options", "logprobs")
"""Fields beside which calls are refused, or could not be hidden."""


def can_call(fields: Mapping[str, Any]) -> bool:
    modalities = fields.get("modalities") or ()
    return fields.get("n") in (None, 1) and "audio" not in modalities and not any(map(fields.get, _OTHER_FORMS))
