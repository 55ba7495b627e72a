"""Arguments that make no sense together or alone: exit code 2 and a line that says what to give instead."""

from __future__ import annotations

import pytest

from leporello.config import Home
from tests.conftest import RunCli


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "--model", "gpt-4o", "--continue", "--resume", "talk-7", "go on"], ["--continue", "--resume"]),
        (["sessions", "search", ""], ["QUERY"]),
        (["sessions", "search", " \t", "--json"], ["QUERY"]),
        (["sessions", "search", "zebra", "--role", "wizard"], ["--role", "wizard", "assistant"]),
    ],
)
def test_a_usage_error_is_exit_2_and_touches_nothing(run_cli: RunCli, arguments: list[str], named: list[str]) -> None:
    """Nothing is printed to stdout, no store is made."""
    ran = run_cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert all(word in ran.err for word in named)
    assert not list(Home.from_environment().path.glob("*.db"))
