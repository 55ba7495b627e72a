"""A client's request seen twice: as the messages it says, and as the text it was written in.

The folded view of its conversation is laid over that text: what is shown as it was stays the client's text, byte for
byte. Folds and shortened messages are written in the dialect's form; they are the same bytes each time, because a view
does not change between compactions.

Clients send their whole history each time. A long request that begins with the text of an earlier one is read from
where they part (`KnownRequests`).
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from leporello.caching import marker, without_marks
from leporello.conversation.recovery import LEAST_OUTPUT, OutputCap
from leporello.dialects import Dialect, Target
from leporello.dialects.dialect import Body, Outline, OverlayItem
from leporello.fingerprint import fingerprints
from leporello.gateway.api_errors import refuse
from leporello.gateway.conversation_cache import ConversationCache
from leporello.messages import Message, is_instruction, text_of
from leporello.store.records import ViewLine


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as it came, and what it means. `messages` leave out the leading instructions and all marks."""

    dialect: Dialect
    data: bytes
    fields: Mapping[str, Any]
    messages: tuple[Message, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    """For each message the items it stands in: first and one behind the last."""
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    stateful: bool = False
    """The provider keeps (part of) the conversation: only what is new is here."""
    outline: Outline | None = None
    """Where its parts stand in the text, if that is known."""
    chain: tuple[bytes, Sequence[bytes]] = (b"", ())
    """The start of a chain of fingerprints and its values, if they are known."""

    @property
    def model(self) -> str:
        """The model's name; empty when the client gave none."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    def split(self, data: bytes) -> Body | None:
        """The text of this request, or of a rewritten one, taken apart."""
        if data is self.data and self.outline is not None:
            return self.outline.body(data)
        return Body.read(data, self.dialect.fields.conversation)

    def fingerprints(self, start: bytes) -> Sequence[bytes]:
        """The values of the chain from this start; fewer than messages are worked out where some are known."""
        known = self.chain[1] if self.chain[0] == start else ()
        return [*known, *fingerprints(known[-1] if known else start, self.messages[len(known) :])]

    def target(self) -> Target:
        """The receiver: what the client sent back belongs to whom it sends it to."""
        return Target("upstream", self.model, cache_marks=True)


def read_request(dialect: Dialect, data: bytes) -> WireRequest:
    """Reads a request. Refuses what is not a JSON object; what is odd inside is for the provider to judge."""
    try:
        fields = orjson.loads(data)
    except ValueError:
        raise refuse(400, "invalid_json", "We could not parse the JSON body of your request.") from None
    if not isinstance(fields, dict):
        raise refuse(400, "invalid_json", "The body of the request must be a JSON object.")
    return _read(dialect, data, fields)


def _read(dialect: Dialect, data: bytes, fields: Mapping[str, Any], lead: int | None = None) -> WireRequest:
    """`lead`: how many items are instructions before the conversation; without it all are before its first message."""
    items, rules = fields.get(dialect.fields.conversation), dialect.items
    stateful = rules.is_stateful(fields)
    if not isinstance(items, list) or not all(isinstance(item, dict) and rules.is_item(item) for item in items):
        return WireRequest(dialect, data, fields, stateful=stateful)
    decoded = dialect.decode_request(fields, "upstream")
    messages = without_marks(decoded.messages)
    if lead is None:
        start = next((k for k, message in enumerate(messages) if not is_instruction(message)), len(messages))
    else:
        start = bisect_left(decoded.origins, lead)
    return WireRequest(
        dialect,
        data,
        fields,
        tuple(messages[start:]),
        _spans(decoded.origins[start:], len(items)),
        "\n\n".join(text_of(message) for message in messages[:start]),
        tuple(decoded.tools),
        stateful,
    )


def _spans(origins: Sequence[int], count: int) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    following = later = count
    for origin in reversed(origins):
        # Several messages may come from one item; the next item begins where a greater origin does.
        if origin != following:
            later, following = following, origin
        spans.append((origin, later))
    return tuple(reversed(spans))


# -- what is known of it


LARGE = 128 * 1024
"""Bytes from which on a request is read beside the event loop and remembered; others take less than half a ms."""
MOST_KNOWN = 64 * 1024 * 1024
"""Bytes of memory for requests that are remembered: 60 clients at once with 100,000 tokens each."""
_SAMPLE = 512
"""Bytes by which a request is looked for: templates repeat shorter ones in every conversation."""
_KNOWN = secrets.token_hex(16)
"""Stands for the known items where a request is read from their end. A client can't know it, so that a list which
comes a second time is never taken for the one that begins with it."""


@dataclass(frozen=True, slots=True)
class KnownRequest:
    """A request that the client's next one probably repeats."""

    id: str
    request: WireRequest
    in_use: bool = False

    @property
    def weight(self) -> int:
        """Measured: the text, the same as messages, and what each of these and each object and list takes besides."""
        data = self.request.data
        return 2 * len(data) + 1_500 * len(self.request.messages) + 400 * (data.count(b"{") + data.count(b"["))


class KnownRequests:
    """Reads requests, the known beginning of large ones by comparing bytes; safe to use from several threads.

    What comes out is what `read_request` gives, whatever is remembered.
    """

    def __init__(self, idle: float = math.inf, most_bytes: int = MOST_KNOWN) -> None:
        """What nobody went on with for `idle` seconds is forgotten when `evict` is called."""
        self._cache = ConversationCache[KnownRequest](idle, most_bytes)

    def read(self, dialect: Dialect, data: bytes, start: bytes) -> WireRequest:
        """Reads a request of the client whose chains of fingerprints begin with `start`."""
        if len(data) < LARGE:
            return read_request(dialect, data)
        place = 1 << (len(data).bit_length() - 1)
        ids = [f"{dialect}:{start.hex()}:{at}:{data[at - _SAMPLE : at].hex()}" for at in (place, place // 2)]
        known = next(filter(None, map(self._cache.get, ids)), None)
        request = read_on(known.request, data) if known is not None else None
        request = request or read_request(dialect, data)
        if known is not None:
            self._cache.remove(known)
        if request.messages and not request.stateful:
            request = replace(request, chain=(start, request.fingerprints(start)))
            self._cache.add(KnownRequest(ids[0], request))
        self._cache.evict()
        return request

    def evict(self) -> None:
        """Forget what was not used for long or weighs too much."""
        self._cache.evict()


def read_on(known: WireRequest, data: bytes) -> WireRequest | None:
    """Reads a request that begins like a known one from where they part; None when it must be read whole.

    The items before that place are the same text at the same depth of the same list, so they mean the same, unless
    what follows says otherwise: the list a second time, or another model.
    """
    key = known.dialect.fields.conversation
    outline = known.outline or Outline.read(known.data, key)
    if outline is None:
        return None
    # The last item that both have is read again: where its message ends depends on what follows.
    last = _shared(known.data, data, [end for _, end in outline.items]) - 1
    starts = [span[0] for span in known.spans]
    count = bisect_left(starts, starts[max(0, bisect_right(starts, last) - 1)])
    if count == 0:
        return None
    first = starts[count]
    cut = outline.items[first - 1][1]
    opening = orjson.dumps({key: [_KNOWN]})[:-2]
    rest = opening + data[cut:]
    try:
        later = orjson.loads(rest)
    except ValueError:
        return None
    items, there = later.pop(key), Outline.read(rest, key)
    if there is None:
        return None
    fields = {name: value for name, value in known.fields.items() if name == key or outline.fields[name][0] < cut}
    lead = known.fields[key][: starts[0]]
    request = _read(known.dialect, data, {**fields, **later, key: [*lead, *items[1:]]}, len(lead))
    if request.stateful or not request.spans or not request.model or request.model != known.model:
        return None
    return replace(
        request,
        fields={**request.fields, key: [*known.fields[key][:first], *items[1:]]},
        messages=(*known.messages[:count], *request.messages),
        spans=(*known.spans[:count], *((a + first - len(lead), b + first - len(lead)) for a, b in request.spans)),
        outline=outline.continued(there, cut, len(opening), first),
        chain=(known.chain[0], known.chain[1][:count]),
    )


def _shared(first: bytes, second: bytes, ends: Sequence[int]) -> int:
    """How many of these places have the same text before them in both."""
    low, high, same = 0, len(ends), 0
    middle = high - 1
    while low < high:
        if first[same : ends[middle]] == second[same : ends[middle]]:
            low, same = middle + 1, ends[middle]
        else:
            high = middle
        middle = (low + high) // 2
    return low


# -- the view over the client's list


def is_folded(lines: Sequence[ViewLine]) -> bool:
    """Whether a view shows anything else than the messages themselves, all of them, in order."""
    return any(line.shortened or line.number != k for k, line in enumerate(lines, 1))


def apply_view(request: WireRequest, lines: Sequence[ViewLine], *, ttl: str = "5m", lay_marks: bool = False) -> bytes:
    """The body that shows the view instead of the whole conversation."""
    body = request.split(request.data)
    if body is None or not request.messages:
        return request.data
    start = request.spans[0][0]
    items = [OverlayItem(place, body.items[place]) for place in range(start)]
    items += _overlay(request, body, lines)
    return request.dialect.items.lay_out(body, items, start, marker(ttl) if lay_marks else None)


def with_recalled(data: bytes, request: WireRequest, text: str) -> bytes:
    """The body with a text behind the newest user message, as a part of it; all before it stays byte for byte."""
    body = request.split(data)
    if body is None:
        return data
    added = {"role": "user", "content": [{"type": "text", "text": text}]}
    (extra,) = request.dialect.items.encode([added], request.target())
    *before, newest = body.items
    item = orjson.loads(newest)
    if item.get("role") != "user":
        return body.with_items([*body.items, orjson.dumps(extra)])
    (block,) = extra["content"]
    said = item["content"]
    blocks = said if isinstance(said, list) else [{"type": block["type"], "text": said}]
    return body.with_items([*before, orjson.dumps({**item, "content": [*blocks, block]})])


def _overlay(request: WireRequest, body: Body, lines: Sequence[ViewLine]) -> Iterator[OverlayItem]:
    """Runs of lines that stand in one item go together; a whole run is the item itself."""
    target = request.target()
    k = 0
    while k < len(lines):
        run = _run(request, lines, k)
        if run and _is_whole(request, run):
            yield from (OverlayItem(place, body.items[place]) for place in range(*request.spans[run[0] - 1]))
        else:
            members = lines[k : k + max(1, len(run))]
            fold = any(line.fold for line in members)
            for item in request.dialect.items.encode([line.message for line in members], target):
                yield OverlayItem(None, orjson.dumps(item), str(item.get("role", "")), fold)
        k += max(1, len(run))


def _run(request: WireRequest, lines: Sequence[ViewLine], k: int) -> list[int]:
    """Numbers of the lines from here on that stand in the same item unchanged; none for what a compaction wrote."""
    numbers: list[int] = []
    for place in range(k, len(lines)):
        line = lines[place]
        if line.number is None or line.shortened or line.number > len(request.spans):
            break
        if numbers and (
            line.number != numbers[-1] + 1 or request.spans[line.number - 1] != request.spans[numbers[0] - 1]
        ):
            break
        numbers.append(line.number)
    return numbers


def _is_whole(request: WireRequest, run: Sequence[int]) -> bool:
    span = request.spans[run[0] - 1]
    before = run[0] > 1 and request.spans[run[0] - 2] == span
    after = run[-1] < len(request.spans) and request.spans[run[-1]] == span
    return not before and not after


# -- what a refusal asks for


def without_thinking(data: bytes, request: WireRequest) -> bytes:
    """The body without signed thinking, in a dialect that binds it to what stands before it."""
    drop = request.dialect.items.without_thinking
    body = request.split(data) if drop else None
    return body.with_items(map(drop, body.items)) if drop and body else data


def output_cap(data: bytes, request: WireRequest, room: int | None) -> OutputCap:
    """The cap of a body that was refused. What the client sets aside for thinking must stay below it."""
    body = request.split(data)
    fields = body.fields if body is not None else {}
    caps = [orjson.loads(fields[name]) for name in request.dialect.fields.output_caps if name in fields]
    cap = min((cap for cap in caps if isinstance(cap, int) and not isinstance(cap, bool)), default=0)
    thinking = request.fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    least = max(LEAST_OUTPUT, (budget if isinstance(budget, int) else 0) + 1)
    return OutputCap(cap, room=room, least=least, fixed=True)


def with_output_cap(data: bytes, request: WireRequest, cap: int) -> bytes:
    body = request.split(data)
    assert body is not None, "a body that can't be read has no cap to lower"
    names = [name for name in request.dialect.fields.output_caps if name in body.fields]
    return body.with_items(body.items, **dict.fromkeys(names, orjson.dumps(cap)))
