"""The MCP server: the recall service as tools and resources, over stdio or streamable HTTP."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import Resource, ToolAnnotations
from pydantic import Field

from leporello.errors import LeporelloError
from leporello.mcp.service import RecallService
from leporello.messages import encode_json
from leporello.recall.base import DEFAULT_TOKENS

INSTRUCTIONS = """\
Conversations of agents, stored word for word. Use `search` to find what was said, decided or seen, in one of them or \
in all; every result carries the conversation and a message id. `expand` opens an id (m12), a span (m10-m20) or a \
fold (f3) in full; `describe` tells what is in it first. `sessions` lists the conversations.\
"""
JSON = "application/json"
SESSIONS = "leporello://sessions"
LISTED = 100

T = TypeVar("T")
Conversation = Annotated[str, Field(description="Id of a conversation; any id of its chain will do")]
Id = Annotated[str, Field(description="m12 for a message, m10-m20 for a span, f3 for a fold")]
Tokens = Annotated[int, Field(description="Most tokens to bring back")]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class LeporelloServer(MCPServer[None]):
    """Lists the newest conversations as resources, as they are at that moment."""

    def __init__(self, service: RecallService) -> None:
        super().__init__("leporello", version=version("leporello"), instructions=INSTRUCTIONS, log_level="WARNING")
        self._service = service

    async def list_resources(self) -> list[Resource]:
        """The fixed resources and one for each of the newest conversations."""
        fixed = await super().list_resources()
        newest = await anyio.to_thread.run_sync(self._service.sessions, LISTED)
        return [*fixed, *(_resource(about) for about in newest)]


def make_server(service: RecallService, *, read_only: bool = False) -> LeporelloServer:
    """A server over one store. Read-only: what is stored can't be added to or folded."""
    server = LeporelloServer(service)
    _add_reading(server, service)
    if not read_only:
        _add_writing(server, service)
    _add_resources(server, service)
    return server


def _add_reading(server: MCPServer[None], service: RecallService) -> None:
    @server.tool(annotations=READS)
    def search(
        query: Annotated[str, Field(description="A question, words, identifiers, or an error text")],
        conversation: Annotated[str, Field(description="Only this conversation; empty for all")] = "",
        max_tokens: Tokens = DEFAULT_TOKENS,
        limit: Annotated[int | None, Field(description="Most results; left out, the tokens decide")] = None,
    ) -> dict[str, Any]:
        """Find what was said, decided or seen. Brings back short windows with conversation and message id."""
        return _told(lambda: service.search(query, conversation, max_tokens, limit))

    @server.tool(annotations=READS)
    def describe(conversation: Conversation, id: Id) -> dict[str, Any]:
        """Tell what a message, a span or a fold is about before opening it."""
        return _told(lambda: service.describe(conversation, id))

    @server.tool(annotations=READS)
    def expand(
        conversation: Conversation,
        id: Id,
        page: Annotated[int, Field(description="Counted from 1")] = 1,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> dict[str, Any]:
        """Read the original messages behind an id, word for word, in pages."""
        return _told(lambda: service.expand(conversation, id, page, max_tokens))

    @server.tool(annotations=READS)
    def sessions(limit: Annotated[int, Field(description="Most conversations to list")] = 20) -> dict[str, Any]:
        """List the stored conversations, newest activity first."""
        return _told(lambda: {"sessions": service.sessions(limit)})


def _add_writing(server: MCPServer[None], service: RecallService) -> None:
    @server.tool(name="import", annotations=ADDS)
    def import_recording(
        path: Annotated[str, Field(description="Path of the recording on the machine that runs this server")],
    ) -> dict[str, Any]:
        """Put a recorded session (Claude Code, Codex, OpenAI messages and others) into the store."""
        return _told(lambda: {"imported": service.import_file(path)})

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False))
    def compress(
        conversation: Conversation,
        focus: Annotated[str, Field(description="Keep what is about this in full detail")] = "",
        window: Annotated[int | None, Field(description="The model's window, if not the known one")] = None,
    ) -> dict[str, Any]:
        """Fold a stored conversation now. Nothing is deleted: everything can still be found and expanded."""
        return _told(lambda: service.compress(conversation, focus, window))


def _add_resources(server: MCPServer[None], service: RecallService) -> None:
    @server.resource(SESSIONS, name="sessions", description="The stored conversations, newest first", mime_type=JSON)
    def all_sessions() -> str:
        return encode_json(service.sessions(LISTED)).decode()

    @server.resource(
        SESSIONS + "/{id}", name="session", description="One conversation as its model sees it now", mime_type=JSON
    )
    def one_session(id: str) -> str:
        try:
            return encode_json(service.session(unquote(id))).decode("utf-8", "replace")
        except LeporelloError as error:
            raise ResourceNotFoundError(str(error)) from None


def _resource(about: dict[str, Any]) -> Resource:
    return Resource(
        uri=f"{SESSIONS}/{quote(about['id'], safe='')}",
        name=about["id"],
        title=about["title"] or about["id"],
        description=f"{about['messages']:,} messages, last active {about['updated']}",
        mime_type=JSON,
    )


def _told(work: Callable[[], T]) -> T:
    """The answer; an error on purpose becomes one that the client shows to its model."""
    try:
        return work()
    except LeporelloError as error:
        raise ToolError(str(error)) from None
