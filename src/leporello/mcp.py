"""Recall for clients of the Model Context Protocol: a store's conversations as tools and resources.

Every method of `RecallService` that a client may call is a tool; its docstring and the notes on its parameters are what
the client's model reads. Every failure is a `LeporelloError` whose text says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ParamSpec, TypeVar
from urllib.parse import quote, unquote

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import Resource, ToolAnnotations
from pydantic import Field

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArchive
from leporello.errors import InputError, LeporelloError
from leporello.importers import import_sessions, load_sessions
from leporello.ledger.user_text import one_line
from leporello.messages import decode_json, encode_json, text_of
from leporello.present.records import compaction_json
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.recall.memory import StaticVectors
from leporello.recall.paging import full_text
from leporello.recall.stored import RecallScope, StoreRecall
from leporello.recall.tools import LEAST_TOKENS, MOST_TOKENS, RecallTools, asked_queries
from leporello.store import Store
from leporello.store.records import ConversationRecord
from leporello.tokens import TokenCounter

INSTRUCTIONS = """\
Conversations of agents, stored word for word. Use `search` to find what was said, decided or seen, in one of them or \
in all; every result carries the conversation and a message id. `expand` opens an id (m12), a span (m10-m20) or a \
fold (f3) in full; `describe` tells what is in it first. `sessions` lists the conversations.\
"""
JSON = "application/json"
SESSIONS = "leporello://sessions"
LISTED = 100
MOST_LISTED = 200
SHOWN_CHARS = 80
VIEW_TOKENS = 20_000  # how much of a conversation is shown at once; the rest is there to be expanded

P = ParamSpec("P")
T = TypeVar("T")
ConversationId = Annotated[str, Field(description="Id of a conversation; any id of its chain will do")]
MessageId = Annotated[str, Field(description="m12 for a message, m10-m20 for a span, f3 for a fold")]
Tokens = Annotated[int, Field(description="Most tokens to bring back")]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


class RecallService:
    """One store, for any number of clients; safe to use from several threads."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._count = TokenCounter.for_model(None).text
        self._searched: tuple[str, StoredArchive] | None = None
        """The conversation that was searched last: its index is in memory, and one thread at a time uses it."""
        self._searching = Lock()

    # -- tools

    def search(
        self,
        query: Annotated[
            str | list[str], Field(description="A question, words, identifiers, or an error text; or a list of them")
        ],
        conversation: Annotated[str, Field(description="Only this conversation; empty for all")] = "",
        max_tokens: Tokens = DEFAULT_TOKENS,
        limit: Annotated[int | None, Field(description="Most results; left out, the tokens decide")] = None,
    ) -> dict[str, Any]:
        """Find what was said, decided or seen. Brings back short windows with conversation and message id."""
        queries = asked_queries(query)
        _check("max_tokens", max_tokens, LEAST_TOKENS, MOST_TOKENS)
        if limit is not None:
            _check("limit", limit, 1, MOST_LISTED)
        id = self._find(conversation).id if conversation else None
        answers: list[dict[str, Any]] = []
        for text in queries:
            windows = self._windows(id, RecallQuery(text, max_tokens // len(queries), limit=limit))
            answers.append({"query": text, "results": [_window(window, id) for window in windows]})
        found: dict[str, Any] = answers[0] if len(answers) == 1 else {"answers": answers}
        behind = self._store.index.pending() if self._store.read_only else 0
        if behind:
            found["note"] = f"{behind:,} messages are not indexed yet, and this store can't be written."
        return found

    def describe(self, conversation: ConversationId, id: MessageId) -> dict[str, Any]:
        """Tell what a message, a span or a fold is about before opening it."""
        return self._ask(conversation, "lcm_describe", {"id": id})

    def expand(
        self,
        conversation: ConversationId,
        id: MessageId,
        page: Annotated[int, Field(description="Counted from 1")] = 1,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> dict[str, Any]:
        """Read the original messages behind an id, word for word, in pages."""
        return self._ask(conversation, "lcm_expand", {"id": id, "page": page, "max_tokens": max_tokens})

    def sessions(self, limit: Annotated[int, Field(description="Most conversations to list")] = 20) -> dict[str, Any]:
        """List the stored conversations, newest activity first."""
        return {"sessions": self.newest(limit)}

    def import_recording(
        self, path: Annotated[str, Field(description="Path of the recording on the machine that runs this server")]
    ) -> dict[str, Any]:
        """Put a recorded session (Claude Code, Codex, OpenAI messages and others) into the store."""
        place = Path(path).expanduser()
        if not place.is_file():
            raise InputError("There is no such file; give the path of one recording.", path)
        return {"imported": [asdict(stored) for stored in import_sessions(self._store, load_sessions(place), place)]}

    def compress(
        self,
        conversation: ConversationId,
        focus: Annotated[str, Field(description="Keep what is about this in full detail")] = "",
        window: Annotated[int | None, Field(description="The model's window, if not the known one")] = None,
    ) -> dict[str, Any]:
        """Fold a stored conversation now. Nothing is deleted: everything can still be found and expanded."""
        id = self._find(conversation).id
        with Conversation.open(id, window=window, store=self._store, settings=self._settings) as opened:
            report = opened.compact(focus)
        about = compaction_json(report)
        return {"conversation": id, **about, "fold": report.fold or None, "warnings": list(report.warnings)}

    # -- resources

    def newest(self, limit: int) -> list[dict[str, Any]]:
        _check("limit", limit, 1, MOST_LISTED)
        return [self._about(record) for record in self._store.conversations.page(limit=limit).conversations]

    def session(self, conversation: str) -> dict[str, Any]:
        """One conversation as the model sees it now, the newest part when it is long."""
        record = self._find(conversation)
        lines = self._store.views.view(record.id).lines
        shown: list[dict[str, Any]] = []
        room = VIEW_TOKENS
        for line in reversed(lines):
            text = full_text(line.message)
            room -= self._count(text)
            if room < 0 and shown:
                break
            id = line.fold or (f"m{line.number}" if line.number else "")
            shown.insert(0, {"id": id, "role": str(line.message.get("role") or ""), "text": text})
        folds = [{"id": fold.id, "covered": str(fold.covered)} for fold in self._store.views.folds(record.id)]
        return {**self._about(record), "folds": folds, "lines_before": len(lines) - len(shown), "view": shown}

    def _windows(self, id: str | None, query: RecallQuery) -> list[Window]:
        by_meaning = self._settings.get("recall.vectors")
        if id is None:
            embedding = StaticVectors.load() if by_meaning else None
            return StoreRecall(self._store, RecallScope(), self._count, embedding).search(query)
        with self._searching:
            if self._searched is None or self._searched[0] != id:
                self._searched = id, StoredArchive(self._store, id, by_meaning=by_meaning)
            return self._searched[1].search(query)

    # -- the store

    def _ask(self, conversation: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        id = self._find(conversation).id
        tools = RecallTools(StoredArchive(self._store, id), self._count)
        answer: dict[str, Any] = decode_json(tools.handle(tool, arguments).encode())
        if "error" in answer:
            raise InputError(str(answer["error"]))
        return {"conversation": id, **answer}

    def _about(self, record: ConversationRecord) -> dict[str, Any]:
        title = record.metadata.title
        if not title and record.messages:
            title = text_of(self._store.log.message(record.id, 1).message)
        return {
            "id": record.id,
            "title": one_line(title, SHOWN_CHARS),
            "model": record.metadata.model,
            "platform": record.metadata.platform,
            "messages": record.messages,
            "updated": datetime.fromtimestamp(record.updated_at, UTC).isoformat(timespec="seconds"),
        }

    def _find(self, conversation: str) -> ConversationRecord:
        if not conversation.strip():
            raise InputError("conversation is missing: give an id; the tool `sessions` lists them")
        return self._store.conversations.resolve(conversation)


def _window(window: Window, conversation: str | None) -> dict[str, Any]:
    about = {"tool": window.tool, "about": window.about}
    shown = {"conversation": window.conversation or conversation, "id": window.id, "role": window.role}
    return {**shown, **{name: value for name, value in about.items() if value}, "text": window.text}


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{name} must be from {least} to {most}, not {value}")


class LeporelloServer(MCPServer[None]):
    """Lists the newest conversations as resources, as they are at that moment."""

    def __init__(self, service: RecallService) -> None:
        super().__init__("leporello", version=version("leporello"), instructions=INSTRUCTIONS, log_level="WARNING")
        self._service = service

    async def list_resources(self) -> list[Resource]:
        """The fixed resources and one for each of the newest conversations."""
        fixed = await super().list_resources()
        newest = await anyio.to_thread.run_sync(self._service.newest, LISTED)
        return [*fixed, *(_resource(about) for about in newest)]


def _resource(about: dict[str, Any]) -> Resource:
    return Resource(
        uri=f"{SESSIONS}/{quote(about['id'], safe='')}",
        name=about["id"],
        title=about["title"] or about["id"],
        description=f"{about['messages']:,} messages, last active {about['updated']}",
        mime_type=JSON,
    )


def browser_checks(host: str, port: int) -> TransportSecuritySettings:
    """Only clients that mean this address, and no pages of others: there is no key that would tell them apart."""
    names = {f"[{host}]" if ":" in host else host, "127.0.0.1", "localhost", "[::1]"}
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:{port or '*'}" for name in sorted(names)],
        allowed_origins=[f"http://{name}:{port}" for name in sorted(names)],
    )


def make_server(service: RecallService, *, read_only: bool = False) -> LeporelloServer:
    """A server over one store. Read-only: what is stored can't be added to or folded."""
    server = LeporelloServer(service)
    for read in (service.search, service.describe, service.expand, service.sessions):
        server.add_tool(_with_tool_errors(read), annotations=READS)
    if not read_only:
        server.add_tool(_with_tool_errors(service.import_recording), name="import", annotations=ADDS)
        server.add_tool(_with_tool_errors(service.compress), annotations=CHANGES)

    @server.resource(SESSIONS, name="sessions", description="The stored conversations, newest first", mime_type=JSON)
    def all_sessions() -> str:
        return encode_json(service.newest(LISTED)).decode()

    @server.resource(
        SESSIONS + "/{id}", name="session", description="One conversation as its model sees it now", mime_type=JSON
    )
    def one_session(id: str) -> str:
        try:
            return encode_json(service.session(unquote(id))).decode("utf-8", "replace")
        except LeporelloError as error:
            raise ResourceNotFoundError(str(error)) from None

    return server


def _with_tool_errors(tool: Callable[P, T]) -> Callable[P, T]:
    """An error on purpose becomes one that the client shows to its model."""

    @wraps(tool)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return tool(*args, **kwargs)
        except LeporelloError as error:
            raise ToolError(str(error)) from None

    return called
