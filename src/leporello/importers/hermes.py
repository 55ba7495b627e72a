"""Hermes exports: one JSON object per session (a file or a line of JSON lines), messages in OpenAI's format."""

from __future__ import annotations

from typing import Any

from leporello.importers.openai_json import session_of
from leporello.importers.source import ImportedSession, SourceFile, mapping

NAME = "hermes"


def matches(source: SourceFile) -> bool:
    """Objects with a session id, a platform or source, and messages."""
    return any(map(_is_session, _documents(source)[:3]))


def read(source: SourceFile) -> list[ImportedSession]:
    documents = _documents(source)
    others = sum(not _is_session(document) for document in documents)
    broken = others + (source.broken_lines if documents is source.records else 0)
    found = [document for document in documents if _is_session(document)]
    return [session_of(document, NAME, skipped=broken if document is found[0] else 0) for document in found]


def _documents(source: SourceFile) -> list[dict[str, Any]]:
    return [source.value] if isinstance(source.value, dict) else source.records


def _is_session(document: dict[str, Any]) -> bool:
    has_id = "session_id" in document or "id" in document
    is_hermes = any(key in document for key in ("platform", "source", "session_start", "message_count"))
    return has_id and is_hermes and isinstance(mapping(document).get("messages"), list)
