"""The PostgreSQL server of these tests, started once for each process of the test run."""

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
def database(server: Server) -> str:
    """The URL of an empty database."""
    return server.new_database()
