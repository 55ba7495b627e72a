"""The generated parts of docs/reference/store.md: the schema, and queries with their answers on a small store."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from leporello.events import CompactionReport, Outcome, Span, ViewEntry
from leporello.messages import Message
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import CompactionRecord, Metadata, ModelCall, StoredFold
from leporello.store.sqlite import DIALECT, MIGRATIONS
from leporello.usage import CanonicalUsage

_FIRST_MOMENT = 1_790_000_000.0

QUERIES = (
    (
        "The newest conversations",
        """
SELECT f.id, s.title, c.last AS messages, c.generation, datetime(c.updated / 1000, 'unixepoch') AS active
FROM conversations c
JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1
JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip
ORDER BY c.updated DESC LIMIT 10""",
    ),
    (
        "The chain of one conversation",
        """
SELECT s.ordinal, s.first, s.end_reason, s.parent IS NOT NULL AS continues
FROM sessions s JOIN sessions f ON f.conversation = s.conversation AND f.ordinal = 1
WHERE f.id = 'build-42' ORDER BY s.ordinal""",
    ),
    (
        "What each compaction saved",
        """
SELECT a.outcome, a.engine, a.covered_first, a.covered_last, a.tokens_before, a.tokens_after,
       a.cost_nanos / 1e9 AS dollars
FROM attempts a JOIN sessions f ON f.conversation = a.conversation AND f.ordinal = 1
WHERE f.id = 'build-42' ORDER BY a.number""",
    ),
    (
        "Cost and cache hits by model",
        """
SELECT model, SUM(calls) AS calls, SUM(cost_nanos) / 1e9 AS dollars,
       round(100.0 * SUM(cache_read_tokens) / SUM(input_tokens + cache_read_tokens + cache_write_tokens), 1) AS hits
FROM usage GROUP BY model ORDER BY dollars DESC""",
    ),
    (
        "The most used tools",
        """
SELECT tool, SUM(calls) AS calls, SUM(result_characters) AS characters
FROM tools GROUP BY tool ORDER BY calls DESC LIMIT 5""",
    ),
    (
        "Messages that were stored only once although they were appended often",
        """
SELECT m.same_as AS first_number, count(*) AS repeats
FROM messages m WHERE m.same_as IS NOT NULL GROUP BY m.conversation, m.same_as""",
    ),
)


def schema_part() -> str:
    """Every table as SQLite has it."""
    statements = [DIALECT.fill(statement).strip() for migration in MIGRATIONS for statement in migration.statements]
    return "```sql\n" + ";\n\n".join(statements) + ";\n```\n"


def queries_part() -> str:
    """Each query with its answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.db"
        moment = [_FIRST_MOMENT]
        with open_store(str(path), StoreOptions(clock=lambda: moment[0])) as store:
            fill_build(store)
            moment[0] += 3600
            fill_notes(store)
        connection = sqlite3.connect(path)
        try:
            parts = [_answered(connection, title, sql) for title, sql in QUERIES]
        finally:
            connection.close()
    return "\n".join(parts)


def fill_build(store: Store) -> None:
    """A conversation with a tool call, a repeated message and a compaction."""
    store.conversations.create("build-42", Metadata(title="Fix the failing test", platform="cli", model="some-model"))
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "make test"}'}}
    turns: list[Message] = [
        {"role": "user", "content": "Fix the failing test"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "2 failed, 8 passed"},
        {"role": "user", "content": "continue"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "continue"},
    ]
    store.log.append("build-42", turns)
    store.usage.add("build-42", ModelCall(CanonicalUsage(200, 50, 1800, 0, 0), "some-model", cost=0.004))
    view = store.views.view("build-42")
    report = CompactionReport(
        Outcome.COMMITTED, engine="compressor", covered=Span(2, 4), tokens_before=2100, tokens_after=900, cost=0.001
    )
    fold = {"role": "assistant", "content": "Two of ten tests failed."}
    store.views.commit(
        "build-42",
        CompactionRecord(
            view.generation,
            view.last,
            [ViewEntry(ref=1), ViewEntry(inline=fold, fold="f1"), ViewEntry(ref=5), ViewEntry(ref=6)],
            report,
            [StoredFold("f1", Span(2, 4), "Two of ten tests failed.")],
        ),
    )
    store.views.record_attempt("build-42", CompactionReport(Outcome.NOTHING_TO_DO, engine="compressor"))


def fill_notes(store: Store) -> None:
    """Another one, later."""
    store.conversations.create("notes", Metadata(title="Release notes", platform="web"))
    store.log.append("notes", [{"role": "user", "content": "Write the release notes"}])
    store.usage.add("notes", ModelCall(CanonicalUsage(900, 100, 0, 100, 0), "small-model", cost=0.0005))
    store.index.catch_up()


def _answered(connection: sqlite3.Connection, title: str, sql: str) -> str:
    cursor = connection.execute(sql)
    columns = [column[0] for column in cursor.description]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join('' if value is None else str(value) for value in row)} |" for row in cursor]
    answer = "\n".join(lines)
    return f"**{title}**\n\n```sql{sql};\n```\n\n{answer}\n"
