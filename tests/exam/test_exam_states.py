"""State banks: what holds at a moment, each thing in its section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello.bench.bank import WordIndex
from leporello.bench.baselines import WholeEngine
from leporello.bench.exam import Replayed
from leporello.bench.run import STATE, ExamRun, run_one
from leporello.bench.states import FinalView, check, load_state, state_rates, view_of
from leporello.errors import InputError
from leporello.summaries.handoff import ENDED

from .sample import group, long_day

STATE_OF_DAY: dict[str, Any] = {
    "session": "day.jsonl",
    "lines": 0,
    "active_task": ["write the release notes for this change"],
    "pending": ["Now write the release notes for this change."],
    "not_pending": ["The parser drops the last row."],
    "rules": ["Please never touch the generated files.", "You must use tabs in the Makefile."],
    "not_rules": ["plain words 3"],
    "values": [{"subject": "tests", "old": "3 failed, 41 passed in 2.31s", "new": "44 passed in 2.40s"}],
    "decisions": ["I keep the buffer in the reader because the writer is shared by two threads."],
    "state": ["44 passed in 2.40s"],
    "files": ["src/parser/reader.py"],
    "next": "Write the notes.",
}


def write_state(folder: Path, **changes: Any) -> Path:
    """A session of a message a line that ends with an open request, more lines behind it, and a state bank over it."""
    messages = [
        *long_day(),
        *(message for k in range(12) for message in group(f"l{k}", f"Listing {k}.", f"ls folder{k}", "a\nb")),
        *group("t", "Testing again.", "pytest -q", "44 passed in 2.40s"),
        {"role": "user", "content": "Now write the release notes for this change."},
    ]
    later = {"role": "user", "content": "After the cut: never use the colour blue."}
    (folder / "day.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*messages, later]), "utf-8")
    path = folder / "state.json"
    path.write_text(json.dumps({**STATE_OF_DAY, "lines": len(messages), **changes}), "utf-8")
    return path


def rates_of(engine: str, path: Path, window: int = 20_000) -> dict[str, Any]:
    exams = STATE.load(path, path.parent)
    return STATE.report([run_one(ExamRun(engine, window, "recall"), exams[0])])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the  PARSER drops\nthe last row", True),
        ("parser drops its very last row", True),
        ("the parser drops the first row of every table", False),
        ("the", True),
        ("that", False),
        ("row parser", True),
        ("parser far away", False),
    ],
)
def test_a_text_is_there_word_for_word_or_nearly(text: str, found: bool) -> None:
    """Four of five content words close together are enough; stop words alone count only word for word."""
    index = WordIndex(["the parser drops the last row " + "and more " * 30 + "far away"])
    assert index.has(text) is found


def test_a_word_that_is_asked_for_twice_must_stand_twice() -> None:
    """Repeating one word does not make up for the others, nor does one word count for two."""
    assert not WordIndex(["red red red red"]).has("red green blue grey")
    assert not WordIndex(["red"]).has("red red")
    assert WordIndex(["red or red"]).has("red red")


def test_the_engine_tells_the_state_in_sections(tmp_path: Path) -> None:
    """The typed handoff is looked at by section, and nothing behind the cut was replayed."""
    report = rates_of("compressor", write_state(tmp_path))
    total = report["total"]
    # The other rule stands in the first request, which is not folded.
    assert total["rules"] == {"found": 1, "of": 2, "share": 0.5}
    assert total["rules_anywhere"]["share"] == 1.0
    assert total["not_rules"]["found"] == total["not_pending"]["found"] == 0
    assert total["finished"]["of"] == 0
    assert total["lines"]["Constraints & Preferences"] == 1
    assert report["sessions"][0]["session"].startswith("day.jsonl@")
    behind = write_state(tmp_path, rules=["After the cut: never use the colour blue."])
    assert rates_of("compressor", behind)["total"]["rules_anywhere"]["found"] == 0


def test_an_engine_without_sections_is_scored_on_its_text(tmp_path: Path) -> None:
    """Everything is somewhere, nothing is in a section."""
    total = rates_of("whole", write_state(tmp_path))["total"]
    for label in ("rules_anywhere", "decisions", "outcomes", "files", "new_values"):
        assert total[label]["share"] == 1.0, label
    for label in ("active_task", "pending", "rules"):
        assert total[label]["share"] == 0.0, label
    assert total["replaced"]["found"] == 0  # the old value stands there as well, unmarked


def view(text: str) -> FinalView:
    return view_of(WholeEngine(1_000), Replayed([{"role": "user", "content": text}], 1, 0.0))


def answers(path: Path, seen: FinalView) -> dict[str, Any]:
    return state_rates(tuple(check(load_state(path), seen)))


def test_headings_in_plain_text_begin_sections(tmp_path: Path) -> None:
    """A text engine that writes the usual headings is scored like the typed handoff."""
    path = write_state(tmp_path)
    told = (
        "## Active Task\n- Write the release notes for this change\n"
        "## Constraints & Preferences\n- Never touch the generated files, please.\n"
        f"- {ENDED}9: You must use tabs in the Makefile.\n"
        "## Pending User Asks\n- The parser drops the last row.\n"
    )
    found = answers(path, view(told))
    assert found["active_task"]["found"] == found["pending"]["found"] == 1
    assert found["rules"]["found"] == 1  # the other one is told to have ended
    assert found["rules_anywhere"]["found"] == 2
    assert found["not_pending"]["found"] == 1


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("## Active Task\nNone.\n## Goal\n- x", True),
        ("**Active Task**\n- none", True),
        ("## Active Task\n- Go", False),
        ("done", False),
    ],
)
def test_finished_work_must_be_told(tmp_path: Path, text: str, finished: bool) -> None:
    """Without an active task the section has to say None; no section at all says nothing."""
    found = answers(write_state(tmp_path, active_task=[]), view(text))
    assert found["active_task"]["of"] == 0
    assert found["finished"] == {"found": int(finished), "of": 1, "share": float(finished)}


@pytest.mark.parametrize(
    ("text", "new", "replaced", "only_old"),
    [
        ("44 passed in 2.40s", 1, 1, 0),
        ("3 failed, 41 passed in 2.31s\n44 passed in 2.40s", 1, 0, 0),
        ("3 failed, 41 passed in 2.31s (replaced)\n44 passed in 2.40s", 1, 1, 0),
        ("It said 3 failed, 41 passed in 2.31s. (was; since m9: 44 passed) Now 44 passed in 2.40s.", 1, 1, 0),
        ("The name no longer fits. It said 3 failed, 41 passed in 2.31s. Now 44 passed in 2.40s.", 1, 0, 0),
        (f"- {ENDED}9: Wait. 3 failed, 41 passed in 2.31s\n44 passed in 2.40s", 1, 1, 0),
        ("3 failed, 41 passed in 2.31s", 0, 0, 1),
        ("neither", 0, 0, 0),
    ],
)
def test_an_old_value_must_be_absent_or_marked(
    tmp_path: Path, text: str, new: int, replaced: int, only_old: int
) -> None:
    """The new value counts; an old one beside it unmarked, or alone, is told apart."""
    found = answers(write_state(tmp_path), view(text))
    assert [found[label]["found"] for label in ("new_values", "replaced", "only_old")] == [new, replaced, only_old]


def test_an_empty_section_of_the_typed_handoff_says_none(tmp_path: Path) -> None:
    """The handoff prints None. for an empty Active Task, so it counts as told."""
    answered = [
        *long_day(),
        {"role": "assistant", "content": "All is read."},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": "You are welcome."},
    ]
    path = write_state(tmp_path, active_task=[], lines=len(answered))
    (tmp_path / "day.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answered), "utf-8")
    assert rates_of("compressor", path)["total"]["finished"]["found"] == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "not a state bank"),
        ('{"session": "x", "lines": "many"}', "not a state bank"),
        ('{"session": "x", "lines": 3, "rules": "all"}', "rules is not a list of texts"),
        ('{"session": "x", "lines": 3, "values": [{"old": "a"}]}', "values are objects"),
    ],
)
def test_bad_state_banks_are_refused_with_the_place(tmp_path: Path, content: str, reason: str) -> None:
    """The error names the file and what is wrong."""
    path = tmp_path / "state.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=reason) as caught:
        load_state(path)
    assert str(path) in str(caught.value)


def test_the_command_recognises_state_banks(run_cli: Any, tmp_path: Path) -> None:
    """The table names what was counted; --json holds it all; --misses lists what is wrong either way."""
    path = write_state(tmp_path, not_rules=["use tabs in the Makefile"])
    arguments = ("exam", path, "--sessions", tmp_path, "--window", 20000, "--processes", 1, "--misses")
    ran = run_cli(*arguments)
    assert ran.code == 0
    assert "rules in force, under Constraints" in ran.out
    assert "SHOULD NOT BE THERE" in ran.out
    report = json.loads(run_cli(*arguments, "--json").out)
    assert set(report) == {"total", "sessions", "misses"}
    assert {"active_task", "pending", "rules", "files", "kept_tokens", "lines"} <= set(report["total"])
    assert report["misses"][0]["session"].startswith("day.jsonl@")
    rows = run_cli(*arguments, "--markdown").out.strip().split("\n")
    assert len({row.count("|") for row in rows}) == 1


def test_the_two_kinds_of_banks_are_not_mixed(run_cli: Any, tmp_path: Path) -> None:
    """Their scores have nothing in common."""
    bank = tmp_path / "bank.json"
    bank.write_text(json.dumps({"session": "day.jsonl", "questions": []}), "utf-8")
    ran = run_cli("exam", write_state(tmp_path), bank)
    assert ran.code == 2
    assert "one kind at a time" in ran.err
