"""Banks: reading them, and making them by rule."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from leporello.bench.bank import KINDS, fold, load_bank, session_file
from leporello.bench.baselines import PlainSearch, WholeEngine
from leporello.bench.exam import BankExam
from leporello.bench.make_bank import make_bank
from leporello.errors import InputError
from leporello.messages import Message

from .sample import group, session, write_bank, write_session


def test_a_bank_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Writing and reading a bank changes nothing."""
    bank = load_bank(write_bank(tmp_path))
    path = tmp_path / "again.json"
    path.write_text(json.dumps(bank.as_dict()), "utf-8")
    assert load_bank(path).as_dict() == bank.as_dict()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nonsense", "not a question bank"),
        ("[]", "not a question bank"),
        ('{"session": "x", "questions": []}', "no questions"),
        ('{"session": "x", "questions": [3]}', "question 1: is not an object"),
        (
            '{"session": "x", "questions": [{"question": "a?", "gold": "b"}, {"question": "c?"}]}',
            "question 2: has no gold",
        ),
    ],
)
def test_bad_banks_are_refused_with_the_place(tmp_path: Path, content: str, reason: str) -> None:
    """The error names the file, the question and what is missing."""
    path = tmp_path / "bank.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=reason) as caught:
        load_bank(path)
    assert str(path) in str(caught.value)


def test_the_session_is_found_by_path_or_by_name(tmp_path: Path) -> None:
    """As the bank names it, by its file name alone, or beside the bank; else the error says where it was sought."""
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "a.jsonl").touch()
    (tmp_path / "b.jsonl").touch()
    assert session_file("codex/a.jsonl", tmp_path).name == "a.jsonl"
    assert session_file("elsewhere/b.jsonl", tmp_path).name == "b.jsonl"
    assert session_file("b.jsonl", tmp_path / "codex", tmp_path / "bank.json").name == "b.jsonl"
    with pytest.raises(InputError, match="is not under"):
        session_file("c.jsonl", tmp_path)


def test_a_bank_made_by_rule_asks_what_is_there(tmp_path: Path) -> None:
    """Rules, errors, outcomes, commits, paths, reasons and order are found, each with its words."""
    bank = make_bank(write_session(tmp_path))
    found = {(question.kind, question.gold) for question in bank.questions}
    assert {
        ("rule", "Please never touch the generated files."),
        ("rule", "You must use tabs in the Makefile."),
        ("error", "ValueError: row 17 has no end"),
        ("outcome", "3 failed, 41 passed in 2.31s"),
        ("identifier", "4f2a9c1"),
        ("path", "src/parser/reader.py:88"),
        ("decision", "because the writer is shared by two threads."),
        ("order", "Now write the release notes for this change."),
    } <= found
    assert {kind for kind, _ in found} <= set(KINDS)


def test_questions_made_by_rule_are_fair(tmp_path: Path) -> None:
    """No question holds its answer, every answer stands in the session, and the same session gives the same bank."""
    path = write_session(tmp_path)
    bank = make_bank(path)
    for question in bank.questions:
        assert fold(question.gold) not in fold(question.question)
        assert 0 <= question.position <= 1
        assert question.line == 1
    assert len({question.question for question in bank.questions}) == len(bank.questions)
    assert make_bank(path).as_dict() == bank.as_dict()
    score = BankExam(bank, tmp_path).sit(WholeEngine(128_000), PlainSearch)
    assert all(answer.closed for answer in score.answers)


def test_a_bank_is_no_longer_than_asked_and_spread_out(tmp_path: Path) -> None:
    """Many facts: the questions come from the whole length of the session."""
    messages: list[Message] = [{"role": "user", "content": "Check every module of this project, please."}]
    for number in range(60):
        messages += group(
            f"c{number}", f"Module {number}.", f"make check-{number}", f"error: module {number} has a hole"
        )
    bank = make_bank(write_session(tmp_path, messages), size=12)
    assert len(bank.questions) == 12
    positions = [question.position for question in bank.questions]
    assert max(after - before for before, after in pairwise(positions)) < 0.3


def test_secrets_are_not_asked_for(tmp_path: Path) -> None:
    """A bank is a file that may be passed on: no key or password becomes an answer."""
    messages = [*session(), *group("s", "Env.", "env", "DB_PASSWORD=hunter2-Xy9!\nerror: bad token ghp_" + "a1B2" * 9)]
    bank = make_bank(write_session(tmp_path, messages), size=100)
    text = json.dumps(bank.as_dict())
    assert "hunter2" not in text
    assert "ghp_" not in text


def test_answers_that_stand_everywhere_are_not_asked_for(tmp_path: Path) -> None:
    """A line that is in many messages is no test of memory."""
    messages: list[Message] = [{"role": "user", "content": "Try it until it works."}]
    for number in range(8):
        messages += group(f"c{number}", "Again.", f"make try-{number}", "error: the disk is full")
    with pytest.raises(InputError, match="nothing could be asked"):
        make_bank(write_session(tmp_path, messages))
