"""The server of `scripted:demo`: it lets people try the proxy without a key.

It listens on a free port of this machine, so that its requests take the same way as those to any other server:
rewritten, stored, recovered when too long, relayed whole or as a stream.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count

import orjson
from aiohttp import web
from yarl import URL

from leporello.dialects import DIALECTS, OPENAI_CHAT, Dialect, Target
from leporello.dialects.base import encode_event
from leporello.errors import ConfigError
from leporello.providers.base import ModelRequest
from leporello.providers.errors import CallFailed
from leporello.providers.scripted import demo_talk
from leporello.tokens import TokenCounter

MOST_BODY = 64 * 1024 * 1024


class ScriptedUpstream:
    """Answers model requests in every dialect."""

    def __init__(self) -> None:
        app = web.Application(client_max_size=MOST_BODY)
        for dialect in DIALECTS.values():
            app.router.add_post(dialect.api.path, partial(self._answer, dialect))
            if dialect.api.count_path:
                app.router.add_post(dialect.api.count_path, partial(self._count, dialect))
        self._runner = web.AppRunner(app, access_log=None)
        self._numbers = count(1)

    async def start(self) -> ScriptedUpstream:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    def at(self, url: URL) -> URL:
        """The same path at this server."""
        host, port = self._runner.addresses[0][:2]
        return url.with_host(host).with_port(port)

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, dialect: Dialect, request: web.Request) -> web.StreamResponse:
        fields = orjson.loads(await request.read())
        asked = _asked(dialect, fields if isinstance(fields, dict) else {})
        if not asked.messages:
            missing = dialect.error_body(
                400, "invalid_request_error", "The request has no messages: send a list of them."
            )
            return web.json_response(missing, status=400)
        try:
            # A provider of its own for each request: they keep everything they were asked.
            reply = await asyncio.to_thread(demo_talk(asked.model).complete, asked)
        except ConfigError as error:
            return web.json_response(dialect.error_body(404, "model_not_found", str(error)), status=404)
        except CallFailed as error:
            verdict = error.verdict
            status = verdict.status or 500
            return web.json_response(dialect.error_body(status, verdict.code, verdict.message), status=status)
        body = dialect.encode_reply(
            reply.message, target=Target("", asked.model), finish_reason=reply.finish_reason, usage=reply.usage
        )
        # Clients take answers with the same id for parts of one.
        body["id"] = f"{body['id']}_{next(self._numbers)}"
        if not fields.get("stream"):
            return web.json_response(body)
        if dialect is OPENAI_CHAT and not (fields.get("stream_options") or {}).get("include_usage"):
            body.pop("usage", None)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in dialect.reply_events(body):
            await response.write(encode_event(event, str(event["type"]) if dialect.stream.named else ""))
        await response.write(dialect.stream.end_mark)
        return response

    async def _count(self, dialect: Dialect, request: web.Request) -> web.Response:
        asked = _asked(dialect, orjson.loads(await request.read()))
        counter = TokenCounter.for_model(asked.model)
        return web.json_response({"input_tokens": counter.request(asked.messages, asked.tools)})


def _asked(dialect: Dialect, fields: dict[str, object]) -> ModelRequest:
    decoded = dialect.decode_request(fields, "")
    return ModelRequest(decoded.model, decoded.messages, decoded.tools, decoded.max_tokens)
