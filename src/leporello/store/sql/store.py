"""The store put together from its parts, the same for every SQL database."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.redact import redact
from leporello.store.sql.checkup import SqlCare, Upkeep
from leporello.store.sql.conversations import SqlConversations
from leporello.store.sql.database import Database
from leporello.store.sql.indexing import Indexer, IndexTables
from leporello.store.sql.keeps import SqlArtifacts, SqlLedgers, SqlPins, SqlState
from leporello.store.sql.leases import SqlLeases
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

    def __init__(self, backend: Backend) -> None:
        db = backend.db
        indexer = Indexer(db, backend.tables, redact)
        self.database = db
        self.conversations = SqlConversations(db, indexer.forget)
        self.log = SqlLog(db)
        self.views = SqlViews(db)
        self.usage = SqlUsage(db, indexer.finish)
        self.artifacts = SqlArtifacts(db)
        self.pins = SqlPins(db)
        self.ledgers = SqlLedgers(db)
        self.state = SqlState(db)
        self.leases = SqlLeases(db)
        self.index = SqlIndex(db, indexer, backend.finder)
        self.care = SqlCare(db, backend.upkeep, indexer)

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
