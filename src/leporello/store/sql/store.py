"""The store, the same for every SQL database."""

from __future__ import annotations

from leporello.store.sql.artifacts import Artifacts
from leporello.store.sql.checkup import Care
from leporello.store.sql.conversations import Conversations
from leporello.store.sql.database import Database
from leporello.store.sql.inbox import Inbox
from leporello.store.sql.leases import Fence, FencedDatabase, Leases
from leporello.store.sql.log import Log
from leporello.store.sql.search import SearchIndex
from leporello.store.sql.sessions import Sessions
from leporello.store.sql.state import Ledgers, Pins, State
from leporello.store.sql.usage import Usage
from leporello.store.sql.views import Views


class Store:
    """A place where conversations live. Close it, or use it as a context manager."""

    def __init__(self, database: Database, index: SearchIndex, care: Care, fence: Fence | None = None) -> None:
        self.database = database
        self.index = index
        self.care = care
        # Taking a turn, searching and looking after the store need no turn.
        self.turns = Leases(database, "turns")
        db: Database = database if fence is None else FencedDatabase(database, fence)
        self.conversations = Conversations(db, index.tables.remove)
        self.sessions = Sessions(db)
        self.log = Log(db)
        self.views = Views(db)
        self.usage = Usage(db, index.finish)
        self.artifacts = Artifacts(db)
        self.pins = Pins(db)
        self.ledgers = Ledgers(db)
        self.state = State(db)
        self.inbox = Inbox(db)
        self.leases = Leases(db, "leases")

    @property
    def url(self) -> str:
        """What it was opened with, without a password."""
        return self.database.url

    @property
    def read_only(self) -> bool:
        """Whether writing is impossible."""
        return self.database.read_only

    def behind(self, fence: Fence) -> Store:
        """The same store for the holder of a turn.

        Every write raises `LeaseLost`, and leaves nothing behind, unless the lease in the fence is still the newest of
        `turns`. Searching and taking turns are not fenced.
        """
        return Store(self.database, self.index, self.care, fence)

    def close(self) -> None:
        """Release all connections; safe to call twice."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
