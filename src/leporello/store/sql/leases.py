"""Leases: who may compact a conversation, or answer in it. The token grows with every holder and is checked when
something commits, so a holder that was thought dead and wakes up too late can't write.

The row stays when a lease is given back, because its token must never be used twice.
"""

from __future__ import annotations

from leporello.errors import LeaseLost
from leporello.store.base import DEFAULT_LEASE_SECONDS
from leporello.store.records import Lease
from leporello.store.sql.common import hold, locate, shown
from leporello.store.sql.database import Database
from leporello.store.sql.texts import millis, pack, seconds, unpack


class SqlLeases:
    """`Leases` of the port, of one kind: each kind has a table of its own."""

    def __init__(self, db: Database, table: str = "leases") -> None:
        self._db = db
        self._table = table

    def acquire(self, conversation: str, owner: str, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease | None:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            now = self._db.now()
            row = tx.row(
                f"SELECT token, owner, expires FROM {self._table} WHERE conversation = ?",  # noqa: S608 - a constant
                held.key,
            )
            if row is not None and row[2] > now and unpack(row[1]) != owner:
                return None
            token = 1 if row is None else row[0] + 1
            expires = now + millis(seconds)
            tx.run(
                f"INSERT INTO {self._table} (conversation, token, owner, expires) VALUES (?, ?, ?, ?) "  # noqa: S608
                "ON CONFLICT (conversation) DO UPDATE SET token = excluded.token, owner = excluded.owner, "
                "expires = excluded.expires",
                *(held.key, token, pack(owner), expires),
            )
        return Lease(conversation, owner, token, expires / 1000)

    def renew(self, lease: Lease, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease:
        with self._db.write() as tx:
            held = hold(self._db, tx, lease.conversation)
            expires = self._db.now() + millis(seconds)
            kept = tx.run(
                f"UPDATE {self._table} SET expires = ? WHERE conversation = ? AND token = ? AND expires > 0",  # noqa: S608
                *(expires, held.key, lease.token),
            )
            if not kept:
                raise LeaseLost(f"The lease of {shown(lease.owner)} on {shown(lease.conversation)} was taken over.")
        return Lease(lease.conversation, lease.owner, lease.token, expires / 1000)

    def release(self, lease: Lease) -> None:
        with self._db.write() as tx:
            held = hold(self._db, tx, lease.conversation)
            tx.run(
                f"UPDATE {self._table} SET expires = 0 WHERE conversation = ? AND token = ?",  # noqa: S608
                *(held.key, lease.token),
            )

    def holder(self, conversation: str) -> Lease | None:
        with self._db.read() as tx:
            key, _ = locate(tx, conversation)
            row = tx.row(f"SELECT owner, token, expires FROM {self._table} WHERE conversation = ?", key)  # noqa: S608
        if row is None or row[2] <= self._db.now():
            return None
        return Lease(conversation, unpack(row[0]), row[1], seconds(row[2]))
