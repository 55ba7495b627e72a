"""One answer of Anthropic Messages, merged of several.

Thinking behind an inner exchange is not shown: its signature is bound to calls that the client does not have, and the
provider would refuse it when the client sends it back. The thinking before the first exchange stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from leporello.dialects.anthropic.blocks import THINKING, blocks_in
from leporello.dialects.anthropic.reply import Assembler
from leporello.dialects.anthropic.request import INPUT_JSON
from leporello.dialects.base import Event, Wire, encode_event, objects
from leporello.dialects.dialect import HiddenCall, RecallCall, ReplyMerge, with_calls
from leporello.dialects.parts import json_text


class AnthropicMerge(ReplyMerge):
    """Content blocks keep their order; their indices are counted through all rounds."""

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
            self._place(body)
        return self._renumbered(event, body) if "index" in body else event.encode()

    def _place(self, body: Wire) -> None:
        if self._is_hidden(body.get("content_block") or {}, bool(self._replies)):
            self._places[body["index"]] = None
            return
        self._places[body["index"]] = self._shown
        self._shown += 1
        self.visible = True

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
        """The first answer's head, all that is shown, the last one's end."""
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


def can_call(fields: Mapping[str, Any]) -> bool:
    """The beginning of an answer that the model only completes leaves no room for a call."""
    return bool(fields["messages"][-1].get("role") != "assistant")
