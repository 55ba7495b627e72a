"""Exams with a model that writes the summaries: what they change, and what they cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from leporello.bench.exam import SummaryCost
from leporello.bench.run import BANK, ExamRun, run_one
from leporello.messages import text_of
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.stub_server import Say, Seen, StubServer
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

from .sample import long_day, write_bank, write_session

WINDOW = 3_000


def summary_of(prompt: str) -> str:
    """A summary that says what the first answer in the turns says, so that it passes verification."""
    turns = prompt.partition("<turns>")[2]
    number, words = re.findall(r"^\[(m\d+) assistant\] (.+)$", turns, re.MULTILINE)[0]
    return f"## Goal\n- {words} [{number}]\n\n## Completed Actions\n- {words} [{number}]\n"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    write_session(tmp_path, long_day())
    return write_bank(tmp_path)


def examined(bank: Path, answer: Callable[[str], str]) -> tuple[dict[str, Any], ScriptedProvider]:
    provider = ScriptedProvider(lambda request: answer(text_of(request.messages[-1])), window=128_000)
    models = [SummaryModel(provider, "gpt-4.1-mini", 128_000)]
    summariser = ModelSummariser(models, TokenCounter.for_model(None), clock=lambda: 0.0)
    exam = BANK.load(bank, bank.parent)[0]
    return BANK.report([run_one(ExamRun("compressor", WINDOW, "recall", summariser), exam)]), provider


def test_summaries_are_counted_and_priced(bank: Path) -> None:
    """Every call is on the bill, at the price of the model's name."""
    report, provider = examined(bank, summary_of)
    spent = report["total"]["summaries"]
    assert spent["asked"] == spent["written"] == len(provider.requests) > 0
    assert spent["input_tokens"] == sum(reply.usage.prompt_tokens for reply in provider.replies)
    assert spent["output_tokens"] == sum(reply.usage.output_tokens for reply in provider.replies)
    assert spent["cost"] > 0
    assert report["sessions"][0]["summaries"] == spent
    assert report["total"]["recovered"] == 1.0


def test_answers_that_are_no_summaries_are_paid_for_but_not_counted(bank: Path) -> None:
    """The exam goes on without the model, as a conversation would, and tells so."""
    report, _ = examined(bank, lambda _: "I would rather talk about something else.")
    spent = report["total"]["summaries"]
    assert spent["asked"] > spent["written"] == 0
    assert spent["output_tokens"] > 0
    assert report["total"]["recovered"] == 1.0


def test_costs_add_up() -> None:
    """A price that is not known stays out of the sum; the same warning is told once."""
    known = SummaryCost(2, 1, CanonicalUsage(10, 5), 0.25, ("slow",))
    total = known + SummaryCost(1, 1, CanonicalUsage(3, 2), None, ("slow", "late"))
    assert total == SummaryCost(3, 2, CanonicalUsage(13, 7), 0.25, ("slow", "late"))
    assert SummaryCost().cost is None


def writer(seen: Seen) -> Say:
    """The model behind the server."""
    return Say(summary_of(seen.body["messages"][-1]["content"]), usage=CanonicalUsage(1_000, 50))


def test_the_command_asks_the_model_of_the_settings(run_cli: Any, bank: Path) -> None:
    """The server that the settings name gets the calls; table and JSON say what came of them."""
    with StubServer(repeat(writer, 120)) as server:
        place = ("--set", f"model.base_url={server.url}/v1", "--set", "model.context_length=32000")
        arguments = (*place, "exam", bank, "--sessions", bank.parent, "--window", WINDOW, "--summariser", "writer")
        ran = run_cli(*arguments)
        assert ran.code == 0
        asked = len(server.bodies())
        assert {body["model"] for body in server.bodies()} == {"writer"}
        assert f"Summaries by the model: {asked} of {asked}, {1_000 * asked:,} tokens read" in ran.out
        assert "price not known" in ran.out
        report = json.loads(run_cli(*arguments, "--json").out)
        assert report["total"]["summaries"]["input_tokens"] == 1_000 * asked


def test_a_model_that_failed_once_is_asked_again(run_cli: Any, bank: Path) -> None:
    """Folds that lie hours apart in the session follow within seconds here; the warning says what went wrong."""
    with StubServer([Say("No."), *repeat(writer, 40)]) as server:
        place = ("--set", f"model.base_url={server.url}/v1", "--set", "model.context_length=32000")
        arguments = ("exam", bank, "--sessions", bank.parent, "--window", WINDOW, "--summariser", "writer", "--json")
        spent = json.loads(run_cli(*place, *arguments).out)["total"]["summaries"]
    assert spent["asked"] - 1 == spent["written"] > 0
    assert any("writer gave no summary" in text for text in spent["warnings"])
