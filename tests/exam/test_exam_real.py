"""The exam on real sessions: published figures of the baselines come out, so the scoring is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.bench.bank import load_bank
from leporello.bench.baselines import PlainSearch
from leporello.bench.exam import BankExam, ask, without_thinking
from leporello.bench.run import BANK, ExamRun, run_one
from leporello.importers import load_session


@pytest.fixture(scope="module")
def sittings(real_sessions: Path, banks: Path) -> list[BankExam]:
    return [BankExam(load_bank(path), real_sessions) for path in sorted(banks.glob("*.json"))]


def test_everything_is_known_when_nothing_is_folded(sittings: list[BankExam]) -> None:
    """The whole sessions hold every gold text, in about 235 thousand tokens a session."""
    total = BANK.report([run_one(ExamRun("whole", 128_000, "plain"), sitting) for sitting in sittings])["total"]
    assert total["closed"] == 1.0
    assert 233_000 < total["kept_tokens"] < 237_000


def test_clearing_tool_results_scores_as_published(sittings: list[BankExam]) -> None:
    """All but the last ten results cleared: 57.5% closed-book at about 100 thousand tokens."""
    total = BANK.report([run_one(ExamRun("clear-tools", 128_000, "plain"), sitting) for sitting in sittings])["total"]
    assert total["closed"] == 0.575
    assert 0.72 <= total["recovered"] <= 0.80
    assert 97_000 < total["kept_tokens"] < 102_000


def test_plain_search_alone_finds_about_what_is_published(sittings: list[BankExam], real_sessions: Path) -> None:
    """Plain BM25 over chunks finds a little over half of all golds within its budget."""
    found = asked = 0
    for sitting in sittings:
        messages = without_thinking(load_session(real_sessions / sitting.bank.session).messages)
        answers = ask(sitting.bank, [], PlainSearch(messages))
        found += sum(answer.recovered for answer in answers)
        asked += len(answers)
    assert 0.52 <= found / asked <= 0.62
