"""What is known about one conversation, read once, and its form for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from leporello.cli.store_text import iso
from leporello.events import Span
from leporello.store.base import Store
from leporello.store.records import (
    ArtifactInfo,
    Attempt,
    ConversationRecord,
    Pin,
    SessionRecord,
    StoredFold,
    StoredMessage,
    UsageTotals,
)

_MOST_ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class Portrait:
    """All that is shown of a conversation."""

    record: ConversationRecord
    shown: int
    """How many messages the model sees now."""
    chain: tuple[SessionRecord, ...]
    totals: UsageTotals
    by_session: Mapping[str, UsageTotals]
    folds: tuple[StoredFold, ...]
    attempts: tuple[Attempt, ...]
    pins: tuple[Pin, ...]
    artifacts: tuple[ArtifactInfo, ...]
    others: tuple[SessionRecord, ...]
    """Branches and sub-agents that began here."""
    newest: tuple[StoredMessage, ...]


def portray(store: Store, record: ConversationRecord, last: int) -> Portrait:
    """Read what a page shows; nothing of the log but its newest messages."""
    id = record.id
    chain = store.conversations.sessions(id)
    generation = store.views.generation(id, record.generation)
    others = [
        child for session in chain for child in store.conversations.children(session.id) if child.conversation != id
    ]
    newest = Span(max(1, record.messages - last + 1), record.messages)
    return Portrait(
        record=record,
        shown=len(generation.entries) + record.messages - generation.base_last,
        chain=tuple(chain),
        totals=store.usage.totals(id),
        by_session={session.id: store.usage.session_totals(session.id) for session in chain},
        folds=tuple(store.views.folds(id)),
        attempts=tuple(store.views.attempts(id, _MOST_ATTEMPTS)),
        pins=tuple(store.pins.all(id)),
        artifacts=tuple(store.artifacts.all(id)),
        others=tuple(others),
        newest=tuple(store.log.span(id, newest)) if last and record.messages else (),
    )


def conversation_json(record: ConversationRecord) -> dict[str, Any]:
    """A conversation for programs."""
    metadata = record.metadata
    return {
        "id": record.id,
        "title": metadata.title,
        "kind": record.kind.value,
        "platform": metadata.platform,
        "model": metadata.model,
        "owner": metadata.owner,
        "open": record.open,
        "end_reason": record.tip.end_reason,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "messages": record.messages,
        "sessions": record.tip.ordinal,
        "tip": record.tip.id,
        "generation": record.generation,
        "custom": dict(metadata.custom),
    }


def message_json(stored: StoredMessage) -> dict[str, Any]:
    """A message for programs: as it was appended, with its id and time."""
    return {"id": stored.id, "at": iso(stored.created_at), "message": stored.message}


def totals_json(totals: UsageTotals) -> dict[str, Any]:
    """Counters for programs."""
    return {
        "calls": totals.calls,
        **asdict(totals.usage),
        "prompt_tokens": totals.usage.prompt_tokens,
        "cache_hit_rate": round(totals.cache_hit_rate, 4),
        "cost": round(totals.cost, 9),
        "unpriced_calls": totals.unpriced_calls,
    }


def portrait_json(portrait: Portrait) -> dict[str, Any]:
    """The page for programs, nothing cut."""
    record = portrait.record
    return {
        **conversation_json(record),
        "system_prompt": record.metadata.system_prompt,
        "messages_shown": portrait.shown,
        "usage": totals_json(portrait.totals),
        "chain": [_session_json(session, portrait.by_session[session.id]) for session in portrait.chain],
        "folds": [
            {
                "id": fold.id,
                "covered": str(fold.covered),
                "generation": fold.generation,
                "children": list(fold.children),
                "text": fold.text,
            }
            for fold in portrait.folds
        ],
        "attempts": [_attempt_json(attempt) for attempt in portrait.attempts],
        "pins": [{"id": f"m{pin.number}", "note": pin.note, "at": iso(pin.created_at)} for pin in portrait.pins],
        "artifacts": [
            {"handle": item.handle, "name": item.name, "size": item.size, "at": iso(item.created_at)}
            for item in portrait.artifacts
        ],
        "started_here": [
            {"id": session.id, "conversation": session.conversation, "parent": session.parent_session_id}
            for session in portrait.others
        ],
        "last_messages": [message_json(stored) for stored in portrait.newest],
    }


def _session_json(session: SessionRecord, totals: UsageTotals) -> dict[str, Any]:
    return {
        "id": session.id,
        "parent": session.parent_session_id,
        "started_at": iso(session.started_at),
        "ended_at": None if session.ended_at is None else iso(session.ended_at),
        "end_reason": session.end_reason,
        "first_message": f"m{session.first}",
        "model": session.metadata.model,
        "usage": totals_json(totals),
    }


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    report = attempt.report
    return {
        "at": iso(attempt.at),
        "outcome": report.outcome.value,
        "reason": report.reason,
        "trigger": report.trigger,
        "engine": report.engine,
        "summariser": report.summariser,
        "generation": attempt.generation,
        "covered": None if report.covered is None else str(report.covered),
        "tokens_before": report.tokens_before,
        "tokens_after": report.tokens_after,
        "cost": report.cost,
        "seconds": report.seconds,
    }
