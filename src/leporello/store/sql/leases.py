"""Leases: the right to do something in a conversation, and the fence that stops an owner who lost it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from leporello.errors import LeaseLost
from leporello.store.records import Lease
from leporello.store.sql.database import Database, StorePart, Transaction
from leporello.store.sql.encoding import millis, name_key, pack, seconds, shown, unpack

DEFAULT_LEASE_SECONDS = 10.0


class Leases(StorePart):
    """The right to compact a conversation, or to answer in it, held by one owner at a time.

    Each kind of lease has its own table.
    """

    def __init__(self, db: Database, table: str) -> None:
        super().__init__(db)
        self._table = table

    def acquire(self, conversation: str, owner: str, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease | None:
        """Take the lease if it is free, expired or already this owner's; None while another holds it."""
        with self._locked(conversation) as (tx, locked):
            now = self._db.now()
            row = tx.row(
                f"SELECT token, owner, expires FROM {self._table} WHERE conversation = ?",  # noqa: S608 - a constant
                locked.key,
            )
            if row is not None and row[2] > now and unpack(row[1]) != owner:
                return None
            token = 1 if row is None else row[0] + 1
            expires = now + millis(seconds)
            tx.run(
                f"INSERT INTO {self._table} (conversation, token, owner, expires) VALUES (?, ?, ?, ?) "  # noqa: S608
                "ON CONFLICT (conversation) DO UPDATE SET token = excluded.token, owner = excluded.owner, "
                "expires = excluded.expires",
                *(locked.key, token, pack(owner), expires),
            )
        return Lease(conversation, owner, token, expires / 1000)

    def renew(self, lease: Lease, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease:
        """Hold it longer. Raises `LeaseLost` when another owner took it over."""
        with self._locked(lease.conversation) as (tx, locked):
            expires = self._db.now() + millis(seconds)
            kept = tx.run(
                f"UPDATE {self._table} SET expires = ? WHERE conversation = ? AND token = ? AND expires > 0",  # noqa: S608
                *(expires, locked.key, lease.token),
            )
            if not kept:
                raise LeaseLost(f"The lease of {shown(lease.owner)} on {shown(lease.conversation)} was taken over.")
        return Lease(lease.conversation, lease.owner, lease.token, expires / 1000)

    def release(self, lease: Lease) -> None:
        """Give it back; does nothing when it is lost already."""
        with self._locked(lease.conversation) as (tx, locked):
            tx.run(
                f"UPDATE {self._table} SET expires = 0 WHERE conversation = ? AND token = ?",  # noqa: S608
                *(locked.key, lease.token),
            )

    def holder(self, conversation: str) -> Lease | None:
        row = self._row(conversation, f"SELECT owner, token, expires FROM {self._table} WHERE conversation = ?")  # noqa: S608
        if row is None or row[2] <= self._db.now():
            return None
        return Lease(conversation, unpack(row[0]), row[1], seconds(row[2]))


class Fence:
    """Holds the lease under which a worker writes. It changes from turn to turn; between turns there is none."""

    __slots__ = ("lease",)

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease


class FencedDatabase:
    """A `Database` that commits only while the lease of the fence is the newest."""

    def __init__(self, db: Database, fence: Fence) -> None:
        self._db = db
        self._fence = fence
        self.url = db.url
        self.for_update = db.for_update
        self.now = db.now

    @property
    def read_only(self) -> bool:
        return self._db.read_only

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[Transaction]:
        with self._db.write(durable) as tx:
            yield tx
            lease = self._fence.lease
            if lease is None:
                raise LeaseLost("This conversation may only be written to in a turn, and there is none now.")
            row = tx.row(
                "SELECT t.token FROM turns t "
                "WHERE t.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?)",
                name_key(lease.conversation),
            )
            if row is None or row[0] != lease.token:
                raise LeaseLost(
                    f"The turn of {shown(lease.owner)} on {shown(lease.conversation)} was taken over. "
                    "Nothing was written; the new holder goes on with it."
                )

    def read(self) -> AbstractContextManager[Transaction]:
        return self._db.read()

    def close(self) -> None:
        """Does nothing: the database is closed where it was opened."""
