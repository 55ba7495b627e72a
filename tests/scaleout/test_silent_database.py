"""A database that hangs instead of being down: answers come in time all the same. And a worker waits for its store."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from leporello.errors import StoreUnavailable
from leporello.gateway.background import QueuedJob, open_queue
from leporello.gateway.server import open_when_there
from leporello.store import open_store
from leporello.testing.stub_server import Hold, Say
from leporello.usage import CanonicalUsage
from tests.scaleout.plant import MODEL, Talker, plant, until
from tests.store.server import Server

PROMISED = 10.0
SLOW_MACHINE = 10.0


def test_answers_come_though_the_database_is_silent(tmp_path: Path, server: Server, database: str) -> None:
    """Thirty requests at once, and `/readyz` among them, are 503 in time; then everything goes on."""
    with plant(tmp_path, database, workers=1) as made:
        url = made.workers[0].url
        id = Talker(made).begin()
        with server.silent(), ThreadPoolExecutor(31) as clients:
            began = time.monotonic()
            asked = [clients.submit(httpx2.get, f"{url}/api/conversations/{id}", timeout=60) for _ in range(20)]
            asked += [
                clients.submit(
                    httpx2.post,
                    f"{url}/v1/chat/completions",
                    json={"model": MODEL, "messages": [{"role": "user", "content": f"Client {number}."}]},
                    timeout=60,
                )
                for number in range(10)
            ]
            ready = httpx2.get(f"{url}/readyz", timeout=60)
            ready_after = time.monotonic() - began
            answers = [task.result() for task in asked]
            took = time.monotonic() - began
        assert ready.status_code == 503
        assert ready_after < PROMISED
        assert {answer.status_code for answer in answers[:20]} == {503}
        assert all("retry-after" in answer.headers for answer in answers[:20])
        assert took < PROMISED + SLOW_MACHINE
        until(lambda: httpx2.get(f"{url}/readyz", timeout=30).status_code == 200, "ready again")
        assert Talker(made).say(id, "Still there?", "after", 0)["status"] == "done"


SAID = [{"role": "user", "content": "Hello"}]
BODIES = {
    "/v1/chat/completions": {"model": MODEL, "messages": SAID},
    "/v1/messages": {"model": MODEL, "messages": SAID, "max_tokens": 50},
    "/v1/messages/count_tokens": {"model": MODEL, "messages": SAID},
    "/v1/responses": {"model": MODEL, "input": SAID},
    "/api/conversations/{id}/messages": {"text": "Hello", "id": "key", "wait": True},
    "/api/conversations/{id}": {"title": "Another"},
}
PAGES = (
    *("/", "/search?q=hi", "/insights", "/c/{id}", "/c/{id}/window", "/c/{id}/usage", "/c/{id}/messages"),
    *("/c/{id}/view", "/c/{id}/shown", "/c/{id}/m/1", "/c/{id}/m/1/text", "/c/{id}/export", "/c/{id}/live"),
)


def test_no_route_hangs_though_the_database_is_silent(tmp_path: Path, server: Server, database: str) -> None:
    """Each that needs the store says 503 in time, each that does not answers as ever; afterwards all is well."""
    with plant(tmp_path, database, workers=1) as made:
        url = made.workers[0].url
        talker = Talker(made)
        id = talker.begin()
        assert talker.say(id, "Hello", "before", 0)["status"] == "done"
        document = httpx2.get(f"{url}/openapi.json", timeout=60).json()
        asked = [
            (method, path)
            for path, methods in document["paths"].items()
            for method in methods
            if method != "parameters" and (path.startswith("/api/") or path in BODIES)
        ]
        asked += [("get", path) for path in PAGES]
        assert len(asked) > len(PAGES) + 10

        def ask(route: tuple[str, str]) -> tuple[float, int]:
            method, path = route
            body = BODIES.get(path, {}) if method in ("post", "patch") else None
            where = url + path.replace("{id}", id) + ("?q=hi" if path.endswith("}/search") else "")
            began = time.monotonic()
            reply = httpx2.request(method, where, json=body, timeout=60)
            return time.monotonic() - began, reply.status_code

        with server.silent(), ThreadPoolExecutor(len(asked)) as clients:
            answers = dict(zip(asked, clients.map(ask, asked), strict=True))
            for path in ("/healthz", "/metrics", "/openapi.json"):
                assert ask(("get", path))[1] == 200
        assert {route: status for route, (_, status) in answers.items() if status != 503} == {}
        assert {route: took for route, (took, _) in answers.items() if took > PROMISED + SLOW_MACHINE} == {}
        until(lambda: httpx2.get(f"{url}/readyz", timeout=30).status_code == 200, "ready again")
        assert talker.say(id, "Still there?", "after", 0)["status"] == "done"


def test_a_worker_that_comes_before_its_database_waits_for_it(
    server: Server, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.stop()
    starter = threading.Timer(2.0, server.start)
    starter.start()
    with open_when_there(database) as store:
        assert not store.conversations.page().conversations
    starter.join()
    assert capsys.readouterr().err.count("Waiting for it") >= 1


def test_a_worker_ends_though_its_database_is_silent(tmp_path: Path, server: Server, database: str) -> None:
    with plant(tmp_path, database, workers=1) as made:
        with server.silent():
            # It raises when the process never ends.
            made.workers[0].stop()
        made.workers.clear()


def test_a_queue_that_comes_before_its_database_waits_for_it(server: Server, database: str) -> None:
    """The database may go away between the store's first question and the queue's."""
    done = threading.Event()
    server.stop()
    starter = threading.Timer(2.0, server.start)
    starter.start()

    async def serve() -> None:
        queue = open_queue(database)
        async with queue.serving({"work": lambda _: done.set()}):
            await asyncio.to_thread(until, lambda: queue.submit(QueuedJob("work", "key")), "the queue takes a job")
            await asyncio.to_thread(until, done.is_set, "the job is done")

    asyncio.run(serve())
    starter.join()


def test_a_database_that_answers_no_is_an_error_at_once(server: Server) -> None:
    """Waiting would not make a missing database appear."""
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_when_there(server.url("no_such_database"))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_a_stream_under_way_ends_though_the_database_is_silent(
    tmp_path: Path, server: Server, database: str, path: str
) -> None:
    """What the model says needs no database; what the key's day had reserved for it is free again afterwards."""
    release = threading.Event()
    cap = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    said = {"input" if path == "/v1/responses" else "messages": [{"role": "user", "content": "Hello"}]}
    body = {"model": MODEL, "stream": True, cap: 900, **said}
    headers = {"authorization": "Bearer mine"}
    flags = {"gateway.tokens_per_day": 2_000}
    with plant(tmp_path, database, workers=1, flags=flags) as made, open_store(database) as store:

        def reserved() -> int:
            with store.database.read() as tx:
                row = tx.row("SELECT count(*) FROM reservations WHERE id <> '' AND expires > ?", store.database.now())
            return 0 if row is None else int(row[0])

        url = made.workers[0].url + path
        made.model.answer = lambda _: Hold(Say("All is well. " * 20, usage=CanonicalUsage(70, 30)), release)
        with httpx2.stream("POST", url, json=body, headers=headers, timeout=60) as answer:
            assert reserved() == 1
            with server.silent():
                release.set()
                began = time.monotonic()
                data = answer.read()
                assert time.monotonic() - began < SLOW_MACHINE
                assert httpx2.post(url, json=body, headers=headers, timeout=60).status_code == 503
                assert time.monotonic() - began < PROMISED + SLOW_MACHINE
        assert b"All is" in data
        assert b"before it was whole" not in data
        until(lambda: reserved() == 0, "nothing stays reserved")
        until(lambda: httpx2.post(url, json=body, headers=headers, timeout=60).status_code == 200, "it goes on")
