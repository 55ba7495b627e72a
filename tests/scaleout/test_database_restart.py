"""The database goes away in the middle: clients hear `503` and when to come back, or wait; then everything goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from leporello.messages import role_of, text_of
from leporello.store import open_store
from tests.scaleout.plant import MODEL, Plant, Talker, plant, until
from tests.store.server import Server

TURNS = 30


def proxied(made: Plant, talker: Talker, name: str) -> list[str]:
    """A client of the proxy that sends its whole history each time, to one worker after the other."""
    history: list[dict[str, Any]] = []
    for number in range(TURNS):
        history.append({"role": "user", "content": f"{name}, question {number}."})
        reply = talker.ask("POST", "/v1/chat/completions", number, {"model": MODEL, "messages": history})
        history.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
    return [message["content"] for message in history]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_clients_recover_from_a_restart(tmp_path: Path, server: Server, database: str, mode: str) -> None:
    """Agent sessions and proxied conversations over two workers, and PostgreSQL stopped and started among them."""
    with plant(tmp_path, database) as made:
        talker = Talker(made)
        ids = [talker.begin() for _ in range(3)]
        with ThreadPoolExecutor(5) as clients:

            def talk(id: str) -> list[str]:
                return [talker.say(id, f"Word {k}.", f"id-{k}", k)["status"] for k in range(TURNS)]

            talking = [clients.submit(talk, id) for id in ids]
            asking = [clients.submit(proxied, made, talker, f"Client {k}") for k in range(2)]
            until(lambda: len(made.model.asked) > TURNS, "clients talk")
            server.stop(mode)
            server.start()
            assert [task.result() for task in talking] == [["done"] * TURNS] * 3
            histories = [task.result() for task in asking]
        with open_store(database) as store:
            for id in ids:
                messages = [stored.message for stored in store.log.iterate(id)]
                users = [text_of(message) for message in messages if role_of(message) == "user"]
                assert users == [f"Word {k}." for k in range(TURNS)]
                assert store.inbox.waiting(id) == []
                until(lambda id=id: store.turns.holder(id) is None, "no turn is stuck")
            logs = [
                [text_of(stored.message) for stored in store.log.iterate(record.id)]
                for record in store.conversations.page().conversations
                if record.metadata.platform == "gateway"
            ]
            assert sorted(logs) == sorted(history[:-1] for history in histories)
            assert store.care.checkup().clean
