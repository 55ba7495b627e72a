"""Copies between stores are whole and verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.errors import StoreConflict
from leporello.events import CompactionReport, Outcome
from leporello.store import Store, open_store
from leporello.store.records import LedgerSnapshot, Metadata, ModelCall, SearchQuery
from leporello.store.sql.copying import copy_store
from leporello.usage import CanonicalUsage
from tests.store.contract.base import ODD_IDS, fold_all_but, tool_turn, user


def lived_in(store: Store) -> list[str]:
    """Conversations with everything a store can hold."""
    ids = ["plain", "\0odd\ud800", *ODD_IDS[5:8]]
    for id in ids:
        store.conversations.create(id, Metadata(title=f"{id} title", system_prompt="prompt", custom={"b": 1, "a": 2}))
        store.log.append(
            id, [user(f"{n} of {id}") for n in range(700)] + tool_turn("bash", "out\0") + [user("0 of x")] * 2
        )
        store.views.commit(id, fold_all_but(store.views.view(id), 5))
        store.views.record_attempt(id, CompactionReport(Outcome.FAILED, reason="no model"))
        store.log.append(id, [user("later")])
        store.usage.add(id, ModelCall(CanonicalUsage(1, 2, 3, 4, 5), "m", cost=0.25))
        store.artifacts.put(id, b"artifact " * 20_000, "log.txt")
        store.pins.add(id, 2, "keep")
        store.ledgers.save(id, LedgerSnapshot(10, 1, b"ledger"))
        store.state.add(id, "attempts", 3)
        store.state.set(id, "calibration", {"x": 1.5})
    store.views.undo(ids[0])
    store.conversations.end(ids[1], "exit")
    store.state.set(None, "windows", {"m": 1})
    return ids


def same(left: Store, right: Store, ids: list[str]) -> None:
    for id in ids:
        assert left.conversations.resolve(id) == right.conversations.resolve(id)
        assert left.sessions.all(id) == right.sessions.all(id)
        assert list(left.log.iterate(id)) == list(right.log.iterate(id))
        assert left.views.view(id) == right.views.view(id)
        assert left.views.generations(id) == right.views.generations(id)
        assert left.views.folds(id) == right.views.folds(id)
        assert left.views.attempts(id) == right.views.attempts(id)
        assert left.usage.totals(id) == right.usage.totals(id)
        assert left.artifacts.all(id) == right.artifacts.all(id)
        assert left.pins.all(id) == right.pins.all(id)
        assert left.ledgers.latest(id, 1) == right.ledgers.latest(id, 1)
        assert left.state.items(id) == right.state.items(id)
        query = SearchQuery("17 of", conversation=id)
        assert {hit.number for hit in left.index.search(query)} == {hit.number for hit in right.index.search(query)}
    assert left.state.items(None) == right.state.items(None)


def test_from_sqlite_to_postgres_and_back(tmp_path: Path, postgres_url: str) -> None:
    told: list[tuple[int, int]] = []
    with open_store(str(tmp_path / "a.db")) as first, open_store(postgres_url) as second:
        ids = lived_in(first)
        copied = copy_store(first, second, lambda done, total: told.append((done, total)))
        assert (copied.conversations, copied.messages) == (len(ids), sum(first.log.count(id) for id in ids))
        assert told == [(n, len(ids)) for n in range(1, len(ids) + 1)]
        same(first, second, ids)
        assert second.care.checkup().clean
        with open_store(str(tmp_path / "b.db")) as third:
            copy_store(second, third)
            same(first, third, ids)
            assert third.care.checkup().clean


def test_a_taken_id_stops_the_copy_and_leaves_the_target_alone(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db")) as source, open_store(str(tmp_path / "b.db")) as target:
        source.conversations.create("c")
        source.log.append("c", [user("of the source")])
        target.conversations.create("c")
        target.log.append("c", [user("of the target")])
        with pytest.raises(StoreConflict):
            copy_store(source, target)
        assert target.log.message("c", 1).message == user("of the target")
        assert target.care.checkup().clean
