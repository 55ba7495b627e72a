"""Every format is read faithfully: the same recording written in each gives the same messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.importers import load_session, load_sessions
from leporello.turns import ViolationKind, validate

from .format_writers import WRITERS, aider, opencode_page
from .session_script import PLAIN, Called, Script, Turn, expected, scripts, seen, thinking_of

HARMLESS = {ViolationKind.NEIGHBOURS, ViolationKind.LATE_SYSTEM}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=settings().max_examples // 4)  # times the number of formats
@given(data=st.data())
def test_a_recording_reads_back_as_it_was(name: str, folder: Path, data: st.DataObject) -> None:
    """Roles, texts, calls, results and their order survive, whatever text they hold; nothing is lost or mended."""
    writer = WRITERS[name]
    script = data.draw(scripts(thinks=writer.has_thinking))
    if writer.has_system:
        script = Script(script.turns, system="You are a careful agent.")
    path = folder / "recording"
    path.write_text(writer.write(script), "utf-8")
    session = load_session(path)
    assert session.format == writer.format
    assert seen(session.messages) == expected(script)
    assert thinking_of(session.messages) == [turn.thinking for turn in script.turns if turn.thinking]
    assert [violation for violation in validate(session.messages) if violation.fault not in HARMLESS] == []
    assert session.skipped_lines == 0
    assert not any("stub" in note or "added" in note for note in session.notes)


@given(scripts(words=PLAIN))
def test_opencode_pages_read_back(folder: Path, script: Script) -> None:
    """The Markdown page keeps prose, thinking, calls and outputs apart."""
    path = folder / "page.md"
    path.write_text(opencode_page(script), "utf-8")
    session = load_session(path)
    assert session.format == "opencode"
    # The page shows prose or thinking in our generator, so compare with the prose of thinking turns taken out.
    shown = Script(tuple(Turn(t.role, "" if t.thinking else t.text, t.calls, t.thinking) for t in script.turns))
    assert seen(session.messages) == expected(shown)


@given(scripts(words=PLAIN, thinks=False))
def test_aider_histories_read_back(folder: Path, script: Script) -> None:
    """What the user typed and what the model answered are told apart."""
    turns = tuple(Turn(turn.role, turn.text) for turn in script.turns)
    path = folder / "history.md"
    path.write_text(aider(Script(turns)), "utf-8")
    session = load_session(path)
    assert session.format == "aider"
    words = [(role, text) for role, text, *_ in seen(session.messages)]
    merged: list[tuple[str, str]] = []
    for turn in turns:
        # Two answers in a row can't be told apart in this format.
        if merged and merged[-1][0] == turn.role == "assistant":
            merged[-1] = (turn.role, "\n".join(filter(None, (*merged[-1][1].split("\n"), turn.text))))
        else:
            merged.append((turn.role, turn.text))
    assert [(role, "\n".join(filter(None, text.split("\n")))) for role, text in words] == merged


def test_aider_output_of_several_lines_is_no_answer(tmp_path: Path) -> None:
    """aider marks only the first line of a program's output; the rest up to its two closing spaces belongs to it."""
    page = (
        "# aider chat started at 2026-01-01 10:00:00\n\n> Aider v1  \n\n#### /test  \n> === tests ===\nrow one\n\n"
        "#### not typed\n1 failed  \n\n#### fix it  \n\nHere is the fix.\n"
    )
    path = tmp_path / "history.md"
    path.write_text(page, "utf-8")
    lines = [(role, text) for role, text, *_ in seen(load_session(path).messages)]
    assert [text for role, text in lines if role == "user"] == ["/test", "fix it"]
    assert ("tool", "=== tests ===\nrow one\n\n#### not typed\n1 failed") in lines
    assert lines[-1] == ("assistant", "Here is the fix.")


def test_several_sessions_in_one_file(tmp_path: Path) -> None:
    """Formats that hold many sessions give them all, in order; asking for the one session is an error that says so."""
    scripted = [Script((Turn("user", f"task {n}"), Turn("assistant", "done"))) for n in range(3)]
    runs = [json.loads(WRITERS["tau-bench"].write(script))[0] for script in scripted]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{**run, "trial": number} for number, run in enumerate(runs)]), "utf-8")
    sessions = load_sessions(path)
    assert [seen(session.messages)[0][1] for session in sessions] == ["task 0", "task 1", "task 2"]
    assert len({session.id for session in sessions}) == 3
    with pytest.raises(Exception, match="holds 3 sessions where one is expected"):
        load_session(path)


def test_messages_that_are_fine_stay_untouched(tmp_path: Path) -> None:
    """OpenAI messages a provider would take are given back as they are, unknown fields and parts included."""
    messages = [
        {"role": "developer", "content": "d", "note": 1},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "video", "frames": [1, 2]}]},
        {"role": "assistant", "content": None, "tool_calls": [_call("a")], "reasoning_content": "r"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "assistant", "content": "ok", "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages), "utf-8")
    session = load_session(path)
    assert session.messages == messages
    assert session.usage[0].index == 4
    assert session.usage[0].usage.prompt_tokens == 9


def _call(call_id: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def test_broken_pairs_are_mended_and_noted(tmp_path: Path) -> None:
    """A call without result gets a stub, a result without call gets a call, and both are said in the notes."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [_call("a"), _call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "out of b"},
        {"role": "tool", "tool_call_id": "zz", "content": "out of nowhere"},
        {"role": "user", "content": "and?"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": messages}), "utf-8")
    session = load_session(path)
    assert validate(session.messages) == []
    texts = [text for _, text, *_ in seen(session.messages)]
    assert "out of b" in texts
    assert "out of nowhere" in texts
    assert any("stub" in note for note in session.notes)
    assert any("a call was added" in note for note in session.notes)


def test_open_calls_at_the_end_stay_open(tmp_path: Path) -> None:
    """Calls at the very end of a recording are work in progress, not damage."""
    script = Script((Turn("user", "go"), Turn("assistant", "running", (Called("a", "bash", {"command": "ls"}, ""),))))
    recorded = json.loads(WRITERS["openai list"].write(script))[:-1]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([*recorded]), "utf-8")
    session = load_session(path)
    assert len(session.messages) == 2
    assert session.notes == ()


def test_arguments_that_are_no_json_are_kept(tmp_path: Path) -> None:
    """What a model wrote instead of JSON is still there, inside valid JSON."""
    broken = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls'}}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "x", "tool_calls": [broken]}]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages), "utf-8")
    session = load_session(path)
    assert validate(session.messages) == []
    arguments = session.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"raw": '{"command": "ls'}


@pytest.mark.parametrize(
    ("compaction", "prompt", "window"),
    [
        ({"trigger": "auto", "preTokens": 155_000}, 100, 200_000),
        ({"trigger": "auto", "preTokens": 967_000}, 100, 1_000_000),
        ({"trigger": "manual", "preTokens": 60_000}, 100, None),
        ({"trigger": "auto", "preTokens": 1e30}, 100, None),
        ({}, 250_000, 1_000_000),
        ({}, 150_000, None),
    ],
)
def test_claude_code_shows_its_window_when_it_compacts(
    tmp_path: Path, compaction: dict[str, object], prompt: int, window: int | None
) -> None:
    said = {"id": "m", "role": "assistant", "content": "Words", "usage": {"input_tokens": prompt}}
    lines = [
        {"type": "user", "sessionId": "s", "uuid": "1", "message": {"role": "user", "content": "Begin"}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "2", "compactMetadata": compaction},
        {"type": "assistant", "sessionId": "s", "uuid": "3", "message": said},
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert load_session(path).window == window


@pytest.mark.parametrize(("recorded", "window"), [(272_000, 272_000), (0, None), ("272000", None), (True, None)])
def test_codex_says_its_window(tmp_path: Path, recorded: object, window: int | None) -> None:
    info = {"model_context_window": recorded, "last_token_usage": {"input_tokens": 5}}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Words"}]}
    lines = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": said},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert load_session(path).window == window
