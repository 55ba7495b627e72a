"""The tables, as ordered and named migrations. Each runs in one transaction together with the record that it ran.

Every primary key of conversation data begins with the conversation, so the tables can be spread over several machines
by that column. The directory, which finds the conversation of an id, is the one table that is keyed otherwise.

Types are written for both databases: `{key}`, `{blob}` and `{clustered}` are filled in by the dialect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from leporello.errors import SchemaTooNew, StoreUnavailable
from leporello.store.sql.database import Transaction


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """How a database spells what the migrations leave open."""

    key: str
    blob: str
    clustered: str

    def fill(self, sql: str) -> str:
        """One statement of a migration in this dialect."""
        return sql.format(key=self.key, blob=self.blob, clustered=self.clustered)


@dataclass(frozen=True, slots=True)
class Migration:
    """One named step of the schema."""

    name: str
    statements: tuple[str, ...]


INT, TEXT, BLOB = "BIGINT NOT NULL", "TEXT NOT NULL", "{blob} NOT NULL"
INT_OR_NULL, TEXT_OR_NULL, BLOB_OR_NULL = "BIGINT", "TEXT", "{blob}"
SMALL, CLUSTERED = "SMALLINT NOT NULL", "{clustered}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with rows of conversations."""

    name: str
    columns: tuple[str, ...]
    """Beside the conversation's key."""
    create: str


def _table(name: str, key: str, ending: str = "", /, **columns: str) -> Table:
    """A table whose primary key is the conversation and `key`; without one there is one row for each conversation."""
    first = "conversation BIGINT NOT NULL" + ("" if key else " PRIMARY KEY")
    lines = [first, *(f"{column} {kind}" for column, kind in columns.items())]
    if key:
        lines.append(f"PRIMARY KEY (conversation, {key})")
    rows = ",\n    ".join(lines)
    return Table(name, tuple(columns), f"\nCREATE TABLE {name} (\n    {rows}\n){ending}")


_SESSIONS, *_OTHERS = (
    _table(
        "sessions",
        "ordinal",
        ordinal=INT,
        id=TEXT,
        parent=TEXT_OR_NULL,
        parent_name=BLOB_OR_NULL,
        started=INT,
        ended=INT_OR_NULL,
        end_reason=TEXT_OR_NULL,
        first=INT,
        title=TEXT,
        platform=TEXT,
        model=TEXT,
        owner=TEXT,
        custom=BLOB,
        prompt=BLOB_OR_NULL,
    ),
    _table("prompts", "hash", hash=BLOB, body=BLOB),
    _table("messages", "number", number=INT, created=INT, same_as=INT_OR_NULL, body=BLOB_OR_NULL),
    _table("hashes", "hash", CLUSTERED, hash=BLOB, number=INT),
    _table(
        "generations",
        "generation",
        generation=INT,
        kind=TEXT,
        state=INT,
        below=INT,
        base_last=INT,
        log_last=INT,
        ordinal=INT,
        created=INT,
        entries=BLOB,
    ),
    _table(
        "attempts",
        "number",
        number=INT,
        created=INT,
        ordinal=INT,
        generation=INT_OR_NULL,
        outcome=TEXT,
        engine=TEXT,
        summariser=TEXT,
        cause=TEXT,
        covered_first=INT_OR_NULL,
        covered_last=INT_OR_NULL,
        tokens_before=INT,
        tokens_after=INT,
        cost_nanos=INT_OR_NULL,
        duration_millis=INT,
        report=BLOB,
    ),
    _table("folds", "id", id=TEXT, number=INT, generation=INT, first=INT, last=INT, body=BLOB),
    _table(
        "usage",
        "ordinal, day, model, purpose",
        CLUSTERED,
        ordinal=INT,
        day=INT,
        model=TEXT,
        purpose=TEXT,
        calls=INT,
        input_tokens=INT,
        output_tokens=INT,
        cache_read_tokens=INT,
        cache_write_tokens=INT,
        reasoning_tokens=INT,
        cost_nanos=INT,
        unpriced_calls=INT,
    ),
    _table("tools", "day, tool", CLUSTERED, day=INT, tool=TEXT, calls=INT, results=INT, result_characters=INT),
    _table("activity", "day", CLUSTERED, day=INT, messages=INT, characters=INT),
    _table("artifacts", "hash", hash=BLOB, number=INT, size=INT, name=TEXT, created=INT, body=BLOB),
    _table("pins", "number", number=INT, note=TEXT, created=INT),
    _table("ledgers", "base, version", base=INT, version=INT, data=BLOB),
    # Counters have `count`, all other values `value`. Conversation 0 is the store itself.
    _table("state", "key", key=TEXT, count=INT_OR_NULL, value=BLOB_OR_NULL),
    _table("leases", "", token=INT, owner=TEXT, expires=INT),
)
CORE = Migration(
    "0001-conversations",
    (
        """
CREATE TABLE conversations (
    conversation {key},
    kind TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    last BIGINT NOT NULL,
    indexed BIGINT NOT NULL,
    dirty SMALLINT NOT NULL,
    generation BIGINT NOT NULL,
    tip BIGINT NOT NULL
)""",
        """
CREATE TABLE directory (
    name {blob} NOT NULL PRIMARY KEY,
    conversation BIGINT NOT NULL,
    ordinal BIGINT NOT NULL
){clustered}""",
        _SESSIONS.create,
        "CREATE INDEX sessions_by_parent ON sessions (parent_name) WHERE parent_name IS NOT NULL",
        "CREATE INDEX conversations_to_index ON conversations (dirty) WHERE dirty = 1",
        *(table.create for table in _OTHERS),
    ),
)

LISTING = (
    "CREATE INDEX conversations_by_activity ON conversations (updated, conversation)",
    "CREATE INDEX sessions_by_start ON sessions (started)",
    "CREATE INDEX usage_by_day ON usage (day)",
    "CREATE INDEX tools_by_day ON tools (day)",
    "CREATE INDEX activity_by_day ON activity (day)",
    "CREATE INDEX attempts_by_time ON attempts (created)",
    "CREATE INDEX generations_undone ON generations (created) WHERE kind = 'undo'",
)
"""Listings and insights read the part of a store they are about. Only the first of these columns ever changes."""

UNMASKED_LEDGERS = "DELETE FROM ledgers WHERE version < 2"
"""Snapshots of the first version hold secrets in clear. A ledger is made again from the log, so nothing is lost."""

_INBOX = _table(
    "inbox",
    "number",
    number=INT,
    name=BLOB,
    id=TEXT,
    created=INT,
    attempts=INT,
    message=INT_OR_NULL,
    cancelled=SMALL,
    ended=INT_OR_NULL,
    text=BLOB,
    outcome=BLOB_OR_NULL,
)
_TURNS = _table("turns", "", token=INT, owner=TEXT, expires=INT)
INBOX = (
    _INBOX.create,
    "CREATE UNIQUE INDEX inbox_by_name ON inbox (conversation, name)",
    "CREATE INDEX inbox_waiting ON inbox (conversation, number) WHERE ended IS NULL",
    _TURNS.create,
)

COLUMNS = {table.name: table.columns for table in (_SESSIONS, *_OTHERS, _INBOX, _TURNS)}
"""The tables with rows of one conversation, and their columns beside the conversation's key."""

NOT_COPIED = ("tools", "activity", "leases", "turns")
"""Tables of a conversation that a copy leaves out: they are derived, or mean nothing elsewhere."""


@cache
def insert(table: str, ending: str = "") -> str:
    """The statement that writes a whole row: the conversation's key, then the values in the order of `COLUMNS`."""
    columns = COLUMNS[table]
    marks = ", ".join("?" * (len(columns) + 1))
    return f"INSERT INTO {table} (conversation, {', '.join(columns)}) VALUES ({marks}){ending}"  # noqa: S608 - constants


MIGRATIONS_TABLE = "CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)"


def pending(known: tuple[Migration, ...], applied: set[str], where: str) -> list[Migration]:
    """The migrations still to run. Raises `SchemaTooNew` when the store has some that this version does not know."""
    unknown = applied - {migration.name for migration in known}
    if unknown:
        raise SchemaTooNew(
            f"{where} was written by a newer Leporello (it has {', '.join(sorted(unknown))}). "
            "Install that version or a later one, or open another store."
        )
    return [migration for migration in known if migration.name not in applied]


def outdated(where: str) -> StoreUnavailable:
    """The error for a store with pending migrations that can only be read."""
    return StoreUnavailable(f"{where} must be brought up to date first. Open it once where it can be written.")


def apply(tx: Transaction, migration: Migration, dialect: SqlDialect, now: int) -> None:
    """Run one migration inside the caller's transaction."""
    tx.run(MIGRATIONS_TABLE)
    for statement in migration.statements:
        tx.run(dialect.fill(statement))
    tx.run("INSERT INTO migrations (name, applied) VALUES (?, ?)", migration.name, now)
