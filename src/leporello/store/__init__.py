"""Where conversations live: an append-only log, the chain of sessions, folded views, counters and search."""

from __future__ import annotations

from urllib.parse import unquote

from leporello.errors import InputError, StoreConflict, how_to_install
from leporello.store.records import ConversationRecord, Metadata
from leporello.store.sql.checkup import Care
from leporello.store.sql.conversations import Conversations
from leporello.store.sql.database import Database, StoreOptions, without_password
from leporello.store.sql.inbox import Fence, FencedDatabase, Inbox, Leases
from leporello.store.sql.log import Log
from leporello.store.sql.search import SearchIndex
from leporello.store.sql.sessions import Sessions
from leporello.store.sql.state import Artifacts, Ledgers, Pins, State, StatedValues
from leporello.store.sql.usage import Usage
from leporello.store.sql.views import Views

__all__ = ["Fence", "Store", "StoreOptions", "find_or_create", "open_store", "sqlite_path"]


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
        self.values = StatedValues(db)
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


def open_store(url: str, options: StoreOptions | None = None) -> Store:
    """Open the store at a URL, and create or migrate it when it is writable."""
    chosen = options or StoreOptions()
    scheme, separator, _ = url.partition("://")
    if not separator and url.startswith(("postgresql:", "postgres:")):
        raise InputError("A PostgreSQL URL begins with postgresql://.")
    if not separator or scheme == "sqlite":
        # The database driver behind a URL is loaded only when that URL is used.
        from leporello.store.sqlite import open_sqlite  # noqa: PLC0415

        return open_sqlite(sqlite_path(url), chosen)
    if scheme in ("postgresql", "postgres"):
        try:
            # An optional extra: psycopg may not be installed.
            from leporello.store.postgres import open_postgres  # noqa: PLC0415
        except ImportError as error:
            missing = f"PostgreSQL needs more packages ({error.name}): {how_to_install('postgres')}"
            raise InputError(missing) from None
        return open_postgres(url, chosen)
    known = "Use sqlite:///path or postgresql://user@host/database."
    raise InputError(f"Unknown store {scheme!r}. {known}", without_password(url))


def sqlite_path(url: str) -> str:
    """The file a SQLite URL or plain path names."""
    if not url.startswith("sqlite://"):
        path = url
    elif url.startswith("sqlite:///"):
        path = unquote(url.removeprefix("sqlite:///"))
    else:
        raise InputError("A SQLite URL has three slashes before a relative path and four before an absolute one.", url)
    if not path or "\0" in path:
        raise InputError("A SQLite URL must name a file, for example sqlite:///leporello.db.", url)
    return path


def find_or_create(conversations: Conversations, id: str, metadata: Metadata) -> ConversationRecord:
    """The conversation with this id; a new one with this metadata when there is none."""
    try:
        return conversations.find(id) or conversations.create(id, metadata)
    except StoreConflict:
        # Another process created it meanwhile.
        return conversations.resolve(id)
