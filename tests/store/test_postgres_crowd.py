"""Promise 12 on PostgreSQL: many workers with two connections each, while the server is restarted under them."""

from __future__ import annotations

import time

from leporello.store import open_store
from tests.store.crowd import ID, run_crowd
from tests.store.server import Server


def test_eight_writers_and_four_compactors_survive_a_restart(server: Server, postgres_url: str) -> None:
    def restart_in_the_middle() -> None:
        with open_store(postgres_url) as store:
            while store.log.count(ID) < 60:
                time.sleep(0.01)
        server.stop("fast")
        server.start()

    run_crowd(postgres_url, writers=8, compactors=4, each=40, meanwhile=restart_in_the_middle)
