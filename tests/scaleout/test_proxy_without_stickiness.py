"""A proxied conversation whose requests go to any worker: recognised everywhere, folded once, same bytes for all."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from leporello.store import open_store
from tests.scaleout.plant import MODEL, Talker, plant, until

WINDOW = 9_000


def test_requests_of_one_conversation_go_to_any_worker(tmp_path: Path, database: str) -> None:
    """One conversation in the store; every request fits; between folds the model sees each prefix again, unchanged."""
    with plant(tmp_path, database, window=WINDOW) as made, open_store(database) as store:
        talker = Talker(made)
        history: list[dict[str, Any]] = []
        for number in range(60):
            text = f"Question {number}. " + f"Line {number} of the register says {number * 31}. " * 20
            history.append({"role": "user", "content": text})
            reply = talker.ask("POST", "/v1/chat/completions", number, {"model": MODEL, "messages": history})
            history.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
        (record,) = store.conversations.page().conversations
        assert record.messages == len(history) - 1
        until(lambda: store.conversations.resolve(record.id).generation >= 2, "it was folded")
        generations = store.conversations.resolve(record.id).generation
        committed = [one.generation for one in store.views.attempts(record.id, 1_000) if one.report.committed]
        assert sorted(committed, key=lambda generation: generation or 0) == list(range(1, generations + 1))
        requests = [seen.body["messages"] for seen in made.stub.requests if seen.dialect is not None]
        assert len(requests) >= 60
        assert all(len(seen.raw) // 4 <= WINDOW for seen in made.stub.requests if seen.dialect is not None)
        broken = sum(after[: len(before)] != before for before, after in itertools.pairwise(requests))
        assert broken <= generations
        assert store.care.checkup().clean


def test_a_killed_worker_and_its_proxied_conversations(tmp_path: Path, database: str) -> None:
    """The client sends its request again, to a worker that never saw it: the same conversation goes on."""
    with plant(tmp_path, database, window=WINDOW) as made, open_store(database) as store:
        talker = Talker(made)
        history: list[dict[str, Any]] = []
        for number in range(24):
            text = f"Question {number}. " + f"Line {number} of the register says {number * 31}. " * 20
            history.append({"role": "user", "content": text})
            if number in (8, 16):
                place = (number // 8) % 2
                made.workers[place].kill()
            reply = talker.ask("POST", "/v1/chat/completions", number, {"model": MODEL, "messages": history})
            if number in (8, 16):
                made.replace(place)
            history.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
        (record,) = store.conversations.page().conversations
        log = [stored.message for stored in store.log.iterate(record.id)]
        assert [message["content"] for message in log] == [message["content"] for message in history[:-1]]
        assert store.care.checkup().clean
