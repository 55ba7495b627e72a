"""A model that needs longer than the deadline: the model-free summary stands, the model's comes in its place unseen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.conversation.background import run_job
from leporello.conversation.compact import CompactionJob
from leporello.messages import text_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.store import Store, open_store
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

WINDOW = 16_000
LONG = "The harbour office counts barges and cranes every morning before the first tide. " * 40
TOLD = "The harbour office counts barges and cranes every morning"
WRITTEN = f"## Goal\n- {TOLD} before the first tide\n\n## Active State\n- {TOLD} before the first tide\n"


@dataclass
class SlowProvider:
    """Answers when it is let go."""

    name: str = "slow"
    let_go: threading.Event = field(default_factory=threading.Event)

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        assert self.let_go.wait(60)
        return ModelReply({"role": "assistant", "content": WRITTEN}, CanonicalUsage(100, 20))


@dataclass
class Beside:
    """A conversation whose compactions are made in a thread, with a model that is late."""

    store: Store
    conversation: Conversation
    provider: SlowProvider
    thread: threading.Thread

    @property
    def generation(self) -> int:
        return self.store.conversations.resolve(self.conversation.id).generation

    def wait_for(self, generation: int) -> None:
        while self.generation < generation:
            assert self.thread.is_alive()
            threading.Event().wait(0.01)

    @property
    def shown(self) -> str:
        self.conversation.runtime.log.refresh()
        return "\n".join(text_of(message) for message in self.conversation.messages)


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    settings = load_settings({"compression.deadline": 0.05, "model.default": "gpt-4o"}, {}, Home(tmp_path))
    store = open_store(f"sqlite:///{tmp_path}/talk.db")
    provider = SlowProvider()
    counter = TokenCounter.for_model("gpt-4o")
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4o", 128_000)], counter, 0.05)
    conversation = Conversation.open("late", model="gpt-4o", window=WINDOW, store=store, settings=settings)
    jobs: list[CompactionJob] = []
    conversation.runtime.hooks.later = lambda job: not jobs.append(job)  # type: ignore[func-returns-value]
    for number in range(14):
        conversation.append({"role": "user", "content": f"{number} {LONG}"}, {"role": "assistant", "content": "ok"})
    conversation.request()
    (job,) = jobs
    arguments = (store, settings, job, lambda _: summariser, PluginHost(settings))
    made = Beside(store, conversation, provider, threading.Thread(target=run_job, args=arguments, daemon=True))
    yield made
    provider.let_go.set()
    made.thread.join()
    store.close()


def test_it_takes_the_place_of_the_one_that_nobody_saw(beside: Beside) -> None:
    """The same turns in the model's words; everything that was said stays."""
    beside.thread.start()
    beside.wait_for(1)
    stood_in = beside.shown
    beside.provider.let_go.set()
    beside.thread.join()
    assert beside.generation == 2
    late, first = beside.store.views.attempts("late", 2)
    assert (first.report.summariser, late.report.summariser) == ("model-free", "model:gpt-4o")
    assert late.report.trigger == "late summary"
    assert "late; one without a model stands in" in " ".join(first.report.warnings)
    assert beside.shown != stood_in
    assert f"{TOLD} before the first tide" in beside.shown
    assert "13 The harbour office" in beside.shown
    assert beside.conversation.usage.usage.total_tokens == 120


def test_it_is_given_up_when_the_conversation_goes_on(beside: Beside) -> None:
    """By then a request shows the other one: swapped in, it would break the cache a second time."""
    beside.thread.start()
    beside.wait_for(1)
    beside.conversation.append({"role": "user", "content": "Go on."})
    beside.thread.join()
    assert not beside.provider.let_go.is_set()
    assert beside.generation == 1
    assert "Go on." in beside.shown
