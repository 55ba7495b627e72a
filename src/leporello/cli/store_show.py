"""One conversation on one page: what it is, its chain, what it used, its folds, its newest messages."""

from __future__ import annotations

from collections.abc import Sized

from leporello.cli.output import dim, print_table, say, strong
from leporello.cli.store_portrait import Portrait
from leporello.cli.store_text import moment, plural, safe, short, size, words_of
from leporello.messages import Message, PartKind, calls_of, parts_of, result_id, role_of
from leporello.redact import redact
from leporello.redact.messages import masked
from leporello.store.records import UsageTotals

_LINE = 100
_MESSAGE = 300
_MOST_ROWS = 12


def print_portrait(portrait: Portrait) -> None:
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


def _facts(portrait: Portrait) -> list[tuple[str, str]]:
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


def _print_chain(portrait: Portrait) -> None:
    _heading("Chain")
    rows = []
    _say_left_out(portrait.chain)
    for session in portrait.chain[-_MOST_ROWS:]:
        totals = portrait.by_session[session.id]
        ended = "open" if session.ended_at is None else short(session.end_reason or "ended", 20)
        place = (str(session.ordinal), short(session.id, 80), moment(session.started_at), ended)
        rows.append((*place, f"m{session.first}", f"{totals.calls:,}", short(session.metadata.model, 40)))
    print_table(rows, ("", "session", "started", "ended", "from", "calls", "model"), numbers=(0, 5))


def _print_folds(portrait: Portrait) -> None:
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
