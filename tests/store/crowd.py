"""Many processes on one conversation: writers append, compactors compete."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from leporello.errors import LeaseLost, StoreBusy, StoreConflict, StoreUnavailable
from leporello.store import Store, StoreOptions, open_store
from tests.store.contract.base import contents, fold_all_but, user
from tests.store.crash import CONTEXT, heard

ID = "crowded"
_FOLDABLE = 8
"""As many messages of the view are worth a compaction."""
_STRETCH = 10
"""More than that: a writer that waits has left something to compact."""
_PATIENT = StoreOptions(wait_seconds=60.0, connections=2)


def append_all(url: str, name: str, count: int, pipe: Connection) -> None:
    """A writer: its messages one by one, each acknowledged. After an unclear failure it looks whether it was stored.

    Every `_STRETCH` messages it waits until there was one more compaction, so that writing and compacting are never one
    after the other, however slow the machine is.
    """
    with open_store(url, _PATIENT) as store:
        for n in range(count):
            message = user(f"{name}:{n}")
            while True:
                try:
                    if store.conversations.resolve(ID).generation < n // _STRETCH:
                        time.sleep(0.005)
                        continue
                    if store.log.find(ID, message) is None:
                        store.log.append(ID, [message])
                    break
                except (StoreBusy, StoreUnavailable):
                    time.sleep(0.02)
            pipe.send(n)


def compact_until(url: str, name: str, stop: Any, with_lease: bool, pipe: Connection) -> None:
    """A compactor: tries again and again, and tells the generations it won."""
    with open_store(url, _PATIENT) as store:
        while not stop.is_set():
            try:
                won = compact_once(store, name, with_lease)
            except (StoreConflict, LeaseLost, StoreBusy, StoreUnavailable):
                time.sleep(0.005)
                continue
            if won is not None:
                pipe.send(won)


def compact_once(store: Store, name: str, with_lease: bool) -> int | None:
    if len(store.views.view(ID).lines) < _FOLDABLE:
        time.sleep(0.005)
        return None
    lease = store.leases.acquire(ID, name, seconds=1.0) if with_lease else None
    if with_lease and lease is None:
        time.sleep(0.005)
        return None
    view = store.views.view(ID)
    generation = store.views.commit(ID, fold_all_but(view, 3, f"by {name}"), lease).generation
    if lease is not None:
        store.leases.release(lease)
    return generation


def run_crowd(url: str, writers: int, compactors: int, each: int, meanwhile: Callable[[], None]) -> None:
    """Let them all run, then check: nothing is lost, doubled or out of order, and every commit had one winner."""
    with open_store(url) as store:
        store.conversations.create(ID)
    stop = CONTEXT.Event()
    pipes: list[Connection] = []
    workers = []
    for n in range(writers):
        ours, theirs = CONTEXT.Pipe(duplex=False)
        workers.append((CONTEXT.Process(target=append_all, args=(url, f"w{n}", each, theirs)), theirs))
        pipes.append(ours)
    rivals = []
    for n in range(compactors):
        ours, theirs = CONTEXT.Pipe(duplex=False)
        rivals.append((CONTEXT.Process(target=compact_until, args=(url, f"c{n}", stop, n % 2 == 0, theirs)), theirs))
        pipes.append(ours)
    for process, theirs in [*workers, *rivals]:
        process.start()
        theirs.close()
    meanwhile()
    for process, _ in workers:
        process.join()
    stop.set()
    for process, _ in rivals:
        process.join()
    assert [process.exitcode for process, _ in [*workers, *rivals]] == [0] * (writers + compactors)
    told = [list(heard(pipe)) for pipe in pipes]
    check_crowd(url, writers, each, told[writers:])


def check_crowd(url: str, writers: int, each: int, won: list[list[int]]) -> None:
    with open_store(url) as store:
        texts = [item.message["content"] for item in store.log.iterate(ID)]
        assert len(texts) == writers * each
        for n in range(writers):
            assert [text for text in texts if text.startswith(f"w{n}:")] == [f"w{n}:{k}" for k in range(each)]
        generation = store.conversations.resolve(ID).generation
        claimed = sorted(number for mine in won for number in mine)
        assert len(claimed) == len(set(claimed)), "two compactors believe that they made the same generation"
        assert set(claimed) <= set(range(1, generation + 1))
        assert generation >= (each - 1) // _STRETCH >= 3
        assert len(store.sessions.all(ID)) == generation + 1
        view = store.views.view(ID)
        shown = contents(view)
        assert shown[0].startswith("by c")
        numbers = [line.number for line in view.lines[1:]]
        assert numbers == list(range(numbers[0] or 0, len(texts) + 1))
        assert store.care.checkup().findings == ()
