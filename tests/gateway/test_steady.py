"""A steady session of a coding client: nobody waits for a compaction, and the prompt cache is broken seldom."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from leporello.gateway.background import Handler, QueuedJob, ThreadQueue
from leporello.store.records import ConversationFilter
from leporello.testing.stub_server import Say, Seen
from leporello.usage import CanonicalUsage

from .clerks import anthropic_client, counted
from .house import opened, recorded

WINDOW = 80_000
CALLS = 150
WORDS = "harbour crane barge ledger tide anchor signal buoy chart mast rope deck port berth quay cargo".split()
FIXED = " ".join(Random(5).choices(WORDS, k=21_000))
"""About 29,000 tokens of instructions, as a coding agent has with its tools."""
TOOL: Any = {"name": "read", "description": "Read", "input_schema": {"type": "object", "properties": {}}}
LEAST_BETWEEN = 15


def page(number: int) -> str:
    return f"page {number}: " + " ".join(Random(number).choices(WORDS, k=700))


def next_page(number: int, seen: Seen) -> Say:
    """The model reads on, and its server counts."""
    return Say("Next.", calls=(("read", json.dumps({"page": number})),), usage=CanonicalUsage(counted(seen), 20))


class PacedQueue:
    """A queue for which one can wait."""

    def __init__(self) -> None:
        self._queue = ThreadQueue()
        self._open = threading.Semaphore(0)
        self._submitted = 0

    def submit(self, job: QueuedJob) -> bool:
        self._submitted += 1
        return self._queue.submit(job)

    def serving(self, handlers: Mapping[str, Handler]) -> AbstractAsyncContextManager[None]:
        return self._queue.serving({kind: self._told(handler) for kind, handler in handlers.items()})

    def _told(self, handler: Handler) -> Handler:
        def handle(facts: Mapping[str, Any]) -> None:
            try:
                handler(facts)
            finally:
                self._open.release()

        return handle

    def wait(self) -> None:
        """Until every job that was submitted is done."""
        while self._submitted:
            assert self._open.acquire(timeout=60)
            self._submitted -= 1


@pytest.mark.parametrize("fixed", ["You sort pages.", FIXED], ids=["small", "large"])
def test_nobody_waits_and_the_prefix_holds(tmp_path: Path, fixed: str) -> None:
    """Each compaction is made beside the conversation; at least 15 requests lie between two breaks of the prefix."""
    script = [partial(next_page, number) for number in range(CALLS)]
    messages: list[Any] = [{"role": "user", "content": "Read all pages and say what they have in common."}]
    queue = PacedQueue()
    with opened(tmp_path, script, window=WINDOW, queue=queue) as house:
        client = anthropic_client(house.url)
        for number in range(CALLS):
            answer = client.messages.create(
                model="claude-sonnet-5", max_tokens=500, system=fixed, messages=messages, tools=[TOOL]
            )
            messages.append({"role": "assistant", "content": [part.model_dump() for part in answer.content]})
            (asked,) = [part.id for part in answer.content if part.type == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": asked, "content": page(number)}
            messages.append({"role": "user", "content": [result]})
            # Real models answer more slowly than a client is served and a compaction made.
            (record,) = house.store.conversations.page(ConversationFilter(platform="gateway")).conversations
            recorded(house, record.id, number + 1)
            queue.wait()
        sent = [seen.body["messages"] for seen in house.model_calls]
        attempts = house.store.views.attempts(record.id, 500)
    assert sum(attempt.report.committed for attempt in attempts) >= 3
    assert {attempt.report.trigger for attempt in attempts} == {"threshold"}, "a request waited"
    assert {attempt.report.outcome.value for attempt in attempts} == {"committed"}, [a.report.reason for a in attempts]
    breaks = [
        number
        for number, (before, after) in enumerate(itertools.pairwise(sent))
        if plain(after)[: len(before)] != plain(before)
    ]
    assert len(breaks) >= 3
    assert min(after - before for before, after in itertools.pairwise(breaks)) >= LEAST_BETWEEN


def plain(value: Any) -> Any:
    """Without cache marks, which may move."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "cache_control"}
    return value
