"""Sessions in the store: importing again adds nothing, a grown file adds what is new, nothing stored changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.importers import Change, import_sessions, load_session, load_sessions
from leporello.ledger.user_text import title_of
from leporello.messages import Message
from leporello.store import Store, open_store
from leporello.store.records import ConversationKind, InsightsQuery

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
    assert record.kind is ConversationKind.BRANCH
    assert [child.conversation for child in store.sessions.children(main.conversation)] == [branch.conversation]


def test_empty_recordings_make_no_conversation(store: Store, tmp_path: Path) -> None:
    """A file in which nothing was said leaves no trace."""
    text = json.dumps({"type": "session_meta", "payload": {"id": "c"}})
    assert bring(store, tmp_path / "x.jsonl", text) == ("", Change.EMPTY, 0)
    assert store.conversations.page().conversations == ()


def codex_talk(*lines: tuple[str, str, str], id: str = "c") -> str:
    """A Codex recording: time, role and words of each message; each assistant message used ten tokens."""
    records: list[dict[str, object]] = [{"type": "session_meta", "payload": {"id": id}}]
    for time, role, words in lines:
        kind = "input_text" if role == "user" else "output_text"
        body = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        records.append({"type": "response_item", "timestamp": time, "payload": body})
        if role == "assistant":
            used = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
            info = {"last_token_usage": used, "total_token_usage": {"total_tokens": 10 * len(records)}}
            payload = {"type": "token_count", "info": info}
            records.append({"type": "event_msg", "timestamp": time, "payload": payload})
    return "\n".join(map(json.dumps, records))


OLD = codex_talk(
    ("2025-03-01T10:00:00Z", "user", "Fix the clock"),
    ("2025-03-01T10:05:00Z", "assistant", "Done."),
    ("2025-03-02T09:00:00Z", "user", "And the bell"),
    ("2025-03-02T09:01:00Z", "assistant", "Done too."),
)


def test_activity_is_the_recorded_one(store: Store, tmp_path: Path) -> None:
    """A conversation began, was active and ended when it was recorded, not when it was imported."""
    conversation, _, _ = bring(store, tmp_path / "x.jsonl", OLD)
    record = store.conversations.resolve(conversation)
    first, last = 1740823200.0, 1740906060.0
    assert (record.created_at, record.updated_at) == (first, last)
    assert (record.tip.started_at, record.tip.ended_at) == (first, last)


def test_usage_is_booked_on_the_recorded_day(store: Store, tmp_path: Path) -> None:
    """Calls, messages and conversations of one day are told of that same day."""
    bring(store, tmp_path / "x.jsonl", OLD)
    whole = store.usage.insights()
    assert {day: totals.calls for day, totals in whole.by_day.items()} == {"2025-03-01": 1, "2025-03-02": 1}
    second_day = store.usage.insights(InsightsQuery(since=1740873600.0))
    assert (second_day.conversations, second_day.messages, second_day.totals.calls) == (1, 2, 1)
    later = store.usage.insights(InsightsQuery(since=1741000000.0))
    assert (later.conversations, later.sessions, later.messages, later.totals.calls) == (0, 0, 0, 0)


def test_imported_calls_have_their_list_price_and_the_output_that_was_said(store: Store, tmp_path: Path) -> None:
    """Claude Code records output tokens while they stream: an answer has at least the tokens of its words."""
    used = {"input_tokens": 10, "cache_creation_input_tokens": 1_000, "output_tokens": 1}
    head = {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-5-20251101", "usage": used}
    lines = [
        {"type": "user", "sessionId": "s", "uuid": "u1", "message": {"role": "user", "content": "Count."}},
        {
            "type": "assistant",
            "sessionId": "s",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {**head, "content": [{"type": "text", "text": "one two three four five " * 200}]},
        },
    ]
    conversation, _, _ = bring(store, tmp_path / "x.jsonl", "\n".join(map(json.dumps, lines)))
    totals = store.usage.totals(conversation)
    assert totals.unpriced_calls == 0
    assert 900 < totals.usage.output_tokens < 1_500
    expected = (10 * 5 + 1_000 * 6.25 + totals.usage.output_tokens * 25) / 1_000_000
    assert totals.cost == pytest.approx(expected)


def test_imported_conversations_are_ended_and_can_be_pruned(store: Store, tmp_path: Path) -> None:
    """Nobody is talking in an imported conversation: it is ended, also after it grew, and goes when it is old."""
    path = tmp_path / "x.jsonl"
    conversation, _, _ = bring(store, path, "\n".join(OLD.splitlines()[:4]))
    assert store.conversations.resolve(conversation).tip.end_reason == "imported"
    bring(store, path, OLD)
    record = store.conversations.resolve(conversation)
    assert (record.open, record.messages) == (False, 4)
    assert store.conversations.prune(1741000000.0) == [conversation]


def test_a_branch_of_a_recording_has_recorded_times(store: Store, tmp_path: Path) -> None:
    """A rewritten end is as old as its recording, and ended like it."""
    path = tmp_path / "x.jsonl"
    bring(store, path, OLD)
    conversation, change, _ = bring(store, path, OLD.replace("And the bell", "And the door"))
    record = store.conversations.resolve(conversation)
    assert change is Change.BRANCHED
    assert (record.updated_at, record.open) == (1740906060.0, False)


@pytest.mark.parametrize(
    "machine_text",
    [
        "<environment_context>\n  <cwd>/home/me</cwd>\n</environment_context>",
        "<local-command-caveat>Caveat: these were made by a program.</local-command-caveat>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "<bash-stdout>many words of a program</bash-stdout><bash-stderr></bash-stderr>",
        "16",
    ],
)
def test_a_title_is_the_users_own_words(store: Store, tmp_path: Path, machine_text: str) -> None:
    """What a program put before the first question is no title; secrets in it are masked."""
    secret = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))
    talk = codex_talk(
        ("2025-03-01T10:00:00Z", "user", machine_text),
        ("2025-03-01T10:01:00Z", "user", f"Mend the clock\n\nof the tower with {secret}"),
    )
    conversation, _, _ = bring(store, tmp_path / "x.jsonl", talk)
    title = store.conversations.resolve(conversation).metadata.title
    assert title.startswith("Mend the clock of the tower")
    assert secret not in title


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nMend it\n", "Mend it"),
        ("<command-message>x</command-message>\n<command-args>mend the bell</command-args>", "mend the bell"),
        ("a < b and b > c", "a < b and b > c"),
        ("16", "16"),
        ("", ""),
    ],
)
def test_titles(said: str, title: str) -> None:
    """The question behind what an editor adds, arguments of a command, or what there is when nobody says a word."""
    assert title_of(said) == title
