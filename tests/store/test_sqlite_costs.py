"""What an operation costs, counted in steps of SQLite's machine: no clock, so it holds on any computer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from leporello.store import Store, open_store
from leporello.store.sql.encoding import pack_json
from tests.store.contract.base import contents, fold_all_but, user


def steps(store: Store, work: Callable[[], object]) -> int:
    """How many steps the database took."""
    taken = [0]

    def count() -> int:
        taken[0] += 1
        return 0

    database = store.database
    with database.alone() as writer:
        writer.set_progress_handler(count, 1)
    readers = list(database._readers)
    for reader in readers:
        reader.set_progress_handler(count, 1)
    work()
    with database.alone() as writer:
        writer.set_progress_handler(None, 1)
    for reader in readers:
        reader.set_progress_handler(None, 1)
    return taken[0]


def test_appending_costs_the_same_however_long_the_conversation_is(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        store.conversations.create("c")
        costs = []
        for total in (100, 10_000):
            missing = total - store.log.count("c")
            store.log.append("c", [user(f"{total} {n}") for n in range(missing)])
            costs.append(steps(store, lambda: store.log.append("c", [user(f"one more {len(costs)}")])))
        assert costs[1] <= costs[0] * 1.1
        assert costs[0] > 20


def test_opening_a_long_conversation_does_not_read_its_history(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    costs = []
    for total in (200, 10_000):
        with open_store(str(path)) as store:
            id = f"of {total}"
            store.conversations.create(id)
            store.log.append(id, [user(f"{n}") for n in range(1, total + 1)])
            store.views.commit(id, fold_all_but(store.views.view(id), 10))
        # Damage all that is folded: whoever reads it fails.
        other = sqlite3.connect(path)
        other.execute(
            "UPDATE messages SET body = x'ff' WHERE number <= ? AND conversation = "
            "(SELECT max(conversation) FROM conversations)",
            (total - 10,),
        )
        other.commit()
        other.close()
        with open_store(str(path)) as store:
            store.log.append(id, [user("next")])
            store.views.view(id)
            costs.append(steps(store, lambda id=id: store.views.view(id)))  # type: ignore[misc]
            assert contents(store.views.view(id)) == ["summary", *map(str, range(total - 9, total + 1)), "next"]
    assert costs[1] <= costs[0] * 1.1
    assert costs[0] > 20


def test_a_compaction_writes_what_it_folds_to_and_not_what_it_folds(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        store.conversations.create("c")
        store.log.append("c", [user(f"{n} " + "text " * 200) for n in range(2000)])
        view = store.views.view("c")
        before = sum(store.care.sizes().values())
        for _ in range(20):
            view = store.views.commit("c", fold_all_but(view, 500, "short"))
        assert sum(store.care.sizes().values()) - before < 200_000


def test_what_a_view_shows_of_a_fold_is_not_stored_again_with_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    told = " ".join(str(number * 7919 % 100_003) for number in range(4_000))
    with open_store(str(path)) as store:
        store.conversations.create("c")
        store.log.append("c", [user(f"{n}") for n in range(20)])
        store.views.commit("c", fold_all_but(store.views.view("c"), 5, told))
        (fold,) = store.views.folds("c")
        assert fold.text == told
        assert store.views.fold("c", fold.id) == fold
        other = sqlite3.connect(path)
        view, body = (
            other.execute(f"SELECT max(length({column})) FROM {table}").fetchone()[0]
            for table, column in (("generations", "entries"), ("folds", "body"))
        )
        assert body * 10 < view
        # Folds of earlier stores were written without their view.
        alone = pack_json({"text": told, "handoff": fold.handoff, "children": []}, "a fold")
        other.execute("UPDATE folds SET body = ?", (alone,))
        other.commit()
        other.close()
        assert store.views.folds("c") == [fold]
