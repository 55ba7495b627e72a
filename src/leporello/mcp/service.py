"""What a client may ask of a store: search, describe, expand, import, compress, list. Answers are JSON values.

Every failure is a `LeporelloError` whose text says what to do instead.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArchive
from leporello.errors import InputError
from leporello.importers import load_sessions
from leporello.importers.into_store import import_sessions
from leporello.ledger.user_text import one_line
from leporello.messages import decode_json, text_of
from leporello.present.records import compaction_json
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.recall.paging import full_text
from leporello.recall.stored import RecallScope, StoreRecall
from leporello.recall.tools import LEAST_TOKENS, MOST_TOKENS, RecallTools
from leporello.store import Store
from leporello.store.records import ConversationRecord
from leporello.tokens import TokenCounter

MOST_LISTED = 200
SHOWN_CHARS = 80
VIEW_TOKENS = 20_000
"""How much of a conversation is shown at once; the rest is there to be expanded."""


class RecallService:
    """One store, for any number of clients; safe to use from several threads."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._count = TokenCounter.for_model(None).text

    def search(
        self, query: str, conversation: str = "", max_tokens: int = DEFAULT_TOKENS, limit: int | None = None
    ) -> dict[str, Any]:
        """Windows around the evidence, best first, of one conversation or of all."""
        if not query.strip():
            raise InputError("query is empty: say what to look for, in words or as a question")
        _check("max_tokens", max_tokens, LEAST_TOKENS, MOST_TOKENS)
        if limit is not None:
            _check("limit", limit, 1, MOST_LISTED)
        id = self._find(conversation).id if conversation else None
        recall = StoreRecall(self._store, RecallScope(id), self._count)
        windows = recall.search(RecallQuery(query, max_tokens, limit=limit))
        found: dict[str, Any] = {"query": query, "results": [_window(window, id) for window in windows]}
        behind = self._store.index.pending() if self._store.read_only else 0
        if behind:
            found["note"] = f"{behind:,} messages are not indexed yet, and this store can't be written."
        return found

    def describe(self, conversation: str, id: str) -> dict[str, Any]:
        return self._ask(conversation, "lcm_describe", {"id": id})

    def expand(self, conversation: str, id: str, page: int = 1, max_tokens: int = DEFAULT_TOKENS) -> dict[str, Any]:
        return self._ask(conversation, "lcm_expand", {"id": id, "page": page, "max_tokens": max_tokens})

    def _ask(self, conversation: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        record = self._find(conversation)
        archive = StoredArchive(self._store, record.id)
        answer: dict[str, Any] = decode_json(RecallTools(archive, self._count).handle(tool, arguments).encode())
        if "error" in answer:
            raise InputError(str(answer["error"]))
        return {"conversation": record.id, **answer}

    def import_file(self, path: str) -> list[dict[str, Any]]:
        """Put the recorded sessions of a file into the store; what is there already is not added twice."""
        place = Path(path).expanduser()
        if not place.is_file():
            raise InputError("There is no such file; give the path of one recording.", path)
        return [asdict(stored) for stored in import_sessions(self._store, load_sessions(place), place)]

    def compress(self, conversation: str, focus: str = "", window: int | None = None) -> dict[str, Any]:
        """Fold a conversation now, without a model; undo is `leporello sessions` or `/undo`."""
        record = self._find(conversation)
        with Conversation.open(record.id, window=window, store=self._store, settings=self._settings) as talk:
            report = talk.compact(focus)
        return {
            "conversation": record.id,
            **compaction_json(report),
            "fold": report.fold or None,
            "warnings": list(report.warnings),
        }

    def sessions(self, limit: int = 50) -> list[dict[str, Any]]:
        """The conversations of newest activity first."""
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
    shown: dict[str, Any] = {"conversation": window.conversation or conversation, "id": window.id, "role": window.role}
    if window.tool:
        shown["tool"] = window.tool
    if window.about:
        shown["about"] = window.about
    return {**shown, "text": window.text}


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{name} must be from {least} to {most}, not {value}")
