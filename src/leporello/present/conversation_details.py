"""What is known about one conversation, read once: as JSON for programs, as a page for people."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass
from typing import Any

from leporello.events import Span
from leporello.messages import Message, PartKind, calls_of, parts_of, result_id, role_of
from leporello.present.output import dim, print_table, say, strong
from leporello.present.text import iso, moment, plural, safe, short, size, words_of
from leporello.redact import redact
from leporello.redact.messages import masked
from leporello.store import Store
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
class ConversationDetails:
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


def read_details(store: Store, record: ConversationRecord, last: int) -> ConversationDetails:
    """Read what a page shows; nothing of the log but its newest messages."""
    id = record.id
    chain = store.conversations.sessions(id)
    generation = store.views.generation(id, record.generation)
    others = [
        child for session in chain for child in store.conversations.children(session.id) if child.conversation != id
    ]
    newest = Span(max(1, record.messages - last + 1), record.messages)
    return ConversationDetails(
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


def details_json(portrait: ConversationDetails) -> dict[str, Any]:
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


_LINE = 100
_MESSAGE = 300
_MOST_ROWS = 12


def print_details(portrait: ConversationDetails) -> None:
    """The page for people."""
    record = portrait.record
    say(strong(short(record.metadata.title, _LINE) or "(no title)"))
    print_table(_facts(portrait))
    _print_chain(portrait)
    _print_folds(portrait)
    if portrait.pins:
        _heading("Pins")
        print_table((f"m{pin.number}", words_of(pin.note, _LINE)) for pin in portrait.pins)
    if portrait.others:
        _heading("Began here")
        print_table((short(other.conversation, _LINE), moment(other.started_at)) for other in portrait.others)
    if portrait.newest:
        _heading("Newest messages")
        for stored in portrait.newest:
            say(f"{strong(stored.id)} {dim(moment(stored.created_at))} {message_line(stored.message, _MESSAGE)}")


def _facts(portrait: ConversationDetails) -> list[tuple[str, str]]:
    record = portrait.record
    metadata = record.metadata
    state = "open" if record.open else f"ended ({short(record.tip.end_reason or '', 40)})"
    facts = [
        ("id", safe(record.id) if len(record.id) <= _LINE else short(record.id, _LINE)),
        ("kind", f"{record.kind.value}, {state}"),
        ("active", f"{moment(record.created_at)} to {moment(record.updated_at)}"),
        ("messages", f"{record.messages:,} in the log, {portrait.shown:,} shown to the model"),
        ("usage", usage_line(portrait.totals)),
    ]
    facts += [
        (name, short(value, _LINE))
        for name, value in (("model", metadata.model), ("platform", metadata.platform), ("owner", metadata.owner))
        if value
    ]
    if metadata.system_prompt:
        facts.append(("system prompt", f"{len(metadata.system_prompt):,} characters"))
    if metadata.custom:
        facts.append(("custom", words_of(", ".join(f"{key}={value}" for key, value in metadata.custom.items()), _LINE)))
    if portrait.artifacts:
        kept = sum(item.size for item in portrait.artifacts)
        facts.append(("artifacts", f"{len(portrait.artifacts):,}, {size(kept)}"))
    return facts


def usage_line(totals: UsageTotals) -> str:
    """Counters in one line."""
    if not totals.calls:
        return "no calls"
    parts = [
        plural(totals.calls, "call"),
        f"{totals.usage.prompt_tokens:,} prompt tokens ({totals.cache_hit_rate:.0%} from the cache)",
        f"{totals.usage.output_tokens:,} output tokens",
    ]
    if totals.calls > totals.unpriced_calls:
        parts.append(f"${totals.cost:,.4f}")
    if totals.unpriced_calls:
        parts.append(f"{plural(totals.unpriced_calls, 'call')} without a known price")
    return ", ".join(parts)


def _print_chain(portrait: ConversationDetails) -> None:
    _heading("Chain")
    rows = []
    _say_left_out(portrait.chain)
    for session in portrait.chain[-_MOST_ROWS:]:
        totals = portrait.by_session[session.id]
        ended = "open" if session.ended_at is None else short(session.end_reason or "ended", 20)
        place = (str(session.ordinal), short(session.id, 80), moment(session.started_at), ended)
        rows.append((*place, f"m{session.first}", f"{totals.calls:,}", short(session.metadata.model, 40)))
    print_table(rows, ("", "session", "started", "ended", "from", "calls", "model"), numbers=(0, 5))


def _print_folds(portrait: ConversationDetails) -> None:
    if not portrait.folds and not portrait.attempts:
        return
    _heading("Folds")
    reports = {attempt.generation: attempt.report for attempt in portrait.attempts if attempt.generation is not None}
    rows = []
    _say_left_out(portrait.folds)
    for fold in portrait.folds[-_MOST_ROWS:]:
        report = reports.get(fold.generation)
        tokens = f"{report.tokens_before:,} -> {report.tokens_after:,}" if report else ""
        by = short(" / ".join(filter(None, (report.engine, report.summariser))), 50) if report else ""
        rows.append((safe(fold.id), str(fold.covered), tokens, by, short(", ".join(fold.children), 30)))
    print_table(rows, ("fold", "covers", "tokens", "by", "made of"))
    failed = [attempt for attempt in portrait.attempts if attempt.generation is None]
    for attempt in failed[:3]:
        text = f"{moment(attempt.at)} {attempt.report.outcome.value}: {attempt.report.reason}"
        say(dim(words_of(text, _LINE)))


def message_line(message: Message, columns: int) -> str:
    """Who speaks and the beginning of what is said, in one safe line, secrets masked."""
    message = masked(message)
    role = short(role_of(message) or "?", 20)
    pieces = [part.text or f"[{part.kind.value}]" for part in parts_of(message) if part.kind is not PartKind.THINKING]
    pieces += [f"{call.name}({call.arguments})" for call in calls_of(message)]
    if role_of(message) in ("tool", "function"):
        role += f" {short(str(message.get('name') or result_id(message)), 40)}"
    return f"{role}: {words_of(redact(' '.join(pieces)), columns)}"


def _say_left_out(rows: Sized) -> None:
    if len(rows) > _MOST_ROWS:
        say(dim(f"the newest {_MOST_ROWS} of {len(rows):,}; --json shows all"))


def _heading(text: str) -> None:
    say()
    say(strong(text))
