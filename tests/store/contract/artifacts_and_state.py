"""Artifacts, pins, ledger snapshots and small state."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from hypothesis import given

from leporello.errors import InputError, NotFound
from leporello.store import Store
from leporello.store.records import LedgerSnapshot
from tests.store.contract.base import ContractBase, any_text, example_settings, json_values, user


class ArtifactsAndStateContract(ContractBase):
    """`store.artifacts`, `.pins`, `.ledgers`, `.state`."""

    def test_artifacts_come_back_whole_under_their_hash(self, store: Store) -> None:
        store.conversations.create("c")
        samples = [b"", b"\0", b"text " * 100_000, random.Random(1).randbytes(300_000)]
        handles = [store.artifacts.put("c", data, f"out-{n}\0") for n, data in enumerate(samples)]
        assert len(set(handles)) == 4
        assert [store.artifacts.get("c", handle) for handle in handles] == samples
        listed = store.artifacts.all("c")
        assert [info.handle for info in listed] == handles
        assert [info.size for info in listed] == [len(data) for data in samples]
        assert [info.name for info in listed] == [f"out-{n}\0" for n in range(4)]

    def test_the_same_bytes_are_kept_once(self, store: Store) -> None:
        store.conversations.create("c")
        data = random.Random(2).randbytes(100_000)
        first = store.artifacts.put("c", data, "first")
        sizes = sum(store.care.sizes().values())
        for _ in range(10):
            assert store.artifacts.put("c", data, "again") == first
        assert sum(store.care.sizes().values()) - sizes < 100_000
        assert [info.name for info in store.artifacts.all("c")] == ["first"]

    @pytest.mark.parametrize("handle", ["", "b2:", "b2:00", "nonsense", "b2:zz", "x" * 10_000, "b2:" + "0" * 32, "\0"])
    def test_an_unknown_handle_is_not_found(self, store: Store, handle: str) -> None:
        store.conversations.create("c")
        store.artifacts.put("c", b"x")
        with pytest.raises(NotFound):
            store.artifacts.get("c", handle)

    def test_artifacts_belong_to_their_conversation(self, store: Store) -> None:
        store.conversations.create("a")
        store.conversations.create("b")
        handle = store.artifacts.put("a", b"secret of a")
        with pytest.raises(NotFound):
            store.artifacts.get("b", handle)

    def test_pins(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("1"), user("2"), user("3")])
        store.pins.add("c", 3, "third")
        store.pins.add("c", 1, "first")
        store.pins.add("c", 3, "third again")
        assert [(pin.number, pin.note) for pin in store.pins.all("c")] == [(1, "first"), (3, "third again")]
        assert store.pins.remove("c", 3)
        assert not store.pins.remove("c", 3)
        assert not store.pins.remove("c", 2**70)
        for number in (0, 4, 2**70):
            with pytest.raises(NotFound):
                store.pins.add("c", number)

    def test_the_newest_fitting_ledger_is_found(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(20)])
        assert store.ledgers.latest("c", 1) is None
        for base in (5, 10, 15):
            store.ledgers.save("c", LedgerSnapshot(base, 1, b"ledger %d" % base))
        store.ledgers.save("c", LedgerSnapshot(15, 2, b"newer rules"))
        assert store.ledgers.latest("c", 1) == LedgerSnapshot(15, 1, b"ledger 15")
        assert store.ledgers.latest("c", 1, upto=12) == LedgerSnapshot(10, 1, b"ledger 10")
        assert store.ledgers.latest("c", 2) == LedgerSnapshot(15, 2, b"newer rules")
        assert store.ledgers.latest("c", 3) is None
        store.ledgers.save("c", LedgerSnapshot(15, 1, b"replaced"))
        assert store.ledgers.latest("c", 1) == LedgerSnapshot(15, 1, b"replaced")
        with pytest.raises(InputError):
            store.ledgers.save("c", LedgerSnapshot(21, 1, b""))

    def test_old_ledgers_do_not_pile_up(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(100)])
        for base in range(1, 101):
            store.ledgers.save("c", LedgerSnapshot(base, 1, b"x"))
        kept = sum(store.ledgers.latest("c", 1, upto=base) is not None for base in range(1, 101))
        assert 1 <= kept <= 10

    @example_settings
    @given(key=any_text.filter(bool), value=json_values)
    def test_state_keeps_any_json_value(self, store: Store, key: str, value: Any) -> None:
        if not store.conversations.exists("c"):
            store.conversations.create("c")
        for place in ("c", None):
            store.state.set(place, key, value)
            assert store.state.get(place, key) == value
            assert store.state.items(place)[key] == value
        assert store.state.remove("c", key)
        assert store.state.get("c", key) is None
        assert store.state.get(None, key) == value
        assert not store.state.remove("c", key)
        store.state.remove(None, key)

    def test_state_counters_are_atomic(self, store: Store) -> None:
        store.conversations.create("c")
        seen: list[int] = []

        def work() -> None:
            seen.extend(store.state.add("c", "attempts") for _ in range(20))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(1, 81))
        assert store.state.add("c", "attempts", -80) == 0
        store.state.set("c", "attempts", {"other": 1})
        assert store.state.add("c", "attempts", 2) == 2
        assert store.state.get("c", "attempts") == 2

    @pytest.mark.parametrize("key", ["", "k" * 201, "\0" * 150])
    def test_keys_have_a_sensible_length(self, store: Store, key: str) -> None:
        with pytest.raises(InputError):
            store.state.set(None, key, 1)
