"""Recall inside the proxy: the model is offered the recovery tools, and its calls to them are answered here.

The client never sees those calls. A model may call our tools and the client's in one answer. The client must run its
own before the model goes on, so it gets the answer with those alone; ours are answered here and kept as hidden calls.
When the client comes back with its results, call and result stand in the request again as the model wrote them, and in
every later one that shows that turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.tool_schemas import FIND_TOOLS, find_tool
from leporello.dialects import Dialect
from leporello.dialects.base import StreamIncomplete, Wire
from leporello.dialects.dialect import Body, HiddenCall, RecallCall, ReplyTurn
from leporello.dialects.pieces import tool_name
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.proxy.relay import (
    BROKEN,
    GARBAGE,
    HOLD_SECONDS,
    Headers,
    Outlet,
    Tally,
    read_whole,
    refusal_in,
    usage_of,
)
from leporello.gateway.proxy.request import WireRequest
from leporello.gateway.proxy.upstream import UpstreamTarget, connection_error, read_reply, returned_headers, verdict_on
from leporello.messages import parse_json
from leporello.providers.errors import classify
from leporello.recall.base import DEFAULT_TOKENS
from leporello.recall.paging import json_text
from leporello.recall.tools import LEAST_TOKENS, TOOL_NAMES, RecallTools, openai_tools
from leporello.store import Store
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

if TYPE_CHECKING:
    from leporello.gateway.proxy.endpoints import Proxy
    from leporello.gateway.proxy.rewrite import Rewrite

STATE_KEY = "gateway.asides"
"""The state key under which a conversation keeps its hidden calls."""
MOST_KEPT = 64
"""Older ones have long been folded away."""
MOST_TOOLS = 128
"""More than so many the APIs don't take."""
MOST_ROUNDS = 8
"""Inner calls for one answer; in the last of them the tools can't be called any more."""
NONSENSE = (AttributeError, KeyError, TypeError, ValueError, IndexError)
"""What an answer causes that is JSON and yet nothing of the dialect."""
NO_ROOM = json_text({"error": "the window has no room for a result; answer with what you have"})
_SIZED = ("lcm_grep", "lcm_expand")


# -- the tools in a request


def can_offer(request: WireRequest, ours: Collection[str] = TOOL_NAMES) -> bool:
    """Whether a request may carry tools of these names."""
    fields = request.fields
    tools = [] if fields.get("tools") is None else fields["tools"]
    if not isinstance(tools, list) or len(tools) + len(ours) > MOST_TOOLS or {*ours} & {*_names(tools)}:
        return False
    choice = fields.get("tool_choice")
    if (choice.get("type") if isinstance(choice, Mapping) else choice) == "none":
        return False
    if not tools and _fixed_form(fields):
        return False
    return request.dialect.recall.can_call(fields)


def _names(tools: list[Any]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, Mapping):
            inner = tool.get("function") or tool.get("custom")
            yield str((inner if isinstance(inner, Mapping) else tool).get("name"))


def _fixed_form(fields: Mapping[str, Any]) -> bool:
    """Whether JSON is wanted: without tools that is one request for data, not a conversation that works."""
    inner = [fields.get("response_format"), fields.get("output_format")]
    for outer in ("text", "output_config"):
        value = fields.get(outer)
        inner.append(value.get("format") if isinstance(value, Mapping) else None)
    return any(isinstance(form, Mapping) and form.get("type", "text") != "text" for form in inner)


def with_tools(data: bytes, request: WireRequest, tools: bytes, hidden: Sequence[HiddenCall] = ()) -> bytes:
    """The body with another list of tools, and with what was asked of ours beside the client's calls."""
    body = request.split(data)
    if body is None:
        return data
    return body.with_items(with_hidden_calls(request.dialect, body.items, hidden), tools=tools)


def listed_tools(request: WireRequest, hidden: Sequence[str], *, recall: bool) -> bytes:
    """The client's own tools as it wrote them, without those that are hidden; ours behind them."""
    given = Body.read(request.data, "tools")
    theirs = zip(given.items, request.fields["tools"], strict=True) if given else ()
    stay = [text for text, tool in theirs if not hidden or tool_name(tool) not in hidden]
    find = [orjson.dumps(request.dialect.recall.encode_tool(find_tool(hidden)))] if hidden else []
    return b"[" + b",".join([*stay, *find, *(_ours(request.dialect) if recall else ())]) + b"]"


@cache
def _ours(dialect: Dialect) -> tuple[bytes, ...]:
    """The recall tools."""
    return tuple(orjson.dumps(dialect.recall.encode_tool(tool)) for tool in openai_tools())


def forced_tools(fields: Mapping[str, Any]) -> list[str]:
    """Names of tools that a request says the model must call."""
    choice = fields.get("tool_choice")
    inner = [choice, *(choice.values() if isinstance(choice, Mapping) else ())]
    return [str(one["name"]) for one in inner if isinstance(one, Mapping) and "name" in one]


def with_hidden_calls(dialect: Dialect, items: Sequence[bytes], hidden: Sequence[HiddenCall]) -> list[bytes]:
    """The list with all hidden calls whose turn is in it."""
    turns: dict[str, list[HiddenCall]] = {}
    for call in hidden:
        if any(str(call["last"]).encode() in item for item in items):
            turns.setdefault(str(call["last"]), []).append(call)
    if not turns:
        return list(items)
    waiting: list[HiddenCall] = []
    return [made for item in items for made in dialect.recall.insert(item, turns, waiting)]


def _without_our_tools(body: Body, request: WireRequest) -> Mapping[str, bytes]:
    """Fields of a last round, in which our tools can't be called: they are gone, or nothing can be called at all."""
    if request.fields.get("tools"):
        return {"tools": orjson.dumps(request.fields["tools"])}
    return {"tools": body.fields["tools"], "tool_choice": orjson.dumps(request.dialect.recall.no_choice)}


# -- answers to calls


class RecallAnswers:
    """Answers calls for one request of a client; what was indexed for the first serves the others."""

    def __init__(
        self, store: Store, conversation: str, model: str, find: Callable[[Any], str], *, by_meaning: bool = False
    ) -> None:
        archive = StoredArchive(store, conversation, by_meaning=by_meaning)
        self._find = find
        self._tools = RecallTools(archive, TokenCounter.for_model(model or None).text)

    def answer(self, calls: Sequence[RecallCall], room: int) -> list[str]:
        """A result for each call; together they take at most half of the room that is left."""
        share = room // (2 * max(1, len(calls)))
        return [self._one(call, share) for call in calls]

    def _one(self, call: RecallCall, share: int) -> str:
        given: Any = parse_json(call.arguments) if call.arguments.strip() else {}
        if not isinstance(given, dict):
            return json_text({"error": "the arguments must be a JSON object"})
        if call.name == FIND_TOOLS:
            return self._find(given.get("query"))
        if share < LEAST_TOKENS:
            return NO_ROOM
        if call.name in _SIZED:
            wanted = given.get("max_tokens", DEFAULT_TOKENS)
            if isinstance(wanted, int) and wanted > share:
                given = {**given, "max_tokens": share}
        return self._tools.handle(call.name, given)


class ToolLoop:
    """One answer to a client, in as many calls of the model as it takes until it speaks to the client.

        loop = ToolLoop(proxy, rewrite, target, outlet)
        error = await loop.first(response, about)    # the answer to the request as it was rewritten
        await loop.rest()                            # further rounds, and the end

    Nothing is locked while the model is waited for, and nothing of a round enters the conversation's log.
    """

    def __init__(self, proxy: Proxy, rewrite: Rewrite, target: UpstreamTarget, outlet: Outlet) -> None:
        self._proxy = proxy
        self._rewrite = rewrite
        self._target = target
        self._outlet = outlet
        self._dialect = rewrite.request.dialect
        self._merge = self._dialect.recall.merge(rewrite.our_tools, rewrite.request.fields)
        self._answers = proxy.rewriter.answers(rewrite)
        self._items: list[Wire] = []
        """What the rounds so far add to the request."""
        self._tools: Mapping[str, bytes] = {}
        """The list of tools, once it is another one than that of the first round."""
        self._deadline: float | None = None
        """Until when the announcement is held back; known once the model began to speak, however long it thought."""
        self._head: tuple[int, Headers] = (0, [])
        self._streams = False
        self._over = False
        """The client was told that there is no more."""
        self.rounds = 0
        """Calls that were answered whole."""
        self.usages: list[CanonicalUsage] = []
        """One for each call that was counted."""
        self.uncounted: list[Tally] = []
        """Calls that were answered without figures."""
        self.tally = Tally(self._dialect)
        """The call that is under way."""
        self.recalls = 0

    async def first(self, response: aiohttp.ClientResponse, about: Headers) -> Mapping[str, Any] | None:
        """The first answer; its error when it is one, the client has seen nothing, and it may be mended."""
        self._head = response.status, [*returned_headers(response.headers), *about]
        self._streams = response.content_type == "text/event-stream"
        if self._streams:
            self._outlet.hold(*self._head)
        return await self._round(response)

    async def rest(self) -> None:
        """Answer the model's calls and ask it again, until it wants nothing more of us; then end the answer."""
        if self._over:
            return
        turn = self._turn()
        while turn.calls and not turn.others and self.recalls < MOST_ROUNDS:
            self.recalls += 1
            if not await self._ask_again(turn):
                return
            turn = self._turn()
        if turn.calls and turn.others:
            await self._proxy.thread(self._hide, turn)
        if self._streams:
            await self._give(self._merge.ending(), at_once=True)
            await self._outlet.finish()
        else:
            await self._outlet.answer(*self._head, orjson.dumps(self._merge.whole()))

    def _turn(self) -> ReplyTurn:
        try:
            return self._merge.turn()
        except StreamIncomplete:
            raise RequestRefused(BROKEN) from None

    # -- one call of the model

    async def _ask_again(self, turn: ReplyTurn) -> bool:
        """Send the results, and take the next answer; False when the client was given an error instead.

        Where the results make the request too long, the model is told that there is no room for them.
        """
        texts = await self._proxy.thread(self._results, turn)
        carried = self._merge.carried()
        for attempt in (texts, [NO_ROOM] * len(texts)):
            results = [self._merge.result(call, text) for call, text in zip(turn.calls, attempt, strict=True)]
            added = [*carried, *self._merge.answered(results)]
            self.tally = Tally(self._dialect)
            async with self._proxy.upstreams.call(self._target, self._body(added)) as response:
                if response.status < 400:
                    self._items += added
                    return await self._went_on(response)
                self.tally.settled = True
                body = await read_reply(response)
                if not verdict_on(response, body).foldable or attempt is not texts:
                    await self._fail(response, body)
                    return False
        return False

    def _results(self, turn: ReplyTurn) -> list[str]:
        """Results for the model's calls; this blocks, so it runs in a thread."""
        used = self.usages[-1].total_tokens if len(self.usages) == self.rounds else 0
        room = self._proxy.rewriter.room(self._rewrite, used, len(orjson.dumps(self._items)))
        results = self._answers.answer(turn.calls, room)
        if any(call.name == FIND_TOOLS for call in turn.calls):
            self._tools = {"tools": self._proxy.rewriter.listed_tools(self._rewrite)}
        return results

    def _hide(self, turn: ReplyTurn) -> None:
        """Answer calls that stand beside the client's own, and keep them; this blocks, too."""
        last = turn.others[-1]
        hidden = [
            {"call": call.wire, "result": self._merge.result(call, text), "before": call.before, "last": last}
            for call, text in zip(turn.calls, self._results(turn), strict=True)
        ]
        self._proxy.rewriter.keep_hidden_calls(self._rewrite, hidden)

    async def _went_on(self, response: aiohttp.ClientResponse) -> bool:
        if (response.content_type == "text/event-stream") is not self._streams:
            raise RequestRefused(GARBAGE)
        error = await self._round(response)
        if error is None:
            return not self._over
        # Held back until now, the error is the end of an answer that has nothing in it.
        await self._outlet.refusal(error, classify(None, error), self._dialect)
        return False

    def _body(self, added: list[Wire]) -> bytes:
        request = self._rewrite.request
        body = request.split(self._rewrite.body)
        assert body is not None
        items = [*body.items, *map(orjson.dumps, [*self._items, *added])]
        return body.with_items(
            items, **(_without_our_tools(body, request) if self.recalls == MOST_ROUNDS else self._tools)
        )

    async def _round(self, response: aiohttp.ClientResponse) -> Mapping[str, Any] | None:
        """Take one answer of the model; the error when it is one and the client has seen nothing."""
        return await (self._round_streamed(response) if self._streams else self._round_whole(response))

    async def _round_whole(self, response: aiohttp.ClientResponse) -> Mapping[str, Any] | None:
        body, reply = await read_whole(response)
        if not isinstance(reply, dict):
            raise RequestRefused(GARBAGE)
        if not isinstance(reply.get(self._dialect.fields.reply), list):
            # Nothing that could be merged; what it is, the client's library may know.
            self.tally.settled = refusal_in(reply, self._dialect) is not None
            self._outlet.hold(*self._head)
            await self._outlet.give(body)
            return reply
        self._merge.take(reply)
        self.tally.said = len(body)
        self._count(usage_of(reply))
        return None

    async def _round_streamed(self, response: aiohttp.ClientResponse) -> Mapping[str, Any] | None:
        tally = self.tally
        try:
            await self._pump(response.content, tally)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestRefused(connection_error(error)) from error
        if tally.error is not None and not self._outlet.started:
            tally.settled = True
            return tally.error
        if not tally.events:
            raise RequestRefused(GARBAGE)
        if tally.failed:
            # The client was told in the server's own words.
            await self._outlet.finish()
            self._over = True
            return None
        if not tally.ended:
            raise RequestRefused(BROKEN)
        self._count(tally.usage)
        return None

    def _count(self, usage: CanonicalUsage | None) -> None:
        self.rounds += 1
        self.tally.settled = True
        if usage is not None:
            self.usages.append(usage)
        else:
            self.uncounted.append(self.tally)

    async def _pump(self, content: aiohttp.StreamReader, tally: Tally) -> None:
        while piece := await self._outlet.wait_for(content, self._deadline):
            self._deadline = self._deadline or asyncio.get_running_loop().time() + HOLD_SECONDS
            try:
                merged = b"".join(map(self._merge.feed, tally.feed(piece)))
            except NONSENSE as error:
                raise RequestRefused(GARBAGE) from error
            # Comments keep the line of a client alive that waits for a slow model.
            await self._give(tally.comments + merged)

    async def _give(self, data: bytes, *, at_once: bool = False) -> None:
        await self._outlet.give(data)
        if not self._outlet.started and (self._merge.visible or at_once):
            await self._outlet.release(more=True)

    async def _fail(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        """An inner call was refused: the provider's words, as an answer or as the last event of one that has begun."""
        if self._outlet.started:
            error = ApiError(response.status, "upstream_error", _words(body, response.status))
            await self._outlet.fail(error, self._dialect)
        else:
            about = [pair for pair in self._head[1] if pair[0].startswith(b"x-leporello")]
            await self._outlet.whole(response, body, self._dialect, about)


def _words(body: bytes, status: int) -> str:
    """What a refusal says, where it says it in the usual place."""
    try:
        error = orjson.loads(body).get("error")
        message = error.get("message") if isinstance(error, Mapping) else None
    except (ValueError, AttributeError):
        message = None
    return message if isinstance(message, str) else f"The model's server answered with status {status}."
