"""The log of an engine inside another host: every message once, under its number, whatever happens to the list."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from leporello.adapters.hermes import DATABASE, SESSION_KEY, TASK_LIST, as_said, conversation_of, hosted_id, make_engine
from leporello.adapters.host_log import HostLog, as_parts
from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message, text_of
from leporello.store import Store, find_or_create, open_store
from leporello.store.records import ConversationFilter, Metadata
from leporello.summaries.fold import read_fold
from leporello.testing.sessions import generate
from leporello.turns import validate

SESSION = generate(seed=6, messages=60, tokens=8_000, huge_outputs=0).messages
LONG = generate(seed=41, messages=240, tokens=60_000, huge_outputs=0).messages
TASKS = f"{TASK_LIST}\n- [>] 1. mend the pump (in_progress)\n- [ ] 2. paint it (pending)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/kept.db") as made:
        yield made


@pytest.fixture
def log(store: Store) -> HostLog:
    find_or_create(store.conversations, "hermes-s1", Metadata(platform="hermes"))
    return HostLog(store, "hermes-s1")


def kept(log: HostLog) -> list[Message]:
    return [stored.message for stored in log.store.log.iterate(log.id)]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def test_messages_are_kept_once_across_calls_and_restarts(log: HostLog) -> None:
    log.number(SESSION[:20])
    assert [item.number for item in log.number(SESSION[:30])] == [*range(1, 31)]
    again = HostLog(log.store, log.id)
    assert [item.number for item in again.number(SESSION)] == [*range(1, len(SESSION) + 1)]
    assert kept(again) == SESSION


def test_what_a_host_notes_in_messages_is_not_part_of_them(log: HostLog) -> None:
    log.number(SESSION[:20])
    booked = [
        {"timestamp": 17.5 + number, **reversed_keys(message), "_db_persisted": True, "finish_reason": "stop"}
        for number, message in enumerate(SESSION[:20])
    ]
    log.number([*booked, *({**message, "_new": 1} for message in SESSION[20:])])
    assert kept(log) == SESSION


def reversed_keys(message: Message) -> Message:
    return dict(reversed(message.items()))


def test_a_list_that_was_cut_back_and_goes_on_otherwise_loses_nothing(log: HostLog) -> None:
    log.number(SESSION[:20])
    other = user("Another way")
    assert [item.number for item in log.number([*SESSION[:10], other])] == [*range(1, 11), 21]
    assert kept(log) == [*SESSION[:20], other]


def test_a_list_that_was_rewritten_stays_in_the_same_log(log: HostLog) -> None:
    log.number(SESSION[:20])
    other = [user("Something else"), *SESSION[1:10]]
    assert [item.number for item in log.number(other)] == [*range(21, 31)]
    assert kept(log) == [*SESSION[:20], *other]
    assert [item.number for item in log.number(other)] == [*range(21, 31)], "and is known the next time"


def test_a_joined_message_is_its_parts(log: HostLog) -> None:
    parts = [user("Look at the pump."), {"role": "assistant", "content": "Yes."}, user("And at the valve.")]
    log.number(parts)
    joined = [*parts[:2], user("And at the valve.\n\nBut first at the tank.\n")]
    assert [item.number for item in log.number(joined)] == [1, 2, 3, 4]
    assert kept(log)[3] == user("But first at the tank.")
    assert [item.number for item in log.number(joined)] == [1, 2, 3, 4]


def test_a_repeated_message_is_the_one_that_stands_there(log: HostLog) -> None:
    go, done = user("Go on."), {"role": "assistant", "content": "Done."}
    said = [user("Begin."), go, done, go, done, user("What now?"), go]
    log.number(said[:5])
    assert [item.number for item in log.number(said)] == [*range(1, 8)]
    assert kept(log) == said


def test_texts_are_known_stripped_and_results_by_their_call(log: HostLog) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    said: list[Message] = [
        user("  Read it. \n"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a long output"},
    ]
    log.number(said)
    again: list[Message] = [
        user("Read it."),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a long [cut]"},
    ]
    assert [item.number for item in log.number(again)] == [1, 2, 3]
    assert len(kept(log)) == 3


def test_a_fold_of_another_conversation_is_a_message_nobody_vouches_for(log: HostLog) -> None:
    folded = ContextCompressor(4_000).compress(SESSION[:40], force=True)
    assert len(folded) < 40
    items = log.number(folded)
    assert [item.number for item in items] == [*range(1, len(folded) + 1)]
    assert [item.unverified is not None for item in items].count(True) == 1
    assert all(item.fold is None for item in items)
    assert kept(log) == folded


def test_the_task_list_that_hermes_repeats_is_nothing_anybody_said() -> None:
    assert as_said({**user(TASKS), "_todo_snapshot_synthetic": True}) is None
    assert as_said(user(f"Mend it.\n\n{TASKS}")) == user("Mend it.")
    assert as_said(user(f"{TASKS}\n\nMend it.")) == user("Mend it.")
    assert as_said({**user("Mend it."), "_db_persisted": True}) == user("Mend it.")
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"type": "text", "text": "Mend it."}, image]
    assert as_said({"role": "user", "content": [*parts, {"type": "text", "text": TASKS}]}) == {
        "role": "user",
        "content": parts,
    }


# -- the engine


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "hermes-home"


def started(name: str, home: Path, session: str = "s1", database: Any = None) -> Any:
    engine: Any = make_engine(name, 16_000)
    engine.bind_session_state(session_db=database, session_id=session)
    engine.on_session_start(session, hermes_home=str(home))
    return engine


def as_hermes_has_it(messages: list[Message], tasks: bool) -> list[Message]:
    """The list after Hermes took it: marked, its texts stripped and, with tasks, run together and joined with them."""
    had: list[Message] = []
    for message in [*copy.deepcopy(messages), *([user(TASKS)] if tasks else [])]:
        if message["role"] != "tool" and (tasks or isinstance(message.get("content"), str)):
            message["content"] = text_of(message).strip()
        if tasks and had and had[-1]["role"] == message["role"] == "user":
            had[-1]["content"] += f"\n\n{message['content']}"
        else:
            had.append({**message, "_db_persisted": True})
    return had


def grep(engine: Any, word: str, messages: list[Message]) -> str:
    return str(engine.handle_tool_call("lcm_grep", {"query": word}, messages=messages))


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", ["leporello", "leporello-lcm"])
@pytest.mark.parametrize("tasks", [False, True])
def test_compactions_and_restarts_stay_in_one_log(name: str, tasks: bool, home: Path) -> None:
    engine = started(name, home)
    shown: list[Message] = []
    session = "s1"
    # Hermes compacts when the results of a turn are there.
    ends = [index for index in range(24, len(LONG)) if LONG[index]["role"] != "tool"][::10]
    for number, (start, stop) in enumerate(pairwise([0, *ends, len(LONG)])):
        shown = [*as_hermes_has_it(shown, tasks), *LONG[start:stop]] if shown else LONG[:stop]
        shown = engine.compress(shown, force=True)
        assert not any("_db_persisted" in message for message in shown) or engine.last_report.reason
        assert validate(shown) == []
        if number % 3 == 1:
            older, session = session, f"s{number + 2}"
            engine.on_session_start(session, boundary_reason="compression", old_session_id=older)
        if number % 4 == 3:
            engine = started(name, home, session)
    assert engine.compression_count
    with open_store(f"sqlite:///{home}/{DATABASE}") as store:
        told = [stored.message for stored in store.log.iterate("hermes-s1")]
        assert told == LONG
        assert store.views.view("hermes-s1").compactions >= 8
        assert len(list(store.conversations.each())) == 1
    folds = [fold.id for fold in engine._kept.archive.folds()]
    assert len(folds) == len(set(folds))
    for id in folds:
        assert "error" not in json.loads(engine.handle_tool_call("lcm_expand", {"id": id}, messages=shown))


NOTE = "[System: the answer before this one was cut off.]"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


HOST_CHANGES: dict[str, tuple[Callable[[Message], list[Message]], list[Message]]] = {
    "its parts in one text": (lambda fold: [{**fold, "content": text_of(fold)}], []),
    "words behind": (lambda fold: [{**fold, "content": f"{text_of(fold)}\n\n{NOTE}"}], [user(NOTE)]),
    "words before": (lambda fold: [{**fold, "content": f"{NOTE}\n{text_of(fold)}"}], [user(NOTE)]),
    "a task list behind": (lambda fold: [{**fold, "content": f"{text_of(fold)}\n\n{TASKS}"}], []),
    "parts before and behind": (
        lambda fold: [{**fold, "content": [IMAGE, *as_parts(fold["content"]), {"type": "text", "text": NOTE}]}],
        [{"role": "user", "content": [IMAGE]}, {"role": "user", "content": [{"type": "text", "text": NOTE}]}],
    ),
    "listed twice": (lambda fold: [fold, copy.deepcopy(fold)], []),
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", ["leporello", "leporello-lcm"])
@pytest.mark.parametrize("change", HOST_CHANGES)
def test_a_fold_is_known_whatever_the_host_does_to_its_message(name: str, change: str, home: Path) -> None:
    """What the host adds is kept, as what it is; nothing of the fold is taken for words of anybody."""
    altered, added = HOST_CHANGES[change]
    engine = started(name, home)
    shown = engine.compress(LONG[:80], force=True)
    where = next(index for index, message in enumerate(shown) if read_fold(message))
    shown[where]["role"] = "user"
    items = engine._kept.number([*filter(None, map(as_said, [*shown[:where], *altered(shown[where])]))])
    assert [item.message["content"] for item in items if item.fold] == [shown[where]["content"]]
    assert kept(engine._kept) == [*LONG[:80], *added]


@pytest.mark.usefixtures("host")
def test_a_quoted_fold_is_part_of_what_the_user_says(home: Path) -> None:
    engine = started("leporello", home)
    shown = engine.compress(LONG[:80], force=True)
    fold = next(message for message in shown if read_fold(message))
    asked = user(f"What do you mean by this?\n\n{text_of(fold)}\n\nTell me.")
    items = engine._kept.number([*shown, asked])
    assert items[-1].message == kept(engine._kept)[80] == asked
    assert len([item for item in items if item.fold]) == 1


def test_an_old_message_that_the_host_puts_words_around_is_that_message(log: HostLog) -> None:
    said = [user("Look at the pump in the cellar."), {"role": "assistant", "content": "Yes."}, user("And now?")]
    log.number(said)
    noted = user("[Monday]\n\nLook at the pump in the cellar.\n\n[seen]")
    assert [(item.number, item.message) for item in log.number([noted, *said[1:]])] == [
        (1, noted),
        (2, said[1]),
        (3, said[2]),
    ]
    assert kept(log) == said
    # At the end of the list they are new words, and are kept.
    log.number([*said, {"role": "assistant", "content": "No."}])
    log.number([*said[:2], user("[Tuesday]\n\nLook at the pump in the cellar.")])
    assert kept(log)[4:] == [user("[Tuesday]\n\nLook at the pump in the cellar.")]


@pytest.mark.usefixtures("host")
def test_the_head_alone_is_compacted_and_the_rest_follows(home: Path) -> None:
    """Hermes' /compress here: the engine gets the list without its end, which is put behind the result."""
    engine = started("leporello", home)
    grep(engine, "anything", LONG[:80])
    shown = engine.compress(LONG[:60], force=True)
    engine.compress([*shown, *LONG[60:160]], force=True)
    with open_store(f"sqlite:///{home}/{DATABASE}") as store:
        assert [stored.message for stored in store.log.iterate("hermes-s1")] == LONG[:160]


@pytest.mark.usefixtures("host")
def test_a_list_from_before_the_compactions_is_known(home: Path) -> None:
    """`--resume` of an earlier session id: the whole list, or one with an earlier fold."""
    engine = started("leporello", home)
    first = engine.compress(LONG[:80], force=True)
    engine.compress([*first, *LONG[80:120]], force=True)
    again = started("leporello", home)
    assert again.compress([*LONG[:80], user("Back to the start.")], force=True) != LONG[:81]
    more = started("leporello", home)
    more.compress([*first, user("Back to the first fold.")], force=True)
    with open_store(f"sqlite:///{home}/{DATABASE}") as store:
        log = [stored.message for stored in store.log.iterate("hermes-s1")]
    assert log == [*LONG[:120], user("Back to the start."), user("Back to the first fold.")]


@pytest.mark.usefixtures("host")
def test_after_new_the_log_is_another_and_resume_goes_back(home: Path) -> None:
    engine = started("leporello", home)
    engine.on_session_end("s1", [user("The heron."), {"role": "assistant", "content": "Yes."}])
    engine.on_session_reset()
    engine.bind_session_state(None, "s2")
    assert "heron" not in grep(engine, "heron", [user("The owl.")]).replace('"query":"heron"', "")
    engine.on_session_reset()
    engine.bind_session_state(None, "s1")
    assert "The heron" in grep(engine, "heron", [])


@pytest.mark.usefixtures("host")
def test_agents_for_chores_of_the_host_leave_no_empty_conversation(home: Path) -> None:
    engine = started("leporello", home)
    engine.compress([*LONG[:40], user("Go on.")], force=True)
    for chore in ("review", "title"):
        copied = copy.deepcopy(engine)
        copied.on_session_start(chore, hermes_home=str(home), platform="cli")
        copied.on_session_end(chore, [])
    with open_store(f"sqlite:///{home}/{DATABASE}") as store:
        page = store.conversations.page(ConversationFilter(), 10, None)
    assert [record.id for record in page.conversations] == ["hermes-s1"]
    assert page.conversations[0].metadata.title


class Database:
    """What is asked of Hermes' session database."""

    def __init__(self, **rows: dict[str, Any]) -> None:
        self.rows = rows

    def get_session(self, id: str) -> dict[str, Any] | None:
        return self.rows.get(id)


def test_a_session_belongs_to_the_one_it_continues(store: Store) -> None:
    rows = Database(
        s1={"end_reason": "compression"},
        s2={"parent_session_id": "s1", "end_reason": "compression"},
        s3={"parent_session_id": "s2"},
        helper={"parent_session_id": "s3"},
        fork={"parent_session_id": "s3", "model_config": '{"_branched_from": "s3"}'},
    )
    assert conversation_of(store, "s1", "", rows) is None
    first = find_or_create(store.conversations, hosted_id("s1"), Metadata(platform="hermes")).id
    store.state.set(None, SESSION_KEY + "s1", first)
    store.log.append(first, SESSION[:10])
    assert conversation_of(store, "s3", "", rows) == first
    store.state.set(None, SESSION_KEY + "s3", first)
    assert conversation_of(store, "helper", "", rows) is None
    fork = conversation_of(store, "fork", "", rows)
    assert fork == "hermes-fork"
    assert [stored.message for stored in store.log.iterate(fork)] == SESSION[:10]
    assert conversation_of(store, "fork", "", rows) == fork
    assert conversation_of(store, "s9", "s3", None) == first
