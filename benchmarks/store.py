"""The store beside the one inside hermes-agent, on the same messages, in one run; and how ours scales.

Both stores work in turns, some messages each, so that other work on the machine slows both alike. Appends are one
message a transaction with `synchronous=FULL`; every figure is wall time, with the processor's share beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import HERMES, ROOT, environment
from benchmarks.store_data import Place, Query, queries, read_texts, write_messages
from benchmarks.table import seconds, table
from leporello.events import CompactionReport, Outcome, Span, ViewEntry
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import CompactionRecord, StoredFold

# Two runs at once must not share files; both belong on the disk where the project is, not in memory.
FOLDER = ROOT / "build" / f"bench-store-{os.getpid()}"
LIMIT = 10
_TURN = 500
_REPEATS = 5
_TAIL = 40
_MEASURED = 2_000
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much to do."""

    messages: int
    few: int
    """Rows of the small store whose appends are compared with those of the large one."""
    many: int


FULL = Size(messages=100_000, few=10_000, many=1_000_000)
QUICK = Size(messages=5_000, few=2_000, many=50_000)


@dataclass(slots=True)
class Spent:
    """Added-up time."""

    wall: float = 0.0
    processor: float = 0.0

    def add(self, answer: dict[str, Any]) -> None:
        """One more answer of a driver."""
        self.wall += answer["seconds"]
        self.processor += answer["processor"]


class Driver:
    """A store in a process of its own."""

    def __init__(self, name: str, python: Path, file: Path) -> None:
        self.name = name
        self.folder = FOLDER / name
        self.folder.mkdir()
        self.append = Spent()
        self.catch_up = Spent()
        self._process = subprocess.Popen(
            [python, Path(__file__).with_name("store_driver.py"), name, self.folder, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
        )
        self._answer()

    def order(self, **order: Any) -> dict[str, Any]:
        """Have something done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> int:
        """End it; returns the bytes of its files."""
        self.order(do="close")
        self._process.wait()
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())

    def stop(self) -> None:
        """End it whatever it is doing."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver of {self.name} ended early")
        answer: dict[str, Any] = json.loads(line)
        return answer


def run() -> str:
    """All tables at full size."""
    return _run(FULL)


def run_quick() -> str:
    """The same on little data: shows that it works, says little about the figures."""
    return _run(QUICK)


def run_sized(messages: int) -> str:
    """The same on so many messages; the scale is measured up to ten times as many."""
    return _run(Size(messages, few=min(FULL.few, messages), many=messages * 10))


def _run(size: Size) -> str:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    try:
        return "\n\n".join([_beside_peer(size), _tip(size), _scale(size)])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


def _beside_peer(size: Size) -> str:
    file = FOLDER / "messages.jsonl"
    write_messages(file, size.messages)
    ours = Driver("leporello", Path(sys.executable), file)
    theirs = Driver("hermes", environment(HERMES), file)
    try:
        for first in range(0, size.messages, _TURN):
            for driver in (ours, theirs):
                driver.append.add(driver.order(do="append", first=first, last=first + _TURN))
                driver.catch_up.add(driver.order(do="catch_up"))
            _tell(f"appended {first + _TURN:,} of {size.messages:,}")
        asked = queries(size.messages)
        found = [_search((ours, theirs), query) for query in asked]
        sizes = (ours.close(), theirs.close())
    finally:
        ours.stop()
        theirs.stop()
    judged = _judge(found, read_texts(file))
    return "\n\n".join(
        [
            f"{size.messages:,} messages, {file.stat().st_size / 1e6:,.0f} MB as JSON; peer: {HERMES}.",
            _main_table(size, (ours, theirs), sizes, judged),
            f"Search: the best {LIMIT} of the whole store, median of {_REPEATS} runs of each query. Found: queries "
            "with an answering message among the hits.",
            _search_table(judged),
        ]
    )


@dataclass(frozen=True, slots=True)
class Searched:
    """One query on both stores: seconds (wall, processor) and places, ours first."""

    query: Query
    wall: tuple[float, float]
    processor: tuple[float, float]
    places: tuple[list[Place], list[Place]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A searched query and whether each store found an answer."""

    searched: Searched
    found: tuple[bool, bool]


def _search(drivers: tuple[Driver, Driver], query: Query) -> Searched:
    answers: list[list[dict[str, Any]]] = [[], []]
    for _ in range(_REPEATS):
        for number, driver in enumerate(drivers):
            answers[number].append(driver.order(do="search", query=query.text, limit=LIMIT))

    def median(number: int, name: str) -> float:
        return float(statistics.median(answer[name] for answer in answers[number]))

    places = [[(session, index) for session, index in some[0]["places"]] for some in answers]
    return Searched(
        query,
        (median(0, "seconds"), median(1, "seconds")),
        (median(0, "processor"), median(1, "processor")),
        (places[0], places[1]),
    )


def _judge(found: Sequence[Searched], texts: dict[Place, str]) -> list[Judged]:
    judged = []
    for searched in found:
        answers = searched.query.answers
        ours, theirs = (any(answers is None or answers(texts[place]) for place in places) for places in searched.places)
        judged.append(Judged(searched, (ours, theirs)))
    return judged


def _main_table(size: Size, drivers: tuple[Driver, Driver], sizes: tuple[int, int], judged: Sequence[Judged]) -> str:
    ours, theirs = drivers
    rows = [
        _per_message("append, one a transaction", size, ours.append, theirs.append, "3x"),
        _per_message(
            "until it can be found",
            size,
            Spent(ours.append.wall + ours.catch_up.wall, ours.append.processor + ours.catch_up.processor),
            theirs.append,
            "1.5x",
        ),
        ["database", *(f"{size / 1e6:,.0f} MB" for size in sizes), f"{sizes[0] / sizes[1]:.2f} of it", "half"],
        _median_row("search, median of all queries", judged, "5x"),
        _median_row("... of those the peer answers", [item for item in judged if item.found[1]], ""),
        _found_row(judged),
    ]
    return table(["", "Leporello", "hermes-agent", "ratio", "aim"], rows)


def _per_message(name: str, size: Size, ours: Spent, theirs: Spent, aim: str) -> list[str]:
    cells = [
        f"{seconds(spent.wall / size.messages)} ({seconds(spent.processor / size.messages)} processor)"
        for spent in (ours, theirs)
    ]
    ratio = f"{theirs.wall / ours.wall:.1f}x ({theirs.processor / ours.processor:.1f}x)"
    return [name, *cells, ratio, aim]


def _median_row(name: str, judged: Sequence[Judged], aim: str) -> list[str]:
    if not judged:
        return [name, "-", "-", "-", aim]
    wall = [statistics.median(item.searched.wall[number] for item in judged) for number in (0, 1)]
    return [name, seconds(wall[0]), seconds(wall[1]), f"{wall[1] / wall[0]:.1f}x", aim]


def _found_row(judged: Sequence[Judged]) -> list[str]:
    asked = [item for item in judged if item.searched.query.answers is not None]
    counts = [sum(item.found[number] for item in asked) for number in (0, 1)]
    return ["queries answered", *(f"{count} of {len(asked)}" for count in counts), "", "no fewer"]


def _search_table(judged: Sequence[Judged]) -> str:
    kinds = list(dict.fromkeys(item.searched.query.kind for item in judged))
    rows = []
    for kind in kinds:
        some = [item for item in judged if item.searched.query.kind == kind]
        known = some[0].searched.query.answers is not None
        wall = [statistics.median(item.searched.wall[number] for item in some) for number in (0, 1)]
        found = [f"{sum(item.found[number] for item in some)} of {len(some)}" if known else "-" for number in (0, 1)]
        rows.append([kind, f"`{some[0].searched.query.text}`", *map(seconds, wall), *found])
    return table(["kind", "for example", "Leporello", "hermes-agent", "found", "found by the peer"], rows)


def _tip(size: Size) -> str:
    """Opening a folded conversation: what the model sees is read, the history is not."""
    lengths = (size.messages // 100, size.messages)
    times: dict[int, list[float]] = {length: [] for length in lengths}
    for length in lengths:
        with _filled(f"tip-{length}", length) as store:
            _fold(store)
    for _ in range(20):
        for length in lengths:
            begun = time.perf_counter()
            with open_store(str(FOLDER / f"tip-{length}.db")) as store:
                assert len(store.views.view("long").lines) == _TAIL + 1
            times[length].append(time.perf_counter() - begun)
    for length in lengths:
        _remove(f"tip-{length}")
    rows = [[f"{length:,}", seconds(statistics.median(times[length]))] for length in lengths]
    return (
        f"Opening the store and a conversation's newest session, folded to {_TAIL + 1} messages, median of 20:\n\n"
        + table(["messages of its log", "time"], rows)
    )


def _fold(store: Store) -> None:
    view = store.views.view("long")
    covered = Span(1, view.last - _TAIL)
    store.views.commit(
        "long",
        CompactionRecord(
            base_generation=view.generation,
            base_last=view.last,
            entries=[
                ViewEntry(inline={"role": "assistant", "content": "What happened so far."}, fold="f1"),
                *(ViewEntry(ref=number) for number in range(covered.last + 1, view.last + 1)),
            ],
            report=CompactionReport(Outcome.COMMITTED, fold="f1", covered=covered),
            folds=[StoredFold("f1", covered, "What happened so far.")],
        ),
    )


def _scale(size: Size) -> str:
    """The cost of one append at few and at many rows, all in one conversation, in turns."""
    spent: dict[int, Spent] = {}
    with _filled("few", size.few) as few, _filled("many", size.many) as many:
        stores = {size.few: few, size.many: many}
        fresh = {length: iter(_messages(_MEASURED, "measured")) for length in stores}
        for _ in range(_MEASURED // 100):
            for length, store in stores.items():
                some = [next(fresh[length]) for _ in range(100)]
                begun, worked = time.perf_counter(), time.process_time()
                for message in some:
                    store.log.append("long", [message])
                done = spent.setdefault(length, Spent())
                done.wall += time.perf_counter() - begun
                done.processor += time.process_time() - worked
    first, last = spent[size.few], spent[size.many]
    rows = [
        [f"{length:,}", *(seconds(value / _MEASURED) for value in (some.wall, some.processor))]
        for length, some in spent.items()
    ]
    ratio = f"{last.wall / first.wall:.2f}x by the clock, {last.processor / first.processor:.2f}x of the processor"
    return f"One append, mean of {_MEASURED:,}, all rows in one conversation: {ratio} (aim: at most 1.3x).\n\n" + table(
        ["rows", "one append", "processor"], rows
    )


@contextmanager
def _filled(name: str, length: int) -> Iterator[Store]:
    """A store with one conversation of so many messages; filled without waiting for the disk."""
    path = str(FOLDER / f"{name}.db")
    with open_store(path, StoreOptions(synchronous="OFF")) as store:
        store.conversations.create("long")
        batch: list[dict[str, Any]] = []
        for message in _messages(length, name):
            batch.append(message)
            if len(batch) == _BATCH:
                store.log.append("long", batch)
                batch = []
                _tell(f"{name}: {store.log.count('long'):,} of {length:,}")
        store.log.append("long", batch)
    with open_store(path) as store:
        yield store


def _messages(count: int, mark: str) -> Iterator[dict[str, Any]]:
    """Messages of ordinary size, each different from all others."""
    with (FOLDER / "messages.jsonl").open(encoding="utf-8") as lines:
        known = [json.loads(line)[1] for line, _ in zip(lines, range(_BATCH), strict=False)]
    texts = [text for message in known if isinstance(text := message.get("content"), str) and 0 < len(text) < 4_000]
    for number in range(count):
        yield {"role": "user", "content": f"{mark} {number}\n{texts[number % len(texts)]}"}


def _remove(name: str) -> None:
    for file in FOLDER.glob(f"{name}.db*"):
        file.unlink()


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
