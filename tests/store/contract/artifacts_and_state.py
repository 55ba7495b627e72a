"""Artifacts, pins, ledger snapshots and small state."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from leporello.errors import InputError, NotFound
from leporello.events import Span
from leporello.store import Store
from leporello.store.records import LedgerSnapshot, StatedValue
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

    def test_values_are_written_with_the_ledger(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"message {number}") for number in range(1, 10)])
        old = StatedValue("port", "5433", 2, "The port is 5433.", task=1)
        store.ledgers.save("c", LedgerSnapshot(4, 1, b"x", [old]))
        (kept,) = store.values.all("c")
        assert (kept.subject, kept.value, kept.message, kept.replaced_by, kept.task) == ("port", "5433", 2, None, 1)
        assert kept.since is not None
        new = StatedValue("port", "6011", 7, "The port is 6011.", task=6)
        store.ledgers.save("c", LedgerSnapshot(9, 1, b"y", [replace(old, replaced_by=7), new]))
        assert [(said.value, said.replaced_by) for said in store.values.all("c")] == [("5433", 7), ("6011", None)]
        assert [said.value for said in store.values.all("c", Span(5, 9))] == ["6011"]

    def test_values_of_another_ledger_version_are_written_anew(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("one"), user("two")])
        store.ledgers.save("c", LedgerSnapshot(2, 1, b"x", [StatedValue("port", "1", 1, "old reading")]))
        store.ledgers.save("c", LedgerSnapshot(2, 2, b"y", [StatedValue("port", "2", 2, "new reading")]))
        assert [said.text for said in store.values.all("c")] == ["new reading"]

    def test_a_branch_has_the_values_up_to_where_it_began(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"message {number}") for number in range(1, 10)])
        values = [StatedValue("port", "5433", 2, "five", 7), StatedValue("port", "6011", 7, "six")]
        store.ledgers.save("c", LedgerSnapshot(9, 1, b"x", values))
        store.conversations.branch("c", 5, "b")
        assert [(said.value, said.replaced_by) for said in store.values.all("b")] == [("5433", None)]
        store.conversations.delete("c")
        assert len(store.values.all("b")) == 1

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
