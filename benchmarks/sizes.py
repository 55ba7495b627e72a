"""The store at size: append, index, search by kind of query, and the bytes of a message and of a compaction.

Processor time of one process, so that other work on the machine changes little; the store lies on the project's disk.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.peers import ROOT
from benchmarks.store_data import Query, queries, sessions
from benchmarks.table import seconds, table
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.messages import Message, encode_json
from leporello.recall.base import RecallQuery
from leporello.recall.stored import StoreRecall
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import SearchQuery
from leporello.testing.sessions import generate

SIZES = (10_000, 100_000)
MANY = 1_000_000
FOLDER = ROOT / "build" / f"bench-sizes-{os.getpid()}"
_APPENDED = 500
_BATCH = 1_000
_ASKED = 40_000
"""Queries are about the first so many messages: enough sessions for the most of a kind."""
_LIMIT = 10
_RARE, _COMMON = "identifier", "common words"
_WINDOW, _FOLDED = 64_000, 4_000


@dataclass(slots=True)
class Measured:
    """One store of so many messages."""

    messages: int
    json_bytes: int = 0
    stored_bytes: int = 0
    bulk: float = 0.0
    indexing: float = 0.0
    appends: list[float] = field(default_factory=list)
    searches: dict[str, list[float]] = field(default_factory=dict)
    recalls: dict[str, list[float]] = field(default_factory=dict)


def run(sizes: Sequence[int] = SIZES) -> str:
    """All tables."""
    measured = [_measured(size) for size in sizes]
    return "\n\n".join([_costs(measured), _searched(measured), _compactions()])


def run_full() -> str:
    """A million messages too."""
    return run((*SIZES, MANY))


def run_quick() -> str:
    """On little data: shows that it works."""
    return run((2_000,))


def _measured(size: int) -> Measured:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    try:
        return _in(FOLDER / "store.db", size)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


def _in(path: Path, size: int) -> Measured:
    measured = Measured(size)
    with open_store(str(path), StoreOptions(synchronous="OFF")) as store:
        for name, messages in _sessions(size):
            measured.json_bytes += sum(len(encode_json(message)) for message in messages)
            store.conversations.create(name)
            measured.bulk += _spent(lambda: store.log.append(name, messages))  # noqa: B023 - called at once
        measured.indexing = _spent(lambda: _catch_up(store))
    with open_store(str(path), StoreOptions(synchronous="FULL")) as store:
        newest = generate(seed=0, messages=_APPENDED).messages[:_APPENDED]
        store.conversations.create("newest")
        measured.appends = [_spent(lambda: store.log.append("newest", [message])) for message in newest]  # noqa: B023
        _catch_up(store)
        recall = StoreRecall(store)
        for query in queries(min(size, _ASKED)):
            _ask(store, recall, query, measured)
    measured.stored_bytes = sum(file.stat().st_size for file in path.parent.iterdir())
    return measured


def _sessions(size: int) -> Iterator[tuple[str, list[Message]]]:
    left = size
    for name, session in sessions(size):
        yield name, list(islice(session.messages, left))
        left -= min(left, len(session.messages))


def _catch_up(store: Store) -> None:
    while store.index.catch_up(_BATCH):
        pass


def _ask(store: Store, recall: StoreRecall, query: Query, measured: Measured) -> None:
    def search() -> None:
        # Snippets are made when they are looked at.
        assert all(hit.snippet is not None for hit in store.index.search(SearchQuery(query.text, limit=_LIMIT)))

    measured.searches.setdefault(query.kind, []).append(_spent(search))
    took = _spent(lambda: recall.search(RecallQuery(query.text)))
    measured.recalls.setdefault(query.kind, []).append(took)


def _spent(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _costs(measured: Sequence[Measured]) -> str:
    header = ["messages", "append, p50", "p99", "1,000 at once, each", "index, each", "JSON, each", "on disk, each"]
    rows = [
        [
            f"{some.messages:,}",
            seconds(statistics.median(some.appends)),
            seconds(_p99(some.appends)),
            seconds(some.bulk / some.messages),
            seconds(some.indexing / some.messages),
            f"{some.json_bytes / some.messages:,.0f} B",
            f"{some.stored_bytes / some.messages:,.0f} B",
        ]
        for some in measured
    ]
    return (
        f"Appending (one a transaction, `synchronous=FULL`), indexing, room with both indexes:\n\n{table(header, rows)}"
    )


def _searched(measured: Sequence[Measured]) -> str:
    header = ["kind of query"]
    for some in measured:
        header += [f"search, {some.messages:,}", f"recall, {some.messages:,}"]
    rows = [[kind, *_times(measured, kind)] for kind in measured[0].searches]
    rows.append(["all", *_times(measured, None)])
    search = ", ".join(_ratio(some.searches) for some in measured)
    recall = ", ".join(_ratio(some.recalls) for some in measured)
    return (
        f"Search: the best {_LIMIT} chunks by the index. Recall: windows of lines around the evidence (`StoreRecall`), "
        f"which reads the messages that were hit and those beside them. p50 / p99 of single runs:\n\n"
        f"{table(header, rows)}\n\nCommon words beside the rarest ones (`{_RARE}`), aim at most "
        f"10x: search {search}; recall {recall}, where a rare word has few places to read."
    )


def _ratio(times: dict[str, list[float]]) -> str:
    return f"{statistics.median(times[_COMMON]) / statistics.median(times[_RARE]):.1f}x"


def _times(measured: Sequence[Measured], kind: str | None) -> Iterator[str]:
    for some in measured:
        for times in (some.searches, some.recalls):
            chosen = times[kind] if kind else [took for several in times.values() for took in several]
            yield f"{seconds(statistics.median(chosen))} / {seconds(_p99(chosen))}"


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def _compactions() -> str:
    """One long conversation, compacted whenever it is due: what each compaction adds to the database."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    try:
        settings = load_settings(environ={}, home=Home(FOLDER))
        path = FOLDER / "folded.db"
        messages = generate(seed=11, messages=_FOLDED, images=0).messages
        with Conversation.open(model="gpt-4.1", window=_WINDOW, settings=settings, store=f"sqlite:///{path}") as talk:
            for message in messages:
                talk.append(message)
                talk.request()
        database = sqlite3.connect(path)
        count, folds = database.execute("SELECT count(*), sum(length(body)) FROM folds").fetchone()
        (views,) = database.execute("SELECT sum(length(entries)) FROM generations").fetchone()
        (reports,) = database.execute("SELECT sum(length(report)) FROM attempts").fetchone()
        (log,) = database.execute("SELECT sum(length(body)) FROM messages").fetchone()
        database.close()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    rows = [[f"{count}", *(f"{part / count / 1000:,.1f} KB" for part in (folds, views, reports, log))]]
    header = ["compactions", "fold, each", "view, each", "report, each", "messages between two"]
    return (
        f"A conversation of {_FOLDED:,} messages in a window of {_WINDOW:,}, bytes as stored:\n\n{table(header, rows)}"
    )
