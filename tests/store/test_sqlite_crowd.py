"""Promise 12 on SQLite: appends of many processes all arrive, and each generation has exactly one winner."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

from leporello.store import open_store
from tests.store.contract.base import user
from tests.store.crash import CONTEXT
from tests.store.crowd import run_crowd


def test_eight_writers_and_four_compactors(tmp_path: Path) -> None:
    run_crowd(f"sqlite:///{tmp_path}/store.db", writers=8, compactors=4, each=40, meanwhile=lambda: None)


def hold_lease(url: str, pipe: Connection) -> None:
    with open_store(url) as store:
        pipe.send(store.leases.acquire("c", "doomed", seconds=0.5))
        time.sleep(60)


def test_the_lease_of_a_killed_process_is_taken_over_within_seconds(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_store(url) as store:
        store.conversations.create("c")
        ours, theirs = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=hold_lease, args=(url, theirs), daemon=True)
        child.start()
        dead = ours.recv()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert store.log.append("c", [user("appends do not wait")]) == [1]
        deadline = time.monotonic() + 10
        lease = store.leases.acquire("c", "heir")
        while lease is None and time.monotonic() < deadline:
            time.sleep(0.02)
            lease = store.leases.acquire("c", "heir")
        assert lease is not None
        assert lease.token > dead.token
