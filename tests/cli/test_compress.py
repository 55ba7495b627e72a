"""`leporello compress` as a user meets it: shapes, exit codes, clear errors, nothing half-written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leporello import compress
from leporello.config import Home, fold_key
from leporello.errors import InputError
from leporello.importers import detect
from leporello.importers.source import SourceFile
from leporello.testing.sessions import generate
from leporello.turns import validate
from tests.conftest import RunCli
from tests.importers.format_writers import aider, claude_code, codex, pi
from tests.importers.session_script import Called, Script, Turn


@pytest.fixture
def long_list(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(generate(seed=1, messages=200).messages))
    return path


def test_a_list_comes_back_as_a_list_and_an_object_as_an_object(long_list: Path, run_cli) -> None:
    messages = json.loads(long_list.read_text())
    out = long_list.parent / "out.json"
    assert run_cli("compress", str(long_list), "--window", "16000", "--out", str(out)).code == 0
    assert isinstance(json.loads(out.read_text()), list)
    wrapped = long_list.parent / "wrapped.json"
    wrapped.write_text(json.dumps({"info": {"x": 1}, "messages": messages, "tools": []}))
    assert run_cli("compress", str(wrapped), "--window", "16000", "--out", str(out)).code == 0
    result = json.loads(out.read_text())
    assert result["info"] == {"x": 1}
    assert len(result["messages"]) < len(messages)


def test_the_report_goes_to_stderr_and_the_result_to_stdout(long_list: Path, run_cli) -> None:
    ran = run_cli("compress", str(long_list), "--window", "16000")
    assert isinstance(json.loads(ran.out), list)
    assert "tokens" in ran.err
    assert "Folded: " in ran.err


def test_without_window_and_model_the_report_says_what_was_assumed(long_list: Path, run_cli) -> None:
    assert "128,000" in run_cli("compress", str(long_list)).err


def test_json_holds_outcome_and_figures_and_messages_unless_out(long_list: Path, run_cli) -> None:
    told = json.loads(run_cli("compress", str(long_list), "--window", "16000", "--json").out)
    assert told["outcome"] == "committed"
    assert told["after"]["tokens"] < told["before"]["tokens"]
    assert told["messages"]
    out = long_list.parent / "out.json"
    quiet = json.loads(run_cli("compress", str(long_list), "--window", "16000", "--json", "--out", str(out)).out)
    assert "messages" not in quiet


def test_nothing_to_do_is_exit_3_and_the_same_messages(tmp_path: Path, run_cli) -> None:
    path = tmp_path / "short.json"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    path.write_text(json.dumps(messages))
    ran = run_cli("compress", str(path))
    assert ran.code == 3
    assert json.loads(ran.out) == messages


def test_a_fixed_part_that_cannot_fit_is_exit_4(tmp_path: Path, run_cli) -> None:
    path = tmp_path / "fixed.json"
    path.write_text(json.dumps([{"role": "system", "content": "word " * 4_000}, {"role": "user", "content": "hi"}]))
    ran = run_cli("compress", str(path), "--window", "2000")
    assert ran.code == 4
    assert "system" in ran.err


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('[{"role": "user",', "line 1"),
        ("\n\n[1, ", "line 3"),
        ('{"info": 1}', "messages"),
        ("7", "contains a number"),
        ('[{"role": "user", "content": "a"}, 5]', ": m2:"),
        ('[{"role": "wizard", "content": "a"}]', ": m1:"),
        ("", "is empty"),
        ("[" * 100_000, "nested"),
    ],
)
def test_bad_input_is_one_line_that_says_where_and_writes_nothing(
    tmp_path: Path, run_cli, text: str, where: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    out = tmp_path / "out.json"
    ran = run_cli("compress", str(path), "--out", str(out))
    assert ran.code == 2
    assert where in ran.err
    assert ran.err.count("\n") == 1
    assert not out.exists()


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path, run_cli) -> None:
    ran = run_cli("compress", str(tmp_path / "nowhere.json"))
    assert ran.code == 2
    assert "there is no such file" in ran.err


def test_out_is_written_whole_or_not_at_all(long_list: Path, run_cli) -> None:
    folder = long_list.parent / "missing"
    ran = run_cli("compress", str(long_list), "--window", "16000", "--out", str(folder / "out.json"))
    assert ran.code == 2
    assert not folder.exists()


def _folded(run_cli: RunCli, path: Path, *flags: str) -> list[dict]:
    ran = run_cli(*flags, "compress", str(path), "--window", "16000")
    assert ran.code == 0
    messages: list[dict] = json.loads(ran.out)
    return messages


@pytest.mark.parametrize(
    ("key", "value"), [("threshold", 0.9), ("target_ratio", 0.8), ("protect_last_n", 3)], ids=lambda value: str(value)
)
def test_the_settings_in_force_count(
    long_list: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch, key: str, value: float
) -> None:
    """From a flag, from the environment and from the file; and the library takes the same as an argument."""
    name = f"compression.{key}"
    plain = _folded(run_cli, long_list)
    by_flag = _folded(run_cli, long_list, "--set", f"{name}={value}")
    assert by_flag != plain
    arguments: dict[str, Any] = {key: value}
    signing = fold_key(Home.from_environment())
    assert list(compress(json.loads(long_list.read_text()), window=16_000, key=signing, **arguments)) == by_flag
    home = Home.from_environment()
    home.path.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text(f"compression: {{{key}: {value}}}\n")
    assert _folded(run_cli, long_list) == by_flag
    home.config_file.unlink()
    monkeypatch.setenv(f"LEPORELLO_COMPRESSION__{key.upper()}", str(value))
    assert _folded(run_cli, long_list) == by_flag


def test_a_model_has_the_window_that_the_settings_give_it(long_list: Path, run_cli: RunCli) -> None:
    """`models.<name>.window`, as `leporello explain` shows it."""
    home = Home.from_environment()
    home.path.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text("models: {mine: {window: 16000}}\n")
    ran = run_cli("compress", str(long_list), "--model", "mine", "--json")
    declared = run_cli("compress", str(long_list), "--model", "mine", "--window", "16000", "--json")
    assert json.loads(ran.out)["messages"] == json.loads(declared.out)["messages"]


def test_a_bad_setting_is_bad_input(long_list: Path, run_cli: RunCli) -> None:
    ran = run_cli("--set", "compression.threshold=7", "compress", str(long_list))
    assert ran.code == 2
    assert "compression.threshold" in ran.err


def test_real_trajectories(real_sessions: Path, run_cli, tmp_path: Path) -> None:
    files = sorted((real_sessions / "openai-chat").glob("*.traj.json"))[:3]
    for path in files:
        out = tmp_path / path.name
        assert run_cli("compress", str(path), "--window", "32000", "--out", str(out)).code == 0
        before, after = json.loads(path.read_text()), json.loads(out.read_text())
        assert {key: value for key, value in after.items() if key != "messages"} == {
            key: value for key, value in before.items() if key != "messages"
        }


def test_the_report_speaks_plainly(long_list: Path, run_cli: RunCli, tmp_path: Path) -> None:
    """Sentences for people; the machine's names of outcomes stand in --json."""
    assert "Folded: " in run_cli("compress", str(long_list)).err
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    ran = run_cli("compress", str(empty))
    assert ran.code == 3
    assert "Nothing to fold: the list is empty." in ran.err
    assert "nothing_to_do" not in ran.err
    assert json.loads(run_cli("compress", str(empty), "--json").out)["outcome"] == "nothing_to_do"


def test_an_unknown_model_s_window_is_said_to_be_assumed(long_list: Path, run_cli: RunCli) -> None:
    """As `explain` says it; a known model's source is named too."""
    ran = run_cli("compress", str(long_list), "--model", "nosuchmodel")
    assert "unknown model 'nosuchmodel': 128,000 assumed" in ran.err
    found = json.loads(run_cli("compress", str(long_list), "--model", "nosuchmodel", "--json").out)["window"]
    assert (found["value"], "assumed" in found["source"]) == (128_000, True)
    assert "assumed" not in run_cli("compress", str(long_list), "--model", "gpt-4o").err


def test_one_message_a_line_goes_in_and_comes_out(long_list: Path, run_cli: RunCli, tmp_path: Path) -> None:
    """JSON lines of messages are folded like a list, and stay lines."""
    listed = json.loads(long_list.read_text())
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in listed))
    ran = run_cli("compress", str(path), "--window", "16000")
    assert ran.code == 0
    as_list = json.loads(run_cli("compress", str(long_list), "--window", "16000").out)
    assert [json.loads(line) for line in ran.out.splitlines()] == as_list


def _recorded(calls: int) -> Script:
    """A session of some agent: a request, then one command after another."""
    command = "go test ./internal/store -run TestOpen"
    turns = [Turn("user", "Find out why the store is slow. Never edit the vendor folder.")]
    for number in range(calls):
        called = Called(f"c{number}", "Bash", {"command": f"{command}{number}"}, f"ok {number}\n" * 150)
        turns.append(Turn("assistant", f"Timing case {number}.", (called,)))
    return Script((*turns, Turn("user", "And now?")))


@pytest.mark.parametrize("write", [claude_code, codex, pi], ids=lambda write: write.__name__)
def test_what_an_agent_recorded_comes_out_as_a_folded_list(
    write: Callable[[Script], str], run_cli: RunCli, tmp_path: Path
) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text(write(_recorded(60)))
    ran = run_cli("compress", str(path), "--window", "16000")
    assert ran.code == 0, ran.err
    assert f"read as a recording of {detect(SourceFile(path)).name}" in ran.err
    folded = json.loads(ran.out)
    assert validate(folded) == []
    assert len(folded) < 60
    assert "Never edit the vendor folder." in ran.out
    assert folded[-1] == {"role": "user", "content": "And now?"}


def test_lines_of_no_known_recording_are_refused(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text('{"kind": "begin"}\n{"kind": "end"}\n')
    ran = run_cli("compress", str(path))
    assert ran.code == 2
    assert "nor what a known agent records" in ran.err


def test_a_recording_of_several_sessions_is_sent_to_import(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "history.md"
    path.write_text(aider(_recorded(3)) + aider(_recorded(3)))
    ran = run_cli("compress", str(path))
    assert ran.code == 2
    assert "holds 2 recorded sessions" in ran.err
    assert "leporello import" in ran.err


def test_a_newest_message_that_does_not_fit_is_what_the_advice_is_about(run_cli: RunCli, tmp_path: Path) -> None:
    """Nobody is told to shorten a system prompt that is not there."""
    path = tmp_path / "large.json"
    path.write_text(json.dumps([{"role": "user", "content": "hi"}, {"role": "user", "content": "word " * 4_000}]))
    ran = run_cli("compress", str(path), "--window", "2000")
    assert ran.code == 4
    assert "Shorten the newest message" in ran.err
    assert "system prompt" not in ran.err


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("hi", "not a str"),
        (None, "not None"),
        ({"role": "user", "content": "hi"}, "not a dict"),
        (7, "not a int"),
        ([1], "messages[0]"),
        ([{"role": "user", "content": "hi"}, None], "messages[1]"),
        ([{"role": "wizard", "content": "hi"}], "messages[0]: role 'wizard'"),
        ([{"content": "hi"}], "messages[0]"),
    ],
)
def test_the_library_refuses_what_is_no_list_of_messages(given: Any, named: str) -> None:
    """The error is of the kind callers catch, and names the place."""
    with pytest.raises(InputError, match=re.escape(named)):
        compress(given)


@pytest.mark.parametrize(
    "bad",
    [
        {"role": "user", "content": b"caf\xc3\xa9"},
        {"role": "user", "content": bytearray(b"x")},
        {"role": "user", "content": [{"type": "text", "text": b"x"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": b"f"}}]},
    ],
)
def test_bytes_in_a_message_are_refused_with_their_place(bad: dict[str, Any]) -> None:
    messages = generate(seed=1, messages=60).messages
    with pytest.raises(InputError, match=r"messages\[30\]: is not JSON: .*Decode bytes to text first"):
        compress([*messages[:30], bad, *messages[30:]], window=8_000)


def test_what_contains_itself_is_refused_with_its_place() -> None:
    endless: dict[str, Any] = {"role": "user", "content": "x"}
    endless["extra"] = endless
    with pytest.raises(InputError, match=r"messages\[1\]: is not JSON"):
        compress([{"role": "user", "content": "a"}, endless], window=8_000)


def test_ten_runs_over_one_file_keep_everything_verified(tmp_path: Path, run_cli) -> None:
    """Each run is a process of its own: the key in the home tells that the earlier summary is ours."""
    session = generate(seed=5, messages=900, tokens=150_000).messages
    path = tmp_path / "list.json"
    context: list[Any] = []
    for turn in range(10):
        path.write_text(json.dumps([*context, *session[turn * 90 : turn * 90 + 90]]))
        told = json.loads(run_cli("compress", path, "--window", "16000", "--json").out)
        assert told["outcome"] == "committed"
        assert told["unverified"] == 0
        context = told["messages"]
    assert int(told["covered"].partition("-m")[2]) > 700


def test_a_summary_of_another_home_is_told_to_be_unverified(tmp_path: Path, run_cli) -> None:
    session = generate(seed=5, messages=200, tokens=60_000).messages
    path = tmp_path / "list.json"
    path.write_text(json.dumps([*compress(session[:100], window=16_000), *session[100:]]))
    ran = run_cli("compress", path, "--window", "16000")
    assert "marked as unverified" in ran.err
    assert " unverified]" in ran.out


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that not even root can write")
def test_without_a_place_for_the_key_it_folds_all_the_same(long_list: Path, run_cli) -> None:
    ran = run_cli("--home", "/proc/leporello", "compress", long_list, "--window", "16000")
    assert ran.code == 0
    assert "is not signed" in ran.err
