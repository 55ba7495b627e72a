"""Sessions in the store: importing again adds nothing, a grown file adds what is new, nothing stored changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.importers import load_session, load_sessions
from leporello.importers.into_store import Change, import_sessions
from leporello.messages import Message
from leporello.store import Store, open_store
from leporello.store.records import Kind

from .format_writers import WRITERS
from .session_script import Script, Turn, scripts


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "test.db")) as opened:
        yield opened


def stored(store: Store, conversation: str) -> list[Message]:
    return [line.message for line in store.log.iterate(conversation)]


def bring(store: Store, path: Path, text: str) -> tuple[str, Change, int]:
    path.write_text(text, "utf-8")
    result = import_sessions(store, load_sessions(path), path)[0]
    return result.conversation, result.change, result.added


TALK = Script(
    tuple(Turn(role, f"{role} {number}") for number in range(4) for role in ("user", "assistant")), system="Be careful."
)


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "openai list", "hermes", "gemini-cli", "kimi-code"])
def test_the_same_file_twice_adds_nothing(store: Store, tmp_path: Path, name: str) -> None:
    """The second import finds the conversation and leaves it as it is, counters included."""
    path = tmp_path / "session.jsonl"
    text = WRITERS[name].write(TALK)
    conversation, change, added = bring(store, path, text)
    assert (change, added) == (Change.NEW, 8)
    before = store.usage.totals(conversation)
    assert bring(store, path, text) == (conversation, Change.UNCHANGED, 0)
    assert store.usage.totals(conversation) == before
    assert before.calls == len(load_session(path).usage)


@settings(max_examples=settings().max_examples // 8)
@given(script=scripts(thinks=False), data=st.data())
def test_a_file_that_grows_line_by_line_is_stored_as_if_read_once(
    tmp_path_factory: pytest.TempPathFactory, script: Script, data: st.DataObject
) -> None:
    """However often and wherever a growing recording is imported, the log ends up as one import of the whole."""
    folder = tmp_path_factory.mktemp("growing")
    path = folder / "session.jsonl"
    lines = WRITERS["codex"].write(script).splitlines(keepends=True)
    # A message whose calls are still being written is not whole yet, so look only between turns.
    whole = [i + 1 for i, line in enumerate(lines) if '"token_count"' in line or '"role": "user"' in line]
    stops = sorted(data.draw(st.sets(st.sampled_from(whole), max_size=4)))
    with open_store(str(folder / "grow.db")) as store:
        for stop in [*stops, len(lines)]:
            conversation, change, _ = bring(store, path, "".join(lines[:stop]))
            assert change is not Change.BRANCHED
        assert stored(store, conversation) == load_session(path).messages
        assert store.usage.totals(conversation).calls == len(load_session(path).usage)


def test_a_rewritten_end_goes_on_in_a_branch(store: Store, tmp_path: Path) -> None:
    """What is stored is never changed: the new end hangs on the common beginning, and is found again."""
    path = tmp_path / "session.jsonl"
    first, _, _ = bring(store, path, WRITERS["pi"].write(TALK))
    other = Script((*TALK.turns[:5], Turn("assistant", "another end"), Turn("user", "and more")))
    second, change, added = bring(store, path, WRITERS["pi"].write(other))
    assert (change, added) == (Change.BRANCHED, 2)
    assert second != first
    assert stored(store, first) == load_pi(tmp_path, TALK)
    assert stored(store, second) == load_pi(tmp_path, other)
    path.write_text(WRITERS["pi"].write(other), "utf-8")
    assert bring(store, path, WRITERS["pi"].write(other)) == (second, Change.UNCHANGED, 0)
    assert bring(store, path, WRITERS["pi"].write(TALK)) == (first, Change.UNCHANGED, 0)
    # The calls before the fork are counted once, in the first conversation.
    assert store.usage.totals(first).calls == 4
    assert store.usage.totals(second).calls == 1


def load_pi(folder: Path, script: Script) -> list[Message]:
    path = folder / "whole.jsonl"
    path.write_text(WRITERS["pi"].write(script), "utf-8")
    return load_session(path).messages


def test_files_without_ids_are_told_apart_by_their_words(store: Store, tmp_path: Path) -> None:
    """Two bare message lists of one name are two conversations; with one beginning they share it."""
    path = tmp_path / "chat.json"
    one = json.dumps([{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}])
    two = json.dumps([{"role": "user", "content": "two"}])
    first, _, _ = bring(store, path, one)
    second, change, _ = bring(store, path, two)
    assert change is Change.NEW
    assert first != second
    assert bring(store, path, one) == (first, Change.UNCHANGED, 0)


def test_what_is_known_beside_the_messages_is_kept(store: Store, tmp_path: Path) -> None:
    """System prompt, title, platform, model and times; the system prompt is no message of the log."""
    path = tmp_path / "session.jsonl"
    conversation, _, _ = bring(store, path, WRITERS["codex"].write(TALK))
    record = store.conversations.resolve(conversation)
    assert record.metadata.system_prompt == "Be careful."
    assert record.metadata.title == "user 0"
    assert (record.metadata.platform, record.metadata.model) == ("codex", "gpt-test")
    assert stored(store, conversation)[0] == {"role": "user", "content": "user 0"}


def test_recorded_times_are_the_times_of_the_log(store: Store, tmp_path: Path) -> None:
    """Each message has the time at which it was recorded, never before the one in front of it."""
    records = [{"type": "session_meta", "payload": {"id": "c"}}]
    for minute, role in ((5, "user"), (4, "assistant"), (9, "user")):
        body = {"type": "message", "role": role, "content": [{"type": "input_text", "text": f"at {minute}"}]}
        records.append({"type": "response_item", "timestamp": f"2026-01-01T00:0{minute}:00Z", "payload": body})
    conversation, _, _ = bring(store, tmp_path / "x.jsonl", "\n".join(map(json.dumps, records)))
    times = [line.created_at - 1767225600 for line in store.log.iterate(conversation)]
    assert times == [300, 300, 540]


def test_sub_agents_and_branches_hang_on_their_session(store: Store, tmp_path: Path) -> None:
    """What stands beside the main thread is a conversation of its own kind with its parent named."""
    records = [
        {"type": "session", "version": 3, "id": "p"},
        {"type": "message", "id": "a", "message": {"role": "user", "content": "start"}},
        {"type": "message", "id": "b", "parentId": "a", "message": {"role": "assistant", "content": "left"}},
        {"type": "message", "id": "c", "parentId": "a", "message": {"role": "assistant", "content": "right"}},
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), "utf-8")
    main, branch = import_sessions(store, load_sessions(path), path)
    record = store.conversations.resolve(branch.conversation)
    assert record.kind is Kind.BRANCH
    assert [child.conversation for child in store.conversations.children(main.conversation)] == [branch.conversation]


def test_empty_recordings_make_no_conversation(store: Store, tmp_path: Path) -> None:
    """A file in which nothing was said leaves no trace."""
    text = json.dumps({"type": "session_meta", "payload": {"id": "c"}})
    assert bring(store, tmp_path / "x.jsonl", text) == ("", Change.EMPTY, 0)
    assert store.conversations.page().conversations == ()
