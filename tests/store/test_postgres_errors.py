"""What is said when PostgreSQL fails: whether something was written is known, unless a COMMIT was not answered."""

from __future__ import annotations

import psycopg
import pytest

from leporello.errors import StoreUnavailable
from leporello.store.postgres.database import translate


@pytest.mark.parametrize(
    ("committing", "said", "unsaid"),
    [
        (False, "Nothing was written", "unknown"),
        (True, "Whether the last write arrived is unknown", "Nothing was written"),
    ],
)
def test_a_lost_connection(committing: bool, said: str, unsaid: str) -> None:
    error = translate(psycopg.OperationalError("server closed the connection"), "postgresql://host/db", 10, committing)
    assert isinstance(error, StoreUnavailable)
    assert said in str(error)
    assert unsaid not in str(error)


def test_a_connection_is_taken_for_lost_before_a_commit_unless_told() -> None:
    assert "Nothing was written" in str(translate(psycopg.OperationalError("gone"), "postgresql://host/db", 10))
