"""A summary model may fail in every way: there is always an answer, never an exception, and nothing unverified."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from leporello.errors import ProviderError
from leporello.providers.base import ModelReply, ModelRequest
from leporello.summaries.base import SummaryTask
from leporello.summaries.handoff import Section
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

GOOD = """## Active Task
None.
## Goal
Fix the failing test in tests/test_port.py [m1]
## Completed Actions
1. Ran pytest: 2 failed [m3]
## Critical Context
The port is 8443 [m3]
"""

TURNS = [
    (1, {"role": "user", "content": "Fix the failing test in tests/test_port.py"}),
    (2, {"role": "assistant", "content": "I will run pytest."}),
    (3, {"role": "assistant", "content": "pytest: 2 failed; the port is 8443"}),
]


class Model:
    """A summary model that does what a test says."""

    name = "scripted"

    def __init__(self, answer: str | Exception | Callable[[ModelRequest], str]) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest, on_text: object = None) -> ModelReply:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        text = self.answer if isinstance(self.answer, str) else self.answer(request)
        return ModelReply({"role": "assistant", "content": text}, CanonicalUsage(100, 10))


def narrator(*models: Model, window: int = 32_000, deadline: float = 20.0, now: list[float] | None = None):
    clock = now if now is not None else [0.0]
    ladder = [SummaryModel(model, f"m{k}", window) for k, model in enumerate(models)]
    return ModelSummariser(ladder, TokenCounter.for_model(None), deadline, clock=lambda: clock[0])


def task(turns: list = TURNS, budget: int = 500) -> SummaryTask:
    return SummaryTask(turns, None, budget)


def test_a_good_answer_becomes_a_narrative() -> None:
    told = narrator(Model(GOOD)).summarise(task())
    assert told.handoff is not None
    assert told.summariser == "model:m0"
    assert told.handoff[Section.CRITICAL][0].text == "The port is 8443"
    assert told.usage.input_tokens == 100


@pytest.mark.parametrize(
    "answer",
    ["", "   \n", "Sure! The test fails because of the port.", "## Goal", "{}", ProviderError("503")],
    ids=["empty", "blank", "an answer instead", "one heading", "json", "error"],
)
def test_a_useless_answer_gives_way_to_the_next_model_and_then_to_none(answer: str | Exception) -> None:
    bad, good = Model(answer), Model(GOOD)
    assert narrator(bad, good).summarise(task()).summariser == "model:m1"
    alone = narrator(bad).summarise(task())
    assert alone.handoff is None
    assert alone.summariser == "model-free"
    assert any("m0" in text for text in alone.warnings)


def test_a_failed_model_rests_before_it_is_asked_again() -> None:
    now = [0.0]
    bad = Model(ProviderError("503"))
    teller = narrator(bad, now=now)
    teller.summarise(task())
    teller.summarise(task())
    assert len(bad.requests) == 1
    now[0] = 61.0
    teller.summarise(task())
    assert len(bad.requests) == 2


def test_a_model_past_the_deadline_gives_way() -> None:
    release = threading.Event()

    def hang(_: ModelRequest) -> str:
        release.wait(10)
        return GOOD

    told = narrator(Model(hang), deadline=0.05).summarise(task())
    release.set()
    assert told.handoff is None
    assert "deadline" in " ".join(told.warnings)


def test_lines_with_unknown_facts_are_dropped_and_counted() -> None:
    invented = GOOD + "The staging host is stage-7.internal/x9 [m3]\nThe build number is 48213 [m3]\n"
    told = narrator(Model(invented)).summarise(task())
    assert told.verification.lines_dropped == 2
    assert told.handoff is not None
    assert [line.text for line in told.handoff[Section.CRITICAL]] == ["The port is 8443"]


def test_turns_beyond_the_models_window_are_read_in_parts_and_merged() -> None:
    turns = [*TURNS, *((k, {"role": "user", "content": f"message {k} " + "word " * 300}) for k in range(4, 60))]
    model = Model(GOOD)
    told = narrator(model, window=8_000).summarise(task(turns))
    assert told.handoff is not None
    counter = TokenCounter.for_model(None)
    sizes = [counter.messages(request.messages) + (request.max_tokens or 0) for request in model.requests]
    assert len(sizes) > 2
    assert max(sizes) <= 8_000


def test_a_summary_ten_times_too_long_is_cut_to_its_budget() -> None:
    long = GOOD + "".join(f"The port is 8443, said again {k % 9} [m3]\n" for k in range(400))
    told = narrator(Model(long)).summarise(task())
    assert told.handoff is not None
    assert TokenCounter.for_model(None).text("\n".join(line.text for _, line in told.handoff.lines())) <= 500


def test_no_secret_reaches_the_model() -> None:
    secret = "sk-" + "ant-api03-" + "A1b2C3d4" * 11 + "AA"
    model = Model(GOOD)
    narrator(model).summarise(task([*TURNS, (4, {"role": "user", "content": f"the key is {secret}"})]))
    assert secret not in str([request.messages for request in model.requests])


def test_answers_are_counted_even_when_no_summary_came_of_them() -> None:
    """A useless answer, and parts that were answered before a later one failed, cost money too."""
    useless = narrator(Model("Sure! Nothing to add.")).summarise(task())
    assert useless.handoff is None
    assert useless.usage.input_tokens == 100
    turns = [(k, {"role": "user", "content": f"message {k} " + "word " * 300}) for k in range(1, 60)]

    def fails_on_the_last_part(request: ModelRequest) -> str:
        if "message 59 " in str(request.messages):
            raise ProviderError("503")
        return GOOD

    model = Model(fails_on_the_last_part)
    told = narrator(model, window=8_000).summarise(task(turns))
    assert told.handoff is None
    assert told.usage.input_tokens == 100 * (len(model.requests) - 1) > 0


def test_a_summary_of_which_nothing_is_true_is_no_summary() -> None:
    """Without it the next model is asked, and the program's own decisions are not left out for a model's."""
    invented = (
        "## Goal\nMigrate zebra-9 to Kubernetes 1.99 [m1]\n## Critical Context\nThe host is q-77.example/z [m2]\n"
    )
    alone = narrator(Model(invented)).summarise(task())
    assert alone.handoff is None
    assert "none of its 2 lines" in " ".join(alone.warnings)
    assert narrator(Model(invented), Model(GOOD)).summarise(task()).summariser == "model:m1"
