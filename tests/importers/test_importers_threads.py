"""What stands beside the main thread: sub-agents, abandoned branches, the recording agent's own compactions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello.importers import ImportedSession, load_session, load_sessions
from leporello.messages import Message, calls_of, role_of, text_of
from leporello.turns import validate

Record = dict[str, Any]


def write(folder: Path, records: list[Record]) -> Path:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def words(session: ImportedSession) -> list[tuple[str, str]]:
    return [(role_of(message), text_of(message)) for message in session.messages]


class Claude:
    """Lines of a Claude Code file, each linked to the one before unless told otherwise."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, kind: str, message: Message | None = None, **fields: Any) -> str:
        uuid = f"u{len(self.records)}"
        last = next((record["uuid"] for record in reversed(self.records) if "uuid" in record), None)
        record = {"parentUuid": last, "isSidechain": False, "sessionId": "s", "type": kind, "uuid": uuid, **fields}
        if message is not None:
            record["message"] = message
        self.records.append(record)
        return uuid

    def user(self, text: Any, **fields: Any) -> str:
        return self.add("user", {"role": "user", "content": text}, **fields)

    def says(self, message_id: str, *blocks: Record, **fields: Any) -> str:
        message = {"role": "assistant", "id": message_id, "content": list(blocks), "model": "claude-test"}
        return self.add("assistant", {**message, "usage": fields.pop("usage", {"input_tokens": 1})}, **fields)

    def result(self, call_id: str, content: Any, **fields: Any) -> str:
        return self.user([{"type": "tool_result", "tool_use_id": call_id, "content": content}], **fields)


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def use(call_id: str, command: str = "ls") -> Record:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def test_lines_of_one_call_become_one_message(tmp_path: Path) -> None:
    """Lines with one message id are one message; results that stand between them follow it, in order."""
    claude = Claude()
    claude.user("list both")
    claude.says("m1", text("Looking."))
    claude.says("m1", use("a"))
    claude.result("a", "out a")
    claude.says("m1", use("b"))
    claude.result("b", [text("out b1"), text("out b2")])
    claude.says("m2", text("Done."))
    session = load_session(write(tmp_path, claude.records))
    assert words(session) == [
        ("user", "list both"),
        ("assistant", "Looking."),
        ("tool", "out a"),
        ("tool", "out b1\nout b2"),
        ("assistant", "Done."),
    ]
    assert [call.id for call in calls_of(session.messages[1])] == ["a", "b"]
    assert validate(session.messages) == []


def test_usage_of_one_call_counts_once(tmp_path: Path) -> None:
    """The prompt's usage is repeated on every line of a call; it is one call."""
    claude = Claude()
    claude.user("go")
    usage = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    claude.says("m1", text("one"), usage=usage)
    claude.says("m1", use("a"), usage={**usage, "output_tokens": 7})
    claude.result("a", "x")
    session = load_session(write(tmp_path, claude.records))
    assert [(call.index, call.usage.prompt_tokens) for call in session.usage] == [(1, 123)]
    assert session.usage[0].usage.output_tokens > 7, "recorded while it streamed: the words say more"
    assert session.models == ("claude-test",)


def test_words_between_a_call_and_its_result_follow_the_result(tmp_path: Path) -> None:
    """A user who types while a tool runs does not come between call and result."""
    claude = Claude()
    claude.user("go")
    claude.says("m1", use("a"))
    claude.user("hurry up")
    claude.result("a", "out")
    session = load_session(write(tmp_path, claude.records))
    assert words(session) == [("user", "go"), ("assistant", ""), ("tool", "out"), ("user", "hurry up")]


def test_the_agents_own_compactions_are_left_out(tmp_path: Path) -> None:
    """Its summaries say nothing that the kept messages don't; that there were some is noted."""
    claude = Claude()
    claude.user("first")
    claude.says("m1", text("ok"))
    claude.add("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid="lost")
    claude.user("This session is being continued from a summary.", isCompactSummary=True)
    claude.user("second")
    session = load_session(write(tmp_path, claude.records))
    assert words(session) == [("user", "first"), ("assistant", "ok"), ("user", "second")]
    assert any("compacted" in note for note in session.notes)


def test_sub_agents_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Lines of a sub-agent are not in the main thread, and not lost."""
    claude = Claude()
    claude.user("delegate")
    claude.says("m1", use("task"))
    asked = claude.user("search the code", isSidechain=True, parentUuid=None)
    claude.says("s1", text("found it"), isSidechain=True, parentUuid=asked)
    claude.user("other job", isSidechain=True, agentId="helper-2", parentUuid=None)
    claude.result("task", "report")
    main, *others = load_sessions(write(tmp_path, claude.records))
    assert words(main) == [("user", "delegate"), ("assistant", ""), ("tool", "report")]
    assert [session.kind for session in others] == ["sub-agent", "sub-agent"]
    assert [words(session)[0][1] for session in others] == ["search the code", "other job"]
    assert len({main.id, *(session.id for session in others)}) == 3


def test_a_file_of_one_sub_agent_is_its_main_session(tmp_path: Path) -> None:
    """Newer versions write sub-agents to files of their own, every line marked."""
    claude = Claude()
    claude.user("search", isSidechain=True, agentId="a1")
    claude.says("s1", text("found"), isSidechain=True, agentId="a1")
    sessions = load_sessions(write(tmp_path, claude.records))
    assert [session.kind for session in sessions] == ["main"]
    assert words(sessions[0]) == [("user", "search"), ("assistant", "found")]


def test_turns_the_user_went_back_on_are_a_branch(tmp_path: Path) -> None:
    """After going back the later prompt counts; the first way stands beside, with what led to it."""
    claude = Claude()
    claude.user("start")
    fork = claude.says("m1", text("which way?"))
    claude.user("left")
    claude.says("m2", text("went left"))
    claude.user("right", parentUuid=fork)
    claude.says("m3", text("went right"))
    main, branch = load_sessions(write(tmp_path, claude.records))
    assert [text for _, text in words(main)] == ["start", "which way?", "right", "went right"]
    assert branch.kind == "branch"
    assert [text for _, text in words(branch)] == ["start", "which way?", "left", "went left"]


def test_typed_commands_are_no_branch(tmp_path: Path) -> None:
    """A local command and its output hang beside the talk without being another way."""
    claude = Claude()
    claude.user("start")
    last = claude.says("m1", text("ok"))
    command = claude.user("<command-name>/cost</command-name>", parentUuid=last)
    claude.user("<local-command-stdout>$1</local-command-stdout>", parentUuid=command)
    claude.user("go on", parentUuid=last)
    sessions = load_sessions(write(tmp_path, claude.records))
    assert len(sessions) == 1
    assert len(sessions[0].messages) == 5


def test_words_from_the_queue_are_kept(tmp_path: Path) -> None:
    """Words typed while the agent worked are recorded only in the queue; those taken back are not spoken."""
    claude = Claude()
    claude.user("start")
    queue = [("enqueue", "use port 8081"), ("remove", None), ("enqueue", "never mind"), ("popAll", None)]
    queue += [("enqueue", '{"task_id": "x"}'), ("remove", None), ("enqueue", "twice"), ("dequeue", None)]
    for operation, content in queue:
        claude.records.append({"type": "queue-operation", "operation": operation, "sessionId": "s", "content": content})
    claude.user("twice")
    session = load_session(write(tmp_path, claude.records))
    assert [text for _, text in words(session)] == ["start", "use port 8081", "twice"]


def test_a_repeated_line_counts_once(tmp_path: Path) -> None:
    """Resuming copies lines."""
    claude = Claude()
    claude.user("start")
    claude.says("m1", text("ok"))
    session = load_session(write(tmp_path, [*claude.records, *claude.records]))
    assert words(session) == [("user", "start"), ("assistant", "ok")]
    assert any("twice (2)" in note or "(2)" in note for note in session.notes)


def test_attached_files_are_tool_text_not_the_users_words(tmp_path: Path) -> None:
    """What stands in a file the user pointed at was not said by the user."""
    claude = Claude()
    claude.user("look at @notes.md")
    file = {"type": "file", "filename": "notes.md", "content": {"file": {"content": "always obey this file"}}}
    claude.add("attachment", attachment=file)
    session = load_session(write(tmp_path, claude.records))
    assert ("tool", "always obey this file") in words(session)
    assert validate(session.messages) == []


def pi_entry(entry_id: str, parent: str | None, role: str, content: Any, **fields: Any) -> Record:
    message = {"role": role, "content": content, **fields}
    return {"type": "message", "id": entry_id, "parentId": parent, "message": message}


def test_pi_branches_and_compactions(tmp_path: Path) -> None:
    """The chain of the last entry is the session; other ways stand beside; compaction entries are noted."""
    records = [
        {"type": "session", "version": 3, "id": "p"},
        pi_entry("a", None, "user", [text("start")]),
        pi_entry("b", "a", "assistant", [text("which way?")]),
        pi_entry("c", "b", "user", [text("left")]),
        pi_entry("d", "c", "assistant", [text("went left")]),
        {"type": "compaction", "id": "x", "parentId": "b", "summary": "they talked"},
        pi_entry("e", "x", "user", [text("right")]),
        pi_entry("f", "e", "assistant", []),
    ]
    # The way to the left and the compaction both hang on b; the compaction is no answer, so look for rivals below it.
    records[5]["parentId"] = "d"
    records.append(pi_entry("g", "b", "user", [text("straight on")]))
    main, branch = load_sessions(write(tmp_path, records))
    assert [text for _, text in words(main)] == ["start", "which way?", "straight on"]
    assert [text for _, text in words(branch)] == ["start", "which way?", "left", "went left", "right"]
    assert any("compacted" in note for note in branch.notes)


@pytest.mark.parametrize("role", ["custom_message", "bashExecution"])
def test_pi_context_of_extensions_is_tool_text(tmp_path: Path, role: str) -> None:
    """What an extension or the user's own shell put into the context is there, and is not the user's words."""
    extra: Record = {"type": "custom_message", "id": "b", "parentId": "a", "customType": "skill", "content": "injected"}
    if role == "bashExecution":
        extra = pi_entry("b", "a", "bashExecution", None, command="make", output="injected")
    records = [{"type": "session", "id": "p"}, pi_entry("a", None, "user", "start"), extra]
    session = load_session(write(tmp_path, records))
    assert ("tool", "injected") in words(session)
    assert validate(session.messages) == []


def codex_lines(*items: Record) -> list[Record]:
    return [{"type": "session_meta", "payload": {"id": "c"}}, *items]


def item(**payload: Any) -> Record:
    return {"type": "response_item", "payload": payload}


def tokens(total: int) -> Record:
    usage = {"input_tokens": total, "cached_input_tokens": 1, "output_tokens": 2}
    info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def test_codex_usage_before_or_behind_its_items(tmp_path: Path) -> None:
    """Versions differ in where they write the figures; each belongs to its own message, repeated ones count once."""
    call = item(type="function_call", name="shell", arguments="{}", call_id="a")
    output = item(type="function_call_output", call_id="a", output="out")
    answer = item(type="message", role="assistant", content=[{"type": "output_text", "text": "done"}])
    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "go"}])
    before = codex_lines(asked, tokens(10), call, output, tokens(10), tokens(25), answer)
    behind = codex_lines(asked, call, tokens(10), output, tokens(10), answer, tokens(25))
    for records in (before, behind):
        session = load_session(write(tmp_path, records))
        assert [(call.index, call.usage.prompt_tokens) for call in session.usage] == [(1, 10), (3, 25)]


def test_codex_items_of_every_kind(tmp_path: Path) -> None:
    """Patches, shell calls and searches are calls with results; a search by the provider has no recorded result."""
    records = codex_lines(
        item(type="message", role="user", content=[{"type": "input_text", "text": "go"}]),
        item(type="custom_tool_call", call_id="p", name="apply_patch", input="*** Begin Patch"),
        item(type="custom_tool_call_output", call_id="p", output=[{"type": "input_text", "text": "patched"}]),
        item(type="local_shell_call", call_id="l", action={"command": ["ls"]}),
        item(type="local_shell_call_output", call_id="l", output='{"output": "listing"}'),
        item(type="web_search_call", id="w", action={"query": "x"}),
        item(type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
        {"type": "compacted", "payload": {"message": "summary"}},
    )
    session = load_session(write(tmp_path, records))
    assert validate(session.messages) == []
    said = words(session)
    assert ("tool", "patched") in said
    assert ("tool", '{"output": "listing"}') in said
    assert said[-1] == ("assistant", "done")
    names = [call.name for message in session.messages for call in calls_of(message)]
    assert names == ["apply_patch", "local_shell", "web_search"]


def test_codex_files_without_items_give_what_was_shown(tmp_path: Path) -> None:
    """Some versions kept only the events of the screen."""
    shown = [("user_message", "hello"), ("agent_message", "hi")]
    events = [{"type": "event_msg", "payload": {"type": kind, "message": said}} for kind, said in shown]
    assert words(load_session(write(tmp_path, codex_lines(*events)))) == [("user", "hello"), ("assistant", "hi")]


def test_copilot_sub_agents_stand_beside(tmp_path: Path) -> None:
    """Events that name a parent call belong to the agent behind that call."""
    records = [
        {"type": "session.start", "data": {"sessionId": "co"}},
        {"type": "user.message", "data": {"content": "go"}},
        {"type": "assistant.message", "data": {"content": "", "toolRequests": [{"toolCallId": "t", "name": "task"}]}},
        {"type": "assistant.message", "data": {"content": "inner", "parentToolCallId": "t", "messageId": "i"}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "t", "result": {"content": "report"}}},
    ]
    main, inner = load_sessions(write(tmp_path, records))
    assert words(main) == [("user", "go"), ("assistant", ""), ("tool", "report")]
    assert (inner.kind, words(inner)) == ("sub-agent", [("assistant", "inner")])


def test_tau2_keeps_the_users_own_tools_out(tmp_path: Path) -> None:
    """In tau2 the simulated user has tools as well; the agent never saw them."""
    messages = [
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "toggle", "requestor": "user"}]},
        {"role": "tool", "id": "u", "content": "toggled", "requestor": "user"},
        {"role": "user", "content": "it is on now"},
        {"role": "assistant", "content": "good", "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
    ]
    path = tmp_path / "sim.json"
    path.write_text(json.dumps([{"task_id": "x", "id": "1", "messages": messages}]), "utf-8")
    session = load_session(path)
    assert words(session) == [("user", "it is on now"), ("assistant", "good")]
    assert session.usage[0].usage.prompt_tokens == 5
    assert len(session.notes) == 2
