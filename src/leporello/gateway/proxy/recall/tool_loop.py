"""The rounds behind one answer: what the model asks of its past is answered here, until it speaks to the client.

    exchange = ToolLoop(proxy, plan, url, headers, outlet)
    error = await exchange.first(response)     # the answer to the request as it was planned
    await exchange.rest()                      # further rounds, and the end

Nothing is locked while the model is waited for, and nothing of a round enters the conversation's log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from leporello.dialects.base import StreamIncomplete, Wire
from leporello.dialects.dialect import Body, ReplyTurn
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.proxy.recall.tool_offer import NO_ROOM, closed
from leporello.gateway.proxy.relay import BROKEN, GARBAGE, HOLD_SECONDS, Headers, Outlet
from leporello.gateway.proxy.streams import Tally, usage_of
from leporello.gateway.proxy.upstream import fault_of, read_reply, returned_headers, verdict_on
from leporello.recall.tools import TOOL_NAMES
from leporello.usage import CanonicalUsage

if TYPE_CHECKING:
    from yarl import URL

    from leporello.gateway.proxy.endpoints import Proxy
    from leporello.gateway.proxy.rewrite import Rewrite

MOST_ROUNDS = 8
"""Inner calls for one answer; in the last of them the tools can't be called any more."""
NONSENSE = (AttributeError, KeyError, TypeError, ValueError, IndexError)
"""What an answer causes that is JSON and yet nothing of the dialect."""


class ToolLoop:
    """One answer to a client, in as many calls of the model as it takes."""

    def __init__(self, proxy: Proxy, plan: Rewrite, url: URL, headers: Mapping[str, str], outlet: Outlet) -> None:
        self._proxy = proxy
        self._plan = plan
        self._url = url
        self._headers = headers
        self._outlet = outlet
        self._dialect = plan.request.dialect
        self._merge = self._dialect.recall.merge(TOOL_NAMES, plan.request.fields)
        self._answers = proxy.planner.answers(plan)
        self._items: list[Wire] = []
        """What the rounds so far add to the request."""
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
            if not await self._continued(turn):
                return
            turn = self._turn()
        if turn.calls and turn.others:
            await self._put_aside(turn)
        if not self._streams:
            status, headers = self._head
            await self._outlet.answer(status, headers, orjson.dumps(self._merge.whole()))
            return
        await self._give(self._merge.ending(), at_once=True)
        await self._outlet.finish()

    def _turn(self) -> ReplyTurn:
        try:
            return self._merge.turn()
        except StreamIncomplete:
            raise RequestRefused(BROKEN) from None

    # -- one call of the model

    async def _continued(self, turn: ReplyTurn) -> bool:
        """Results go to the model, and its next answer is taken; False when the client was given an error instead."""
        texts = await self._proxy.thread(self._answered, turn)
        carried = self._merge.carried()
        for attempt in (texts, [NO_ROOM] * len(texts)):
            results = [self._merge.result(call, text) for call, text in zip(turn.calls, attempt, strict=True)]
            added = [*carried, *self._merge.answered(results)]
            async with self._proxy.upstreams.call("POST", self._url, self._headers, self._body(added)) as response:
                if response.status < 400:
                    self._items += added
                    return await self._went_on(response)
                body = await read_reply(response)
                if not verdict_on(response, body).foldable or attempt is not texts:
                    await self._failed(response, body)
                    return False
        return False

    def _answered(self, turn: ReplyTurn) -> list[str]:
        """Results for the model's calls; this blocks, so it runs in a thread."""
        used = self.usages[-1].total_tokens if len(self.usages) == self.rounds else 0
        room = self._proxy.planner.room(self._plan, used, len(orjson.dumps(self._items)))
        return self._answers.answer(turn.calls, room)

    async def _went_on(self, response: aiohttp.ClientResponse) -> bool:
        if (response.content_type == "text/event-stream") is not self._streams:
            raise RequestRefused(GARBAGE)
        error = await self._round(response)
        if error is None:
            return not self._over
        # Held back until now, the error is the end of a stream that has no answer in it.
        await self._outlet.release()
        return False

    def _body(self, added: list[Wire]) -> bytes:
        request = self._plan.request
        body = Body.read(self._plan.body, self._dialect.fields.conversation)
        assert body is not None
        items = [*body.items, *map(orjson.dumps, [*self._items, *added])]
        return body.with_items(items, **(closed(body, request) if self.recalls == MOST_ROUNDS else {}))

    async def _round(self, response: aiohttp.ClientResponse) -> Mapping[str, Any] | None:
        if not self._streams:
            body = await read_reply(response)
            try:
                reply = orjson.loads(body)
            except ValueError:
                raise RequestRefused(GARBAGE) from None
            if not isinstance(reply, dict):
                raise RequestRefused(GARBAGE)
            if not isinstance(reply.get(self._dialect.fields.reply), list):
                # An error inside a success: the client's library knows what to make of it.
                await self._outlet.answer(*self._head, body)
                self._over = True
                return None
            self._merge.take(reply)
            self._count(usage_of(reply))
            return None
        tally = Tally(self._dialect)
        try:
            await self._pump(response.content, tally)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestRefused(fault_of(error)) from error
        if tally.error is not None and not self._outlet.started:
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
        if usage is not None:
            self.usages.append(usage)

    async def _pump(self, content: aiohttp.StreamReader, tally: Tally) -> None:
        while piece := await self._outlet.wait_for(content, self._deadline):
            self._deadline = self._deadline or asyncio.get_running_loop().time() + HOLD_SECONDS
            try:
                merged = b"".join(map(self._merge.feed, tally.feed(piece)))
            except NONSENSE as error:
                raise RequestRefused(GARBAGE) from error
            await self._give(merged)

    async def _give(self, data: bytes, *, at_once: bool = False) -> None:
        await self._outlet.give(data)
        if not self._outlet.started and (self._merge.visible or at_once):
            await self._outlet.release(more=True)

    async def _failed(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        """An inner call was refused: the provider's words, as an answer or as the last event of one that has begun."""
        if not self._outlet.started:
            about = [pair for pair in self._head[1] if pair[0].startswith(b"x-leporello")]
            await self._outlet.whole(response, body, self._dialect, about)
            return
        await self._outlet.fail(
            ApiError(response.status, "upstream_error", _words(body, response.status)), self._dialect
        )

    # -- calls beside the client's own

    async def _put_aside(self, turn: ReplyTurn) -> None:
        texts = await self._proxy.thread(self._answered, turn)
        asides = [
            {
                "call": call.wire,
                "result": self._merge.result(call, text),
                "before": call.before,
                "last": turn.others[-1],
            }
            for call, text in zip(turn.calls, texts, strict=True)
        ]
        await self._proxy.thread(self._proxy.planner.keep_asides, self._plan, asides)


def _words(body: bytes, status: int) -> str:
    """What a refusal says, where it says it in the usual place."""
    try:
        error = orjson.loads(body).get("error")
        message = error.get("message") if isinstance(error, Mapping) else None
    except (ValueError, AttributeError):
        message = None
    return message if isinstance(message, str) else f"The model's server answered with status {status}."
