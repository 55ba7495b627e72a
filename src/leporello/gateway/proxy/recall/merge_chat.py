"""One answer of Chat Completions, woven of several. Texts of two rounds are parted by a blank line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.dialects.base import Wire
from leporello.dialects.chat import Assembler
from leporello.gateway.proxy.recall.merge import (
    RecallCall,
    ReplyTurn,
    as_it_came,
    is_ours,
    parsed,
    summed,
    written,
)
from leporello.gateway.proxy.streams import Event

DONE = b"data: [DONE]\n\n"
GAP = "\n\n"
CALLS = ("tool_calls", "function_call", "stop")
"""How an answer with calls may end; several compatible servers say `stop`."""
_BOUND = ("reasoning_details", "reasoning_opaque")
"""Signed reasoning, which is worth nothing to a client that does not have the calls before it."""


class ChatMerge:
    """Chunks keep the id of the first round; tool calls are counted without ours."""

    def __init__(self) -> None:
        self.visible = False
        self._replies: list[Wire] = []
        self._assembler: Assembler | None = None
        self._head: Wire = {}
        self._places: dict[int, int | None] = {}
        """For each call of this round the index the client knows it by; None for ours."""
        self._calls = 0
        self._texted = False
        """Whether the client has words of an earlier round."""
        self._finish: Wire | None = None
        self._usage_chunk: Wire | None = None

    def feed(self, event: Event) -> bytes:
        """Calls of ours are left out; the end, the usage and `[DONE]` are held back until it is the end."""
        if self._assembler is None:
            self._assembler, self._places, self._finish = Assembler(), {}, None
        if event.data.strip() == b"[DONE]":
            return b""
        chunk = parsed(event)
        if not chunk or chunk.get("error"):
            return as_it_came(event)
        self._assembler.feed(chunk)
        if not self._head:
            self._head = {key: chunk[key] for key in ("id", "created") if key in chunk}
        choices = chunk.get("choices") or ()
        if not choices:
            if chunk.get("usage"):
                self._usage_chunk = {**chunk, **self._head}
            return b""
        changed = self._changed(chunk, choices[0])
        return as_it_came(event) if changed is chunk else written({**changed, **self._head}) if changed else b""

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
                self._places[index] = None if is_ours(name) else self._calls
                self._calls += not is_ours(name)
            place = self._places[index]
            if place is not None:
                kept.append({**call, "index": place} if place != index else call)
        return kept

    def take(self, reply: Wire) -> None:
        """An answer that did not stream."""
        self._replies.append(reply)

    def turn(self) -> ReplyTurn:
        """What the last answer asks for."""
        if self._assembler is not None:
            self._replies.append(self._assembler.reply())
            self._assembler = None
            self._texted = bool(self._text())
        reply = self._replies[-1]
        if _choice(reply).get("finish_reason") not in CALLS:
            return ReplyTurn()
        calls: list[RecallCall] = []
        others: list[str] = []
        for call in reversed(_calls(reply)):
            function = call.get("function") or {}
            if is_ours(function.get("name")):
                text = str(function.get("arguments") or "")
                calls.insert(0, RecallCall(str(call.get("id")), function["name"], text, call, (others or [""])[0]))
            else:
                others.insert(0, str(call.get("id")))
        return ReplyTurn(tuple(calls), tuple(others))

    def carried(self) -> list[Wire]:
        """The message with reasoning and whatever else the server gave it."""
        message = {key: value for key, value in _message(self._replies[-1]).items() if value is not None}
        return [{"role": "assistant", "content": None, **message}]

    def result(self, call: RecallCall, text: str) -> Wire:
        """A message."""
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    def answered(self, results: Sequence[Wire]) -> list[Wire]:
        """The messages themselves."""
        return list(results)

    # -- the end

    def _text(self) -> str:
        said = (_message(reply).get("content") for reply in self._replies)
        return GAP.join(text for text in said if isinstance(text, str) and text)

    def _reason(self) -> Any:
        """Why it ended; an answer whose only calls were ours has simply stopped."""
        reason = _choice(self._replies[-1]).get("finish_reason")
        left = any(not is_ours((call.get("function") or {}).get("name")) for call in _calls(self._replies[-1]))
        return "stop" if reason in CALLS and not left else reason

    def _usage(self) -> Any:
        return summed(reply.get("usage") for reply in self._replies)

    def ending(self) -> bytes:
        """The last chunk, the usage of all rounds where the server gave it, and the mark of the end."""
        found = b""
        if self._finish is not None:
            choice = {**self._finish["choices"][0], "delta": {}, "finish_reason": self._reason()}
            chunk = {**self._finish, "choices": [choice]}
            if chunk.get("usage"):
                chunk["usage"] = self._usage()
            found += written(chunk)
        if self._usage_chunk is not None:
            found += written({**self._usage_chunk, "usage": self._usage()})
        return found + DONE

    def whole(self) -> Wire:
        """The first answer's head, the words of all, the calls that are left."""
        last = self._replies[-1]
        message: Wire = {}
        for number, reply in enumerate(self._replies):
            for key, value in _message(reply).items():
                if key not in ("tool_calls", "content") and not (number and key in _BOUND):
                    message[key] = _longer(message.get(key), value) if key != "role" else value
        calls = [call for call in _calls(last) if not is_ours((call.get("function") or {}).get("name"))]
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
    choices = reply.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _message(reply: Wire) -> Wire:
    message = _choice(reply).get("message")
    return message if isinstance(message, dict) else {}


def _calls(reply: Wire) -> list[Wire]:
    listed = _message(reply).get("tool_calls")
    return [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
