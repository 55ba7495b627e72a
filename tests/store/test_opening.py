"""Whoever opens a new conversation gets it, also who comes a moment too late: processes and threads, both stores."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.errors import NotFound
from leporello.store import find_or_create, open_store
from leporello.store.records import Metadata
from tests.store.opening_race import race_to_open


def test_processes_race_for_a_new_conversation_in_sqlite(tmp_path: Path) -> None:
    race_to_open(f"sqlite:///{tmp_path / 'store.db'}")


def test_processes_race_for_a_new_conversation_in_postgresql(postgres_url: str) -> None:
    race_to_open(postgres_url)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_threads_race_for_a_new_conversation(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else f"sqlite:///{tmp_path / 'store.db'}"
    barrier = threading.Barrier(6)

    with open_store(url) as store, ThreadPoolExecutor(6) as threads:

        def race(racer: int) -> list[str]:
            found = []
            for number in range(20):
                barrier.wait(60)
                metadata = Metadata(model=f"of-{racer}")
                found.append(Conversation.open(f"new-{number}", store=store, metadata=metadata).runtime.sizes.model)
            return found

        models = list(threads.map(race, range(6)))
    assert all(len(set(of_one)) == 1 for of_one in zip(*models, strict=True)), "all see the winner's conversation"


def test_one_that_is_there_is_found_by_any_id_of_its_chain_and_left_alone(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        first = find_or_create(store.conversations, "talk", Metadata(title="first"))
        assert find_or_create(store.conversations, "talk", Metadata(title="second")) == first
        store.conversations.delete("talk")
        with pytest.raises(NotFound):
            store.conversations.resolve("talk")
        assert find_or_create(store.conversations, "talk", Metadata(title="third")).metadata.title == "third"
