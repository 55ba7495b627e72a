"""One whole conversation: its page as JSON or on a terminal, and its messages as JSON lines or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from textwrap import wrap
from typing import Any

from msgspec import Struct

from leporello.events import Span
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, PartKind, calls_of, is_result, parse_json, parts_of, result_id, role_of
from leporello.present.output import conversation_json, dim, json_text, print_table, say, strong, terminal_width
from leporello.present.records import (
    attempt_json,
    fold_json,
    message_json,
    message_line,
    session_json,
    totals_json,
    usage_line,
)
from leporello.present.text import iso, moment, safe, safe_block, short, size, words_of
from leporello.recall.tools import value_json
from leporello.store import Store
from leporello.store.records import (
    ArtifactInfo,
    Attempt,
    ConversationRecord,
    Pin,
    SessionRecord,
    StatedValue,
    StoredFold,
    StoredMessage,
    UsageTotals,
    ViewLine,
)

_MOST_ATTEMPTS = 1000
_TICKS = lazy_regex(r"`{3,}")
_LONGEST_TITLE = 500


class ConversationDetails(Struct, frozen=True):
    record: ConversationRecord
    shown: int
    """How many messages the model sees now."""
    chain: tuple[SessionRecord, ...]
    totals: UsageTotals
    by_session: Mapping[str, UsageTotals]
    folds: tuple[StoredFold, ...]
    undone: frozenset[str]
    """Folds of compactions that were taken back."""
    attempts: tuple[Attempt, ...]
    pins: tuple[Pin, ...]
    artifacts: tuple[ArtifactInfo, ...]
    others: tuple[SessionRecord, ...]
    """Branches and sub-agents that began here."""
    newest: tuple[StoredMessage, ...]


def read_details(store: Store, record: ConversationRecord, last: int) -> ConversationDetails:
    """Read what a page shows; nothing of the log but its newest messages."""
    id = record.id
    chain = store.sessions.all(id)
    generation = store.views.generation(id, record.generation)
    others = [child for session in chain for child in store.sessions.children(session.id) if child.conversation != id]
    folds = tuple(store.views.folds(id))
    in_force = set(store.views.in_force(id))
    newest = Span(max(1, record.messages - last + 1), record.messages)
    return ConversationDetails(
        record=record,
        shown=len(generation.entries) + record.messages - generation.base_last,
        chain=tuple(chain),
        totals=store.usage.totals(id),
        by_session={session.id: store.usage.session_totals(session.id) for session in chain},
        folds=folds,
        undone=frozenset(fold.id for fold in folds if fold.generation not in in_force),
        attempts=tuple(store.views.attempts(id, _MOST_ATTEMPTS)),
        pins=tuple(store.pins.all(id)),
        artifacts=tuple(store.artifacts.all(id)),
        others=tuple(others),
        newest=tuple(store.log.span(id, newest)) if last and record.messages else (),
    )


def details_json(details: ConversationDetails) -> dict[str, Any]:
    record = details.record
    return {
        **conversation_json(record),
        "system_prompt": record.metadata.system_prompt,
        "messages_shown": details.shown,
        "usage": totals_json(details.totals),
        "chain": [session_json(session, details.by_session[session.id]) for session in details.chain],
        "folds": [{**fold_json(fold), "undone": fold.id in details.undone} for fold in details.folds],
        "attempts": [attempt_json(attempt) for attempt in details.attempts],
        "pins": [{"id": f"m{pin.number}", "note": pin.note, "at": iso(pin.created_at)} for pin in details.pins],
        "artifacts": [
            {"handle": item.handle, "name": item.name, "size": item.size, "at": iso(item.created_at)}
            for item in details.artifacts
        ],
        "started_here": [
            {"id": session.id, "conversation": session.conversation, "parent": session.parent_session_id}
            for session in details.others
        ],
        "last_messages": [message_json(stored) for stored in details.newest],
    }


def state_json(values: Iterable[StatedValue]) -> list[dict[str, Any]]:
    return [{**value_json(said), "since": None if said.since is None else iso(said.since)} for said in values]


def print_state(values: Sequence[StatedValue]) -> None:
    """What holds, the newest first, then what was replaced."""
    holding = [said for said in reversed(values) if said.replaced_by is None]
    replaced = [said for said in reversed(values) if said.replaced_by is not None]
    _heading("Values")
    if not values:
        say(dim("none yet"))
    print_table(
        [(f"m{said.message}", short(said.value, 40), words_of(said.text, _LINE)) for said in holding],
        ("since", "value", "said as"),
    )
    if replaced:
        _heading("Replaced values")
        print_table(
            [
                (f"m{said.message}", f"m{said.replaced_by}", short(said.value, 40), words_of(said.text, _LINE))
                for said in replaced
            ],
            ("since", "until", "value", "said as"),
        )


_LINE = 100
_MESSAGE = 300
_MOST_ROWS = 12


def print_details(details: ConversationDetails) -> None:
    record = details.record
    say(strong(short(record.metadata.title, _LINE) or "(no title)"))
    print_table(_facts(details))
    _print_chain(details)
    _print_folds(details)
    if details.pins:
        _heading("Pins")
        print_table((f"m{pin.number}", words_of(pin.note, _LINE)) for pin in details.pins)
    if details.others:
        _heading("Began here")
        print_table((short(other.conversation, _LINE), moment(other.started_at)) for other in details.others)
    if details.newest:
        _heading("Newest messages")
        for stored in details.newest:
            _say_wrapped(stored.id, moment(stored.created_at), message_line(stored.message, _MESSAGE))


def _say_wrapped(id: str, when: str, text: str) -> None:
    """Broken between words on a terminal, later lines indented."""
    room, head = terminal_width(), f"{id} {when} "
    first, *more = wrap(head + text, max(40, room), subsequent_indent="    ") if room else [head + text]
    say(f"{strong(id)} {dim(when)} {first.removeprefix(head)}")
    for line in more:
        say(line)


def _facts(details: ConversationDetails) -> list[tuple[str, str]]:
    record = details.record
    metadata = record.metadata
    state = "open" if record.open else f"ended ({short(record.tip.end_reason or '', 40)})"
    facts = [
        ("id", safe(record.id) if len(record.id) <= _LINE else short(record.id, _LINE)),
        ("kind", f"{record.kind.value}, {state}"),
        ("active", f"{moment(record.created_at)} to {moment(record.updated_at)}"),
        ("messages", f"{record.messages:,} in the log, {details.shown:,} shown to the model"),
        ("usage", usage_line(details.totals)),
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
    if details.artifacts:
        kept = sum(item.size for item in details.artifacts)
        facts.append(("artifacts", f"{len(details.artifacts):,}, {size(kept)}"))
    return facts


def _print_chain(details: ConversationDetails) -> None:
    _heading("Chain")
    rows = []
    _say_left_out(details.chain)
    for session in details.chain[-_MOST_ROWS:]:
        totals = details.by_session[session.id]
        ended = "open" if session.ended_at is None else short(session.end_reason or "ended", 20)
        place = (str(session.ordinal), short(session.id, 80), moment(session.started_at), ended)
        rows.append((*place, f"m{session.first}", f"{totals.calls:,}", short(session.metadata.model, 40)))
    print_table(rows, ("", "session", "started", "ended", "from", "calls", "model"), numbers=(0, 5))


def _print_folds(details: ConversationDetails) -> None:
    if not details.folds and not details.attempts:
        return
    _heading("Folds")
    reports = {attempt.generation: attempt.report for attempt in details.attempts if attempt.generation is not None}
    rows = []
    _say_left_out(details.folds)
    for fold in details.folds[-_MOST_ROWS:]:
        report = reports.get(fold.generation)
        tokens = f"{report.tokens_before:,} -> {report.tokens_after:,}" if report else ""
        by = short(" / ".join(filter(None, (report.engine, report.summariser))), 50) if report else ""
        covers = f"{fold.covered}{', undone' if fold.id in details.undone else ''}"
        rows.append((safe(fold.id), covers, tokens, by, short(", ".join(fold.children), 30)))
    print_table(rows, ("fold", "covers", "tokens", "by", "made of"))
    failed = [attempt for attempt in details.attempts if attempt.generation is None]
    for attempt in failed[:3]:
        text = f"{moment(attempt.at)} {attempt.report.outcome.value}: {attempt.report.reason}"
        say(dim(words_of(text, _LINE)))


def _say_left_out(rows: Sized) -> None:
    if len(rows) > _MOST_ROWS:
        say(dim(f"the newest {_MOST_ROWS} of {len(rows):,}; --json shows all"))


def _heading(text: str) -> None:
    say()
    say(strong(text))


# -- exports, written message by message


def json_lines(store: Store, record: ConversationRecord, view: bool) -> Iterator[str]:
    """One message a line, with its id and time; of the view, also which fold a line is and what was shortened."""
    if not view:
        for stored in store.log.iterate(record.id, last=record.messages):
            yield json_text(message_json(stored)) + "\n"
        return
    for line in store.views.view(record.id).lines:
        item = {"id": _id(line), "fold": line.fold, "shortened": line.shortened, "message": line.message}
        yield json_text(item) + "\n"


def markdown(store: Store, record: ConversationRecord, view: bool) -> Iterator[str]:
    """The whole conversation, or the view, to be read."""
    title = safe(record.metadata.title[:_LONGEST_TITLE]).strip() or safe(record.id[:_LONGEST_TITLE])
    yield f"# {title}\n\n"
    yield f"Conversation `{safe(record.id[:_LONGEST_TITLE])}`, {record.messages:,} messages, "
    yield f"{iso(record.created_at)} to {iso(record.updated_at)}."
    yield " What the model sees now.\n" if view else "\n"
    if view:
        for line in store.views.view(record.id).lines:
            yield _section(_id(line) or f"{line.fold or 'written by a compaction'}", "", line.message)
        return
    for stored in store.log.iterate(record.id, last=record.messages):
        yield _section(stored.id, iso(stored.created_at), stored.message)


def _id(line: ViewLine) -> str | None:
    return None if line.number is None else f"m{line.number}"


def _section(id: str, at: str, message: Message) -> str:
    role = safe(role_of(message)[:100]) or "no role"
    if is_result(message) and result_id(message):
        role += f" (result of {safe(result_id(message)[:100])})"
    heading = " · ".join(part for part in (safe(id), role, at) if part)
    return f"\n## {heading}\n" + "".join(f"\n{block}\n" for block in _blocks(message))


def _blocks(message: Message) -> Iterator[str]:
    for part in parts_of(message):
        if part.kind is PartKind.THINKING:
            yield _quoted(part.text)
        elif not part.text:
            yield f"*[{part.kind.value}]*"
        elif is_result(message):
            # Output of a program is no prose: as Markdown it would come out mangled.
            yield _fenced(part.text)
        else:
            yield safe_block(part.text).strip("\n")
    for key in ("reasoning_content", "reasoning"):
        thought = message.get(key)
        if isinstance(thought, str) and thought.strip():
            yield _quoted(thought)
    for call in calls_of(message):
        language = "json" if parse_json(call.arguments) is not None else ""
        yield f"Calls `{safe(call.name[:100])}` ({safe(call.id[:100]) or 'no id'}):\n\n" + _fenced(
            call.arguments, language
        )


def _fenced(text: str, language: str = "") -> str:
    clean = safe_block(text).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(clean)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{clean}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in safe_block(text).strip("\n").split("\n"))
