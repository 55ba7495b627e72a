"""A server that is silent instead of down: calls end within their bound, and all is well when it speaks again."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from leporello.errors import StoreBusy, StoreUnavailable
from leporello.store import Store, StoreOptions, open_store
from leporello.store.postgres.database import network_options
from tests.store.contract.base import user
from tests.store.server import Server

OPTIONS = StoreOptions(wait_seconds=1.0, answer_seconds=2.0, connections=4)
BOUND = 8.0
"""Of a call, with room for a slow machine; the old code waited until the server spoke."""


def failing(store: Store) -> float:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        store.log.append("c", [user("lost")])
    return time.monotonic() - began


def test_calls_end_though_the_server_is_silent(server: Server, postgres_url: str) -> None:
    with open_store(postgres_url, OPTIONS) as store:
        store.conversations.create("c")
        with server.silent():
            assert failing(store) < BOUND
            assert failing(store) < BOUND
        deadline = time.monotonic() + 30
        while True:
            try:
                assert store.log.append("c", [user("kept")]) == [1]
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        assert store.log.count("c") == 1


def test_a_transaction_under_way_ends_too(server: Server, postgres_url: str) -> None:
    """Silence may begin between two statements."""
    with open_store(postgres_url, OPTIONS) as store:
        store.conversations.create("c")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="silent"), store.database.read() as tx, server.silent():
            tx.row("SELECT 1")
        assert time.monotonic() - began < BOUND


def test_a_queue_of_callers_is_through_as_soon_as_the_first(server: Server, postgres_url: str) -> None:
    """Four times as many callers as threads: those who come later do not each wait again."""
    with open_store(postgres_url, OPTIONS) as store, ThreadPoolExecutor(4) as threads:
        store.conversations.create("c")
        with server.silent():
            began = time.monotonic()
            list(threads.map(lambda _: failing(store), range(16)))
            assert time.monotonic() - began < BOUND


def test_a_silence_is_known_from_a_vain_wait_for_a_connection(server: Server, postgres_url: str) -> None:
    """One caller holds the only connection and waits long; of the others only the first waits in vain."""
    with open_store(postgres_url, StoreOptions(wait_seconds=1.0, answer_seconds=60.0, connections=1)) as store:
        store.conversations.create("c")
        with store.database.read(), server.silent():
            with pytest.raises(StoreUnavailable, match="connection"):
                store.log.count("c")
            with pytest.raises(StoreUnavailable, match="is silent"):
                store.log.count("c")


def test_opening_a_silent_server_ends(server: Server, postgres_url: str) -> None:
    began = time.monotonic()
    with server.silent(), pytest.raises(StoreUnavailable):
        open_store(postgres_url, OPTIONS)
    assert time.monotonic() - began < BOUND


def test_waiting_for_a_lock_is_not_silence(server: Server, postgres_url: str) -> None:
    """The bound on silence is never below the one on locks, which has an error of its own."""
    with open_store(postgres_url, StoreOptions(wait_seconds=2.0, answer_seconds=0.1)) as store:
        store.conversations.create("c")
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with store.database.write() as tx:
                tx.row("SELECT * FROM conversations WHERE conversation = 1 FOR UPDATE")
                held.set()
                done.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(30)
        try:
            with pytest.raises(StoreBusy):
                store.log.append("c", [user("no")])
        finally:
            done.set()
            holder.join()


def test_the_system_is_asked_to_notice_dead_lines() -> None:
    """Dropped packets: kept-alive connections and unanswered bytes are given up; what the URL says goes first."""
    assert network_options({}, 8.0)["tcp_user_timeout"] == 8000
    assert network_options({}, None) == {
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
    }
    assert "keepalives_idle" not in network_options({"keepalives_idle": "60"}, None)
