"""A wire dialect as one object: everything that somebody must know to speak it, so that nobody asks which one it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leporello.dialects.base import Assembler, Target, Wire, WireReply
from leporello.dialects.merge import HiddenCall, ReplyMerge
from leporello.dialects.request import Body, DecodedRequest, OverlayItem
from leporello.dialects.sse import Event
from leporello.messages import Message, Messages


class EncodeRequest(Protocol):
    """Messages as the body of a request."""

    def __call__(
        self,
        messages: Messages,
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        target: Target,
        max_tokens: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Wire: ...


ErrorShape = Callable[[int, str | None, str], Wire]
"""Status, code and message of an error as an object."""


@dataclass(frozen=True, slots=True)
class Api:
    """How the API is reached over HTTP."""

    vendor: str
    """Whose API it is: the name of the vendor's upstream, and of the package with the official client."""
    path: str
    count_path: str = ""
    """Where a request is counted, if anywhere."""
    models_path: str = "/v1/models"
    versioned_base: bool = True
    """Whether users write the version at the end of a base address, as OpenAI does."""
    bearer: bool = True
    """Whether a key is sent as a bearer token; else as `x-api-key`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that every client of this API sends."""

    def models_url(self, base_url: str) -> str:
        """Where an endpoint lists its models."""
        root = base_url.rstrip("/")
        if self.versioned_base:
            return root + self.models_path.removeprefix("/v1")
        return root.removesuffix("/v1") + self.models_path

    def key_headers(self, key: str) -> dict[str, str]:
        """Headers that identify a client."""
        return {**({"authorization": f"Bearer {key}"} if self.bearer else {"x-api-key": key}), **self.headers}


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Where things stand in requests and answers."""

    conversation: str
    """The list of a request that holds the conversation."""
    output_caps: tuple[str, ...]
    """Fields of a request that limit the answer's length."""
    reply: str
    """The list that every answer has."""


def has_role(item: Mapping[str, Any]) -> bool:
    """Whether an item of a request is a message."""
    return isinstance(item.get("role"), str)


def lay_out(body: Body, items: Iterable[OverlayItem], start: int, mark: Wire | None) -> bytes:
    """The body with another list."""
    return body.with_items(item.text for item in items)


@dataclass(frozen=True, slots=True)
class ItemRules:
    """How a proxy reads and rewrites the list that holds the conversation."""

    encode: Callable[[Sequence[Message], Target], list[Wire]]
    """Messages as items, under the ids they have: their counterparts are sent as the client wrote them."""
    is_item: Callable[[Mapping[str, Any]], bool] = has_role
    is_stateful: Callable[[Mapping[str, Any]], bool] = lambda fields: False
    """Whether the provider keeps (part of) the conversation, by a request's fields."""
    lay_out: Callable[[Body, Sequence[OverlayItem], int, Wire | None], bytes] = lay_out
    """A body with a rewritten list (from the given place on), and with cache marks where a mark is given."""
    without_thinking: Callable[[bytes], bytes] | None = None
    """An item without signed thinking; None where thinking is not bound to what stands before it."""


@dataclass(frozen=True, slots=True)
class StreamRules:
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


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How calls of tools that the client does not have are offered and hidden."""

    merge: Callable[[Collection[str], Mapping[str, Any]], ReplyMerge]
    """One answer of several, given the names of the hidden tools and the fields of the request."""
    insert: Callable[[bytes, Mapping[str, list[HiddenCall]], list[HiddenCall]], list[bytes]]
    """An item with the hidden calls of its turn, given those of all turns; the list holds what waits for the next."""
    encode_tools: Callable[[Iterable[Mapping[str, Any]]], list[Wire]]
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
    """The body of an answer: `(message, *, target, finish_reason="stop", usage=None, id=...)`."""
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
