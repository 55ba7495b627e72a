"""The store put together from its parts, the same for every SQL database."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.store.base import Fence
from leporello.store.sql.artifacts import SqlArtifacts, SqlLedgers, SqlPins, SqlState
from leporello.store.sql.checkup import SqlCare, Upkeep
from leporello.store.sql.conversations import SqlConversations
from leporello.store.sql.database import Database
from leporello.store.sql.inbox import SqlInbox
from leporello.store.sql.indexing import Indexer, IndexTables
from leporello.store.sql.locking import FencedDatabase, SqlLeases
from leporello.store.sql.log import SqlLog
from leporello.store.sql.search import Finder, SqlIndex
from leporello.store.sql.usage import SqlUsage
from leporello.store.sql.views import SqlViews


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts in which databases differ."""

    db: Database
    tables: IndexTables
    finder: Finder
    upkeep: Upkeep


class SqlStore:
    """`Store` of the port."""

    def __init__(self, backend: Backend, fence: Fence | None = None) -> None:
        self._backend = backend
        self.database = backend.db
        indexer = Indexer(self.database, backend.tables)
        db: Database = self.database if fence is None else FencedDatabase(self.database, fence)
        self.conversations = SqlConversations(db, indexer.forget)
        self.log = SqlLog(db)
        self.views = SqlViews(db)
        self.usage = SqlUsage(db, indexer.finish)
        self.artifacts = SqlArtifacts(db)
        self.pins = SqlPins(db)
        self.ledgers = SqlLedgers(db)
        self.state = SqlState(db)
        self.inbox = SqlInbox(db)
        self.leases = SqlLeases(db)
        # Taking a turn, searching and looking after the store need no turn.
        self.turns = SqlLeases(self.database, "turns")
        self.index = SqlIndex(self.database, indexer, backend.finder)
        self.care = SqlCare(self.database, backend.upkeep, indexer)

    def behind(self, fence: Fence) -> SqlStore:
        return SqlStore(self._backend, fence)

    @property
    def url(self) -> str:
        return self.database.url

    @property
    def read_only(self) -> bool:
        return self.database.read_only

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
