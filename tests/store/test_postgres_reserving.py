"""Reservations of one day, made, renewed and cleared away by several workers at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from leporello.errors import StoreBusy
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import DayUse, Reservation

FIRST, SECOND = Reservation("key", "a", 1, 0.0), Reservation("key", "b", 1, 0.0)
BESIDE = ("tokens", "nanos")


def allow(_: DayUse) -> None:
    """Everything may be reserved."""


def reserve(store: Store, id: str, seconds: float = 10.0) -> None:
    store.usage.reserve(Reservation("key", id, 1, 0.0), store.database.now() / 1000, BESIDE, seconds, allow)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_clearing_away_what_ended_waits_for_nobody(postgres_url: str) -> None:
    """A worker renews, in the order of names, what lies in the table in another order and has ended meanwhile. Whoever
    clears that away must not wait for rows of it while it holds others. Breaks where DELETE takes locked rows, too."""
    now = [1_000_000.0]
    clocked = StoreOptions(clock=lambda: now[0])
    with open_store(postgres_url, clocked) as store, psycopg.connect(postgres_url) as third:
        store.usage.reserve(SECOND, now[0], BESIDE, 1.0, allow)
        store.usage.reserve(FIRST, now[0], BESIDE, 1.0, allow)
        now[0] += 60

        def waiting() -> int:
            row = third.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
            return 0 if row is None else int(row[0])

        third.execute("SELECT 1 FROM leporello.reservations WHERE id = 'b' FOR UPDATE")
        with ThreadPoolExecutor(2) as threads:
            reserving = threads.submit(reserve, store, "c")
            until(lambda: reserving.done() or waiting() == 1)
            renewing = threads.submit(store.usage.renew_reservations, [FIRST, SECOND], 10.0)
            until(lambda: waiting() == (1 if reserving.done() else 2))
            third.rollback()
            reserving.result()
            renewing.result()
        with store.database.read() as tx:
            rows = tx.rows("SELECT id FROM reservations WHERE expires > ? ORDER BY id", store.database.now())
        assert [row[0] for row in rows] == ["a", "b", "c"]


def test_workers_that_renew_and_clear_away_never_stand_in_each_others_way(postgres_url: str) -> None:
    """Everything ends as soon as it was made, so that each reservation clears away what others are just renewing."""
    options = StoreOptions(connections=16, wait_seconds=20.0)
    problems: list[StoreBusy] = []
    stop = threading.Event()
    with open_store(postgres_url, options) as store:
        held = [Reservation("key", f"{place * 7919 % 97:03}", 1, 0.0) for place in range(24)]

        def renew(place: int) -> None:
            mine = held[place::4]
            while not stop.is_set():
                try:
                    store.usage.renew_reservations(mine, 0.0)
                except StoreBusy as error:
                    problems.append(error)

        with ThreadPoolExecutor(8) as threads:
            renewers = [threads.submit(renew, place) for place in range(4)]
            try:
                reserving = [
                    threads.submit(reserve, store, f"new-{place}-{number}", 0.0)
                    for number in range(40)
                    for place in range(4)
                ]
                for task in reserving:
                    task.result()
            finally:
                stop.set()
            for task in renewers:
                task.result()
    if problems:
        pytest.fail(f"{len(problems)} of them: {problems[0]}")
