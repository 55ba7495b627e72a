"""What the gateway promises, once more on PostgreSQL: the same cases that run on a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import test_long_conversations, test_pass_through, test_sessions
from tests.gateway.clerks import close_clients
from tests.gateway.house import STORE_URL
from tests.store.server import Server

CASES: list[Callable[..., Any]] = [
    test_sessions.test_a_conversation,
    test_sessions.test_watching,
    test_sessions.test_commands_in_the_text,
    test_sessions.test_each_message_once,
    test_sessions.test_messages_wait_in_line,
    test_sessions.test_a_vanished_client_changes_nothing,
    test_sessions.test_clients_are_kept_apart,
    test_sessions.test_hygiene_comes_before_the_agent,
    test_sessions.test_idle_sessions_end,
    test_sessions.test_a_chat_service,
    test_pass_through.test_chat_is_the_same,
    test_pass_through.test_messages_are_the_same,
    test_pass_through.test_usage_is_recorded,
]


@pytest.fixture(autouse=True)
def _on_postgres(server: Server) -> Iterator[None]:
    token = STORE_URL.set(server.new_database())
    yield
    STORE_URL.reset(token)
    close_clients()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_on_postgres(case: Callable[..., Any], tmp_path: Path) -> None:
    """A case of the gateway's own tests."""
    if inspect.iscoroutinefunction(case):
        await case(tmp_path)
    else:
        case(tmp_path)


@pytest.mark.parametrize("kind", ["chat", "claude"])
def test_long_conversations_on_postgres(kind: str, tmp_path: Path) -> None:
    """Folded several times: every request fits, nothing is lost, a prefix breaks once for each fold."""
    test_long_conversations.test_two_hundred_turns(tmp_path, kind, 80, 2)
