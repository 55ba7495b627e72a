"""Anthropic's stream of events put together into the message it describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.anthropic.decode import INPUT_JSON
from leporello.codecs.base import StreamIncomplete, Wire
from leporello.messages import parse_json


class Assembler:
    """Takes events one by one; `reply` is the whole `Message` object, or an error when the stream was cut."""

    def __init__(self) -> None:
        self._message: Wire = {}
        self._blocks: dict[int, Wire] = {}
        self._usage: Wire = {}
        self._ended = False
        self.events = 0

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; the text it adds to the answer."""
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
