"""The inbox: each message once, in order, whoever answers it; and the fence around whoever lost its turn."""

from __future__ import annotations

import threading

import pytest

from leporello.errors import InboxConflict, InboxFull, LeaseLost, NotFound
from leporello.store import Fence, Store, StoreOptions
from tests.store.contract.base import ContractBase, contents, user


class InboxContract(ContractBase):
    """`store.inbox`, `store.turns` and `store.behind`."""

    def test_a_message_from_arrival_to_its_end(self, store: Store) -> None:
        store.conversations.create("c")
        posted = store.inbox.enqueue("c", "id-1", "Hello\ud83d \0")
        assert (posted.number, posted.attempts, posted.message, posted.outcome) == (1, 0, None, None)
        assert store.inbox.waiting("c") == [posted]
        assert store.inbox.begin("c", "id-1").attempts == 1
        number = store.inbox.append_to_log("c", "id-1", user(posted.text))
        assert store.log.message("c", number).message == user("Hello\ud83d \0")
        store.inbox.end("c", "id-1", {"status": "done", "text": "Hi"})
        ended = store.inbox.get("c", "id-1")
        assert ended.outcome == {"status": "done", "text": "Hi"}
        assert (ended.text, ended.message) == ("", number)
        assert store.inbox.waiting("c") == []

    def test_the_same_id_is_the_same_message(self, store: Store) -> None:
        store.conversations.create("c")
        store.conversations.create("d")
        first = store.inbox.enqueue("c", "x", "one")
        assert store.inbox.enqueue("c", "x", "one") == first
        assert store.inbox.enqueue("d", "x", "three").text == "three"
        store.inbox.end("c", "x", {"status": "done"})
        assert store.inbox.enqueue("c", "x", "one").outcome == {"status": "done"}
        store.inbox.end("c", "x", {"status": "failed"})
        assert store.inbox.get("c", "x").outcome == {"status": "done"}

    def test_an_id_stands_for_one_text_also_when_the_message_has_ended(self, store: Store) -> None:
        store.conversations.create("c")
        store.inbox.enqueue("c", "entered", "one")
        store.inbox.enqueue("c", "command", "/compress")
        for _ in range(2):
            for id in ("entered", "command"):
                with pytest.raises(InboxConflict):
                    store.inbox.enqueue("c", id, "two")
            store.inbox.append_to_log("c", "entered", user("one, as the log has it"))
            store.inbox.end("c", "entered", {"status": "done"})
            store.inbox.end("c", "command", {"status": "done"})
        assert store.inbox.enqueue("c", "entered", "one").outcome == {"status": "done"}
        assert store.inbox.enqueue("c", "command", "/compress").outcome == {"status": "done"}
        assert store.log.count("c") == 1

    def test_a_message_enters_the_log_once(self, store: Store) -> None:
        store.conversations.create("c")
        store.inbox.enqueue("c", "x", "one")
        numbers = {store.inbox.append_to_log("c", "x", user("one")) for _ in range(3)}
        assert len(numbers) == 1
        assert store.log.count("c") == 1

    def test_messages_wait_in_the_order_of_their_arrival(self, store: Store) -> None:
        store.conversations.create("c")
        for number in range(12):
            store.inbox.enqueue("c", f"id-{number}", f"word {number}")
        store.inbox.end("c", "id-3", {})
        left = [number for number in range(12) if number != 3]
        assert [item.id for item in store.inbox.waiting("c", limit=1)] == ["id-0"]
        assert [item.text for item in store.inbox.waiting("c")] == [f"word {number}" for number in left]

    def test_an_inbox_may_be_full(self, store: Store) -> None:
        store.conversations.create("c")
        store.inbox.enqueue("c", "a", "one", most=1)
        with pytest.raises(InboxFull):
            store.inbox.enqueue("c", "b", "two", most=1)
        assert store.inbox.enqueue("c", "a", "one", most=1).number == 1
        store.inbox.end("c", "a", {})
        assert store.inbox.enqueue("c", "b", "two", most=1).text == "two"

    def test_many_posts_at_once_are_one_message_each(self, store: Store) -> None:
        store.conversations.create("c")

        def work() -> None:
            for number in range(5):
                store.inbox.enqueue("c", f"id-{number}", "word")
                store.inbox.append_to_log("c", f"id-{number}", user(f"word {number}"))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.inbox.waiting("c")) == store.log.count("c") == 5

    def test_what_is_cancelled_is_marked(self, store: Store) -> None:
        store.conversations.create("c")
        store.inbox.enqueue("c", "a", "one")
        store.inbox.enqueue("c", "b", "two")
        store.inbox.end("c", "a", {})
        assert store.inbox.cancel("c") == 1
        assert not store.inbox.get("c", "a").cancelled
        assert store.inbox.get("c", "b").cancelled
        assert store.inbox.cancelled("c") == ["b"]

    def test_messages_without_a_reader_are_found(self, url: str) -> None:
        moment = [1000.0]
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            for id in ("read", "left", "ended", "new"):
                store.conversations.create(id)
                store.inbox.enqueue(id, "x", "one")
            store.inbox.end("ended", "x", {})
            assert store.turns.acquire("read", "me", seconds=60.0) is not None
            assert store.turns.acquire("left", "dead", seconds=5.0) is not None
            assert store.inbox.stranded() == ["new"]
            moment[0] += 6
            assert sorted(store.inbox.stranded()) == ["left", "new"]

    def test_unknown_inbox_messages(self, store: Store) -> None:
        store.conversations.create("c")
        with pytest.raises(NotFound):
            store.inbox.get("c", "x")
        with pytest.raises(NotFound):
            store.inbox.begin("c", "x")
        with pytest.raises(NotFound):
            store.inbox.append_to_log("c", "x", user("one"))
        with pytest.raises(NotFound):
            store.inbox.enqueue("nobody", "x", "one")
        assert store.log.count("c") == 0

    def test_a_deleted_conversation_takes_its_inbox_along(self, store: Store) -> None:
        store.conversations.create("c")
        store.inbox.enqueue("c", "x", "one")
        store.turns.acquire("c", "me")
        store.conversations.delete("c")
        assert store.inbox.stranded() == []
        store.conversations.create("c")
        assert store.inbox.waiting("c") == []
        assert store.care.checkup().clean

    def test_a_turn_and_a_compaction_are_different_leases(self, store: Store) -> None:
        store.conversations.create("c")
        assert store.turns.acquire("c", "agent") is not None
        assert store.leases.acquire("c", "compactor") is not None
        assert store.turns.acquire("c", "other") is None

    def test_whoever_lost_its_turn_can_not_write(self, url: str) -> None:
        moment = [1000.0]
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            store.conversations.create("c")
            fence = Fence(store.turns.acquire("c", "slow", seconds=5.0))
            mine = store.behind(fence)
            store.inbox.enqueue("c", "x", "one")
            mine.log.append("c", [user("in time")])
            moment[0] += 6
            # Late, but nobody was quicker.
            mine.log.append("c", [user("late")])
            next_one = store.turns.acquire("c", "next", seconds=5.0)
            for write in (
                lambda: mine.log.append("c", [user("too late")]),
                lambda: mine.inbox.begin("c", "x"),
                lambda: mine.inbox.append_to_log("c", "x", user("one")),
                lambda: mine.inbox.end("c", "x", {}),
                lambda: mine.state.set("c", "key", 1),
                lambda: mine.conversations.update("c", title="mine"),
                lambda: mine.artifacts.put("c", b"bytes"),
            ):
                with pytest.raises(LeaseLost):
                    write()
            assert contents(store.views.view("c")) == ["in time", "late"]
            assert store.inbox.get("c", "x").attempts == 0
            fence.lease = next_one
            mine.log.append("c", [user("again")])
            fence.lease = None
            with pytest.raises(LeaseLost):
                mine.log.append("c", [user("without a turn")])
            assert mine.log.count("c") == 3

    def test_which_ids_exist(self, store: Store) -> None:
        for id in ("a", "b", "c"):
            store.conversations.create(id)
        wanted = [f"none-{number}" for number in range(600)]
        assert store.conversations.existing([*wanted, "a", "c"]) == {"a", "c"}
        assert store.conversations.existing([]) == set()
