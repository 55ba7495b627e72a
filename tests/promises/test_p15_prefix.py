"""Promise 15, prefix-stable: between compactions a request begins with the bytes of the one before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.conversation.rendering import Request
from leporello.events import CompactionEvent
from leporello.messages import encode_json, role_of
from leporello.recall.tools import openai_tools
from leporello.testing.sessions import SessionSpec, generate
from tests.support.talks import talk

SESSION = generate(SessionSpec(seed=151, messages=160, tokens=40_000, images=0)).messages


def pieces(request: Request) -> list[bytes]:
    """What a provider caches, in its order: tools, then messages with the system prompt first.

    The newest message is left out when the user may still add to it.
    """
    messages = list(request.messages)
    if role_of(messages[-1]) == "user":
        messages.pop()
    return [encode_json(list(request.tools)), *map(encode_json, messages)]


@pytest.mark.fault(
    "the system prompt tells how long the conversation is",
    "conversation/conversation.py",
    old='{"role": "system", "content": system} if isinstance(system, str) else system',
    new='{"role": "system", "content": f"{system} ({self.runtime.log.view.last})"}',
)
@pytest.mark.fault(
    "only the newest messages are sent",
    "conversation/rendering.py",
    old="sent = join_neighbours([*self._settled[-1:], *open_end], self._settled[:-1])",
    new="sent = join_neighbours([*self._settled[-1:], *open_end], self._settled[:-1])[-30:]",
)
def test_a_request_begins_with_the_one_before_and_a_compaction_breaks_it_once(tmp_path: Path) -> None:
    events: list[CompactionEvent] = []
    breaks, seen = 0, 0
    last: list[bytes] = []
    with Conversation.open("a", window=12_000, store=f"sqlite:///{tmp_path}/store.db") as conversation:
        conversation.runtime.hooks.listeners.append(events.append)
        for request in talk(conversation, SESSION, tools=openai_tools()):
            now, compactions = pieces(request), sum(event.report.committed for event in events)
            if compactions == seen:
                assert now[: len(last)] == last
            else:
                assert compactions == seen + 1
                assert now[:2] == last[:2], "tools and system prompt stay even then"
                breaks += now[: len(last)] != last
            seen, last = compactions, now
    assert breaks == seen >= 3


@pytest.mark.fault(
    "the system prompt tells the time",
    "conversation/conversation.py",
    old='{"role": "system", "content": system} if isinstance(system, str) else system',
    new='{"role": "system", "content": f"{system} {self._store.database.now()}"}',
)
def test_the_same_request_twice_is_the_same_bytes(tmp_path: Path) -> None:
    """Also by another process: what one of them wrote into the cache the other reads."""
    url = f"sqlite:///{tmp_path}/store.db"
    with Conversation.open("a", window=12_000, store=url) as conversation:
        for _ in talk(conversation, SESSION):
            pass
        assert conversation.runtime.log.compactions >= 3
        conversation.append({"role": "user", "content": "Go on."})
        first = conversation.request(system="s")
        with Conversation.open("a", window=12_000, store=url) as other:
            assert encode_json(other.request(system="s").anthropic()) == encode_json(first.anthropic())
        assert encode_json(conversation.request(system="s").anthropic()) == encode_json(first.anthropic())
