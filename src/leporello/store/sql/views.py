"""Views and the compactions that made them: one row per generation, appended and never changed.

A generation says which entries are shown (`entries`) and up to which message of the log they account for (`base_last`);
whatever the log has beyond that is shown behind them. So appending extends the view without touching it, and a message
that arrives while a compaction is being prepared is in the view after its commit.

`state` is the generation of the compaction whose result is shown (0: the whole log), `below` the state it was made
from. An undo is a new generation that shows the state below again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.errors import InputError, LeaseLost, NotFound, StoreConflict
from leporello.events import CompactionReport, Span, ViewEntry, runs
from leporello.messages import decode_json
from leporello.store.records import (
    COMPRESSION,
    Attempt,
    CompactionRecord,
    FoldLine,
    FoldMark,
    Generation,
    Lease,
    StoredFold,
    View,
    ViewLine,
)
from leporello.store.sql.database import Locked, Row, StorePart, Transaction, integer, key_of
from leporello.store.sql.encoding import (
    LARGEST_NUMBER,
    LONGEST_KEY,
    millis,
    nanos,
    pack,
    pack_beside,
    pack_body,
    pack_entries,
    pack_report,
    seconds,
    shown,
    to_json,
    unpack,
    unpack_beside,
    unpack_body,
    unpack_entries,
    unpack_report,
)
from leporello.store.sql.log import read_spans
from leporello.store.sql.schema import insert
from leporello.store.sql.sessions import IN_FORCE, insert_session, new_id, register_id, write_prompt
from leporello.store.sql.state import pack_state, save_ledger, write_state

_GENERATION = (
    "SELECT g.generation, g.kind, g.state, g.base_last, s.id, g.created, g.entries FROM generations g "
    "JOIN sessions s ON s.conversation = g.conversation AND s.ordinal = g.ordinal WHERE g.conversation = ?"
)
_FOLD = (
    "SELECT f.id, f.generation, f.first, f.last, f.body, g.entries FROM folds f JOIN generations g "
    "ON g.conversation = f.conversation AND g.generation = f.generation WHERE f.conversation = ?"
)


class Views(StorePart):
    """What the model sees, and the compactions that made it."""

    def view(self, conversation: str) -> View:
        """The current view, resolved to messages. Reads nothing that is folded away."""
        with self._db.read() as tx:
            return read_view(tx, key_of(tx, conversation))

    def commit(self, conversation: str, compaction: CompactionRecord, lease: Lease | None = None) -> View:
        """Make a compaction visible: end the session with `compression`, start its child, write all of it at once.

        Raises `StoreConflict` when the conversation's generation is not the base any more, `LeaseLost` when the lease
        was taken over; then nothing was written. Messages appended meanwhile stand behind the entries.
        """
        if not compaction.report.committed:
            raise InputError("Only a report with the outcome `committed` can be committed; use record_attempt.")
        if not 0 <= compaction.base_last < LARGEST_NUMBER:
            raise InputError(f"m{compaction.base_last} is not a message.")
        _check_entries(compaction.entries, compaction.base_last)
        entries = pack_entries(compaction.entries)
        folds = [_pack_fold(fold, entries) for fold in compaction.folds]
        values = pack_state(compaction.state)
        with self._locked(conversation) as (tx, locked):
            _check_base(tx, conversation, locked, compaction, lease)
            now = self._db.now()
            ordinal = _rotate(tx, locked, now, compaction.system_prompt)
            generation = locked.generation + 1
            below = _state(tx, locked)
            tx.run(
                insert("generations"),
                *(locked.key, generation, "compaction", generation, below, compaction.base_last),
                *(locked.last, ordinal, now, entries),
            )
            _insert_folds(tx, locked.key, generation, folds)
            _insert_attempt(tx, locked.key, ordinal - 1, now, generation, compaction.report)
            if compaction.ledger is not None:
                save_ledger(tx, locked.key, compaction.ledger)
            write_state(tx, locked.key, values)
            tx.run(
                "UPDATE conversations SET generation = ?, tip = ?, "
                "updated = CASE WHEN updated < ? THEN ? ELSE updated END WHERE conversation = ?",
                *(generation, ordinal, now, now, locked.key),
            )
            return read_view(tx, locked.key)

    def undo(self, conversation: str) -> View:
        """Show what was shown before the last compaction that is still in force, plus all that came after it.

        Appends a record. Raises `NotFound` when there is nothing to undo.
        """
        with self._locked(conversation) as (tx, locked):
            state = _state(tx, locked)
            if state == 0:
                raise NotFound(f"{shown(conversation)} shows its whole log: there is no compaction to undo.")
            row = tx.row(
                "SELECT b.generation, b.below, b.base_last, b.entries FROM generations a "
                "JOIN generations b ON b.conversation = a.conversation AND b.generation = a.below "
                "WHERE a.conversation = ? AND a.generation = ?",
                *(locked.key, state),
            )
            assert row is not None, "every state has a row, and start is below the first"
            earlier, below, base_last, entries = row
            generation = locked.generation + 1
            tx.run(
                insert("generations"),
                *(locked.key, generation, "undo", earlier, below, base_last),
                *(locked.last, locked.tip, self._db.now(), entries),
            )
            tx.run("UPDATE conversations SET generation = ? WHERE conversation = ?", generation, locked.key)
            return read_view(tx, locked.key)

    def generation(self, conversation: str, generation: int) -> Generation:
        asked = generation if 0 <= generation < LARGEST_NUMBER else -1
        row = self._row(conversation, f"{_GENERATION} AND g.generation = ?", asked)
        if row is None:
            raise NotFound(f"{shown(conversation)} has no generation {generation}.")
        return _generation(row)

    def generations(self, conversation: str) -> list[Generation]:
        """All steps, from the start (0)."""
        return [_generation(row) for row in self._rows(conversation, f"{_GENERATION} ORDER BY g.generation")]

    def in_force(self, conversation: str, at: int | None = None) -> list[int]:
        """Generations of the compactions that were not undone, oldest first; as of generation `at`, if given."""
        rows = self._rows(
            conversation,
            "SELECT generation, kind FROM generations WHERE conversation = ? AND generation <= ? ORDER BY generation",
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
        """Store the report of an attempt that did not commit; returns its number."""
        if report.committed:
            raise InputError("A committed compaction is recorded by its commit.")
        with self._locked(conversation) as (tx, locked):
            return _insert_attempt(tx, locked.key, locked.tip, self._db.now(), None, report)

    def attempts(self, conversation: str, limit: int = 50, before: int | None = None) -> list[Attempt]:
        """Attempts, newest first, committed ones included; those with a number below `before`, if given."""
        rows = self._rows(
            conversation,
            "SELECT a.number, a.created, s.id, a.generation, a.report FROM attempts a "
            "JOIN sessions s ON s.conversation = a.conversation AND s.ordinal = a.ordinal "
            "WHERE a.conversation = ? AND a.number < ? ORDER BY a.number DESC LIMIT ?",
            *(LARGEST_NUMBER if before is None else before, limit),
        )
        return [
            Attempt(number, seconds(created), unpack(session), generation, unpack_report(unpack_body(body, "a report")))
            for number, created, session, generation, body in rows
        ]

    def fold(self, conversation: str, fold: str) -> StoredFold:
        row = self._row(conversation, f"{_FOLD} AND f.id = ?", pack(fold))
        if row is None:
            raise NotFound(f"{shown(conversation)} has no fold {shown(fold)}.")
        return _fold(row)

    def folds(self, conversation: str) -> list[StoredFold]:
        """All folds, oldest first."""
        return [_fold(row) for row in self._rows(conversation, f"{_FOLD} ORDER BY f.number")]

    def fold_marks(self, conversation: str) -> list[FoldMark]:
        """All folds without their texts, which may have many thousand words."""
        rows = self._rows(
            conversation, "SELECT id, first, last, generation FROM folds WHERE conversation = ? ORDER BY number"
        )
        return [FoldMark(unpack(id), Span(first, last), generation) for id, first, last, generation in rows]


def read_view(tx: Transaction, key: int) -> View:
    """The current view: the entries of the newest generation, then what the log has beyond them."""
    row = tx.row(
        "SELECT f.id, s.id, c.generation, c.last, g.kind, g.base_last, g.entries, "  # noqa: S608 - constants
        "(SELECT count(*) FROM folds d WHERE d.conversation = c.conversation), "
        f"{IN_FORCE} "
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
    entries = unpack_entries(packed, f"the view of {shown(unpack(id))}")
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
    # Loaded with the first view: a store is opened without what reads summaries.
    from leporello.summaries.fold import read_fold  # noqa: PLC0415

    wanted = runs(entry.ref for entry in entries if entry.ref is not None and entry.inline is None)
    if beyond.first <= beyond.last:
        wanted.append(beyond)
    messages = {stored.number: stored.message for stored in read_spans(tx, key, wanted)}
    lines: list[ViewLine] = []
    for entry in entries:
        if entry.inline is not None:
            # The one place where the text of a fold that was stored is read: only what the store wrote counts as one.
            summary = read_fold(entry.inline) if entry.fold else None
            if summary is not None:
                lines.append(FoldLine(entry.inline, fold=entry.fold, summary=summary))
            else:
                lines.append(ViewLine(entry.inline, entry.ref, entry.fold, shortened=entry.ref is not None))
        elif entry.ref is not None:
            lines.append(ViewLine(messages[entry.ref], entry.ref))
    lines.extend(ViewLine(messages[number], number) for number in range(beyond.first, beyond.last + 1))
    return tuple(lines)


def _check_entries(entries: Sequence[ViewEntry], last: int) -> None:
    """Refuse entries that could not be shown."""
    for index, entry in enumerate(entries):
        if entry.ref is None and entry.inline is None:
            raise InputError("an entry shows a stored message, a message of its own, or both", f"entry {index}")
        if entry.ref is not None and not 1 <= entry.ref <= last:
            raise InputError(f"m{entry.ref} is not among the {last} messages that were compacted", f"entry {index}")
        if entry.inline is not None and not isinstance(entry.inline, dict):
            raise InputError("an inline message is a dict", f"entry {index}")
        if entry.inline is None and entry.fold is not None:
            raise InputError("only an inline message carries a fold", f"entry {index}")


def _check_base(
    tx: Transaction, conversation: str, locked: Locked, compaction: CompactionRecord, lease: Lease | None
) -> None:
    if lease is not None:
        row = tx.row("SELECT token FROM leases WHERE conversation = ?", locked.key)
        if row is None or row[0] != lease.token:
            raise LeaseLost(
                f"The lease of {shown(lease.owner)} on {shown(conversation)} was taken over. Nothing was written; "
                "the new holder compacts."
            )
    if locked.generation != compaction.base_generation:
        raise StoreConflict(
            f"{shown(conversation)} is at generation {locked.generation}, this compaction was made from "
            f"{compaction.base_generation}. Nothing was written; read the view again."
        )
    if compaction.base_last > locked.last:
        raise InputError(f"The log ends at m{locked.last}; it has no m{compaction.base_last}.")


def _state(tx: Transaction, locked: Locked) -> int:
    return integer(
        tx, "SELECT state FROM generations WHERE conversation = ? AND generation = ?", *(locked.key, locked.generation)
    )


def _rotate(tx: Transaction, locked: Locked, now: int, system_prompt: str | None) -> int:
    """End the tip by compression and start its child, which inherits all metadata; returns the child's ordinal."""
    row = tx.row("SELECT id, started FROM sessions WHERE conversation = ? AND ordinal = ?", locked.key, locked.tip)
    assert row is not None, "the tip has a row"
    moment = max(now, row[1])
    tx.run(
        "UPDATE sessions SET ended = ?, end_reason = ? WHERE conversation = ? AND ordinal = ?",
        *(moment, COMPRESSION, locked.key, locked.tip),
    )
    child, ordinal = new_id(), locked.tip + 1
    register_id(tx, child, locked.key, ordinal)
    insert_session(tx, locked.key, ordinal, child, unpack(row[0]), moment, locked.last + 1)
    tx.run(
        "UPDATE sessions SET (title, platform, model, owner, custom, prompt) = "
        "(SELECT p.title, p.platform, p.model, p.owner, p.custom, p.prompt FROM sessions p "
        "WHERE p.conversation = ? AND p.ordinal = ?) WHERE conversation = ? AND ordinal = ?",
        *(locked.key, locked.tip, locked.key, ordinal),
    )
    if system_prompt is not None:
        tx.run(
            "UPDATE sessions SET prompt = ? WHERE conversation = ? AND ordinal = ?",
            *(write_prompt(tx, locked.key, system_prompt), locked.key, ordinal),
        )
    return ordinal


def _insert_attempt(
    tx: Transaction, key: int, ordinal: int, now: int, generation: int | None, report: CompactionReport
) -> int:
    number = integer(tx, "SELECT max(number) FROM attempts WHERE conversation = ?", key) + 1
    tx.run(
        insert("attempts"),
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


def _pack_fold(fold: StoredFold, entries: bytes) -> tuple[str, int, int, bytes]:
    """A fold as stored, beside the packed entries of its view, which say most of it already."""
    packed = pack(fold.id)
    if not packed or len(packed) > LONGEST_KEY:
        raise InputError(f"A fold's id has 1 to {LONGEST_KEY} characters.")
    body = {"text": fold.text, "handoff": fold.handoff, "children": list(fold.children)}
    data = to_json(body, f"Fold {shown(fold.id)}")
    return packed, fold.covered.first, fold.covered.last, pack_beside(data, entries)


def _insert_folds(tx: Transaction, key: int, generation: int, folds: list[tuple[str, int, int, bytes]]) -> None:
    count = integer(tx, "SELECT count(*) FROM folds WHERE conversation = ?", key)
    for number, (id, first, last, body) in enumerate(folds, count + 1):
        row = (key, id, number, generation, first, last, body)
        if not tx.run(insert("folds", " ON CONFLICT DO NOTHING"), *row):
            raise InputError(f"The conversation already has a fold {shown(unpack(id))}; ids of folds are for life.")


def _generation(row: Row) -> Generation:
    generation, kind, state, base_last, session, created, packed = row
    entries = unpack_entries(packed, f"generation {generation}")
    return Generation(generation, kind, state, base_last, unpack(session), seconds(created), entries)


def _fold(row: Row) -> StoredFold:
    id, generation, first, last, packed, entries = row
    body: dict[str, Any] = decode_json(unpack_beside(packed, entries, f"fold {id}"))
    return StoredFold(unpack(id), Span(first, last), body["text"], body["handoff"], tuple(body["children"]), generation)
