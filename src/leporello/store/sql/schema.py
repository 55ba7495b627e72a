"""The tables, as ordered and named migrations. Each runs in one transaction together with the record that it ran.

Every primary key of conversation data begins with the conversation, so the tables can be spread over several machines
by that column. The directory, which finds the conversation of an id, and `reservations` are keyed otherwise.

Types are written for both databases: `{key}`, `{blob}` and `{clustered}` are filled in by the dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from msgspec import Struct

from leporello.errors import SchemaTooNew, StoreUnavailable
from leporello.store.sql.database import Transaction
from leporello.store.sql.encoding import pack, unpack


class SqlDialect(Struct, frozen=True):
    """How a database spells what the migrations leave open."""

    key: str
    blob: str
    clustered: str

    def fill(self, sql: str) -> str:
        return sql.format(key=self.key, blob=self.blob, clustered=self.clustered)


@dataclass(frozen=True, slots=True)
class Migration:
    name: str
    statements: tuple[str, ...]
    rewrite: Callable[[Transaction], None] | None = None
    """What no statement can do, after them."""


_KINDS = {"int": "BIGINT", "small": "SMALLINT", "text": "TEXT", "blob": "{blob}"}
CLUSTERED = "{clustered}"


class Table(Struct, frozen=True):
    """A table with rows of conversations."""

    name: str
    columns: tuple[str, ...]
    """Beside the conversation's key."""
    create: str


def table(name: str, key: str, columns: str, ending: str = "") -> Table:
    """A table whose primary key is the conversation and `key`; without a key it has one row for each conversation.

    `columns` are written as `name kind`, with a `?` behind the kind of those that may be NULL. A kind that only one
    database has is written as that database spells it.
    """
    kinds = dict(column.split(" ") for column in columns.split(", "))
    lines = ["conversation BIGINT NOT NULL" + ("" if key else " PRIMARY KEY")]
    for column, kind in kinds.items():
        lines.append(f"{column} {_KINDS.get(kind.rstrip('?'), kind)}{'' if kind.endswith('?') else ' NOT NULL'}")
    if key:
        lines.append(f"PRIMARY KEY (conversation, {key})")
    rows = ",\n    ".join(lines)
    return Table(name, tuple(kinds), f"\nCREATE TABLE {name} (\n    {rows}\n){ending}")


_SESSIONS, *_OTHERS = (
    table(
        "sessions",
        "ordinal",
        "ordinal int, id text, parent text?, parent_name blob?, started int, ended int?, end_reason text?, "
        "first int, title text, platform text, model text, owner text, custom blob, prompt blob?",
    ),
    table("prompts", "hash", "hash blob, body blob"),
    table("messages", "number", "number int, created int, same_as int?, body blob?"),
    table("hashes", "hash", "hash blob, number int", CLUSTERED),
    table(
        "generations",
        "generation",
        "generation int, kind text, state int, below int, base_last int, log_last int, ordinal int, "
        "created int, entries blob",
    ),
    table(
        "attempts",
        "number",
        "number int, created int, ordinal int, generation int?, outcome text, engine text, summariser text, "
        "cause text, covered_first int?, covered_last int?, tokens_before int, tokens_after int, "
        "cost_nanos int?, duration_millis int, report blob",
    ),
    table("folds", "id", "id text, number int, generation int, first int, last int, body blob"),
    table(
        "usage",
        "ordinal, day, model, purpose",
        "ordinal int, day int, model text, purpose text, calls int, input_tokens int, output_tokens int, "
        "cache_read_tokens int, cache_write_tokens int, reasoning_tokens int, cost_nanos int, "
        "unpriced_calls int",
        CLUSTERED,
    ),
    table("tools", "day, tool", "day int, tool text, calls int, results int, result_characters int", CLUSTERED),
    table("activity", "day", "day int, messages int, characters int", CLUSTERED),
    table("artifacts", "hash", "hash blob, number int, size int, name text, created int, body blob"),
    table("pins", "number", "number int, note text, created int"),
    table("ledgers", "base, version", "base int, version int, data blob"),
    # Counters have `count`, all other values `value`. Conversation 0 is the store itself.
    table("state", "key", "key text, count int?, value blob?"),
    table("leases", "", "token int, owner text, expires int"),
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
        *(other.create for other in _OTHERS),
    ),
)

_LISTING = (
    "CREATE INDEX conversations_by_activity ON conversations (updated, conversation)",
    "CREATE INDEX sessions_by_start ON sessions (started)",
    "CREATE INDEX usage_by_day ON usage (day)",
    "CREATE INDEX tools_by_day ON tools (day)",
    "CREATE INDEX activity_by_day ON activity (day)",
    "CREATE INDEX attempts_by_time ON attempts (created)",
    "CREATE INDEX generations_undone ON generations (created) WHERE kind = 'undo'",
)
"""Listings and insights read the part of a store they are about. Only the first of these columns ever changes."""

_UNMASKED_LEDGERS = "DELETE FROM ledgers WHERE version < 2"
"""Snapshots of the first version hold secrets in clear. A ledger is made again from the log, so nothing is lost."""

_INBOX = table(
    "inbox",
    "number",
    "number int, name blob, id text, created int, attempts int, message int?, cancelled small, "
    "ended int?, text blob, outcome blob?",
)
_TURNS = table("turns", "", "token int, owner text, expires int")
_INBOX_STATEMENTS = (
    _INBOX.create,
    "CREATE UNIQUE INDEX inbox_by_name ON inbox (conversation, name)",
    "CREATE INDEX inbox_waiting ON inbox (conversation, number) WHERE ended IS NULL",
    _TURNS.create,
)


_STATED_VALUES = table(
    "stated_values",
    "message, digest",
    "message int, digest blob, subject text, value text, sentence text, replaced_by int?, task int?",
)

_RESERVATIONS = (
    # What requests under way may use, by the owner whose day it is. A row without an id is the owner's own: whoever
    # writes it holds off others that reserve for the same owner.
    """
CREATE TABLE reservations (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
){clustered}""",
)


def later_migrations(first: int) -> tuple[Migration, ...]:
    """What came after the first release of the schema, numbered from `first` on: the databases began differently."""
    steps = (
        Migration("listing", _LISTING),
        Migration("inbox", _INBOX_STATEMENTS),
        Migration("masked-ledgers", (_UNMASKED_LEDGERS,)),
        Migration("stated-values", (_STATED_VALUES.create,)),
        Migration("masked-titles", (), _mask_titles),
        Migration("reservations", _RESERVATIONS),
    )
    return tuple(replace(step, name=f"{number:04}-{step.name}") for number, step in enumerate(steps, first))


def _mask_titles(tx: Transaction) -> None:
    """Up to 0.1.0 titles were stored as they were given; since then they are masked when they are written."""
    titles = tx.rows("SELECT conversation, ordinal, title FROM sessions WHERE title <> ''")
    if not titles:
        return
    # A new store has none.
    from leporello.redact import redact  # noqa: PLC0415

    for key, ordinal, title in titles:
        masked = pack(redact(unpack(title)))
        if masked != title:
            tx.run("UPDATE sessions SET title = ? WHERE conversation = ? AND ordinal = ?", masked, key, ordinal)


COLUMNS = {owned.name: owned.columns for owned in (_SESSIONS, *_OTHERS, _INBOX, _TURNS, _STATED_VALUES)}
"""The tables with rows of one conversation, and their columns beside the conversation's key."""

NOT_COPIED = ("tools", "activity", "leases", "turns")
"""Tables of a conversation that a copy leaves out: they are derived, or mean nothing elsewhere."""


@cache
def insert(table: str, ending: str = "", rows: int = 1) -> str:
    """The statement that writes whole rows: the conversation's key, then the values in the order of `COLUMNS`."""
    columns = COLUMNS[table]
    marks = ", ".join([f"({', '.join('?' * (len(columns) + 1))})"] * rows)
    return f"INSERT INTO {table} (conversation, {', '.join(columns)}) VALUES {marks}{ending}"  # noqa: S608 - constants


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
    return StoreUnavailable(f"{where} must be brought up to date first. Open it once where it can be written.")


def apply(tx: Transaction, migration: Migration, dialect: SqlDialect, now: int) -> None:
    tx.run(MIGRATIONS_TABLE)
    for statement in migration.statements:
        tx.run(dialect.fill(statement))
    if migration.rewrite is not None:
        migration.rewrite(tx)
    tx.run("INSERT INTO migrations (name, applied) VALUES (?, ?)", migration.name, now)
