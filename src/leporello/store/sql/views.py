"""Views and the compactions that made them: one row per generation, appended and never changed.

A generation says which entries are shown (`entries`) and up to which message of the log they account for (`base_last`);
whatever the log has beyond that is shown behind them. So appending extends the view without touching it, and a message
that arrives while a compaction is being prepared is in the view after its commit.

`state` is the generation of the compaction whose result is shown (0: the whole log), `below` the state it was made
from. An undo is a new generation that shows the state below again.
"""

from __future__ import annotations

from typing import Any

from leporello.errors import InputError, LeaseLost, NotFound, StoreConflict
from leporello.events import CompactionReport, Span, ViewEntry
from leporello.messages import decode_json
from leporello.store.records import (
    COMPRESSION,
    Attempt,
    CompactionRecord,
    FoldMark,
    Generation,
    Lease,
    StoredFold,
    View,
    ViewLine,
)
from leporello.store.sql.artifacts import save_ledger
from leporello.store.sql.conversations import enter_directory, insert_session, new_id, write_prompt
from leporello.store.sql.database import Database, Row, Transaction
from leporello.store.sql.encoding import LONGEST_KEY, millis, nanos, pack, pack_body, seconds, unpack, unpack_body
from leporello.store.sql.entries import (
    check_entries,
    pack_entries,
    pack_report,
    runs,
    unpack_entries,
    unpack_report,
)
from leporello.store.sql.locking import LARGEST_NUMBER, Held, hold, locate, shown, to_json
from leporello.store.sql.log import read_spans

_GENERATION = (
    "SELECT g.generation, g.kind, g.state, g.base_last, s.id, g.created, g.entries FROM generations g "
    "JOIN sessions s ON s.conversation = g.conversation AND s.ordinal = g.ordinal WHERE g.conversation = ?"
)
_INSERT_GENERATION = (
    "INSERT INTO generations "
    "(conversation, generation, kind, state, below, base_last, log_last, ordinal, created, entries) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqlViews:
    """`Views` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def view(self, conversation: str) -> View:
        with self._db.read() as tx:
            return read_view(tx, locate(tx, conversation)[0])

    def commit(self, conversation: str, compaction: CompactionRecord, lease: Lease | None = None) -> View:
        if not compaction.report.committed:
            raise InputError("Only a report with the outcome `committed` can be committed; use record_attempt.")
        if not 0 <= compaction.base_last < LARGEST_NUMBER:
            raise InputError(f"m{compaction.base_last} is not a message.")
        check_entries(compaction.entries, compaction.base_last)
        entries = pack_body(pack_entries(compaction.entries))
        folds = [_pack_fold(fold) for fold in compaction.folds]
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            _check_base(tx, conversation, held, compaction, lease)
            now = self._db.now()
            ordinal = _rotate(tx, held, now, compaction.system_prompt)
            generation = held.generation + 1
            below = _state(tx, held)
            row = (held.key, generation, "compaction", generation, below, compaction.base_last, held.last, ordinal, now)
            tx.run(_INSERT_GENERATION, *row, entries)
            _insert_folds(tx, held.key, generation, folds)
            _insert_attempt(tx, held.key, ordinal - 1, now, generation, compaction.report)
            if compaction.ledger is not None:
                save_ledger(tx, held.key, compaction.ledger)
            tx.run(
                "UPDATE conversations SET generation = ?, tip = ?, "
                "updated = CASE WHEN updated < ? THEN ? ELSE updated END WHERE conversation = ?",
                *(generation, ordinal, now, now, held.key),
            )
            return read_view(tx, held.key)

    def undo(self, conversation: str) -> View:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            state = _state(tx, held)
            if state == 0:
                raise NotFound(f"{shown(conversation)} shows its whole log: there is no compaction to undo.")
            row = tx.row(
                "SELECT b.generation, b.below, b.base_last, b.entries FROM generations a "
                "JOIN generations b ON b.conversation = a.conversation AND b.generation = a.below "
                "WHERE a.conversation = ? AND a.generation = ?",
                held.key,
                state,
            )
            assert row is not None, "every state has a row, and start is below the first"
            earlier, below, base_last, entries = row
            generation = held.generation + 1
            tx.run(
                _INSERT_GENERATION,
                *(
                    held.key,
                    generation,
                    "undo",
                    earlier,
                    below,
                    base_last,
                    held.last,
                    held.tip,
                    self._db.now(),
                    entries,
                ),
            )
            tx.run("UPDATE conversations SET generation = ? WHERE conversation = ?", generation, held.key)
            return read_view(tx, held.key)

    def generation(self, conversation: str, generation: int) -> Generation:
        with self._db.read() as tx:
            key, _ = locate(tx, conversation)
            known = 0 <= generation < LARGEST_NUMBER
            row = tx.row(f"{_GENERATION} AND g.generation = ?", key, generation) if known else None
        if row is None:
            raise NotFound(f"{shown(conversation)} has no generation {generation}.")
        return _generation(row)

    def generations(self, conversation: str) -> list[Generation]:
        with self._db.read() as tx:
            rows = tx.rows(f"{_GENERATION} ORDER BY g.generation", locate(tx, conversation)[0])
        return [_generation(row) for row in rows]

    def in_force(self, conversation: str, at: int | None = None) -> list[int]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT generation, kind FROM generations WHERE conversation = ? AND generation <= ? "
                "ORDER BY generation",
                locate(tx, conversation)[0],
                LARGEST_NUMBER if at is None else at,
            )
        standing: list[int] = []
        for generation, kind in rows:
            if kind == "compaction":
                standing.append(generation)
            elif kind == "undo":
                standing.pop()
        return standing

    def record_attempt(self, conversation: str, report: CompactionReport) -> int:
        if report.committed:
            raise InputError("A committed compaction is recorded by its commit.")
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            return _insert_attempt(tx, held.key, held.tip, self._db.now(), None, report)

    def attempts(self, conversation: str, limit: int = 50, before: int | None = None) -> list[Attempt]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT a.number, a.created, s.id, a.generation, a.report FROM attempts a "
                "JOIN sessions s ON s.conversation = a.conversation AND s.ordinal = a.ordinal "
                "WHERE a.conversation = ? AND a.number < ? ORDER BY a.number DESC LIMIT ?",
                locate(tx, conversation)[0],
                LARGEST_NUMBER if before is None else before,
                limit,
            )
        return [
            Attempt(number, seconds(created), unpack(session), generation, unpack_report(unpack_body(body, "a report")))
            for number, created, session, generation, body in rows
        ]

    def fold(self, conversation: str, fold: str) -> StoredFold:
        with self._db.read() as tx:
            row = tx.row(
                "SELECT id, generation, first, last, body FROM folds WHERE conversation = ? AND id = ?",
                locate(tx, conversation)[0],
                pack(fold),
            )
        if row is None:
            raise NotFound(f"{shown(conversation)} has no fold {shown(fold)}.")
        return _fold(row)

    def folds(self, conversation: str) -> list[StoredFold]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT id, generation, first, last, body FROM folds WHERE conversation = ? ORDER BY number",
                locate(tx, conversation)[0],
            )
        return [_fold(row) for row in rows]

    def fold_marks(self, conversation: str) -> list[FoldMark]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT id, first, last, generation FROM folds WHERE conversation = ? ORDER BY number",
                locate(tx, conversation)[0],
            )
        return [FoldMark(unpack(id), Span(first, last), generation) for id, first, last, generation in rows]


def read_view(tx: Transaction, key: int) -> View:
    """The current view: the entries of the newest generation, then what the log has beyond them."""
    row = tx.row(
        "SELECT f.id, s.id, c.generation, c.last, g.kind, g.base_last, g.entries, "
        "(SELECT count(*) FROM folds d WHERE d.conversation = c.conversation), "
        "(SELECT COALESCE(SUM(CASE k.kind WHEN 'compaction' THEN 1 WHEN 'undo' THEN -1 ELSE 0 END), 0) "
        "FROM generations k WHERE k.conversation = c.conversation) "
        "FROM conversations c "
        "JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1 "
        "JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip "
        "JOIN generations g ON g.conversation = c.conversation AND g.generation = c.generation "
        "WHERE c.conversation = ?",
        key,
    )
    if row is None:
        raise NotFound("The conversation was deleted meanwhile.")
    id, session, generation, last, kind, base_last, packed, folds, compactions = row
    entries = unpack_entries(unpack_body(packed, f"the view of {shown(unpack(id))}"))
    return View(
        conversation=unpack(id),
        session=unpack(session),
        generation=generation,
        last=last,
        lines=_resolve(tx, key, entries, Span(base_last + 1, last)),
        folds=folds,
        compactions=compactions,
        waits_for_hard_limit=kind == "undo",
    )


def _resolve(tx: Transaction, key: int, entries: tuple[ViewEntry, ...], beyond: Span) -> tuple[ViewLine, ...]:
    wanted = runs(entry.ref for entry in entries if entry.ref is not None and entry.inline is None)
    if beyond.first <= beyond.last:
        wanted.append(beyond)
    messages = {stored.number: stored.message for stored in read_spans(tx, key, wanted)}
    lines: list[ViewLine] = []
    for entry in entries:
        if entry.inline is not None:
            lines.append(ViewLine(entry.inline, entry.ref, entry.fold, shortened=entry.ref is not None))
        elif entry.ref is not None:
            lines.append(ViewLine(messages[entry.ref], entry.ref))
    lines.extend(ViewLine(messages[number], number) for number in range(beyond.first, beyond.last + 1))
    return tuple(lines)


def _check_base(
    tx: Transaction, conversation: str, held: Held, compaction: CompactionRecord, lease: Lease | None
) -> None:
    if lease is not None:
        row = tx.row("SELECT token FROM leases WHERE conversation = ?", held.key)
        if row is None or row[0] != lease.token:
            raise LeaseLost(
                f"The lease of {shown(lease.owner)} on {shown(conversation)} was taken over. Nothing was written; "
                "the new holder compacts."
            )
    if held.generation != compaction.base_generation:
        raise StoreConflict(
            f"{shown(conversation)} is at generation {held.generation}, this compaction was made from "
            f"{compaction.base_generation}. Nothing was written; read the view again."
        )
    if compaction.base_last > held.last:
        raise InputError(f"The log ends at m{held.last}; it has no m{compaction.base_last}.")


def _state(tx: Transaction, held: Held) -> int:
    row = tx.row("SELECT state FROM generations WHERE conversation = ? AND generation = ?", held.key, held.generation)
    assert row is not None, "the current generation has a row"
    state: int = row[0]
    return state


def _rotate(tx: Transaction, held: Held, now: int, system_prompt: str | None) -> int:
    """End the tip by compression and start its child, which inherits all metadata; returns the child's ordinal."""
    row = tx.row("SELECT id, started FROM sessions WHERE conversation = ? AND ordinal = ?", held.key, held.tip)
    assert row is not None, "the tip has a row"
    moment = max(now, row[1])
    tx.run(
        "UPDATE sessions SET ended = ?, end_reason = ? WHERE conversation = ? AND ordinal = ?",
        *(moment, COMPRESSION, held.key, held.tip),
    )
    child, ordinal = new_id(), held.tip + 1
    enter_directory(tx, child, held.key, ordinal)
    insert_session(tx, held.key, ordinal, child, unpack(row[0]), moment, held.last + 1)
    tx.run(
        "UPDATE sessions SET (title, platform, model, owner, custom, prompt) = "
        "(SELECT p.title, p.platform, p.model, p.owner, p.custom, p.prompt FROM sessions p "
        "WHERE p.conversation = ? AND p.ordinal = ?) WHERE conversation = ? AND ordinal = ?",
        *(held.key, held.tip, held.key, ordinal),
    )
    if system_prompt is not None:
        tx.run(
            "UPDATE sessions SET prompt = ? WHERE conversation = ? AND ordinal = ?",
            *(write_prompt(tx, held.key, system_prompt), held.key, ordinal),
        )
    return ordinal


def _insert_attempt(
    tx: Transaction, key: int, ordinal: int, now: int, generation: int | None, report: CompactionReport
) -> int:
    row = tx.row("SELECT max(number) FROM attempts WHERE conversation = ?", key)
    number = (row[0] if row and row[0] else 0) + 1
    tx.run(
        "INSERT INTO attempts (conversation, number, created, ordinal, generation, outcome, engine, summariser, cause, "
        "covered_first, covered_last, tokens_before, tokens_after, cost_nanos, duration_millis, report) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(key, number, now, ordinal, generation, report.outcome.value),
        *map(pack, (report.engine, report.summariser, report.trigger)),
        *((report.covered.first, report.covered.last) if report.covered else (None, None)),
        report.tokens_before,
        report.tokens_after,
        None if report.cost is None else nanos(report.cost),
        millis(report.seconds),
        pack_body(pack_report(report)),
    )
    return number


def _pack_fold(fold: StoredFold) -> tuple[str, int, int, bytes]:
    packed = pack(fold.id)
    if not packed or len(packed) > LONGEST_KEY:
        raise InputError(f"A fold's id has 1 to {LONGEST_KEY} characters.")
    body = {"text": fold.text, "handoff": fold.handoff, "children": list(fold.children)}
    return packed, fold.covered.first, fold.covered.last, pack_body(to_json(body, f"Fold {shown(fold.id)}"))


def _insert_folds(tx: Transaction, key: int, generation: int, folds: list[tuple[str, int, int, bytes]]) -> None:
    row = tx.row("SELECT count(*) FROM folds WHERE conversation = ?", key)
    number = row[0] if row else 0
    for id, first, last, body in folds:
        number += 1
        inserted = tx.run(
            "INSERT INTO folds (conversation, id, number, generation, first, last, body) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            *(key, id, number, generation, first, last, body),
        )
        if not inserted:
            raise InputError(f"The conversation already has a fold {shown(unpack(id))}; ids of folds are for life.")


def _generation(row: Row) -> Generation:
    generation, kind, state, base_last, session, created, packed = row
    entries = unpack_entries(unpack_body(packed, f"generation {generation}"))
    return Generation(generation, kind, state, base_last, unpack(session), seconds(created), entries)


def _fold(row: Row) -> StoredFold:
    id, generation, first, last, packed = row
    body: dict[str, Any] = decode_json(unpack_body(packed, f"fold {id}"))
    return StoredFold(unpack(id), Span(first, last), body["text"], body["handoff"], tuple(body["children"]), generation)
