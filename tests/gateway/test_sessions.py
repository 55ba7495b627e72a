"""Agent sessions over HTTP: talk, watch, fold, undo, search, queue, once and only once, hygiene, expiry."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from leporello.gateway.auth import Client, Key, Keys
from leporello.gateway.sessions.platforms import InProcessPlatform
from leporello.gateway.sessions.sessions import Sessions
from leporello.messages import text_of
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider

from .house import House, opened


def parrot(request: ModelRequest) -> str:
    """A model that repeats the user's last words."""
    return f"You said: {text_of(request.messages[-1])}"


def client(house: House, key: str = "") -> httpx2.Client:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx2.Client(base_url=house.url, headers=headers, timeout=60)


def begun(web: httpx2.Client, **about: Any) -> str:
    reply = web.post("/api/conversations", json=about)
    assert reply.status_code == 201
    return "/api/conversations/" + str(reply.json()["id"])


def say(web: httpx2.Client, at: str, text: str, id: str = "") -> dict[str, Any]:
    reply = web.post(at + "/messages", json={"text": text, "id": id})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def test_a_conversation(tmp_path: Path) -> None:
    """Create, talk, list, read, search, rename, export, delete."""
    with opened(tmp_path, provider=ScriptedProvider(parrot)) as house, client(house) as web:
        at = begun(web, title="First")
        assert say(web, at, "The port is 8442.")["text"] == "You said: The port is 8442."
        say(web, at, "And the host is alpha.")
        assert [item["title"] for item in web.get("/api/conversations").json()["conversations"]] == ["First"]
        shown = web.get(at).json()
        assert (shown["messages"], shown["usage"]["calls"]) == (4, 2)
        page = web.get(at + "/messages", params={"first": 2, "count": 1}).json()
        assert page["total"] == 4
        assert page["messages"][0]["message"]["content"] == "You said: The port is 8442."
        assert "8442" in " ".join(web.get(at + "/search", params={"q": "port"}).json()["results"])
        assert web.patch(at, json={"title": "Second"}).json()["title"] == "Second"
        lines = [json.loads(line) for line in web.get(at + "/export").text.splitlines()]
        assert [line["id"] for line in lines] == ["m1", "m2", "m3", "m4"]
        assert web.delete(at).status_code == 204
        assert web.get(at).status_code == 404


def test_watching(tmp_path: Path) -> None:
    """The stream tells what happens and ends with the same outcome the JSON form gives."""
    with opened(tmp_path, provider=ScriptedProvider(parrot)) as house, client(house) as web:
        at = begun(web)
        reply = web.post(at + "/messages", json={"text": "Hello"}, headers={"accept": "text/event-stream"})
        assert reply.headers["content-type"].startswith("text/event-stream")
        events = [block.split("\n", 1) for block in reply.text.strip().split("\n\n")]
        names = [name.removeprefix("event: ") for name, _ in events]
        assert names[0] == "text"
        assert names[-2:] == ["turn", "done"]
        assert json.loads(events[-1][1].removeprefix("data: "))["text"] == "You said: Hello"


def test_commands_in_the_text(tmp_path: Path) -> None:
    """`/compress` and its like are answered, not sent to the model; commands about the machine are unknown here."""
    provider = ScriptedProvider(parrot)
    with opened(tmp_path, provider=provider, window=64_000) as house, client(house) as web:
        at = begun(web)
        for number in range(12):
            say(web, at, f"Part {number}. " + "Some words that fill the window. " * 40)
        asked = len(provider.requests)
        folded = say(web, at, "/compress parts")
        assert folded["reason"] == "command"
        assert "Folded" in folded["text"]
        assert web.post(at + "/undo", json={}).json()["messages_shown"] == 24
        assert web.post(at + "/compress", json={"focus": "parts"}).json()["outcome"] == "committed"
        for command in ("/config", "/sessions", "/insights"):
            assert "There is no command" in say(web, at, command)["text"]
        assert len(provider.requests) == asked
        assert web.post(begun(web) + "/undo", json={}).status_code == 409


def test_each_message_once(tmp_path: Path) -> None:
    """The same message many times at once, and again after a restart: one turn, one answer."""
    provider = ScriptedProvider(parrot)
    with opened(tmp_path, provider=provider) as house, client(house) as web:
        at = begun(web)
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: say(web, at, "Hello", "id-1"), range(8)))
        assert {answer["text"] for answer in answers} == {"You said: Hello"}
        assert len(provider.requests) == 1
    with opened(tmp_path, provider=provider) as house, client(house) as web:
        assert say(web, at, "Hello", "id-1")["text"] == "You said: Hello"
        assert len(provider.requests) == 1


def test_an_id_stands_for_one_text(tmp_path: Path) -> None:
    """An id that comes again with another text is refused, while the first waits, when it ended, after a restart."""
    go = threading.Event()

    def patient(request: ModelRequest) -> str:
        go.wait(20)
        return parrot(request)

    def refused(web: httpx2.Client, at: str) -> None:
        for accept in ("application/json", "text/event-stream"):
            reply = web.post(at + "/messages", json={"text": "Goodbye", "id": "id-1"}, headers={"accept": accept})
            assert (reply.status_code, reply.json()["error"]["code"]) == (409, "id_reused")
            assert "another text" in reply.json()["error"]["message"]

    provider = ScriptedProvider(patient)
    with opened(tmp_path, provider=provider) as house, client(house) as web:
        at = begun(web)
        assert web.post(at + "/messages", json={"text": "Hello", "id": "id-1", "wait": False}).status_code == 202
        refused(web, at)
        go.set()
        assert say(web, at, "Hello", "id-1")["text"] == "You said: Hello"
        refused(web, at)
    with opened(tmp_path, provider=provider) as house, client(house) as web:
        refused(web, at)
        assert say(web, at, "Hello", "id-1")["text"] == "You said: Hello"
        assert len(provider.requests) == 1
        assert web.get(at).json()["messages"] == 2


def test_messages_wait_in_line(tmp_path: Path) -> None:
    """Messages that come while the agent works are answered one after the other, none lost, none twice."""
    running = threading.Semaphore(1)

    def alone(request: ModelRequest) -> str:
        assert running.acquire(blocking=False), "two turns of one conversation at once"
        time.sleep(0.01)
        running.release()
        return parrot(request)

    with opened(tmp_path, provider=ScriptedProvider(alone)) as house, client(house) as web:
        at = begun(web)
        with ThreadPoolExecutor(10) as threads:
            answers = list(threads.map(lambda number: say(web, at, f"word {number}", f"id-{number}"), range(20)))
        assert [answer["text"] for answer in answers] == [f"You said: word {number}" for number in range(20)]
        log = [entry["message"] for entry in web.get(at + "/messages").json()["messages"]]
        assert sorted(message["content"] for message in log[::2]) == sorted(f"word {number}" for number in range(20))


def test_a_vanished_client_changes_nothing(tmp_path: Path) -> None:
    """A client that hangs up has its message answered all the same, and hears the answer when it asks again."""
    go = threading.Event()

    def patient(request: ModelRequest) -> str:
        go.wait(20)
        return parrot(request)

    provider = ScriptedProvider(patient)
    with opened(tmp_path, provider=provider) as house, client(house) as web:
        at = begun(web)
        with pytest.raises(httpx2.ReadTimeout):
            web.post(at + "/messages", json={"text": "Hello", "id": "x"}, timeout=0.3)
        go.set()
        assert say(web, at, "Hello", "x")["text"] == "You said: Hello"
        assert len(provider.requests) == 1


def test_clients_are_kept_apart(tmp_path: Path) -> None:
    """A key sees its own conversations only; a key for the proxy runs no agent; a wrong key sees nothing."""
    keys, first = Keys().add("first")
    keys, second = keys.add("second")
    keys, third = keys.add("third", agent=False)
    with opened(tmp_path, provider=ScriptedProvider(parrot), keys=keys) as house:
        with client(house, first) as web:
            at = begun(web)
            say(web, at, "Mine.")
        with client(house, second) as web:
            assert web.get("/api/conversations").json()["conversations"] == []
            for method, path in (("GET", ""), ("GET", "/messages"), ("GET", "/export"), ("DELETE", "")):
                assert web.request(method, at + path).status_code == 404
            assert web.post(at + "/messages", json={"text": "Yours?"}).status_code == 404
        with client(house, third) as web:
            assert web.get("/api/conversations").status_code == 403
        with client(house, "lep-wrong") as web:
            assert web.get(at).status_code == 401


def test_hygiene_comes_before_the_agent(tmp_path: Path) -> None:
    """A conversation that grew beyond 85% elsewhere is folded before the model is asked."""
    provider = ScriptedProvider(parrot)
    with opened(tmp_path, provider=provider, window=16_000) as house, client(house) as web:
        at = begun(web)
        id = at.rpartition("/")[2]
        grown = []
        for number in range(30):
            grown += [
                {"role": "user", "content": f"Part {number}. " + "Words of the night. " * 60},
                {"role": "assistant", "content": f"Noted {number}. " + "Words of the night. " * 60},
            ]
        house.store.log.append(id, grown)
        assert say(web, at, "Good morning.")["text"] == "You said: Good morning."
        attempts = house.store.views.attempts(id)
        assert attempts[-1].report.trigger == "hygiene"
        assert attempts[-1].report.committed
        assert len(provider.requests) == 1


async def test_idle_sessions_end(tmp_path: Path) -> None:
    """A session nobody uses is ended: the engine is told, the record says so; the next message takes it up again."""
    with opened(tmp_path, provider=ScriptedProvider(parrot)) as house:
        sessions = Sessions(house.store, house.gateway.settings, house.gateway.choose)
        record = sessions.create(Client(Key("", ""), ""))
        worker = await sessions.worker(record)
        await (await worker.enqueue("Hello", "1")).ended()
        await worker.drain()
        told: list[str] = []
        assert worker.handler.agent is not None
        plugins = worker.handler.agent.conversation.runtime.plugins
        plugins.session_ends = lambda view, messages, reason: told.append(view.session)  # type: ignore[method-assign]
        assert not await sessions.end(record.id, time.time() - 60, "expiry")
        assert await sessions.end(record.id, time.time() + 60, "expiry")
        assert not await sessions.end(record.id, time.time() + 60, "expiry")
        assert told == [record.tip.id]
        assert house.store.sessions.get(record.tip.id).end_reason == "expiry"
        again = await sessions.worker(house.store.conversations.resolve(record.id))
        assert (await (await again.enqueue("Back", "2")).ended()).text == "You said: Back"
        assert house.store.conversations.resolve(record.id).open
        await sessions.close()


async def test_a_chat_service(tmp_path: Path) -> None:
    """The example platform: each chat is a conversation, what is delivered twice is answered once."""
    provider = ScriptedProvider(parrot)
    with opened(tmp_path, provider=provider) as house:
        chat = InProcessPlatform()
        house.gateway.platforms = (chat,)
        app = house.gateway.app()
        async with app.router.lifespan_context(app):
            said = await asyncio.gather(*(chat.say(f"room-{k % 3}", f"word {k}") for k in range(9)))
            assert [outcome.text for outcome in said] == [f"You said: word {k}" for k in range(9)]
            await chat.say("room-0", "once", "their-id")
            await chat.say("room-0", "once", "their-id")
            assert len(provider.requests) == 10
        assert len(house.store.conversations.page().conversations) == 3


def test_a_body_in_latin_1_is_refused(tmp_path: Path) -> None:
    """A byte that is not UTF-8 inside a JSON string is the client's error, on every route with a body."""
    with opened(tmp_path, provider=ScriptedProvider(parrot)) as house, client(house) as web:
        at = begun(web)
        for method, path in (("POST", at + "/messages"), ("POST", at + "/compress"), ("PATCH", at)):
            body = b'{"text": "caf\xe9", "title": "caf\xe9", "focus": "caf\xe9"}'
            refused = web.request(method, path, content=body, headers={"content-type": "application/json"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_request")
