"""The PostgreSQL server of these tests, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def postgres_url(server: Server) -> str:
    return server.emptied_database()
