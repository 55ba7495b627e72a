"""What PostgreSQL can run into: no server, a full disk, locks, other people's schemas.

Each gives a clear error, writes nothing by halves, and leaves earlier data readable.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from leporello.errors import InputError, SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from leporello.store import StoreOptions, open_store
from leporello.store.records import SearchQuery
from leporello.store.sql.checkup import Severity
from tests.store.contract.base import contents, fold_all_but, user
from tests.store.disks import small_disk
from tests.store.server import Server
from tests.store.test_sqlite_faults import fill_until_it_fails

IMPATIENT = StoreOptions(wait_seconds=0.5)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that the server's user can reach, too: those of pytest are private."""
    with tempfile.TemporaryDirectory(prefix="lep-", dir="/tmp") as folder:
        os.chmod(folder, 0o711)
        yield Path(folder)


SECRETS = ("S3cr%ztPw9", "S3cr#tPw9", "S3cr/tPw9", "S3cr?tPw9", "S3cr@tPw9", "S3cr tPw9", "S3cr:tPw9", "S3cr%2FtPw9")


def test_a_server_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        open_store(f"postgresql://postgres@/x?host={tmp_path}", IMPATIENT)


def test_nonsense_is_not_a_url() -> None:
    with pytest.raises(InputError):
        open_store("postgresql://user@host/db?nonsense=1", IMPATIENT)
    with pytest.raises(InputError):
        open_store("mongodb://host/db")


def test_a_password_is_never_shown(server: Server, postgres_url: str) -> None:
    url = postgres_url.replace("postgres@/", "postgres:s3cret@/")
    with open_store(url) as store:
        assert "s3cret" not in store.url
        assert "postgres@" in store.url
    with pytest.raises(StoreUnavailable) as failure:
        open_store("postgresql://postgres:s3cret@/x?host=/nowhere", IMPATIENT)
    assert "s3cret" not in str(failure.value)


@pytest.mark.parametrize(
    "url",
    [
        *(f"postgresql://bob:{password}@localhost:1/x" for password in SECRETS),
        "postgresql://bob@localhost:1/x?password=S3cr-tPw9&sslmode=disable",
        "postgresql://localhost:1/x?user=bob&sslpassword=S3cr-tPw9",
        "postgresql://bob:S3cr-tPw9@[::1/x",
        "POSTGRESQL://bob:S3cr-tPw9@localhost:1/x",
        "mysql://bob:S3cr-tPw9@localhost:1/x",
        "postgresql:/bob:S3cr-tPw9@localhost/x",
    ],
)
def test_no_part_of_any_password_is_shown(url: str) -> None:
    """Signs that end a password in a proper URL, escapes that are none, options: also in what the driver says."""
    with pytest.raises((StoreError, InputError)) as failure:
        open_store(url, IMPATIENT)
    told = "".join(traceback.format_exception(failure.value))
    assert "S3cr" not in told
    assert "tPw9" not in told


def test_a_missing_database_is_a_clear_error(server: Server) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_store(server.url("no_such_database"), IMPATIENT)


def test_a_held_conversation_is_busy_after_the_waiting_time_and_others_go_on(postgres_url: str) -> None:
    with open_store(postgres_url, IMPATIENT) as store, psycopg.connect(postgres_url) as other:
        for id in ("a", "b"):
            store.conversations.create(id)
        other.execute("SELECT * FROM leporello.conversations WHERE conversation = 1 FOR UPDATE")
        with pytest.raises(StoreBusy):
            store.log.append("a", [user("no")])
        assert store.log.append("b", [user("yes")]) == [1]
        assert store.views.view("a").messages == []
        other.rollback()
        assert store.log.append("a", [user("yes")]) == [1]
        assert store.care.checkup().clean


def test_more_threads_than_connections_wait_their_turn(postgres_url: str) -> None:
    with open_store(postgres_url, StoreOptions(connections=1, wait_seconds=0.5)) as store:
        store.conversations.create("c")
        with store.database.read(), pytest.raises(StoreUnavailable):
            store.log.count("c")
        assert store.log.count("c") == 0


def test_a_store_opened_for_reading_refuses_writes(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.conversations.create("c")
        store.log.append("c", [user("needle")])
        store.index.catch_up()
    with open_store(postgres_url, StoreOptions(read_only=True)) as store:
        assert [hit.number for hit in store.index.search(SearchQuery("needle"))] == [1]
        with pytest.raises(StoreUnavailable, match="read-only"):
            store.log.append("c", [user("no")])


def test_a_read_only_server_refuses_writes(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.conversations.create("c")
    with open_store(postgres_url + "&options=-cdefault_transaction_read_only%3Don") as store:
        with pytest.raises(StoreUnavailable, match="read-only"):
            store.log.append("c", [user("no")])
        assert store.log.count("c") == 0


def test_an_empty_database_cannot_be_opened_for_reading(server: Server) -> None:
    with pytest.raises(StoreUnavailable, match="up to date"):
        open_store(server.new_database(), StoreOptions(read_only=True))


def test_a_newer_schema_is_refused(server: Server) -> None:
    url = server.new_database()
    open_store(url).close()
    with psycopg.connect(url) as other:
        other.execute("INSERT INTO leporello.migrations VALUES ('9999-from-the-future', 0)")
    with pytest.raises(SchemaTooNew, match="9999-from-the-future"):
        open_store(url)


def test_another_programs_schema_is_left_alone(server: Server) -> None:
    url = server.new_database()
    with psycopg.connect(url) as other:
        other.execute("CREATE SCHEMA leporello")
        other.execute("CREATE TABLE leporello.messages (id int)")
    with pytest.raises(StoreCorrupt, match="another program"):
        open_store(url)


def test_tables_of_others_in_the_same_database_do_not_matter(server: Server) -> None:
    url = server.new_database()
    with psycopg.connect(url) as other:
        other.execute("CREATE TABLE messages (id int)")
        other.execute("CREATE TABLE conversations (id int)")
    with open_store(url) as store:
        store.conversations.create("c")
        assert store.care.checkup().clean


def test_a_full_disk_is_a_clear_error_and_loses_nothing(shared_folder: Path) -> None:
    # A server whose tables have no room can't checkpoint, which every other database of it would feel. So this one is
    # for this test alone, and it ends before its disk does.
    with small_disk(shared_folder / "disk", 24) as disk, Server() as server:
        (disk / "space").mkdir()
        url = server.new_database(server.new_tablespace(disk / "space"))
        # A new database is a file of holes until its pages are written: those need their room before the disk is full.
        server.checkpoint()
        with open_store(url) as store:
            store.conversations.create("c")
            done, error = fill_until_it_fails(store)
            assert isinstance(error, StoreUnavailable)
            assert "space" in str(error)
            assert store.log.count("c") == done > 10
            assert len(list(store.log.iterate("c"))) == done
            assert contents(store.views.view("c"))[0]
            assert store.care.checkup().clean


def test_a_restarted_server_is_found_again(server: Server, postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.conversations.create("c")
        server.checkpoint()
        store.log.append("c", [user("before")])
        server.stop("immediate")
        server.start()
        assert store.log.append("c", [user("after")]) == [2]
        assert [item.message["content"] for item in store.log.iterate("c")] == ["before", "after"]


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ("DELETE FROM leporello.messages WHERE number = 5", Severity.DAMAGE),
        ("UPDATE leporello.messages SET body = '\\x0041' WHERE number = 5", Severity.DAMAGE),
        ("UPDATE leporello.sessions SET end_reason = 'exit' WHERE ordinal = 1", Severity.DAMAGE),
        ("DELETE FROM leporello.folds", Severity.DAMAGE),
        ("UPDATE leporello.conversations SET indexed = indexed - 3", Severity.INDEX),
        ("DELETE FROM leporello.activity", Severity.INDEX),
    ],
)
def test_the_check_up_finds(postgres_url: str, change: str, severity: Severity) -> None:
    with open_store(postgres_url) as store:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(10)])
        store.views.commit("c", fold_all_but(store.views.view("c"), 2))
        store.index.catch_up()
        assert store.care.checkup().clean
        with psycopg.connect(postgres_url) as other:
            other.execute(change)  # type: ignore[arg-type]
        assert severity in {finding.severity for finding in store.care.checkup().findings}
        if severity is Severity.INDEX:
            assert store.care.repair().clean
