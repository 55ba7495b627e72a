"""A branch: the log, the view and what hangs on them, copied up to one message.

The copy is whole, so that neither conversation needs the other: each can be deleted, moved or folded by itself.
"""

from __future__ import annotations

from leporello.store.sql.database import Transaction

_COPIES = (
    "INSERT INTO messages (conversation, number, created, same_as, body) "
    "SELECT ?, number, created, same_as, body FROM messages WHERE conversation = ? AND number <= ? ORDER BY number",
    "INSERT INTO hashes (conversation, hash, number) "
    "SELECT ?, hash, number FROM hashes WHERE conversation = ? AND number <= ?",
    "INSERT INTO pins (conversation, number, note, created) "
    "SELECT ?, number, note, created FROM pins WHERE conversation = ? AND number <= ?",
    "INSERT INTO ledgers (conversation, base, version, data) "
    "SELECT ?, base, version, data FROM ledgers WHERE conversation = ? AND base <= ?",
    # The view in force when the message was the newest, and those before it (for undo).
    "INSERT INTO generations "
    "(conversation, generation, kind, state, below, base_last, log_last, ordinal, created, entries) "
    "SELECT ?, generation, kind, state, below, base_last, log_last, 1, created, entries "
    "FROM generations WHERE conversation = ? AND log_last <= ?",
)


def copy_history(tx: Transaction, source: int, target: int, at: int) -> None:
    """Fill a new, empty conversation with what another had when message `at` was its newest."""
    for copy in _COPIES:
        tx.run(copy, target, source, at)
    tx.run(
        "INSERT INTO folds (conversation, id, number, generation, first, last, body) "
        "SELECT ?, id, number, generation, first, last, body FROM folds WHERE conversation = ? AND generation IN "
        "(SELECT generation FROM generations WHERE conversation = ?)",
        target,
        source,
        target,
    )
    tx.run(
        "INSERT INTO artifacts (conversation, hash, number, size, name, created, body) "
        "SELECT ?, hash, number, size, name, created, body FROM artifacts WHERE conversation = ?",
        target,
        source,
    )
    tx.run(
        "UPDATE conversations SET last = ?, dirty = 1, generation = "
        "(SELECT max(generation) FROM generations WHERE conversation = ?) WHERE conversation = ?",
        at,
        target,
        target,
    )
