"""The real end of a session: told once, whichever worker ends it, and one set of plugins for the whole process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from leporello.agent.endpoints import Chosen
from leporello.config import Home, Settings, load_settings
from leporello.gateway.auth import Client, Key
from leporello.gateway.background import EXPIRY, BackgroundWork, DeferredCompactions, ThreadQueue
from leporello.gateway.proxy.conversations import ConversationHint, ProxiedConversations
from leporello.gateway.sessions.sessions import Sessions
from leporello.messages import text_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store

PLUGIN = """
from pathlib import Path

book = Path(__file__).parent / "book.txt"

def write(line):
    with book.open("a") as file:
        file.write(line + "\\n")

write("loaded")

def register(ctx):
    ctx.register_hook("session_start", lambda **facts: write("start " + facts["conversation"]))
    ctx.register_hook("session_end", lambda **facts: write("end " + facts["conversation"] + " " + facts["reason"]))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "home" / "plugins" / "noter"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PLUGIN)
    (folder / "plugin.yaml").write_text("name: noter\nversion: '1'\ndescription: writes down what happens\n")
    return load_settings({"plugins.enabled": ["noter"]}, environ={}, home=Home(tmp_path / "home"))


def book(settings: Settings) -> list[str]:
    return (settings.home.plugins_dir / "noter" / "book.txt").read_text().splitlines()


def chosen(_: Settings, model: str | None) -> Chosen:
    def answer(request: ModelRequest) -> str:
        return f"You said: {text_of(request.messages[-1])}"

    return Chosen(model or "gpt-4o", ScriptedProvider(answer), "openai", "", None, small=True)


def opened(proxied: ProxiedConversations, words: str) -> str:
    live = proxied.take(ConversationHint(b"start", [{"role": "user", "content": words}], "me", "gpt-4o", 100))
    assert live is not None
    with live.guard:
        proxied.open(live, "gpt-4o", None)
    return live.id


async def test_a_session_ends_once_over_two_workers(tmp_path: Path, settings: Settings) -> None:
    """Both workers served it, both find it idle: one ends it, and plugins hear of one end."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        workers = [Sessions(store, settings, chosen, plugins=PluginHost(settings)) for _ in range(2)]
        record = workers[0].create(Client(Key("", ""), ""))
        for number, worker in enumerate(workers):
            served = await worker.worker(record)
            assert (await (await served.enqueue(f"Word {number}", f"id-{number}")).ended()).status == "done"
            await served.drain()
        ended = [await worker.end(record.id, time.time() + 60, EXPIRY) for worker in workers]
        assert sorted(ended) == [False, True]
        assert [line for line in book(settings) if line.startswith("end")] == [f"end {record.id} expired"]
        assert not store.conversations.resolve(record.id).open
        for worker in workers:
            await worker.close()


def test_a_proxied_conversation_ends_once_and_is_taken_up_again(tmp_path: Path, settings: Settings) -> None:
    """The same for conversations of the proxy; the next request goes on with it."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        workers = [ProxiedConversations(store, settings, plugins=PluginHost(settings), idle=0) for _ in range(2)]
        ids = {opened(proxied, "Hello") for proxied in workers}
        (id,) = ids
        assert not workers[0].end(id, time.time() - 60, EXPIRY)
        assert sorted(proxied.end(id, time.time() + 60, EXPIRY) for proxied in workers) == [False, True]
        assert [line for line in book(settings) if line.startswith("end")] == [f"end {id} expired"]
        assert not store.conversations.resolve(id).open
        said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
        again = workers[1].take(
            ConversationHint(b"start", [*said, {"role": "user", "content": "Go on"}], "me", "gpt-4o", 9)
        )
        assert again is not None
        assert again.id == id
        assert store.conversations.resolve(id).open


async def test_idle_sessions_of_every_kind_are_found_in_the_store(tmp_path: Path, settings: Settings) -> None:
    """Also those that a worker served which is gone: what is idle is asked of the store, not of memory."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        proxied = opened(ProxiedConversations(store, settings, plugins=PluginHost(settings)), "Hello")
        plugins = PluginHost(settings)
        sessions = Sessions(store, settings, chosen, plugins=plugins)
        record = sessions.create(Client(Key("", ""), ""))
        conversations = ProxiedConversations(store, settings, plugins=plugins)
        work = BackgroundWork(
            ThreadQueue(),
            DeferredCompactions(store, settings, ThreadQueue(), plugins),
            sessions,
            conversations,
            idle=-60,
        )
        assert sorted(await _expired(work)) == sorted([proxied, record.id])
        assert await _expired(work) == []
        ends = [line for line in book(settings) if line.startswith("end")]
        assert sorted(ends) == sorted(f"end {id} expired" for id in (proxied, record.id))
        await sessions.close()


async def _expired(work: BackgroundWork) -> list[str]:
    work.attend()
    return await asyncio.to_thread(work.expire)


def test_plugins_are_loaded_once_for_all_conversations(tmp_path: Path, settings: Settings) -> None:
    """Conversations share one host: opening another one runs no plugin's module again."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        conversations = ProxiedConversations(store, settings)
        for number in range(5):
            opened(conversations, f"Hello {number}")
        assert book(settings).count("loaded") == 1
        assert sum(line.startswith("start") for line in book(settings)) == 5


async def test_indexing_does_not_hold_up_the_end(tmp_path: Path, settings: Settings) -> None:
    """A process that ends leaves the rest of the index to the next one."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        plugins = PluginHost(settings)
        sessions = Sessions(store, settings, chosen, plugins=plugins)
        folds = DeferredCompactions(store, settings, ThreadQueue(), plugins)
        work = BackgroundWork(
            ThreadQueue(), folds, sessions, ProxiedConversations(store, settings, plugins=plugins), idle=60
        )
        store.conversations.create("a")
        store.log.append("a", [{"role": "user", "content": f"word {number}"} for number in range(300)])
        work.stop()
        work.index()
        assert store.index.pending() == 300
        await sessions.close()


def test_retention_deletes_what_is_old_and_keeps_pins_and_open_ones(tmp_path: Path, settings: Settings) -> None:
    """`store.retention_days`: of three old conversations the one that ended without a pin goes; 0 keeps all."""
    with open_store(f"sqlite:///{tmp_path}/shared.db") as store:
        for id in ("ended", "pinned", "open"):
            store.conversations.create(id)
            store.log.append(id, [{"role": "user", "content": "Hello"}])
        store.pins.add("pinned", 1)
        store.conversations.end("ended", "exit")
        store.conversations.end("pinned", "exit")
        with store.database.write() as tx:
            tx.run("UPDATE conversations SET updated = updated - ?", 31 * 86_400_000)
        kept: list[list[str]] = []
        for days in (0, 40, 30):
            about = load_settings({"store.retention_days": days}, {}, settings.home)
            plugins = PluginHost(about)
            work = BackgroundWork(
                ThreadQueue(),
                DeferredCompactions(store, about, ThreadQueue(), plugins),
                Sessions(store, about, chosen, plugins=plugins),
                ProxiedConversations(store, about, plugins=plugins),
                idle=60,
            )
            kept.append(work.retain())
        assert kept == [[], [], ["ended"]]
        assert sorted(record.id for record in store.conversations.page().conversations) == ["open", "pinned"]
