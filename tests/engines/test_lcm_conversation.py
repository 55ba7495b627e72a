"""`lcm` in a stored conversation: a frontier that stands byte for byte, restart, undo, and every fold reopened."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from leporello.config import Home, Settings, load_settings
from leporello.conversation import Conversation
from leporello.events import Outcome, Span
from leporello.messages import Message, role_of, text_of
from leporello.providers.base import ModelReply
from leporello.recall.paging import full_text
from leporello.recall.tools import openai_tools
from leporello.store import Store, open_store
from leporello.store.records import StoredMessage
from leporello.summaries.fold import SummaryTree, read_fold
from leporello.testing.sessions import generate
from leporello.turns import validate
from leporello.usage import CanonicalUsage

WINDOW = 12_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"context.engine": "lcm"}, {}, Home(tmp_path))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/talk.db"


def opened(url: str | Store, settings: Settings) -> Conversation:
    return Conversation.open("a", window=WINDOW, store=url, settings=settings)


def script(seed: int, messages: int) -> list[Message]:
    """A generated session; outputs are cut to what a tool's budget would let through in so small a window."""
    cut: list[Message] = []
    for message in generate(seed=seed, messages=messages).messages:
        body = message.get("content")
        cut.append({**message, "content": body[:8_000]} if isinstance(body, str) else message)
    return cut


def frontier_of(talk: Conversation) -> SummaryTree:
    (found,) = [
        fold for line in talk.runtime.log.view.lines if isinstance(fold := read_fold(line.message), SummaryTree)
    ]
    return found


def ask(talk: Conversation, name: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(talk.runtime.recall_tools.handle(name, args))
    assert "error" not in answer
    return answer


def turn(talk: Conversation, message: Message) -> tuple[Message, ...]:
    """One message of a script; the request that went out for it when it is an answer."""
    if role_of(message) != "assistant":
        talk.append(message)
        return ()
    request = talk.request(system="s", tools=openai_tools())
    talk.record(ModelReply(message, CanonicalUsage(input_tokens=request.tokens, output_tokens=9)))
    return request.messages


def test_restarts_change_no_request(tmp_path: Path, settings: Settings) -> None:
    """A process that begins anew before every answer sends what one long process sends, byte for byte."""
    messages = script(6, 120)

    def requests(name: str, restart: bool) -> list[tuple[Message, ...]]:
        url = f"sqlite:///{tmp_path}/{name}.db"
        talk, sent = opened(url, settings), []
        for message in messages:
            if restart and role_of(message) == "assistant":
                talk.close()
                talk = opened(url, settings)
            sent.append(turn(talk, message))
        assert talk.runtime.log.compactions >= 4
        talk.close()
        return sent

    assert requests("restarted", True) == requests("kept", False)


def test_nodes_stand_byte_for_byte_until_they_are_merged(url: str, settings: Settings) -> None:
    """A node's bytes never change; what stands before the first merged node is a prefix a cache knows."""
    texts: dict[str, str] = {}
    last: list[str] = []
    kept = 0
    with opened(url, settings) as talk:
        for message in script(13, 320):
            before = talk.runtime.log.compactions
            turn(talk, message)
            if talk.runtime.log.compactions == before:
                continue
            assert validate(talk.messages) == []
            nodes = frontier_of(talk).nodes
            spans = [node.span for node in nodes]
            assert all(one.last + 1 == other.first for one, other in pairwise(spans))
            for node in nodes:
                assert texts.setdefault(node.id, node.text) == node.text
            kept += bool(last) and last[0] == nodes[0].id
            last = [node.id for node in nodes]
        assert talk.runtime.log.compactions >= 8
        assert kept >= talk.runtime.log.compactions // 3
        assert max(node.level for node in frontier_of(talk).nodes) >= 2


def test_every_fold_that_ever_stood_opens_and_says_what_it_is_made_of(url: str, settings: Settings) -> None:
    """`lcm_describe` names children that exist and lie inside; `lcm_expand` brings the span word for word."""
    messages = script(12, 240)
    with opened(url, settings) as talk:
        for message in messages:
            turn(talk, message)
    with opened(url, settings) as talk:
        folds = {fold.id: fold for fold in talk.runtime.archive.folds()}
        assert any(fold.children for fold in folds.values())
        for id, fold in folds.items():
            described = ask(talk, "lcm_describe", id=id)
            assert described["span"] == str(fold.covered)
            for child in described["children"]:
                assert folds[child].covered.first >= fold.covered.first
                assert folds[child].covered.last <= fold.covered.last
            first = ask(talk, "lcm_expand", id=id)["messages"][0]
            whole = full_text(messages[fold.covered.first - 1])
            assert first["id"] == f"m{fold.covered.first}"
            assert first["text"] == whole[: len(first["text"])]
        status = ask(talk, "lcm_status")
        assert [fold["id"] for fold in status["folds"]] == [node.id for node in frontier_of(talk).nodes]
        assert status["messages"] == len(messages)


def test_the_printed_calls_work(url: str, settings: Settings) -> None:
    """The literal recovery calls of the frontier, executed after a restart, return what they promise."""
    with opened(url, settings) as talk:
        for message in script(13, 200):
            turn(talk, message)
    with opened(url, settings) as talk:
        text = "\n".join(text_of(line.message) for line in talk.runtime.log.view.lines if line.fold)
        calls = re.findall(r'(lcm_expand)\(id="(\w+)"\)', text)
        assert calls
        for name, id in calls:
            assert ask(talk, name, id=id)["messages"]


def test_undo_brings_the_older_frontier_back_and_folding_goes_on(url: str, settings: Settings) -> None:
    """After undo, also in another process, the view is the one before; new folds take new ids; old ones still open."""
    messages = script(14, 420)
    with opened(url, settings) as talk:
        talk.append(*messages[:150])
        assert talk.compact().committed
        older = frontier_of(talk)
        talk.append(*messages[150:260])
        before = talk.messages
        assert talk.compact().committed
        undone = [node.id for node in frontier_of(talk).nodes]
        talk.undo()
        assert talk.messages == before
        assert frontier_of(talk) == older
    with opened(url, settings) as talk:
        assert talk.messages == before
        talk.append(*messages[260:])
        assert talk.compact().outcome is Outcome.COMMITTED
        assert validate(talk.messages) == []
        new = {node.id for node in frontier_of(talk).nodes} - {node.id for node in older.nodes}
        assert new
        assert new.isdisjoint(undone)
        for id in undone:
            assert ask(talk, "lcm_expand", id=id)["messages"]


def test_a_fold_of_the_compressor_becomes_a_child(url: str, settings: Settings, tmp_path: Path) -> None:
    """Who changes the engine in the middle of a conversation loses nothing: the old fold is part of the tree."""
    messages = script(15, 300)
    other = load_settings({"context.engine": "compressor"}, {}, Home(tmp_path))
    with opened(url, other) as talk:
        talk.append(*messages[:150])
        assert talk.compact().committed
        (first,) = talk.runtime.archive.folds()
    with opened(url, settings) as talk:
        talk.append(*messages[150:])
        assert talk.compact().committed
        nodes = frontier_of(talk).nodes
        assert nodes[0].span.first == first.covered.first
        assert any(first.id in fold.children for fold in talk.runtime.archive.folds())
        assert ask(talk, "lcm_expand", id=first.id)["messages"]
    with opened(url, other) as talk:
        talk.append(*script(16, 150))
        assert talk.compact().committed
        assert validate(talk.messages) == []


class WatchedLog:
    """The store's log, and which of its messages were read one by one."""

    def __init__(self, store: Store) -> None:
        self._log = store.log
        self.read: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def _seen(self, found: Iterable[StoredMessage]) -> Iterator[StoredMessage]:
        for stored in found:
            self.read.add(stored.number)
            yield stored

    def iterate(self, *args: Any) -> Iterator[StoredMessage]:
        return self._seen(self._log.iterate(*args))

    def span(self, conversation: str, span: Span) -> list[StoredMessage]:
        return list(self._seen(self._log.span(conversation, span)))


class WatchedStore:
    """A store whose log is watched."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.log = WatchedLog(store)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_opening_a_long_conversation_reads_only_what_is_new(url: str, settings: Settings) -> None:
    """The ledger comes from its snapshot and the view from its entries: nothing that is folded away is read."""
    messages = script(17, 240)
    with opened(url, settings) as talk:
        for message in messages:
            turn(talk, message)
        folded = frontier_of(talk).span.last
    with open_store(url) as store:
        watched = WatchedStore(store)
        with opened(watched, settings) as talk:  # type: ignore[arg-type]
            assert talk.runtime.log.ledger.last == len(messages)
            assert watched.log.read
            assert min(watched.log.read) > folded
            assert talk.request(system="s").messages
            assert min(watched.log.read) > folded
