"""LoCoMo and BEAM: reading them, and what counts as remembered. The files here are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello.bench.baselines import WholeEngine
from leporello.bench.exam import Search
from leporello.bench.memory import MemoryExam, MemoryQuestion, evidence_in, load_beam, load_locomo, memory_rates
from leporello.errors import InputError
from leporello.messages import Message


def locomo() -> dict[str, Any]:
    """Two sessions between two people, and a question of each kind."""

    def turn(speaker: str, number: str, text: str, **more: str) -> dict[str, str]:
        return {"speaker": speaker, "dia_id": number, "text": text, **more}

    asked: list[dict[str, Any]] = [
        {"question": "What does Ann plant?", "answer": "Tulips", "evidence": ["D1:1"], "category": 4},
        {"question": "What did both buy?", "answer": "boots", "evidence": ["D1:2; D2:1", "D2:2"], "category": 1},
        {"question": "When was the fair?", "answer": 2022, "evidence": ["D2:2", "D2:2"], "category": 2},
        {"question": "Who won the cup?", "evidence": ["D1:1"], "category": 5},
        {"question": "Nobody knows where?", "answer": "there", "evidence": ["D9:9", "D"], "category": 3},
    ]
    return {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2022",
        "session_1": [
            turn("Ann", "D1:1", "Hello there! I plant tulips by the gate. How are you?"),
            turn("Bo", "D1:2", "Fine. I bought boots.", blip_caption="a photo of muddy boots"),
        ],
        "session_2_date_time": "9:00 am on 1 June, 2022",
        "session_2": [
            turn("Bo", "D2:1", "The boots leak already."),
            turn("Ann", "D2:2", "Mine too: I bought boots at the fair last week!"),
        ],
        "qa": asked,
    }


def write_locomo(folder: Path, name: str = "26") -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(locomo()), "utf-8")
    return path


def write_beam(folder: Path, name: str = "1") -> Path:
    chat = folder / name
    (chat / "probing_questions").mkdir(parents=True)
    turns = [
        [
            {
                "role": "user",
                "id": 0,
                "time_anchor": "March-15-2024",
                "content": "My sprint ends on 29 March. ->-> 1,1",
            },
            {"role": "assistant", "id": 1, "content": "Noted."},
        ],
        [{"role": "user", "id": 2, "content": "The API answers in 250 ms now.\nIt was slower. ->-> 1,2"}],
    ]
    (chat / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns}]), "utf-8")
    asked = {
        "information_extraction": [
            {"question": "When does my sprint end?", "answer": "29 March", "source_chat_ids": [0, 0]}
        ],
        "knowledge_update": [
            {"question": "How fast is the API?", "answer": "250 ms", "source_chat_ids": {"new": [2], "old": [[0]]}}
        ],
        "abstention": [{"question": "Who?", "source_chat_ids": [0]}],
        "summarization": [{"question": "All of it?", "source_chat_ids": [0, 2]}],
        "event_ordering": [{"question": "In which order?", "answer": "x", "source_chat_ids": []}],
    }
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked), "utf-8")
    return chat


def test_a_locomo_conversation(tmp_path: Path) -> None:
    """Roles by speaker, the date on the first message of a session, pictures as their captions."""
    exam = load_locomo(write_locomo(tmp_path))[0]
    assert (exam.id, exam.session) == ("26", "locomo-26")
    assert exam.messages == (
        {
            "role": "user",
            "content": "[1:56 pm on 8 May, 2022] Ann: Hello there! I plant tulips by the gate. How are you?",
        },
        {"role": "assistant", "content": "Bo: Fine. I bought boots. [shares a photo of muddy boots]"},
        {"role": "assistant", "content": "[9:00 am on 1 June, 2022] Bo: The boots leak already."},
        {"role": "user", "content": "Ann: Mine too: I bought boots at the fair last week!"},
    )


def test_the_evidence_is_the_sentence_that_fits_best(tmp_path: Path) -> None:
    """One sentence for each turn, each turn once; questions without evidence or answer are left out."""
    exam = load_locomo(write_locomo(tmp_path))[0]
    fair = "Mine too: I bought boots at the fair last week!"
    assert exam.questions == (
        MemoryQuestion("single-hop", "What does Ann plant?", ("I plant tulips by the gate.",)),
        MemoryQuestion("multi-hop", "What did both buy?", ("I bought boots.", "The boots leak already.", fair)),
        MemoryQuestion("temporal", "When was the fair?", (fair,)),
    )
    assert evidence_in("", "anything") == ""
    assert evidence_in("One. The longer of the two.", "nothing shared") == "The longer of the two."


def test_all_locomo_conversations_in_one_file(tmp_path: Path) -> None:
    """The other published form: a list of samples with the conversation inside."""
    talk = locomo()
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([{"sample_id": "conv-26", "conversation": talk, "qa": talk["qa"]}]), "utf-8")
    exam = load_locomo(path)[0]
    assert exam.id == "conv-26"
    assert exam.questions == load_locomo(write_locomo(tmp_path))[0].questions


@pytest.mark.parametrize("place", [".", "1", "1/chat.json"])
def test_a_beam_conversation(tmp_path: Path, place: str) -> None:
    """From its folder, its file or the folder above; the generator's notes are left out."""
    write_beam(tmp_path)
    exam = load_beam(tmp_path / place)[0]
    assert (exam.id, exam.session) == ("1", "beam-1")
    assert exam.messages == (
        {"role": "user", "content": "[March-15-2024] My sprint ends on 29 March."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "The API answers in 250 ms now.\nIt was slower."},
    )
    sprint = "My sprint ends on 29 March."
    assert exam.questions == (
        MemoryQuestion("information_extraction", "When does my sprint end?", (sprint,)),
        MemoryQuestion("knowledge_update", "How fast is the API?", ("The API answers in 250 ms now.", sprint)),
    )


class Forgetful(WholeEngine):
    """Keeps the first message only."""

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        return messages[:1]


def test_what_counts_as_remembered() -> None:
    """Sentences count one by one; search alone, both together, and whole answers by one search call."""
    facts = ("tulips grow here", "boots were bought", "rain fell all week")
    exam = MemoryExam(
        "1",
        "one",
        tuple({"role": "user", "content": fact} for fact in facts),
        (
            MemoryQuestion("a", "both?", facts[:2]),
            MemoryQuestion("b", "all?", facts),
            MemoryQuestion("a", "one?", facts[2:]),
        ),
    )

    def searching(messages: Any) -> Search:
        found = {"both?": facts[:2], "all?": facts[1:2], "one?": ()}
        return lambda query, max_tokens: "\n".join(found[query])

    rates = memory_rates(exam.sit(Forgetful(1_000), searching).answers)
    assert rates == {
        "questions": 3,
        "sentences": 6,
        "closed": round(2 / 6, 4),
        "search": round(3 / 6, 4),
        "recovered": round(4 / 6, 4),
        "with_several": 2,
        "all_found": 0.5,
    }


def test_the_command_reads_locomo(run_cli: Any, tmp_path: Path) -> None:
    """A folder of conversations, one picked by name, at the window of this exam."""
    write_locomo(tmp_path, "26")
    write_locomo(tmp_path, "30")
    arguments = ("exam", "--format", "locomo", tmp_path, "--processes", 1, "--engine", "whole")
    report = json.loads(run_cli(*arguments, "--only", "30", "--json").out)
    assert [row["session"] for row in report["sessions"]] == ["locomo-30"]
    assert report["total"]["closed"] == report["total"]["recovered"] == 1.0
    assert set(report["kinds"]) == {"single-hop", "multi-hop", "temporal"}
    ran = run_cli(*arguments, "--misses")
    assert "whole, window 16,000" in ran.out
    assert "all found" in ran.out
    row = run_cli(*arguments, "--markdown").out.strip().split("\n")[2]
    assert row.startswith("| whole | 16,000 |")
    ran = run_cli(*arguments, "--only", "30,31")
    assert (ran.code, "--only names what is not there: 31" in ran.err) == (2, True)


def test_the_command_reads_beam(run_cli: Any, tmp_path: Path) -> None:
    """In the order of their numbers, at the window of this exam; the misses say what the search found."""
    for name in ("2", "10", "1"):
        write_beam(tmp_path, name)
    arguments = ("exam", "--format", "beam", tmp_path, "--processes", 1)
    report = json.loads(run_cli(*arguments, "--engine", "whole", "--json").out)
    assert [row["session"] for row in report["sessions"]] == ["beam-1", "beam-2", "beam-10"]
    lost = run_cli(*arguments, "--engine", "newest", "--window", 1000, "--misses")
    assert "newest, window 1,000" in lost.out


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("locomo", '{"qa": 3}'),
        ("locomo", "[3]"),
        ("locomo", '{"qa": [{"question": "Who?"}]}'),
        ("locomo", '{"qa": [], "session_1": [{"text": "Hi"}]}'),
        ("beam", "{}"),
        ("beam", '[{"turns": [["Hi"]]}]'),
    ],
)
def test_files_of_another_format_are_refused(run_cli: Any, tmp_path: Path, form: str, content: str) -> None:
    """The error names the file and the format."""
    write_beam(tmp_path)
    path = tmp_path / "1" / "chat.json"
    path.write_text(content, "utf-8")
    ran = run_cli("exam", "--format", form, path)
    assert ran.code == 2
    assert "expected" in ran.err
    assert str(tmp_path) in ran.err


def test_an_empty_folder_is_refused(tmp_path: Path, run_cli: Any) -> None:
    """Nothing to examine is an error, not an empty table."""
    ran = run_cli("exam", "--format", "beam", tmp_path)
    assert (ran.code, "nothing of the format beam" in ran.err) == (2, True)
    with pytest.raises(InputError, match="not a LoCoMo conversation"):
        load_locomo(write_beam(tmp_path) / "chat.json")
