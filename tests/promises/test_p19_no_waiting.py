"""Promise 19, no waiting: a turn waits for a summary until the deadline, then the model-free summary is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider, Step
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.support.checks import fold_in

SESSION = generate(SessionSpec(seed=191, messages=120, tokens=30_000, images=0)).messages
COUNTER = TokenCounter.for_model("gpt-4.1")
SUMMARY = "## Goal\n- Keep it running\n\n## Active State\n- Tests ran\n"


class Hanging:
    """Models that answer only once they are let go; whoever waits for that long has waited too long."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.came_back = threading.Event()
        self.provider = ScriptedProvider(self._answer)

    def _answer(self, _: ModelRequest) -> Step:
        self.let_go.wait(8.0)
        self.came_back.set()
        return SUMMARY

    def summariser(self, deadline: float, models: int = 1) -> ModelSummariser:
        ladder = [SummaryModel(self.provider, "gpt-4.1", 128_000) for _ in range(models)]
        return ModelSummariser(ladder, COUNTER, deadline)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    models = Hanging()
    yield models
    models.let_go.set()


@pytest.mark.fault(
    "a turn waits until the summary model answers",
    "summaries/model.py",
    old="return [future.result(timeout=max(0.01, until - time.monotonic())) for future in futures]",
    new="return [future.result() for future in futures]",
)
@pytest.mark.fault(
    "the calls that hang are waited for in the end",
    "summaries/model.py",
    old="pool.shutdown(wait=False, cancel_futures=True)",
    new="pool.shutdown(wait=True)",
)
def test_a_turn_ends_though_the_summary_model_never_answers(tmp_path: Path, hanging: Hanging) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with Conversation.open("a", window=12_000, store=url, summariser=hanging.summariser(0.2)) as conversation:
        conversation.append(*SESSION)
        request = conversation.request(system="s")
        assert not hanging.came_back.is_set(), "the turn waited for the summary model"
        assert hanging.provider.requests, "the summary model was not even asked"
        assert request.tokens <= 12_000
        assert fold_in(request.messages) is not None
        (attempt,) = conversation.runtime.log.store.views.attempts("a")
        assert attempt.report.committed
        assert attempt.report.summariser == "model-free"
        assert any("deadline" in warning for warning in attempt.report.warnings)


@pytest.mark.fault(
    "each model of the ladder has the whole deadline",
    "summaries/model.py",
    old="end = time.monotonic() + self.deadline\n        for candidate in self.ladder:",
    new="for candidate in self.ladder:\n            end = time.monotonic() + self.deadline",
)
def test_the_deadline_is_one_for_all_models_together(hanging: Hanging) -> None:
    """Told apart by what the models are given: the first all of it, the others what is left."""
    given = [hanging.provider.requests]
    summariser = ModelSummariser(
        [SummaryModel(hanging.provider, f"model-{number}", 128_000) for number in range(3)], COUNTER, 0.6
    )
    with Conversation.open("a", window=12_000, summariser=summariser) as conversation:
        conversation.append(*SESSION)
        report = conversation.compact()
    assert report.summariser == "model-free"
    first, *others = [request.timeout for request in given[0]]
    assert first is not None
    assert 0.3 < first <= 0.6
    assert others
    assert all(left is not None and left <= 0.1 for left in others)


def test_a_model_that_answers_in_time_writes_the_summary(tmp_path: Path) -> None:
    """The deadline keeps nobody from answering."""
    summariser = ModelSummariser([SummaryModel(ScriptedProvider(lambda _: SUMMARY), "gpt-4.1", 128_000)], COUNTER, 60.0)
    with Conversation.open("a", window=12_000, store=f"sqlite:///{tmp_path}/s.db", summariser=summariser) as talk:
        talk.append(*SESSION)
        assert talk.compact().summariser == "model:gpt-4.1"
