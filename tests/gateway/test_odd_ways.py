"""Odd ways that clients, models and workers go, each of which once left somebody waiting or a worker in trouble."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import orjson
import pytest

from leporello.cancel import CancelToken
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.dialects import ANTHROPIC, DIALECTS, Dialect
from leporello.gateway.api_errors import json_body
from leporello.gateway.proxy.conversations import ConversationHint, ProxiedConversations
from leporello.gateway.proxy.relay import Tally
from leporello.gateway.proxy.request import read_request
from leporello.gateway.sessions.message_handler import MessageOutcome
from leporello.gateway.sessions.worker import ConversationWorker, WorkerServices
from leporello.policy.decision import Occasion
from leporello.store import open_store
from leporello.store.records import InboxMessage
from leporello.summaries.base import Summary, SummaryTask


async def test_a_message_sent_again_while_it_is_answered_here(tmp_path: Path) -> None:
    """It came to a worker that died; this one answers it when the client sends it again, and the client hears how."""
    answering, go_on = threading.Event(), threading.Event()
    with (
        open_store(f"sqlite:///{tmp_path}/a.db") as store,
        ThreadPoolExecutor(4) as some,
        ThreadPoolExecutor(4) as more,
    ):
        store.conversations.create("c")
        store.inbox.enqueue("c", "x", "hello")
        worker = ConversationWorker("c", WorkerServices(store, some, more, lambda _: None), lambda *_: None)

        def answer(message: InboxMessage, cancel: CancelToken, tell: object, turn: object) -> MessageOutcome:
            answering.set()
            assert go_on.wait(60)
            outcome = MessageOutcome("done", "answer", "stop")
            store.inbox.end("c", message.id, asdict(outcome))
            return outcome

        worker.handler.answer = answer  # type: ignore[method-assign]
        worker.rescue()
        assert await asyncio.to_thread(answering.wait, 60)
        job = await worker.enqueue("hello", "x")
        go_on.set()
        assert (await asyncio.wait_for(job.ended(), 60)).text == "answer"
        await worker.close()


def test_each_message_knows_where_its_item_ends() -> None:
    """Several messages of one item share its span; the last item ends with the list."""
    results = [{"type": "tool_result", "tool_use_id": f"t{k}", "content": "x"} for k in range(3)]
    said = [
        {"role": "user", "content": "Go."},
        {"role": "user", "content": results},
        {"role": "assistant", "content": "Done."},
    ]
    request = read_request(ANTHROPIC, orjson.dumps({"model": "m", "messages": said}))
    assert request.spans == ((0, 1), (1, 2), (1, 2), (1, 2), (2, 3))


def test_half_a_character_can_be_told() -> None:
    assert orjson.loads(json_body({"text": "whole"})) == {"text": "whole"}
    assert json_body({"text": "half \ud83d"}) == b'{"text": "half \\ud83d"}'


@pytest.mark.parametrize("dialect", list(DIALECTS.values()))
def test_events_of_nonsense_are_no_end(dialect: Dialect) -> None:
    tally = Tally(dialect)
    tally.feed(b'data: {"type": null, "x": "message_stop response.completed"}\n\n')
    assert not tally.ended


def test_what_is_at_hand_is_weighed_once(tmp_path: Path) -> None:
    """The total that decides who goes is the sum of what each weighs, whatever came, grew, was opened or went."""
    settings = load_settings({}, environ={}, home=Home(tmp_path / "home"))
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        conversations = ProxiedConversations(store, settings, most_bytes=9_000)
        for number in range(40):
            said = [{"role": "user", "content": f"Hello {number % 9}"}]
            said += [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "More"}] * (number // 9)
            live = conversations.take(ConversationHint(b"start", said, "me", "gpt-4o", 100))
            cache = conversations.cache
            assert cache.weight <= 9_000 or len(list(cache)) == 1, "a request makes room for itself"
            if live is not None and number % 4 == 0:
                with live.guard:
                    conversations.open(live, "gpt-4o", None)
            assert cache.weight == sum(cached.weight for cached in cache)


def test_an_undo_during_a_fold_is_heeded(tmp_path: Path) -> None:
    """The fold is not committed, and the next automatic one waits for the hard limit, as after any undo."""
    settings = load_settings({}, environ={}, home=Home(tmp_path / "home"))
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:

        class Undoing:
            armed = False

            def summarise(self, task: SummaryTask) -> Summary:
                if self.armed:
                    store.views.undo("c")
                return Summary(None)

        summariser = Undoing()
        conversation = Conversation.open(
            "c", model="gpt-4o", window=20_000, store=store, settings=settings, summariser=summariser
        )
        for number in range(60):
            conversation.append(
                {"role": "user", "content": f"Question {number} about file_{number}.py. " + "word " * 60}
            )
            conversation.append(
                {"role": "assistant", "content": f"Answer {number}: port {8000 + number}. " + "more " * 60}
            )
        assert conversation.compact().committed
        for number in range(60):
            conversation.append({"role": "user", "content": f"Again {number}. " + "word " * 60})
            conversation.append({"role": "assistant", "content": f"Well {number}. " + "more " * 60})
        summariser.armed = True
        assert not conversation.compact().committed
        assert conversation.runtime.log.view.waits_for_hard_limit
        assert not conversation.runtime.compactor.decide(
            Occasion.TURN, conversation.runtime.sizes.limits.threshold_tokens + 1
        ).compacts
        assert conversation.runtime.compactor.decide(
            Occasion.TURN, conversation.runtime.sizes.limits.hard_tokens
        ).compacts
        conversation.close()
