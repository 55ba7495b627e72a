"""A wire dialect as one object: everything that somebody must know to speak it, so that nobody asks which one it is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, Protocol

import msgspec
import orjson
from msgspec import Struct, field

from leporello.dialects.base import Assembler, Event, Target, Wire, WireReply
from leporello.dialects.pieces import as_chat_tool
from leporello.messages import Message, Messages

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_SPACE = re.compile(rb"[ \t\r\n]+")


class DecodedRequest(Struct, frozen=True):
    """A client's request as messages. `origins[i]` is the index of the wire message (or input item) that message i
    came from, -1 for one that stood outside the list (`system`, `instructions`): untouched wire messages can be sent
    on as the client wrote them."""

    messages: list[Message]
    origins: list[int]
    tools: list[Wire] = field(default_factory=list)
    model: str = ""
    max_tokens: int | None = None
    stream: bool = False
    rest: Wire = field(default_factory=dict)
    """Every other field, as it came."""

    @classmethod
    def read(
        cls,
        wire: Mapping[str, Any],
        messages: list[Message],
        origins: list[int],
        output_caps: Sequence[str],
        conversation: Sequence[str],
    ) -> DecodedRequest:
        """The request with the fields that all dialects name alike; `conversation` names those that were decoded."""
        known = ("tools", "model", "stream", *output_caps, *conversation)
        return cls(
            messages,
            origins,
            [as_chat_tool(tool) for tool in wire.get("tools") or () if isinstance(tool, Mapping)],
            str(wire.get("model") or ""),
            next((wire[name] for name in output_caps if wire.get(name)), wire.get(output_caps[-1])),
            bool(wire.get("stream")),
            {key: value for key, value in wire.items() if key not in known},
        )


class Body(Struct, frozen=True):
    """Fields of a JSON object as text, and the items of the one that holds the conversation."""

    fields: Mapping[str, bytes]
    key: str
    items: tuple[bytes, ...]

    @classmethod
    def read(cls, data: bytes, key: str) -> Body | None:
        """None when the data is no object or the field no list."""
        try:
            fields = {name: bytes(value) for name, value in _fields.decode(data).items()}
            items = tuple(bytes(item) for item in _list.decode(fields[key]))
        except (msgspec.DecodeError, KeyError, RecursionError):
            return None
        return cls(fields, key, items)

    def with_items(self, items: Iterable[bytes], **changed: bytes) -> bytes:
        """The body with another list, and with other fields replaced or added."""
        fields = {**self.fields, **changed, self.key: b"[" + b",".join(items) + b"]"}
        return b"{" + b",".join(orjson.dumps(name) + b":" + value for name, value in fields.items()) + b"}"


Place = tuple[int, int]
"""Where something begins and ends in a text."""


class Outline(Struct, frozen=True):
    """Where the fields of a JSON object stand in its text, and the items of the one that holds the conversation."""

    key: str
    fields: Mapping[str, Place]
    items: tuple[Place, ...]

    @classmethod
    def read(cls, data: bytes, key: str) -> Outline | None:
        """None when the field is no list, and where a name stands twice or with escapes: then no place is certain."""
        body = Body.read(data, key)
        if body is None:
            return None
        pairs = chain.from_iterable((orjson.dumps(name), b":", text, b",") for name, text in body.fields.items())
        parts = chain.from_iterable((item, b",") for item in body.items)
        try:
            fields = dict(zip(body.fields, _places(data, [b"{", *pairs][:-1], 0)[3::4], strict=True))
            items = _places(data, [b"[", *parts][: 2 * len(body.items)], fields[key][0])[1::2]
        except ValueError:
            return None
        return cls(key, fields, tuple(items))

    def body(self, data: bytes) -> Body:
        """What `Body.read` makes of the same text."""
        fields = {name: data[first:end] for name, (first, end) in self.fields.items()}
        return Body(fields, self.key, tuple(data[first:end] for first, end in self.items))

    def continued(self, rest: Outline, cut: int, opening: int, items: int) -> Outline | None:
        """This outline up to a cut behind so many items, then that of a text which goes on there.

        The other text has an opening of its own with one item, so long, in place of what stands before the cut.
        """
        moved = {name: (first + cut - opening, end + cut - opening) for name, (first, end) in rest.fields.items()}
        fields = {name: place for name, place in self.fields.items() if place[0] < cut}
        begin, end = fields.pop(self.key)[0], moved.pop(self.key)[1]
        if fields.keys() & moved.keys():
            return None
        later = ((first + cut - opening, last + cut - opening) for first, last in rest.items[1:])
        return Outline(self.key, {**fields, self.key: (begin, end), **moved}, (*self.items[:items], *later))


def _places(data: bytes, parts: Iterable[bytes], at: int) -> list[Place]:
    """Where parts stand that follow each other with white space at most in between; raises when they don't."""
    places = []
    for part in parts:
        space = _SPACE.match(data, at)
        at = space.end() if space else at
        if not data.startswith(part, at):
            raise ValueError("another text")
        places.append((at, at + len(part)))
        at += len(part)
    return places


class OverlayItem(Struct, frozen=True):
    """One item of a rewritten list: the client's own (by its place), or one that was written for it."""

    place: int | None
    text: bytes
    role: str = ""
    fold: bool = False


HiddenCall = Mapping[str, Any]
"""`call` and `result` in the dialect's form, `before`: the client's call it stood before, `last`: the turn's last."""


@dataclass(frozen=True, slots=True)
class RecallCall:
    """A call of a tool, and where it stood: before which of the client's own calls (empty: behind all)."""

    id: str
    name: str
    arguments: str
    wire: Wire
    """As the model wrote it."""
    before: str = ""


class ReplyTurn(Struct, frozen=True):
    """What the model wants after one of its answers."""

    calls: tuple[RecallCall, ...] = ()
    others: tuple[str, ...] = ()
    """Ids of calls that are the client's to run."""


class ReplyMerge(ABC):
    """One answer for the client in the making. Rounds are fed as events, or taken whole."""

    def __init__(self, hidden: Collection[str], fields: Mapping[str, Any]) -> None:
        self.visible = False
        """Whether the client was given anything of the answer itself."""
        self._hidden = hidden  # names of the tools whose calls the client does not see
        self._replies: list[Wire] = []
        self._assembler: Assembler | None = None

    @abstractmethod
    def feed(self, event: Event) -> bytes:
        """An event of the model's server; what the client gets of it now."""

    def take(self, reply: Wire) -> None:
        self._replies.append(reply)

    def turn(self) -> ReplyTurn:
        """The round is over: what the model wants. Raises `StreamIncomplete` when the answer is not whole."""
        if self._assembler is not None:
            self._replies.append(self._assembler.reply())
            self._assembler = None
        calls: list[RecallCall] = []
        others: list[str] = []
        for call in reversed(self._calls(self._replies[-1])):
            if call.name in self._hidden:
                calls.insert(0, replace(call, before=others[0] if others else ""))
            else:
                others.insert(0, call.id)
        return ReplyTurn(tuple(calls), tuple(others))

    @abstractmethod
    def _calls(self, reply: Wire) -> list[RecallCall]:
        """The calls in an answer that ended to have them run."""

    @abstractmethod
    def carried(self) -> list[Wire]:
        """The last answer as items of the next request: everything in it, unchanged."""

    @abstractmethod
    def result(self, call: RecallCall, text: str) -> Wire:
        """The result of a call, in the dialect's form."""

    def answered(self, results: Sequence[Wire]) -> list[Wire]:
        return list(results)

    @abstractmethod
    def ending(self) -> bytes:
        """The last events of the stream."""

    @abstractmethod
    def whole(self) -> Wire:
        """The answer when it does not stream."""

    def _usage(self) -> Any:
        return summed(reply.get("usage") for reply in self._replies)


def summed(usages: Iterable[Any]) -> Any:
    """Several usages of one shape as one: numbers are added, also inside; of all else the newest stands."""
    return reduce(_added, usages, None)


def _added(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {key: _added(first.get(key), second.get(key)) for key in {**first, **second}}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def with_calls(calls: Sequence[Any], hidden: Sequence[HiddenCall]) -> list[Any]:
    """Calls with the hidden ones among them, each before the one it stood before."""
    made: list[Any] = []
    for call in calls:
        id = call.get("id") if isinstance(call, Mapping) else None
        made += [own["call"] for own in hidden if own["before"] and own["before"] == id]
        made.append(call)
        made += [own["call"] for own in hidden if not own["before"] and own["last"] == id]
    return made


Tools = Sequence[Mapping[str, Any]]
Options = Mapping[str, Any] | None  # further fields of a request, in the chat form


class EncodeRequest(Protocol):
    """Messages as the body of a request."""

    def __call__(
        self,
        messages: Messages,
        tools: Tools = (),
        *,
        target: Target,
        max_tokens: int | None = None,
        options: Options = None,
    ) -> Wire: ...


ErrorShape = Callable[[int, str | None, str], Wire]  # status, code and message of an error as an object


class Api(Struct, frozen=True):
    """How the API is reached over HTTP."""

    vendor: str
    """Whose API it is: the name of the vendor's upstream, and of the package with the official client."""
    path: str
    count_path: str = ""
    """Where a request is counted, if anywhere."""
    models_path: str = "/v1/models"
    bearer: bool = True
    """Whether a key is sent as a bearer token; else as `x-api-key`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that every client of this API sends."""

    def key_headers(self, key: str) -> dict[str, str]:
        return {**({"authorization": f"Bearer {key}"} if self.bearer else {"x-api-key": key}), **self.headers}


class FieldNames(Struct, frozen=True):
    """Where things stand in requests and answers."""

    conversation: str
    """The list of a request that holds the conversation."""
    output_caps: tuple[str, ...]
    """Fields of a request that limit the answer's length."""
    reply: str
    """The list that every answer has."""


def lay_out(body: Body, items: Iterable[OverlayItem], start: int, mark: Wire | None) -> bytes:
    return body.with_items(item.text for item in items)


class ItemRules(Struct, frozen=True):
    """How a proxy reads and rewrites the list that holds the conversation."""

    encode: Callable[[Sequence[Message], Target], list[Wire]]
    """Messages as items, under the ids they have: their counterparts are sent as the client wrote them."""
    is_item: Callable[[Mapping[str, Any]], bool] = lambda item: isinstance(item.get("role"), str)
    is_stateful: Callable[[Mapping[str, Any]], bool] = lambda fields: False
    """Whether the provider keeps (part of) the conversation, by a request's fields."""
    lay_out: Callable[[Body, Sequence[OverlayItem], int, Wire | None], bytes] = lay_out
    """A body with a rewritten list (from the given place on), and with cache marks where a mark is given."""
    without_thinking: Callable[[bytes], bytes] | None = None
    """An item without signed thinking; None where thinking is not bound to what stands before it."""


class StreamRules(Struct, frozen=True):
    """What the events of a stream mean."""

    is_end: Callable[[Event], bool]
    error_event: ErrorShape
    opening: tuple[str, ...] = ("ping",)
    """Kinds of events that come before anything of the answer."""
    errors: tuple[str, ...] = ("error",)
    """Kinds of events that are an error."""
    bare_errors: bool = False
    """Whether an error may come without a kind."""
    named: bool = True
    """Whether events carry their kind as a name."""
    end_mark: bytes = b""
    """What stands behind the last event."""


class RecallRules(Struct, frozen=True):
    """How calls of tools that the client does not have are offered and hidden."""

    merge: Callable[[Collection[str], Mapping[str, Any]], ReplyMerge]
    """One answer of several, given the names of the hidden tools and the fields of the request."""
    insert: Callable[[bytes, Mapping[str, list[HiddenCall]], list[HiddenCall]], list[bytes]]
    """An item with the hidden calls of its turn, given those of all turns; the list holds what waits for the next."""
    encode_tool: Callable[[Mapping[str, Any]], Wire]
    can_call: Callable[[Mapping[str, Any]], bool]
    """Whether hidden calls are possible beside the fields of a request."""
    no_choice: Any = "none"
    """The `tool_choice` that forbids calls."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A wire format. `name` is what settings and records call it."""

    name: str
    api: Api
    fields: FieldNames
    encode_request: EncodeRequest
    decode_request: Callable[[Mapping[str, Any], str], DecodedRequest]
    encode_reply: Callable[..., Wire]
    """The body of an answer: `(message, *, target, finish_reason="stop", usage=None)`."""
    decode_reply: Callable[[Mapping[str, Any], Target], WireReply]
    is_reply: Callable[[Mapping[str, Any]], bool]
    """Whether a body is an answer in this dialect."""
    reply_events: Callable[[Mapping[str, Any]], Iterator[Wire]]
    """The events that stream an answer."""
    assembler: Callable[[], Assembler]
    items: ItemRules
    stream: StreamRules
    recall: RecallRules
    error_body: ErrorShape

    def __str__(self) -> str:
        return self.name
