"""A worker that was thought dead and was not: what it does is not written, and its message is answered all the same."""

from __future__ import annotations

import time
from pathlib import Path

from leporello.agent.endpoints import Chosen
from leporello.config import Home, Settings, load_settings
from leporello.gateway.auth import Client, Key
from leporello.gateway.sessions.sessions import Sessions
from leporello.messages import text_of
from leporello.providers.base import ModelRequest
from leporello.providers.errors import CallCancelled
from leporello.providers.scripted import ScriptedProvider
from leporello.store import StoreOptions, open_store


async def test_a_turn_that_was_lost_and_regained(tmp_path: Path) -> None:
    """Another worker takes the turn in the middle and dies at once; the first one notices, stops, and begins again.

    Nobody asked it to stop, so nothing ends as interrupted, and the message is in the log once.
    """
    late = [0.0]
    settings = load_settings(environ={}, home=Home(tmp_path / "home"))
    with open_store(f"sqlite:///{tmp_path}/store.db", StoreOptions(clock=lambda: time.time() + late[0])) as store:
        asked: list[str] = []

        def answer(request: ModelRequest) -> str:
            asked.append(text_of(request.messages[-1]))
            assert request.cancel is not None
            if len(asked) == 1:
                late[0] += 60
                assert store.turns.acquire(record.id, "another", seconds=0.001) is not None
                while not request.cancel.cancelled:
                    time.sleep(0.01)
            if request.cancel.cancelled:
                raise CallCancelled("stopped")
            return f"You said: {asked[-1]}"

        def choose(_: Settings, model: str | None) -> Chosen:
            return Chosen(model or "gpt-4o", ScriptedProvider(answer), "openai", "", None, small=True)

        sessions = Sessions(store, settings, choose)
        record = sessions.create(Client(Key("", ""), ""))
        outcome = await (await sessions.enqueue(record, "Hello", "id-1")).ended()
        assert (outcome.status, outcome.text) == ("done", "You said: Hello")
        assert asked == ["Hello", "Hello"]
        assert [text_of(stored.message) for stored in store.log.iterate(record.id)] == ["Hello", "You said: Hello"]
        assert store.inbox.get(record.id, "id-1").attempts == 2
        await sessions.close()
