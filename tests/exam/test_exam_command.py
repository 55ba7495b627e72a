"""`leporello exam`: its output for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .sample import QUESTIONS, write_bank, write_session


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    write_session(tmp_path)
    return write_bank(tmp_path)


def exam(run_cli: Any, bank: Path, *more: object) -> Any:
    return run_cli("exam", bank, "--sessions", bank.parent, "--processes", 1, *more)


def test_the_json_report(run_cli: Any, bank: Path) -> None:
    """Exactly the documented fields, rates from 0 to 1."""
    ran = exam(run_cli, bank, "--engine", "whole", "--json")
    assert ran.code == 0
    report = json.loads(ran.out)
    assert set(report) == {"total", "sessions", "kinds"}
    assert report["total"] == {
        "questions": 4,
        "closed": 1.0,
        "recovered": 1.0,
        "kept_tokens": report["sessions"][0]["kept_tokens"],
    }
    session = report["sessions"][0]
    assert set(session) == {"session", "questions", "closed", "recovered", "kept_tokens", "compactions", "seconds"}
    assert session["compactions"] == 1
    assert report["kinds"]["rule"] == {"questions": 1, "closed": 1.0, "recovered": 1.0}


def test_several_engines_and_windows_are_reports_by_name(run_cli: Any, bank: Path) -> None:
    """By engine, and by engine@window when there are several windows."""
    one = json.loads(exam(run_cli, bank, "--engine", "whole", "--engine", "clear-tools", "--json").out)
    assert list(one) == ["whole", "clear-tools"]
    many = json.loads(exam(run_cli, bank, "--engine", "whole", "--window", 4000, "--window", 8000, "--json").out)
    assert list(many) == ["whole@4000", "whole@8000"]


def test_the_default_engine_is_examined(run_cli: Any, bank: Path) -> None:
    """Without --engine the compressor sits the exam, compacting as the session grows."""
    report = json.loads(exam(run_cli, bank, "--window", 3000, "--json").out)
    assert report["sessions"][0]["compactions"] > 1
    assert report["kinds"]["rule"]["closed"] == 1.0
    assert report["total"]["recovered"] == 1.0


def test_rates_are_means_over_questions_and_tokens_over_sessions(run_cli: Any, tmp_path: Path) -> None:
    """Two banks: rates count every question, kept tokens every session once."""
    write_session(tmp_path)
    (tmp_path / "banks").mkdir()
    lost = {"id": "x", "kind": "rule", "question": "what colour?", "gold": "not in the session at all"}
    for name, questions in (("one", QUESTIONS), ("two", [lost])):
        content = {"session": "day.json", "questions": questions}
        (tmp_path / "banks" / f"{name}.json").write_text(json.dumps(content), "utf-8")
    ran = run_cli("exam", tmp_path / "banks", "--sessions", tmp_path, "--engine", "whole", "--json", "--processes", 1)
    report = json.loads(ran.out)
    assert report["total"]["closed"] == report["total"]["recovered"] == 0.8
    assert [session["closed"] for session in report["sessions"]] == [1.0, 0.0]
    assert report["total"]["kept_tokens"] == report["sessions"][0]["kept_tokens"]
    assert report["kinds"]["rule"]["closed"] == 0.5


def test_processes_do_not_change_the_result(run_cli: Any, bank: Path) -> None:
    """Two processes give the same scores as one."""
    engines = ("--sessions", bank.parent, "--engine", "whole", "--engine", "clear-tools", "--json")
    alone = json.loads(run_cli("exam", bank, *engines, "--processes", 1).out)
    pair = run_cli("exam", bank, *engines, "--processes", 2)
    for report in (alone, both := json.loads(pair.out)):
        for engine in report.values():
            for session in engine["sessions"]:
                del session["seconds"]
    assert alone == both


def test_the_table_and_the_misses(run_cli: Any, bank: Path) -> None:
    """People get a table; --misses adds what was not known and whether the search found it."""
    lost = {"id": "x", "kind": "order", "question": "what colour?", "gold": "not in the session at all"}
    bank = write_bank(bank.parent, [*QUESTIONS, lost])
    ran = exam(run_cli, bank, "--engine", "whole", "--misses")
    assert "whole, window 128,000" in ran.out
    assert "80.0%" in ran.out
    assert "LOST" in ran.out
    assert "what colour?" in ran.out
    misses = json.loads(exam(run_cli, bank, "--engine", "whole", "--misses", "--json").out)["misses"]
    assert [(miss["id"], miss["recovered"]) for miss in misses] == [("x", False)]


def test_the_table_for_a_page(run_cli: Any, bank: Path) -> None:
    """One Markdown row for each engine and window, one column for each kind."""
    ran = exam(run_cli, bank, "--engine", "whole", "--window", 4000, "--window", 8000, "--markdown")
    rows = ran.out.strip().split("\n")
    assert len(rows) == 4
    assert "| identifier |" in rows[0]
    assert rows[2].startswith("| whole | 4,000 |")
    assert len({row.count("|") for row in rows}) == 1


def test_making_a_bank_and_sitting_it(run_cli: Any, tmp_path: Path) -> None:
    """The bank that --make writes works with the exam, printed or written to a file."""
    path = write_session(tmp_path)
    printed = json.loads(run_cli("exam", "--make", path).out)
    out = tmp_path / "made.json"
    ran = run_cli("exam", "--make", path, "--out", out)
    assert (ran.code, ran.out.strip()) == (0, str(out))
    assert json.loads(out.read_text("utf-8")) == printed
    report = json.loads(exam(run_cli, out, "--engine", "whole", "--json").out)
    assert report["total"]["closed"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "no PATH was given"),
        (("--engine", "nonsense"), "there is no engine 'nonsense'"),
        (("--search", "nonsense"), "there is no search 'nonsense'"),
    ],
)
def test_errors_say_what_is_wrong(run_cli: Any, bank: Path, arguments: tuple[str, ...], reason: str) -> None:
    """Unknown names are refused with what is known."""
    ran = exam(run_cli, bank, *arguments) if arguments else run_cli("exam")
    assert ran.code == 2
    assert reason in ran.err


def test_a_missing_session_is_named(run_cli: Any, tmp_path: Path) -> None:
    """The bank, the session and the folder stand in the error."""
    ran = run_cli("exam", write_bank(tmp_path), "--sessions", tmp_path, "--engine", "whole")
    assert ran.code == 2
    assert "day.json" in ran.err
