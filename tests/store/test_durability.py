"""Which writes wait for the disk: everything but the index, which can be made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leporello.errors import StoreError
from leporello.store import StoreOptions
from leporello.store.sqlite import open_sqlite
from tests.store.contract.base import user

OFF, NORMAL, FULL = 0, 1, 2


def level(tx: Any) -> int:
    found: int = tx.row("PRAGMA synchronous")[0]
    return found


@pytest.mark.parametrize(("chosen", "durable", "hurried"), [("FULL", FULL, NORMAL), ("NORMAL", NORMAL, NORMAL)])
def test_only_the_index_is_written_without_waiting(tmp_path: Path, chosen: str, durable: int, hurried: int) -> None:
    """And what comes after it waits again, even when the indexing failed."""
    with open_sqlite(str(tmp_path / "s.db"), StoreOptions(synchronous=chosen)) as store:
        store.conversations.create("c")
        store.log.append("c", [user("one")])
        store.index.catch_up()
        with store.database.write() as tx:
            assert level(tx) == durable
        with store.database.write(durable=False) as tx:
            assert level(tx) == hurried
        with pytest.raises(StoreError), store.database.write(durable=False) as tx:
            tx.run("INSERT INTO conversations SELECT * FROM conversations")
        with store.database.write() as tx:
            assert level(tx) == durable
            assert tx.rows("SELECT indexed FROM conversations") == [(1,)]
