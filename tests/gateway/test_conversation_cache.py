"""What a process keeps open: one rule for what leaves, and no answer that depends on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from leporello.agent.endpoints import Chosen
from leporello.config import Home, Settings, load_settings
from leporello.dialects import OPENAI_CHAT
from leporello.gateway.auth import Client, Key
from leporello.gateway.background import BackgroundWork, DeferredCompactions, ThreadQueue
from leporello.gateway.config import Upstream
from leporello.gateway.conversation_cache import ConversationCache
from leporello.gateway.proxy.conversations import ConversationHint, ProxiedConversations
from leporello.gateway.proxy.request import read_request
from leporello.gateway.proxy.rewrite import RequestRewriter
from leporello.gateway.sessions.sessions import Sessions
from leporello.messages import text_of
from leporello.plugins.host import PluginHost
from leporello.providers.scripted import ScriptedProvider
from leporello.store import Store, open_store
from leporello.usage import CanonicalUsage

ME = Client(Key("me", ""), "me")


@dataclass
class Entry:
    id: str
    weight: int = 10
    in_use: bool = False


@dataclass
class Clock:
    now: float = 0.0
    removed: list[str] = field(default_factory=list)

    def cache(self, idle: float, most: int) -> ConversationCache[Entry]:
        return ConversationCache(
            idle, most, removed=lambda entry: self.removed.append(entry.id), clock=lambda: self.now
        )


def ids(entries: Any) -> list[str]:
    return [entry.id for entry in entries]


def test_the_least_recently_used_leave_when_all_weigh_too_much() -> None:
    clock = Clock()
    cache = clock.cache(100, 30)
    entries = {id: Entry(id) for id in "abcd"}
    for entry in entries.values():
        cache.add(entry)
        clock.now += 1
    cache.touch(entries["a"])
    assert ids(cache.evict(entries["d"])) == ["b"] == clock.removed
    assert ids(cache) == ["c", "d", "a"]
    entries["a"].weight = 100
    cache.touch(entries["a"])
    assert ids(cache.evict(entries["a"])) == ["c", "d"], "what is kept makes room for itself"
    assert cache.weight == 100


def test_what_is_idle_leaves_though_there_is_room() -> None:
    clock = Clock()
    cache = clock.cache(100, 1_000)
    old, new = Entry("old"), Entry("new")
    cache.add(old)
    clock.now = 60
    cache.add(new)
    clock.now = 100
    assert cache.evict() == []
    clock.now = 101
    assert cache.evict() == [old]
    assert cache.get("old") is None
    assert cache.get("new") is new


def test_what_is_in_use_stays_and_counts_as_used() -> None:
    clock = Clock()
    cache = clock.cache(100, 5)
    busy = Entry("busy", in_use=True)
    cache.add(busy)
    clock.now = 500
    assert cache.evict() == []
    busy.in_use = False
    busy.weight = 1
    cache.touch(busy)
    clock.now = 590
    assert cache.evict() == [], "it was in use at 500"
    clock.now = 601
    assert cache.evict() == [busy]


def test_one_that_was_replaced_is_gone() -> None:
    cache = Clock().cache(100, 100)
    first, second = Entry("x"), Entry("x", 7)
    cache.add(first)
    cache.add(second)
    cache.touch(first)
    cache.remove(first)
    assert cache.get("x") is second
    assert cache.weight == 7


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "touch", "remove", "evict"]), st.sampled_from("abcde"), st.integers(0, 40))
    )
)
def test_the_weight_is_the_sum_of_all(moves: list[tuple[str, str, int]]) -> None:
    clock = Clock()
    cache = clock.cache(50, 60)
    entries = {id: Entry(id) for id in "abcde"}
    for move, id, number in moves:
        clock.now += number
        entries[id].weight = number
        if move == "evict":
            cache.evict(entries[id])
        else:
            getattr(cache, move)(entries[id])
        entries[id].weight = next((slot.weight for slot in cache._slots.values() if slot.entry.id == id), number)
        assert cache.weight == sum(entry.weight for entry in cache)
        if move == "evict":
            assert cache.weight <= 60 or ids(cache) == [id]


# -- no answer depends on it


def settings_at(folder: Path) -> Settings:
    return load_settings({}, environ={}, home=Home(folder / "home"))


def sent_bodies(store: Store, settings: Settings, *, evicts: bool, turns: int = 40) -> list[bytes]:
    """What goes to the provider in each turn of a client that also goes back and edits now and then."""
    upstream = Upstream("up", "http://127.0.0.1:9", window=6_000)
    conversations = ProxiedConversations(store, settings, most_bytes=0 if evicts else 2**40)
    rewriter = RequestRewriter(conversations, settings)
    said: list[dict[str, str]] = []
    sent = []
    for turn in range(turns):
        if turn % 13 == 12:
            said = [*said[:-6], {"role": "user", "content": f"No, otherwise, {turn}."}]
        else:
            said = [*said, {"role": "user", "content": f"Question {turn} about part_{turn}.py: " + "word " * 120}]
        data = orjson.dumps({"model": "gpt-4o", "messages": said})
        rewrite = rewriter.rewrite(read_request(OPENAI_CHAT, data), ME, upstream)
        sent.append(rewrite.body)
        # As many tokens as a server would count that is near to our own estimate.
        rewriter.settle(rewrite, [CanonicalUsage(input_tokens=len(rewrite.body) // 5, output_tokens=20)])
        if evicts:
            conversations.evict()
            assert list(conversations.cache) == []
        said = [*said, {"role": "assistant", "content": f"Answer {turn}: port {8000 + turn}. " + "more " * 60}]
    return sent


def test_the_proxy_sends_the_same_whatever_is_evicted(tmp_path: Path) -> None:
    """Everything leaves after each request: each body is what it is when nothing leaves."""
    bodies = []
    for evicts in (False, True):
        with open_store(f"sqlite:///{tmp_path}/{evicts}.db") as store:
            bodies.append(sent_bodies(store, settings_at(tmp_path), evicts=evicts))
    assert any(b"leporello-fold" in body for body in bodies[0])
    assert bodies[0] == bodies[1]


async def heard(folder: Path, *, evicts: bool) -> tuple[list[str], list[Any]]:
    """What clients get and what the model is sent over a session that is long enough to be compacted."""
    provider = ScriptedProvider(lambda request: f"You said: {text_of(request.messages[-1])[:20]}")

    def chosen(_: Settings, model: str | None) -> Chosen:
        return Chosen(model or "gpt-4o", provider, "openai", "", 12_000, small=True)

    answers = []
    with open_store(f"sqlite:///{folder}/{evicts}.db") as store:
        sessions = Sessions(store, settings_at(folder), chosen, most_bytes=0 if evicts else 2**40)
        record = store.conversations.create("c", sessions.metadata(ME))
        for turn in range(30):
            text = f"Part {turn} of file_{turn}.py. " + "Words of the night. " * 80
            pending = await sessions.enqueue(record, text, f"id-{turn}")
            answers.append((await pending.ended()).text)
            if evicts:
                worker = await sessions.worker(record)
                await worker.drain()
                await sessions.evict()
                assert list(sessions._workers) == []
        await sessions.close()
    return answers, [[text_of(message) for message in request.messages] for request in provider.requests]


async def test_an_agent_answers_the_same_whatever_is_evicted(tmp_path: Path) -> None:
    plain = await heard(tmp_path, evicts=False)
    assert any("leporello-fold" in text for text in plain[1][-1])
    assert await heard(tmp_path, evicts=True) == plain


# -- the sweep


async def test_each_process_closes_what_it_does_not_use(tmp_path: Path) -> None:
    """Both caches, also in a process whose sessions another one ended, and though there is room."""
    settings = settings_at(tmp_path)
    provider = ScriptedProvider(lambda request: "Yes.")
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        plugins = PluginHost(settings)
        conversations = ProxiedConversations(store, settings, plugins=plugins, idle=0)
        sessions = Sessions(
            store,
            settings,
            lambda _, model: Chosen(model or "gpt-4o", provider, "openai", "", None, small=True),
            plugins=plugins,
            idle=0,
        )
        cached = conversations.take(
            ConversationHint(b"start", [{"role": "user", "content": "Hello"}], "me", "gpt-4o", 100)
        )
        assert cached is not None
        with cached.guard:
            conversations.open(cached, "gpt-4o", None)
        record = sessions.create(ME)
        worker = await sessions.worker(record)
        await (await worker.enqueue("Hello", "1")).ended()
        await worker.drain()
        store.conversations.end(cached.id, "expiry")
        store.conversations.end(record.id, "expiry")
        folds = DeferredCompactions(store, settings, ThreadQueue(), plugins)
        work = BackgroundWork(ThreadQueue(), folds, sessions, conversations, idle=0)
        await work.evict()
        assert list(conversations.cache) == []
        assert cached.conversation is None
        assert list(sessions._workers) == []
        assert worker.closed
        await sessions.close()


def test_a_deleted_conversation_fails_nobody_else(tmp_path: Path) -> None:
    """It is opened here and deleted elsewhere: whoever makes room for another one is answered."""
    settings = settings_at(tmp_path)
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        conversations = ProxiedConversations(store, settings, most_bytes=0)
        first, second = (
            ConversationHint(b"start", [{"role": "user", "content": words}], "me", "gpt-4o", 100)
            for words in ("Hello", "Something else")
        )
        cached = conversations.take(first)
        assert cached is not None
        with cached.guard:
            conversations.open(cached, "gpt-4o", None)
        store.conversations.delete(cached.id)
        assert conversations.take(second) is not None
        assert cached.conversation is None
