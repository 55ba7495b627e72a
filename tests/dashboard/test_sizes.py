"""Sizes of a log: counted as long as that is not much to read, else what is shown is counted and the rest estimated."""

from __future__ import annotations

from pathlib import Path

from leporello.events import Span
from leporello.gateway.dashboard.timeline import MOST_READ, LogSizeCache
from leporello.store import open_store
from leporello.tokens import TokenCounter
from tests.dashboard import scenes


def test_a_long_log_is_estimated_but_for_what_is_shown(tmp_path: Path) -> None:
    counter = TokenCounter.for_model("gpt-4o")
    words = "some words that stand in a long log, again and again. " * 2_000
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        scenes.short(store, "long", [words + str(n) for n in range(MOST_READ // len(words) + 20)])
        record = store.conversations.resolve("long")
        exact = [counter.message(item.message) for item in store.log.span("long", Span(1, record.messages))]
        sizes = LogSizeCache(store).sizes(record, record.messages, counter, shown=(2, 3))
        assert sizes.counted(2, 3)
        assert sizes.of(2, 3) == exact[1] + exact[2]
        assert not sizes.counted(1, record.messages)
        assert abs(sizes.of(1, record.messages) / sum(exact) - 1) < 0.02


def test_a_short_log_is_counted_and_only_what_is_new_is_read_again(tmp_path: Path) -> None:
    counter = TokenCounter.for_model("gpt-4o")
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        scenes.short(store, "talk", ["one", "two words", "three words here"])
        record = store.conversations.resolve("talk")
        book = LogSizeCache(store)
        assert book.sizes(record, 3, counter).counted(1, 3)
        store.log.append("talk", [scenes.user("and a fourth message")])
        sizes = book.sizes(record, 4, counter)
        assert sizes.of(1, 4) == sum(counter.message(item.message) for item in store.log.span("talk", Span(1, 4)))
        assert sizes.counted(1, 4)
        # Another factor holds for all of them, counted long ago or not.
        counter.learn(1_000, 1_500)
        assert book.sizes(record, 4, counter).of(2, 2) == counter.message(store.log.message("talk", 2).message)
