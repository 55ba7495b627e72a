"""Check-up, sizes, vacuum and backup; many threads on one store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from leporello.errors import InputError, StoreUnavailable
from leporello.store import Store, open_store
from tests.store.contract.base import ContractBase, contents, fold_all_but, tool_turn, user


def lived_in(store: Store) -> None:
    """Two conversations that have seen everything."""
    for id in ("a", "b"):
        store.conversations.create(id)
        store.log.append(id, [user(f"{n} in {id}") for n in range(30)] + tool_turn("bash", "out") + [user("0 in a")])
        store.views.commit(id, fold_all_but(store.views.view(id), 5))
        store.log.append(id, [user("later")])
        store.artifacts.put(id, b"artifact " * 1000)
        store.pins.add(id, 2)
    store.views.undo("b")
    store.index.catch_up()


class CareContract(ContractBase):
    """`store.care`, and the store as a whole."""

    def test_a_check_up_counts_and_finds_nothing_wrong(self, store: Store) -> None:
        lived_in(store)
        found = store.care.checkup()
        assert (found.conversations, found.messages, found.artifacts, found.pending) == (2, 68, 2, 0)
        assert found.clean
        assert sum(found.sizes.values()) > 10_000

    def test_vacuum_keeps_everything(self, store: Store) -> None:
        lived_in(store)
        view = store.views.view("a")
        store.care.vacuum()
        assert store.views.view("a") == view
        assert store.care.checkup().clean

    def test_a_backup_is_a_whole_store(self, store: Store, tmp_path: Path) -> None:
        lived_in(store)
        target = tmp_path / "copy.db"
        store.care.backup(str(target))
        with open_store(str(target)) as copy:
            assert copy.care.checkup().clean
            for id in ("a", "b"):
                assert contents(copy.views.view(id)) == contents(store.views.view(id))
                assert list(copy.log.iterate(id)) == list(store.log.iterate(id))
                assert copy.conversations.resolve(id) == store.conversations.resolve(id)
                assert copy.artifacts.all(id) == store.artifacts.all(id)
        with pytest.raises(InputError):
            store.care.backup(str(target))

    def test_a_closed_store_says_so(self, url: str) -> None:
        store = self.open(url)
        store.conversations.create("c")
        store.close()
        store.close()
        with pytest.raises(StoreUnavailable):
            store.log.append("c", [user("x")])
        with pytest.raises(StoreUnavailable):
            store.views.view("c")

    def test_two_openings_see_each_others_writes(self, url: str) -> None:
        with self.open(url) as one, self.open(url) as two:
            one.conversations.create("c")
            two.log.append("c", [user("from two")])
            one.views.commit("c", fold_all_but(one.views.view("c"), 1))
            assert contents(two.views.view("c")) == ["summary", "from two"]

    def test_threads_may_share_a_store(self, store: Store) -> None:
        """Readers and writers in many threads: every append is there, in order for each writer."""
        store.conversations.create("c")
        failures: list[BaseException] = []

        def write(name: int) -> None:
            for n in range(20):
                store.log.append("c", [user(f"{name}:{n}")])

        def read() -> None:
            try:
                for _ in range(20):
                    view = store.views.view("c")
                    assert [line.number for line in view.lines] == list(range(1, view.last + 1))
                    store.index.catch_up()
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                failures.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        texts = [item.message["content"] for item in store.log.iterate("c")]
        assert len(texts) == 80
        for name in range(4):
            assert [t for t in texts if t.startswith(f"{name}:")] == [f"{name}:{n}" for n in range(20)]
