"""A database behind a fence: whoever lost the right to a conversation can't write any more, however late it wakes up.

The check comes last in the transaction. By then the conversation's row is held, as taking the lease over holds it; so
either the takeover was first and is seen here, or it waits until this transaction has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from leporello.errors import LeaseLost
from leporello.store.letters import Fence
from leporello.store.sql.common import shown
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.texts import name_key

_TOKEN = "SELECT t.token FROM turns t WHERE t.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?)"


class FencedDatabase:
    """`Database` that commits only while the lease of the fence is the newest."""

    def __init__(self, db: Database, fence: Fence) -> None:
        self._db = db
        self._fence = fence

    @property
    def url(self) -> str:
        return self._db.url

    @property
    def read_only(self) -> bool:
        return self._db.read_only

    @property
    def for_update(self) -> str:
        return self._db.for_update

    def now(self) -> int:
        return self._db.now()

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[Transaction]:
        with self._db.write(durable) as tx:
            yield tx
            lease = self._fence.lease
            if lease is None:
                raise LeaseLost("This conversation may only be written to in a turn, and there is none now.")
            row = tx.row(_TOKEN, name_key(lease.conversation))
            if row is None or row[0] != lease.token:
                raise LeaseLost(
                    f"The turn of {shown(lease.owner)} on {shown(lease.conversation)} was taken over. "
                    "Nothing was written; the new holder goes on with it."
                )

    def read(self) -> AbstractContextManager[Transaction]:
        return self._db.read()

    def close(self) -> None:
        """Nothing: whoever opened the database closes it."""
