"""Recall over a store: the promises of a search, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from leporello.conversation.artifacts import StoredArchive
from leporello.errors import NotFound
from leporello.messages import Message
from leporello.recall.base import RecallMode, RecallQuery, Window
from leporello.recall.ranking import render
from leporello.recall.stored import RecallScope, StoreRecall
from leporello.store import Store, open_store
from leporello.store.records import StoredMessage
from leporello.tokens import TokenCounter
from tests.store.server import Server

from .conftest import assistant, call, result, session, user

COUNT = TokenCounter.for_model(None).text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/talks.db"
    else:
        url = request.getfixturevalue("server").emptied_database()
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def filled(store: Store) -> Store:
    """The small coding session, and a second conversation about something else."""
    store.conversations.create("build")
    store.log.append("build", session())
    store.conversations.create("garden")
    store.log.append(
        "garden",
        [user("When do the tulips bloom?"), assistant("In April."), user("And the port wine?"), assistant("Later.")],
    )
    return store


def texts(windows: list[Window]) -> str:
    return "\n".join(window.text for window in windows)


@pytest.mark.parametrize(
    ("query", "evidence"),
    [
        ("Which commit added the streaming parser?", "9ab3f1e"),
        ("What did the user forbid?", "Never touch the files under vendor/"),
        ("Why did the agent pick a streaming approach?", "because the files do not fit into memory"),
        ("In which file and line is the default port defined?", "src/net/server.py:88"),
        ("DEFAULT_PORT", "src/net/client.py:12"),
        ("AULT_PO", "DEFAULT_PORT = 8080"),
        ("端口", "配置文件里的端口也要改成8443"),
    ],
)
def test_questions_and_words_find_their_evidence_among_all_conversations(
    filled: Store, query: str, evidence: str
) -> None:
    """Like in memory: other words, identifiers, pieces of names, Chinese; the conversation is named."""
    windows = StoreRecall(filled).search(RecallQuery(query, 400))
    (first, *_) = [window for window in windows if evidence in window.text]
    assert first.conversation == "build"
    assert first.at is not None
    assert str(first).startswith(f"[build {first.id}] ")


def test_one_conversation_answers_for_itself(filled: Store) -> None:
    """Nothing of another conversation comes back, and ids need no name in front."""
    windows = StoreRecall(filled, RecallScope("garden")).search(RecallQuery("port"))
    assert [window.id for window in windows] == ["m3"]
    assert str(windows[0]).startswith("[m3] user")
    with pytest.raises(NotFound):
        StoreRecall(filled, RecallScope("nobody")).search(RecallQuery("port"))


def test_a_result_comes_with_its_call(store: Store) -> None:
    """`17` says nothing alone, and the call stands several results before it."""
    store.conversations.create("c")
    calls = [call(f"k{n}", "terminal", f'{{"command": "count part {n}"}}') for n in range(6)]
    store.log.append("c", [user("Count."), assistant("", *calls)])
    store.log.append("c", [result(f"k{n}", f"zebra total {n}") for n in range(6)])
    store.log.append("c", [user(f"filler {n}") for n in range(30)])
    windows = StoreRecall(store).search(RecallQuery('"zebra total 5"', 300))
    found = next(window for window in windows if "zebra total 5" in window.text)
    assert (found.tool, found.about) == ("terminal", "command: count part 5")
    assert str(found) == "[c m8] terminal: command: count part 5\nzebra total 5"


def test_an_answer_comes_with_its_question(store: Store) -> None:
    """Also when calls and results stand between the two; a question of another turn is never taken for it."""
    store.conversations.create("c")
    work: list[Message] = []
    for n in range(4):
        work += [assistant("", call(f"w{n}", "terminal", '{"command": "ls"}')), result(f"w{n}", "nothing special")]
    conversation = [user("First question"), assistant("First answer"), user("Which colour has the roof?"), *work]
    store.log.append("c", [*conversation, assistant("It is vermilion.")])
    (window,) = StoreRecall(store).search(RecallQuery("vermilion"))
    assert (window.id, window.about) == ("m12", "Which colour has the roof?")


def test_common_words_read_few_messages_and_show_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bare words that stand everywhere cost little more than rare ones; a question may read more."""
    store.conversations.create("c")
    store.log.append("c", [user(f"ledger entry {n}") for n in range(400)])
    read: set[int] = set()
    pick = store.log.pick

    def counted(conversation: str, numbers: Iterable[int]) -> list[StoredMessage]:
        read.update(wanted := list(numbers))
        return pick(conversation, wanted)

    monkeypatch.setattr(store.log, "pick", counted)
    windows = StoreRecall(store).search(RecallQuery("ledger entry"))
    assert len({window.message for window in windows}) >= 20
    assert len(read) <= 60


def test_what_belongs_to_a_hit_is_only_what_is_near(store: Store) -> None:
    """A question far away is not guessed."""
    store.conversations.create("c")
    store.log.append("c", [user("Long ago"), *(assistant(f"step {n}") for n in range(40)), assistant("vermilion")])
    (window,) = StoreRecall(store).search(RecallQuery("vermilion"))
    assert window.about == ""


@pytest.mark.parametrize("budget", [0, 30, 120, 500, 4000])
def test_never_beyond_the_budget(filled: Store, budget: int) -> None:
    """Headings and the lines about calls and questions count too."""
    for text in ("Where is the noise computed, and why?", "noise parser port", "8443"):
        assert COUNT(render(StoreRecall(filled).search(RecallQuery(text, budget)))) <= budget


def test_a_long_result_is_shown_by_its_windows(store: Store) -> None:
    """Of a listing of ten thousand lines the few around the evidence come back."""
    store.conversations.create("c")
    lines = [f"row {number} of the table" for number in range(10_000)]
    lines[7_777] = "here the vermilion zebra sleeps"
    store.log.append("c", [assistant("", call("a", "read_file", '{"path": "t"}')), result("a", "\n".join(lines))])
    windows = StoreRecall(store).search(RecallQuery("vermilion zebra", 200))
    assert "here the vermilion zebra sleeps" in texts(windows)
    assert COUNT(render(windows)) <= 200


def test_scope_role_tool_and_time_narrow_a_search(filled: Store) -> None:
    """Neighbours are read for their words but never shown where the search was narrowed."""
    recall = StoreRecall(filled)
    assert {w.role for w in recall.search(RecallQuery("parser", roles=("assistant",)))} == {"assistant"}
    tools = StoreRecall(filled, RecallScope(tools=("search_files",))).search(RecallQuery("port"))
    assert {w.tool for w in tools} == {"search_files"}
    filled.conversations.create("old")
    filled.log.append("old", [user("the parser of old")], at=[1_000.0])
    assert [w.conversation for w in StoreRecall(filled, RecallScope(until=2_000.0)).search(RecallQuery("parser"))] == [
        "old"
    ]
    assert "old" not in {
        w.conversation for w in StoreRecall(filled, RecallScope(since=2_000.0)).search(RecallQuery("parser"))
    }
    assert len(recall.search(RecallQuery("parser", limit=2))) == 2


def test_words_mode_finds_only_the_words(filled: Store) -> None:
    """In words mode a relative of a word is not looked for."""
    recall = StoreRecall(filled)
    assert "I chose a streaming reader" in texts(recall.search(RecallQuery("was a reader picked?")))
    assert recall.search(RecallQuery("picked", mode=RecallMode.WORDS)) == []


def test_nothing_matches_nothing(filled: Store) -> None:
    """Unknown words, no words and an empty store give no windows."""
    for text in ("xylophone", "", "   ", ".."):
        assert StoreRecall(filled).search(RecallQuery(text)) == []


def test_secrets_are_masked_in_windows_and_in_what_comes_with_them(store: Store) -> None:
    """Neither the hit nor the neighbours that are read from the log show a password."""
    store.conversations.create("c")
    store.log.append(
        "c",
        [
            user("Deploy with DB_PASSWORD=hunter2hunter2 to vermilion"),
            assistant("On it.", call("a", "terminal", '{"command": "DB_PASSWORD=hunter2hunter2 deploy vermilion"}')),
            result("a", "vermilion is up"),
            assistant("The vermilion host runs."),
        ],
    )
    windows = StoreRecall(store).search(RecallQuery("How was vermilion deployed?"))
    assert {window.message for window in windows} >= {1, 3}
    assert "hunter2" not in render(windows)
    assert "[REDACTED]" in render(windows)


def test_a_deleted_conversation_is_not_found(filled: Store) -> None:
    filled.conversations.delete("build")
    assert StoreRecall(filled).search(RecallQuery("streaming")) == []


def test_an_archive_of_any_length_answers(filled: Store) -> None:
    """Beyond what is searched in memory the index takes over, with the same answers and the same ids."""
    short, long = StoredArchive(filled, "build"), StoredArchive(filled, "build", most_in_memory=5)
    for text, evidence in (("Which commit added the streaming parser?", "9ab3f1e"), ("DEFAULT_PORT", "server.py:88")):
        for archive in (short, long):
            hit = next(window for window in archive.search(RecallQuery(text)) if evidence in window.text)
            assert hit.conversation == ""
            assert evidence in str(filled.log.message("build", hit.message).message)
    filled.log.append("build", [user("One more: the vermilion zebra")])
    assert "vermilion" in texts(short.search(RecallQuery("zebra")))
    assert "vermilion" in texts(long.search(RecallQuery("zebra")))
