"""What is deleted is gone: rows, indexes, write-ahead log, saved outputs, and in a file every byte of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
import zstandard
from prompt_toolkit.history import FileHistory

from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import (
    delete_and_remember,
    delete_conversation,
    outputs_folder,
    overwrite_deleted,
    prune_conversations,
)
from leporello.errors import StoreBusy
from leporello.messages import Message
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import Metadata, SearchMode, SearchQuery
from leporello.store.sqlite.database import SqliteDatabase
from leporello.tools.budget import save_output
from tests.conftest import RunCli
from tests.leaks.planted import ran

WORDS = ("xyloquartz", "brimbolax", "quillfyre", "vontressa", "mizzlethorp")
"""Of the conversation that goes; no other text has them."""
KEPT = "wolframite"
FRAME = b"\x28\xb5\x2f\xfd"
FILLER = "The build reads settings, compiles every module and writes a report of what it found. " * 12


def planted(words: tuple[str, ...], store: Store, home: Home, id: str) -> None:
    """A conversation with the words in every place that keeps text."""
    said, thought, ran_with, shown, noted = (words * 5)[:5]
    settings = load_settings({}, {}, home)
    about = Metadata(title=f"About {noted}", platform="cli")
    with Conversation.open(id, store=store, settings=settings, window=24_000, metadata=about) as talk:
        for turn in range(40):
            messages: list[Message] = [
                {"role": "user", "content": f"Always keep {said} in round {turn}. The limit is {said}-{turn}."},
                *ran(f"c{turn}", {"command": f"make {ran_with} {turn}"}, f"{shown} {turn}\n{FILLER}"),
                {"role": "assistant", "content": f"I decided for {thought} because of {turn}. {FILLER}"},
            ]
            talk.append(*messages)
        talk.pins.add("m2", f"mind {noted}")
        assert talk.compact(f"about {noted}").committed
        store.artifacts.put(id, f"{shown} {FILLER * 40}".encode(), f"{shown}.log")
    save_output(outputs_folder(home, id), "c1", f"{shown} {FILLER * 40}".encode())
    store.inbox.enqueue(id, "letter", f"{said} once more")
    store.conversations.end(id, "exit")
    while store.index.catch_up(1_000):
        pass


def traces(data: bytes) -> set[str]:
    """The words in some bytes, as they are and inside compressed parts that begin anywhere in them."""
    found = {word for word in WORDS if word.encode() in data}
    start = data.find(FRAME)
    while start >= 0:
        try:
            part = zstandard.ZstdDecompressor().decompressobj().decompress(data[start:])
        except zstandard.ZstdError:
            part = b""
        found |= {word for word in WORDS if word.encode() in part}
        start = data.find(FRAME, start + 1)
    return found


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def test_no_byte_of_a_deleted_conversation_is_left_in_any_file(tmp_path: Path, run_cli: RunCli) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    path = home.database
    with open_store(str(path)) as store:
        planted((KEPT,), store, home, "kept")
        planted(WORDS, store, home, "gone")
        # A text that goes over several pages is not found as a whole; most are.
        assert len(set().union(*(traces(data) for _, data in files(home.path)))) >= 3
    assert run_cli("--home", home.path, "sessions", "delete", "gone", "--yes").code == 0
    assert {name: found for name, data in files(home.path) if (found := traces(data))} == {}
    assert not outputs_folder(home, "gone").exists()
    assert outputs_folder(home, "kept").exists()
    with open_store(str(path)) as store:
        assert store.care.checkup().clean
        assert store.index.search(SearchQuery(KEPT))
        assert store.index.search(SearchQuery(KEPT[1:-1], mode=SearchMode.FRAGMENT, limit=1))


def test_prune_leaves_no_byte_either(tmp_path: Path, run_cli: RunCli) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    with open_store(str(home.database)) as store:
        planted(WORDS, store, home, "gone")
        for pin in store.pins.all("gone"):
            store.pins.remove("gone", pin.number)
        assert prune_conversations(store, home, time.time() + 60) == ["gone"]
    assert {name: found for name, data in files(home.path) if (found := traces(data))} == {}


@pytest.mark.parametrize("most", [2_000, 0])
def test_a_deletion_that_can_wait_leaves_no_byte_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """As the gateway deletes, short and very long ones; where a reader is in the way it is done the next time."""
    monkeypatch.setattr("leporello.store.sqlite._REMOVED_EXACTLY", most)
    home = Home(tmp_path / "home")
    home.path.mkdir()
    with open_store(str(home.database), StoreOptions(wait_seconds=0.2)) as store:
        planted(WORDS, store, home, "gone")
        with open_store(str(home.database)) as other, other.database.read() as tx:
            tx.rows("SELECT count(*) FROM conversations")
            delete_and_remember(store, home, "gone")
            with pytest.raises(StoreBusy):
                overwrite_deleted(store)
        overwrite_deleted(store)
        assert {name: found for name, data in files(home.path) if (found := traces(data))} == {}


def test_a_deletion_costs_what_was_deleted_not_what_stays(tmp_path: Path) -> None:
    """The entries of one conversation leave the index; nothing of the others is indexed again, and they are found."""
    path = tmp_path / "s.db"
    with open_store(str(path)) as store:
        for id, word in (("gone", WORDS[0]), ("kept", KEPT)):
            store.conversations.create(id)
            store.log.append(id, [{"role": "user", "content": f"{word} in message {n}"} for n in range(300)])
        store.index.finish()
        store.conversations.delete("gone")
        assert isinstance(store.database, SqliteDatabase)
        said: list[str] = []
        with store.database.alone() as connection:
            connection.set_trace_callback(said.append)
        store.care.vacuum()
        assert not [statement for statement in said if statement.startswith("INSERT INTO words (rowid")]
        assert traces(path.read_bytes()) == set()
        assert store.index.search(SearchQuery(WORDS[0])) == []
        assert len(store.index.search(SearchQuery(KEPT, limit=300))) == 300
        assert store.care.checkup().clean


def test_a_reader_that_keeps_the_log_is_said(tmp_path: Path) -> None:
    """Another process still reads an old state: SQLite keeps that in its log, and nobody is told it was gone."""
    path = str(tmp_path / "s.db")
    with open_store(path, StoreOptions(wait_seconds=0.2)) as store, open_store(path) as other:
        store.conversations.create("c")
        with other.database.read() as tx:
            tx.rows("SELECT count(*) FROM conversations")
            store.conversations.delete("c")
            with pytest.raises(StoreBusy, match="old text"):
                store.care.vacuum()
        store.care.vacuum()


def test_no_row_of_a_deleted_conversation_is_left_in_postgres(
    tmp_path: Path, postgres_url: str, run_cli: RunCli
) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    with open_store(postgres_url) as store:
        planted((KEPT,), store, home, "kept")
        planted(WORDS, store, home, "gone")
        assert _in_postgres(postgres_url) == set(WORDS)
    assert run_cli("--home", home.path, "sessions", "delete", "gone", "--yes", "--store", postgres_url).code == 0
    assert _in_postgres(postgres_url) == set()
    assert {name: found for name, data in files(home.path) if (found := traces(data))} == {}
    with open_store(postgres_url) as store:
        assert store.index.search(SearchQuery(KEPT))


def _in_postgres(url: str) -> set[str]:
    """The words in any row of any table of the database, indexes of words included."""
    found: set[str] = set()
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in tables:
            for row in connection.execute(f'SELECT * FROM "{schema}"."{table}"'):
                for value in row:
                    found |= traces(bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode())
    return found


def typed(home: Home, *entries: tuple[float, str]) -> None:
    """A history as the chat writes it."""
    for at, text in entries:
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        with home.history_file.open("a") as file:
            file.write(f"\n# {datetime.fromtimestamp(at)}\n{lines}")


def test_what_was_typed_leaves_the_history_of_the_chat(tmp_path: Path) -> None:
    """The message itself, its first words before a file was put in, and a command given beside it."""
    home = Home(tmp_path)
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        store.conversations.create("gone", Metadata())
        store.conversations.create("kept", Metadata())
        said = f"Look at {WORDS[0]}\nand at {WORDS[1]}"
        store.log.append("gone", [{"role": "user", "content": f"{said}\n\n<file>{WORDS[2]}</file>"}])
        store.log.append("kept", [{"role": "user", "content": KEPT}])
        now = next(iter(store.log.iterate("gone"))).created_at
        typed(
            home,
            (now - 9_000, KEPT),
            (now, said),
            (now + 2, f"/search {WORDS[3]}"),
            (now + 9_000, f"{KEPT} {WORDS[4]}"),
        )
        delete_conversation(store, home, "gone")
        assert traces(home.history_file.read_bytes()) == {WORDS[4]}
        assert home.history_file.read_text().count(KEPT) == 2
        assert list(FileHistory(str(home.history_file)).load_history_strings()) == [f"{KEPT} {WORDS[4]}", KEPT]
        assert home.history_file.stat().st_mode & 0o077 == 0


def test_what_was_typed_before_the_age_of_retention_leaves_it_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        store.conversations.create("old", Metadata())
        store.log.append("old", [{"role": "user", "content": WORDS[0]}])
        store.conversations.end("old", "exit")
        now = time.time()
        typed(home, (now - 9_000, f"/search {WORDS[0]}"), (now + 9_000, KEPT))
        assert prune_conversations(store, home, now + 60) == ["old"]
        assert not traces(home.history_file.read_bytes())
        assert KEPT in home.history_file.read_text()
