"""The tables, as ordered and named migrations. Each runs in one transaction together with the record that it ran.

Every primary key of conversation data begins with the conversation, so the tables can be spread over several machines
by that column. The directory, which finds the conversation of an id, is the one table that is keyed otherwise.

Types are written for both databases: `{key}`, `{blob}` and `{clustered}` are filled in by the dialect.
"""

from __future__ import annotations

import re
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
        """
CREATE TABLE sessions (
    conversation BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    parent_name {blob},
    started BIGINT NOT NULL,
    ended BIGINT,
    end_reason TEXT,
    first BIGINT NOT NULL,
    title TEXT NOT NULL,
    platform TEXT NOT NULL,
    model TEXT NOT NULL,
    owner TEXT NOT NULL,
    custom {blob} NOT NULL,
    prompt {blob},
    PRIMARY KEY (conversation, ordinal)
)""",
        "CREATE INDEX sessions_by_parent ON sessions (parent_name) WHERE parent_name IS NOT NULL",
        "CREATE INDEX conversations_to_index ON conversations (dirty) WHERE dirty = 1",
        """
CREATE TABLE prompts (
    conversation BIGINT NOT NULL,
    hash {blob} NOT NULL,
    body {blob} NOT NULL,
    PRIMARY KEY (conversation, hash)
)""",
        """
CREATE TABLE messages (
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    created BIGINT NOT NULL,
    same_as BIGINT,
    body {blob},
    PRIMARY KEY (conversation, number)
)""",
        """
CREATE TABLE hashes (
    conversation BIGINT NOT NULL,
    hash {blob} NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (conversation, hash)
){clustered}""",
        """
CREATE TABLE generations (
    conversation BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    kind TEXT NOT NULL,
    state BIGINT NOT NULL,
    below BIGINT NOT NULL,
    base_last BIGINT NOT NULL,
    log_last BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    created BIGINT NOT NULL,
    entries {blob} NOT NULL,
    PRIMARY KEY (conversation, generation)
)""",
        """
CREATE TABLE attempts (
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    created BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    generation BIGINT,
    outcome TEXT NOT NULL,
    engine TEXT NOT NULL,
    summariser TEXT NOT NULL,
    cause TEXT NOT NULL,
    covered_first BIGINT,
    covered_last BIGINT,
    tokens_before BIGINT NOT NULL,
    tokens_after BIGINT NOT NULL,
    cost_nanos BIGINT,
    duration_millis BIGINT NOT NULL,
    report {blob} NOT NULL,
    PRIMARY KEY (conversation, number)
)""",
        """
CREATE TABLE folds (
    conversation BIGINT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    body {blob} NOT NULL,
    PRIMARY KEY (conversation, id)
)""",
        """
CREATE TABLE usage (
    conversation BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    day BIGINT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    unpriced_calls BIGINT NOT NULL,
    PRIMARY KEY (conversation, ordinal, day, model, purpose)
){clustered}""",
        """
CREATE TABLE tools (
    conversation BIGINT NOT NULL,
    day BIGINT NOT NULL,
    tool TEXT NOT NULL,
    calls BIGINT NOT NULL,
    results BIGINT NOT NULL,
    result_characters BIGINT NOT NULL,
    PRIMARY KEY (conversation, day, tool)
){clustered}""",
        """
CREATE TABLE activity (
    conversation BIGINT NOT NULL,
    day BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    characters BIGINT NOT NULL,
    PRIMARY KEY (conversation, day)
){clustered}""",
        """
CREATE TABLE artifacts (
    conversation BIGINT NOT NULL,
    hash {blob} NOT NULL,
    number BIGINT NOT NULL,
    size BIGINT NOT NULL,
    name TEXT NOT NULL,
    created BIGINT NOT NULL,
    body {blob} NOT NULL,
    PRIMARY KEY (conversation, hash)
)""",
        """
CREATE TABLE pins (
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    note TEXT NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (conversation, number)
)""",
        """
CREATE TABLE ledgers (
    conversation BIGINT NOT NULL,
    base BIGINT NOT NULL,
    version BIGINT NOT NULL,
    data {blob} NOT NULL,
    PRIMARY KEY (conversation, base, version)
)""",
        # Counters have `count`, all other values `value`. Conversation 0 is the store itself.
        """
CREATE TABLE state (
    conversation BIGINT NOT NULL,
    key TEXT NOT NULL,
    count BIGINT,
    value {blob},
    PRIMARY KEY (conversation, key)
)""",
        """
CREATE TABLE leases (
    conversation BIGINT NOT NULL PRIMARY KEY,
    token BIGINT NOT NULL,
    owner TEXT NOT NULL,
    expires BIGINT NOT NULL
)""",
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

INBOX = (
    """
CREATE TABLE inbox (
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    name {blob} NOT NULL,
    id TEXT NOT NULL,
    created BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    message BIGINT,
    cancelled SMALLINT NOT NULL,
    ended BIGINT,
    text {blob} NOT NULL,
    outcome {blob},
    PRIMARY KEY (conversation, number)
)""",
    "CREATE UNIQUE INDEX inbox_by_name ON inbox (conversation, name)",
    "CREATE INDEX inbox_waiting ON inbox (conversation, number) WHERE ended IS NULL",
    """
CREATE TABLE turns (
    conversation BIGINT NOT NULL PRIMARY KEY,
    token BIGINT NOT NULL,
    owner TEXT NOT NULL,
    expires BIGINT NOT NULL
)""",
)


_COLUMN = re.compile(r"^    (\w++) (?:BIGINT|SMALLINT|TEXT|\{blob\}|\{key\})", re.MULTILINE)


def _columns(statement: str) -> tuple[str, ...]:
    """The columns of a CREATE TABLE statement."""
    return tuple(_COLUMN.findall(statement))


COLUMNS = {
    statement.split()[2]: _columns(statement)[1:]
    for statement in (*CORE.statements, *INBOX)
    if statement.startswith("\nCREATE TABLE") and _columns(statement)[0] == "conversation" and "{key}" not in statement
}
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
