"""An answer as a `response` object: written for clients, put together from events, merged of several rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from leporello.dialects.base import Event, StreamIncomplete, Target, Wire, encode_event, objects
from leporello.dialects.dialect import HiddenCall, RecallCall, ReplyMerge
from leporello.dialects.pieces import check_whole, pieces
from leporello.dialects.responses.request import CALLS, encode_request, resendable
from leporello.messages import Message
from leporello.usage import CanonicalUsage

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}


def encode_reply(
    message: Message, *, target: Target, finish_reason: str = "stop", usage: CanonicalUsage | None = None
) -> Wire:
    items = encode_request([message], target=target)["input"]
    cut = finish_reason in ("length", "content_filter", "context_window_exceeded")
    reason = "content_filter" if finish_reason == "content_filter" else "max_output_tokens"
    return {
        "id": "resp_1",
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
            for item in objects(self._response["output"]):
                if item.get("type") == "function_call":
                    check_whole(item.get("name"), str(item.get("arguments") or ""))
        return self._response


def error_event(status: int, code: str | None, message: str) -> Wire:
    return {"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}


def is_end(event: Event) -> bool:
    return any(kind.encode() in event.data[:200] for kind in LAST) and event.json().get("type") in LAST


class ResponsesMerge(ReplyMerge):
    """Items keep their order; their indices and the numbers of the events are counted through all rounds.

    A reasoning item belongs to the item behind it: the provider refuses it without. So reasoning is shown when
    something that is shown follows it in the same round, and left out together with a call of ours.
    """

    def __init__(self, hidden: Collection[str], fields: Mapping[str, Any]) -> None:
        super().__init__(hidden, fields)
        self._stored = fields.get("store") is not False
        """Whether the provider keeps the response: then the id of the last one is the one to continue from, unless a
        stream has announced the first one: libraries refuse a stream whose id changes."""
        self._places: dict[int, int | None] = {}
        self._shown = 0
        self._number = 0
        self._waiting: list[Wire] = []  # events of reasoning that is shown once something follows it
        self._withheld = False  # whether a call of ours came behind it
        self._created: Wire = {}
        self._last: Wire | None = None
        self._seen: dict[int, set[str]] = {}  # ids of the items that were shown, by round

    def feed(self, event: Event) -> bytes:
        """Calls of ours are left out, everything else renumbered; the last event is held back until it is the end."""
        body = event.json()
        kind = str(body.get("type") or "")
        if self._assembler is None:
            self._assembler, self._places, self._last = Assembler(), {}, None
            self._waiting, self._withheld = [], False
        if not kind or kind == "error":
            return event.encode()
        self._assembler.feed(body)
        if kind in LAST:
            self._last = body
            return b"" if self._withheld else self._released()
        if kind in ANNOUNCED:
            response = body.get("response")
            if not self._replies and isinstance(response, dict):
                self._created = self._created or response
                body = {**body, "response": self._without_hidden(response)}
            return b"" if self._replies else self._numbered(body, event)
        return self._item(body, event) if "output_index" in body else self._numbered(body, event)

    def _item(self, body: Wire, event: Event) -> bytes:
        index = body["output_index"]
        released = b""
        if body["type"] == "response.output_item.added":
            item = body.get("item") or {}
            if self._is_hidden(item):
                self._places[index], self._withheld = None, True
            elif item.get("type") != "reasoning":
                released = self._released()
                self._show(index)
        if index not in self._places:
            self._waiting.append(body)
            return b""
        place = self._places[index]
        return released + (self._numbered(self._placed(body, place), event) if place is not None else b"")

    def _placed(self, body: Wire, place: int | None) -> Wire:
        """An event under the index and the id by which the client knows its item."""
        body = {**body, "output_index": place}
        if isinstance(body.get("item"), dict):
            body["item"] = self._named(body["item"], len(self._replies))
        if "item_id" in body:
            body["item_id"] = self._named({"id": body["item_id"]}, len(self._replies))["id"]
        return body

    def _named(self, item: Wire, number: int) -> Wire:
        """An item with an id of its own: some servers count anew in each answer, and libraries take two items of one id
        for one."""
        id = item.get("id")
        if not isinstance(id, str):
            return item
        self._seen.setdefault(number, set()).add(id)
        taken = any(id in ids for earlier, ids in self._seen.items() if earlier < number)
        return {**item, "id": f"{id}_{number}"} if taken else item

    def _show(self, index: int) -> None:
        """Give an item of this round the next index that the client knows."""
        self._places[index] = self._shown
        self._shown += 1
        self.visible = True

    def _released(self) -> bytes:
        """The reasoning that waited, now that something follows it."""
        found = b""
        for body in self._waiting:
            index = body["output_index"]
            if index not in self._places:
                self._show(index)
            found += self._numbered(self._placed(body, self._places[index]))
        self._waiting, self._withheld = [], False
        return found

    def _numbered(self, body: Wire, event: Event | None = None) -> bytes:
        if "sequence_number" in body:
            body = {**body, "sequence_number": self._number}
            self._number += 1
        if event is not None and body == event.json():
            return event.encode()
        return encode_event(body, str(body.get("type")))

    def _calls(self, reply: Wire) -> list[RecallCall]:
        if reply.get("status") not in ("completed", None):
            return []
        return [
            RecallCall(
                str(item.get("call_id")),
                # A tool that takes free text is the client's, whatever its name.
                str(item.get("name")) if item.get("type") == "function_call" else "",
                str(item.get("arguments") or ""),
                item,
            )
            for item in objects(reply.get("output"))
            if item.get("type") in CALLS
        ]

    def carried(self) -> list[Wire]:
        """The items as they came; reasoning that nobody keeps and that is not in the answer can't be sent back."""
        items = objects(self._replies[-1].get("output"))
        if self._stored:
            return items
        return [
            {key: value for key, value in item.items() if key != "id" or item.get("type") == "reasoning"}
            for item in items
            if resendable(item)
        ]

    def result(self, call: RecallCall, text: str) -> Wire:
        return {"type": "function_call_output", "call_id": call.id, "output": text}

    def ending(self) -> bytes:
        return self._numbered({**self._last, "response": self.whole()}) if self._last is not None else b""

    def whole(self) -> Wire:
        first, last = self._replies[0], self._replies[-1]
        shown: Wire = {
            **self._without_hidden(last),
            "output": [
                self._named(item, number)
                for number, reply in enumerate(self._replies)
                for item in self._visible(objects(reply.get("output")))
            ],
            "usage": self._usage(),
        }
        created = first.get("created_at", self._created.get("created_at"))
        if created is not None:
            shown["created_at"] = created
        announced = self._created.get("id", None if self._stored else first.get("id"))
        if announced is not None:
            shown["id"] = announced
        return shown

    def _visible(self, items: Sequence[Wire]) -> list[Wire]:
        """The items that a client gets: without hidden calls, and without reasoning that led to nothing else."""
        kept: list[Wire] = []
        waiting: list[Wire] = []
        withheld = False
        for item in items:
            if item.get("type") == "reasoning":
                waiting.append(item)
            elif self._is_hidden(item):
                withheld = True
            else:
                kept += [*waiting, item]
                waiting, withheld = [], False
        return kept if withheld else [*kept, *waiting]

    def _is_hidden(self, item: Wire) -> bool:
        return item.get("type") == "function_call" and item.get("name") in self._hidden

    def _without_hidden(self, response: Wire) -> Wire:
        """A response tells the tools it was given; the client is told its own."""
        tools = response.get("tools")
        if not isinstance(tools, list):
            return response
        kept = [tool for tool in tools if not (isinstance(tool, dict) and tool.get("name") in self._hidden)]
        return {**response, "tools": kept}


def insert_hidden(item: bytes, turns: Mapping[str, list[HiddenCall]], _: list[HiddenCall]) -> list[bytes]:
    """A call with the hidden ones that stood around it; results follow the last of the turn."""
    if b'"call_id"' not in item:
        return [item]
    call = orjson.loads(item)
    if call.get("type") not in CALLS:
        return [item]
    id = str(call.get("call_id"))
    before = [own for hidden in turns.values() for own in hidden if own["before"] == id]
    behind = [own for own in turns.get(id, ()) if not own["before"]]
    made = [*(orjson.dumps(own["call"]) for own in before), item]
    made += [orjson.dumps(own["call"]) for own in behind]
    return [*made, *(orjson.dumps(own["result"]) for own in turns.get(id, ()))]
