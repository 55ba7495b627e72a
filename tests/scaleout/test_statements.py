"""The same statements for a message as on a file; and no question whether a connection lives that was just used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.gateway.clerks import close_clients
from tests.gateway.house import STORE_URL, House
from tests.gateway.test_statements import Listen, check_agent_message, check_budgeted_request, check_passed_request
from tests.store.server import Server
from tests.support.statements import Heard, listening_to_postgres, log_statements


@pytest.fixture
def listen(server: Server) -> Iterator[Listen]:
    url = server.new_database()
    log_statements(url)
    token = STORE_URL.set(url)

    def listening(house: House) -> AbstractContextManager[Heard]:
        return listening_to_postgres(server.folder)

    yield listening
    STORE_URL.reset(token)
    close_clients()


@pytest.mark.parametrize(
    "check", [check_agent_message, check_passed_request, check_budgeted_request], ids=lambda check: check.__name__
)
def test_on_postgres(check: Callable[[Path, Listen], None], listen: Listen, tmp_path: Path) -> None:
    check(tmp_path, listen)
