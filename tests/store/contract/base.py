"""What every part of the contract uses: opening a store, and small conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from leporello.events import CompactionReport, Outcome, Span, ViewEntry
from leporello.messages import Message
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import CompactionRecord, StoredFold, View
from leporello.store.sql.database import Database, Transaction

ODD_IDS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "'; DROP TABLE messages; --",
    "../../etc/passwd",
    "%s ? :x {y}",
    "\x1a0000",
    "\x1a",
    "ключ-鍵-🔑",
    "line\nbreak\r\ttab",
    "x" * 100_000,
)
"""Ids that somebody will send one day."""

example_settings = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        # Every kind of store runs the same property on purpose.
        HealthCheck.differing_executors,
    ],
)
"""For properties: examples share one store and take a conversation each."""

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
"""Text with everything in it: NUL, halves of surrogate pairs, private use."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value; integers of any size."""


def user(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """An assistant message."""
    return {"role": "assistant", "content": text}


def tool_turn(name: str, result: str, call_id: str = "call_1") -> list[Message]:
    """A tool call and its result."""
    function = {"name": name, "arguments": '{"path": "src/app.py"}'}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def fold_all_but(view: View, tail: int, text: str = "summary", **report: Any) -> CompactionRecord:
    """A compaction of a view that keeps its last `tail` stored messages and folds the rest."""
    numbers = [line.number for line in view.lines if line.number is not None]
    kept = numbers[len(numbers) - tail :] if tail else []
    fold = f"f{view.folds + 1}"
    covered = Span(1, max(1, view.last - len(kept)))
    return CompactionRecord(
        base_generation=view.generation,
        base_last=view.last,
        entries=[ViewEntry(inline=assistant(text), fold=fold), *(ViewEntry(ref=number) for number in kept)],
        report=CompactionReport(Outcome.COMMITTED, fold=fold, covered=covered, **report),
        folds=[StoredFold(fold, covered, text)],
    )


def contents(view: View) -> list[Any]:
    """The texts of a view."""
    return [line.message["content"] for line in view.lines]


class CommitCounter:
    """A database that counts its writing transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[Transaction]:
        with self._database.write(durable) as tx:
            yield tx
        self.commits += 1


class ContractBase:
    """Opening stores; a subclass says where."""

    @pytest.fixture
    def url(self) -> str:
        """The URL of an empty store."""
        raise NotImplementedError("give a fixture `url`")

    def open(self, url: str, options: StoreOptions | None = None) -> Store:
        """Open a store of the kind under test."""
        return open_store(url, options)

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        """An open, empty store, which is checked at the end: whatever a test did, nothing may be out of order."""
        with self.open(url) as store:
            yield store
            assert store.care.checkup().findings == ()
