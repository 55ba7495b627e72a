"""Leases: one holder, tokens that only grow, dead holders replaced."""

from __future__ import annotations

import threading

import pytest

from leporello.errors import LeaseLost, NotFound
from leporello.store import Store, StoreOptions
from tests.store.contract.base import ContractBase, user


class LeasesContract(ContractBase):
    """`store.leases`."""

    def test_one_holder_at_a_time(self, store: Store) -> None:
        store.conversations.create("c")
        store.conversations.create("d")
        mine = store.leases.acquire("c", "me")
        assert mine is not None
        assert store.leases.acquire("c", "you") is None
        assert store.leases.holder("c") == mine
        assert store.leases.acquire("d", "you") is not None
        store.leases.release(mine)
        assert store.leases.holder("c") is None
        yours = store.leases.acquire("c", "you")
        assert yours is not None
        assert yours.token > mine.token
        store.leases.release(mine)
        assert store.leases.holder("c") == yours

    def test_a_dead_holder_is_replaced_when_its_time_is_over(self, url: str) -> None:
        moment = [1000.0]
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            store.conversations.create("c")
            dead = store.leases.acquire("c", "dead", seconds=5.0)
            assert dead is not None
            moment[0] += 4.9
            assert store.leases.acquire("c", "next", seconds=5.0) is None
            moment[0] += 0.2
            alive = store.leases.acquire("c", "next", seconds=5.0)
            assert alive is not None
            assert alive.token > dead.token
            with pytest.raises(LeaseLost):
                store.leases.renew(dead)
            store.leases.release(dead)
            assert store.leases.holder("c") == alive

    def test_renewing_holds_it_longer(self, url: str) -> None:
        moment = [1000.0]
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            store.conversations.create("c")
            lease = store.leases.acquire("c", "me", seconds=5.0)
            assert lease is not None
            for _ in range(4):
                moment[0] += 4.0
                lease = store.leases.renew(lease, seconds=5.0)
                assert store.leases.acquire("c", "you") is None
            assert lease.expires_at == moment[0] + 5.0

    def test_a_released_lease_cannot_be_renewed(self, store: Store) -> None:
        store.conversations.create("c")
        lease = store.leases.acquire("c", "me")
        assert lease is not None
        store.leases.release(lease)
        with pytest.raises(LeaseLost):
            store.leases.renew(lease)

    def test_appends_do_not_wait_for_a_lease(self, store: Store) -> None:
        store.conversations.create("c")
        assert store.leases.acquire("c", "compactor", seconds=600.0) is not None
        assert store.log.append("c", [user("a")]) == [1]

    def test_many_at_once_give_one_holder(self, store: Store) -> None:
        store.conversations.create("c")
        got = []

        def work(name: str) -> None:
            got.append(store.leases.acquire("c", name, seconds=60.0))

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(lease is not None for lease in got) == 1

    def test_a_lease_needs_a_conversation(self, store: Store) -> None:
        with pytest.raises(NotFound):
            store.leases.acquire("nobody", "me")
