"""What SQLite can run into: full and read-only disks, damage, other people's files, locks.

Each gives a clear error, writes nothing by halves, and leaves earlier data readable.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from leporello.errors import InputError, SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from leporello.events import Span
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import Metadata, SearchMode, SearchQuery
from leporello.store.sql.checkup import Severity
from tests.store.contract.base import contents, fold_all_but, user
from tests.store.disks import full_disk, read_only_disk, small_disk

IMPATIENT = StoreOptions(wait_seconds=0.2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def filled(path: Path, messages: int = 40, size: int = 2000) -> None:
    rng = random.Random(7)
    with open_store(str(path)) as store:
        for id in ("a", "b"):
            store.conversations.create(id)
            store.log.append(id, [user(f"{n} {rng.randbytes(size // 2).hex()}") for n in range(messages)])
            store.views.commit(id, fold_all_but(store.views.view(id), 5))


def fill_until_it_fails(store: Store) -> tuple[int, StoreError]:
    """Append until the disk is full; returns how many appends were acknowledged, and the error."""
    rng = random.Random(1)
    done = 0
    while True:
        try:
            store.log.append("c", [user(rng.randbytes(20_000).hex())])
        except StoreError as error:
            return done, error
        done += 1


class TestFullDisk:
    def test_a_full_disk_is_a_clear_error_and_loses_nothing(self, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk", 3) as disk:
            with open_store(str(disk / "store.db")) as store:
                store.conversations.create("c")
                done, error = fill_until_it_fails(store)
                assert isinstance(error, StoreUnavailable)
                assert "space" in str(error)
                assert done > 10
                assert store.log.count("c") == done
                assert len(list(store.log.iterate("c"))) == done
                with pytest.raises(StoreUnavailable):
                    store.views.commit("c", fold_all_but(store.views.view("c"), 1, "x" * 3_000_000))
                assert store.views.view("c").generation == 0
            with open_store(str(disk / "store.db")) as store:
                assert store.log.count("c") == done
                assert store.care.checkup().clean

    def test_a_limit_on_file_sizes_is_a_clear_error_and_loses_nothing(self, path: Path) -> None:
        script = f"""
        import resource, signal
        from tests.store.test_sqlite_faults import fill_until_it_fails
        from leporello.errors import StoreUnavailable
        from leporello.store import open_store
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open_store({str(path)!r}) as store:
            store.conversations.create("c")
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
            done, error = fill_until_it_fails(store)
            assert isinstance(error, StoreUnavailable), error
            assert store.log.count("c") == done
            print(done)
        """
        assert resource.RLIMIT_FSIZE is not None
        assert signal.SIGXFSZ is not None
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        with open_store(str(path)) as store:
            assert store.log.count("c") == int(ran.stdout) > 5
            assert store.care.checkup().clean


class TestReadOnly:
    def test_a_read_only_disk_can_be_read_and_refuses_writes(self, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk", 10) as disk:
            filled(disk / "store.db")
            with read_only_disk(disk), open_store(str(disk / "store.db")) as store:
                assert store.read_only
                self.check_reading(store)

    @pytest.mark.parametrize("unwritable", [read_only_disk, full_disk])
    def test_a_store_opened_on_such_a_disk_writes_as_soon_as_it_can(self, tmp_path: Path, unwritable: Any) -> None:
        """A server that was started on a full disk need not be started again."""
        with small_disk(tmp_path / "disk", 4) as disk:
            with open_store(str(disk / "store.db")) as store:
                store.conversations.create("c")
            with unwritable(disk):
                store = open_store(str(disk / "store.db"))
                assert store.read_only
                assert store.log.count("c") == 0
                with pytest.raises(StoreUnavailable, match="free space" if unwritable is full_disk else "read-only"):
                    store.log.append("c", [user("no")])
            assert store.log.append("c", [user("yes")]) == [1]
            assert not store.read_only
            assert store.log.count("c") == 1
            store.close()

    def test_a_read_only_disk_without_a_store_says_so(self, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk", 2) as disk, read_only_disk(disk), pytest.raises(StoreUnavailable):
            open_store(str(disk / "new.db"))

    def test_a_store_can_be_opened_for_reading_only(self, path: Path) -> None:
        filled(path)
        before = path.read_bytes()
        with open_store(str(path), StoreOptions(read_only=True)) as store:
            self.check_reading(store)
        assert path.read_bytes() == before
        with pytest.raises(StoreUnavailable):
            open_store(str(path.with_name("missing.db")), StoreOptions(read_only=True))
        assert not path.with_name("missing.db").exists()

    @staticmethod
    def check_reading(store: Store) -> None:
        assert store.log.count("a") == 40
        assert len(store.views.view("a").lines) == 6
        assert store.index.search(SearchQuery("anything")) == []
        assert store.care.checkup().clean
        with pytest.raises(StoreUnavailable, match="read-only"):
            store.log.append("a", [user("no")])
        with pytest.raises(StoreUnavailable):
            store.conversations.create("new")
        assert store.log.count("a") == 40


class TestDamage:
    def test_another_programs_database_is_left_alone(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE conversations (id TEXT)")
        connection.commit()
        connection.close()
        before = path.read_bytes()
        with pytest.raises(StoreCorrupt, match="another program"):
            open_store(str(path))
        assert path.read_bytes() == before

    @pytest.mark.parametrize("data", [b"just some text\n" * 1000, b"SQLite format 3\0" + b"\xff" * 5000, b"x"])
    def test_a_file_that_is_no_database_is_left_alone(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        with pytest.raises(StoreCorrupt):
            open_store(str(path))
        assert path.read_bytes() == data

    def test_a_folder_is_no_store(self, path: Path) -> None:
        path.mkdir()
        with pytest.raises(StoreUnavailable):
            open_store(str(path))

    def test_damaged_pages_are_reported_and_the_rest_stays_readable(self, path: Path) -> None:
        filled(path, messages=200)
        size = path.stat().st_size
        rng = random.Random(3)
        original = path.read_bytes()
        outcomes = set()
        for _ in range(25):
            page = rng.randrange(1, size // 4096)
            path.write_bytes(original[: page * 4096] + rng.randbytes(4096) + original[(page + 1) * 4096 :])
            try:
                with open_store(str(path)) as store:
                    found = store.care.checkup()
                    outcomes.add("clean" if found.clean else "reported")
                    for id in ("a", "b"):
                        try:
                            read = [item.message["content"] for item in store.log.iterate(id)]
                            assert all(text.startswith(f"{n} ") for n, text in enumerate(read))
                        except StoreCorrupt:
                            assert not found.clean
            except StoreCorrupt:
                outcomes.add("refused")
        assert "reported" in outcomes
        assert outcomes <= {"clean", "reported", "refused"}

    def test_a_file_cut_short_is_reported(self, path: Path) -> None:
        filled(path, messages=200)
        os.truncate(path, path.stat().st_size // 2)
        try:
            with open_store(str(path)) as store:
                assert not store.care.checkup().clean
        except StoreCorrupt:
            pass

    def test_a_changed_message_does_not_pass_the_check(self, path: Path) -> None:
        filled(path)
        other = sqlite3.connect(path)
        other.execute(
            "UPDATE messages SET body = (SELECT body FROM messages WHERE number = 8 AND conversation = 1) "
            "WHERE number = 7 AND conversation = 1"
        )
        other.execute("UPDATE messages SET body = x'0290909090' WHERE number = 9 AND conversation = 1")
        other.commit()
        other.close()
        with open_store(str(path)) as store:
            found = [finding.text for finding in store.care.checkup().findings]
            assert any("m7 does not have the hash" in text for text in found)
            assert any("m9" in text for text in found)
            with pytest.raises(StoreCorrupt, match="m9"):
                store.log.message("a", 9)
            assert store.log.message("a", 10).number == 10

    @pytest.mark.parametrize(
        ("change", "check"),
        [
            ("DELETE FROM messages WHERE conversation = 1 AND number = 5", "log"),
            ("UPDATE conversations SET last = last + 1 WHERE conversation = 1", "log"),
            ("DELETE FROM hashes WHERE conversation = 1 AND number = 5", "hashes"),
            ("UPDATE messages SET body = NULL, same_as = 999 WHERE conversation = 1 AND number = 5", "log"),
            ("UPDATE sessions SET end_reason = 'exit' WHERE conversation = 1 AND ordinal = 1", "chain"),
            ("UPDATE sessions SET parent = 'x' WHERE conversation = 1 AND ordinal = 2", "chain"),
            ("UPDATE sessions SET started = 0 WHERE conversation = 1 AND ordinal = 2", "chain"),
            ("DELETE FROM sessions WHERE conversation = 1 AND ordinal = 2", "chain"),
            ("DELETE FROM directory WHERE conversation = 1 AND ordinal = 2", "chain"),
            ("UPDATE generations SET base_last = 999 WHERE conversation = 1 AND generation = 1", "view"),
            ("UPDATE generations SET entries = x'00' WHERE conversation = 1 AND generation = 1", "view"),
            ("DELETE FROM generations WHERE conversation = 1 AND generation = 0", "view"),
            ("DELETE FROM folds WHERE conversation = 1", "view"),
            ("DELETE FROM conversations WHERE conversation = 1", "strays"),
            ("UPDATE artifacts SET body = x'0041' WHERE conversation = 1", "hashes"),
        ],
    )
    def test_the_check_up_finds(self, path: Path, change: str, check: str) -> None:
        filled(path)
        with open_store(str(path)) as store:
            store.artifacts.put("a", b"artifact")
            assert store.care.checkup().clean
        other = sqlite3.connect(path)
        assert other.execute(change).rowcount
        other.commit()
        other.close()
        with open_store(str(path)) as store:
            found = store.care.checkup().findings
            assert check in {finding.check for finding in found}
            assert all(finding.severity is Severity.DAMAGE for finding in found)

    @pytest.mark.parametrize(
        "change",
        [
            "DELETE FROM documents WHERE number = 3",
            "INSERT INTO words (words) VALUES ('delete-all')",
            "UPDATE words_data SET block = x'0000000000' WHERE id > 10",
            "UPDATE fragments_data SET block = x'0000000000' WHERE id > 10",
            "UPDATE conversations SET indexed = indexed + 5",
            "UPDATE index_state SET value = 0 WHERE name = 'documents'",
        ],
    )
    def test_a_broken_index_is_found_and_repaired_from_the_log(self, path: Path, change: str) -> None:
        filled(path)
        with open_store(str(path)) as store:
            store.log.append("a", [user("the zebra crossing")])
            store.index.catch_up()
            messages = list(store.log.iterate("a"))
        other = sqlite3.connect(path)
        assert other.execute(change).rowcount
        other.commit()
        other.close()
        with open_store(str(path)) as store:
            found = store.care.checkup().findings
            assert Severity.INDEX in {finding.severity for finding in found}
            assert store.care.repair().clean
            assert [hit.number for hit in store.index.search(SearchQuery("zebra crossing"))] == [41]
            assert list(store.log.iterate("a")) == messages

    def test_an_index_of_other_rules_is_made_anew(self, path: Path) -> None:
        with open_store(str(path)) as store:
            store.conversations.create("c")
            store.log.append("c", [user("the zebra crossing")])
            store.index.catch_up()
        other = sqlite3.connect(path)
        other.execute("UPDATE index_state SET value = '0.0' WHERE name = 'version'")
        other.execute("UPDATE documents SET body = x'00'")
        other.commit()
        other.close()
        with open_store(str(path)) as store:
            assert store.index.search(SearchQuery("zebra"))[0].text == "the zebra crossing"
            assert store.care.checkup().clean


class TestLocks:
    def test_a_locked_file_is_busy_after_the_waiting_time(self, path: Path) -> None:
        filled(path)
        other = sqlite3.connect(path, isolation_level=None)
        with open_store(str(path), IMPATIENT) as store:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match="another process"):
                store.log.append("a", [user("no")])
            assert store.log.count("a") == 40
            assert contents(store.views.view("a"))[0] == "summary"
            other.execute("ROLLBACK")
            assert store.log.append("a", [user("yes")]) == [41]
        other.close()

    def test_a_file_held_exclusively_is_busy_when_opened(self, path: Path) -> None:
        filled(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            open_store(str(path), IMPATIENT)
        other.execute("ROLLBACK")
        other.close()
        with open_store(str(path)) as store:
            assert store.log.count("a") == 40

    def test_a_busy_writer_thread_is_waited_for_in_bounds(self, path: Path) -> None:
        filled(path)
        with open_store(str(path), IMPATIENT) as store:
            entered, leave = threading.Event(), threading.Event()

            def hold() -> None:
                with store.database.write():
                    entered.set()
                    leave.wait(10)

            thread = threading.Thread(target=hold)
            thread.start()
            entered.wait(10)
            with pytest.raises(StoreBusy, match="another thread"):
                store.log.append("a", [user("no")])
            leave.set()
            thread.join()
            assert store.log.append("a", [user("yes")]) == [41]


class TestFork:
    def test_a_forked_child_gets_connections_of_its_own(self, path: Path) -> None:
        filled(path)
        with open_store(str(path)) as store:
            store.log.append("a", [user("before the fork")])
            store.views.view("a")
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    store.log.append("a", [user("from the child")])
                    code = 0 if store.log.count("a") == 42 else 2
                finally:
                    store.close()
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert store.log.append("a", [user("after")]) == [43]
            assert store.care.checkup().clean
            assert [item.number for item in store.log.span("a", Span(42, 43))] == [42, 43]


class TestFile:
    def test_a_new_store_is_private_and_its_folder_is_made(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "er" / "store.db"
        with open_store(f"sqlite:///{path}") as store:
            store.conversations.create("c")
            assert path.stat().st_mode & 0o077 == 0
            assert path.with_name("store.db-wal").stat().st_mode & 0o077 == 0

    def test_nothing_of_a_deleted_conversation_is_left_after_a_vacuum(self, path: Path) -> None:
        with open_store(str(path)) as store:
            for id, word in (("gone", "xyloquartz"), ("kept", "wolframite")):
                store.conversations.create(id, Metadata(title=f"about {word}"))
                store.log.append(id, [user(f"{word} {n}") for n in range(300)])
            store.index.catch_up()
            store.conversations.delete("gone")
            assert store.index.search(SearchQuery("xyloquartz")) == []
            assert store.care.checkup().clean
            store.care.vacuum()
            assert store.care.checkup().clean
            assert len(store.index.search(SearchQuery("wolframite", limit=400))) == 300
            assert store.index.search(SearchQuery("olframit", mode=SearchMode.FRAGMENT, limit=1))
        data = path.read_bytes()
        assert b"xyloquartz" not in data
        assert b"wolframite" in data

    def test_names_with_odd_letters_work(self, tmp_path: Path) -> None:
        for name in ("a b?c#d%20e.db", "日本語.db", "-x.db"):
            with open_store(str(tmp_path / name)) as store:
                store.conversations.create("c")
                url = store.url
            assert (tmp_path / name).exists()
            with open_store(url) as store:
                assert store.conversations.exists("c")

    def test_a_changed_working_folder_does_not_change_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with open_store("store.db") as store:
            store.conversations.create("c")
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir(tmp_path / "elsewhere")
            assert store.conversations.exists("c")
            store.care.backup("backup.db")
        assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["backup.db"]
        assert (tmp_path / "elsewhere" / "backup.db").stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("synchronous", ["", "full", "FULL; DROP TABLE messages"])
    def test_an_unknown_setting_is_refused(self, path: Path, synchronous: str) -> None:
        with pytest.raises(InputError):
            open_store(str(path), StoreOptions(synchronous=synchronous))

    def test_a_newer_schema_is_refused_and_left_alone(self, path: Path) -> None:
        filled(path)
        other = sqlite3.connect(path)
        other.execute("INSERT INTO migrations (name, applied) VALUES ('9999-from-the-future', 0)")
        other.commit()
        other.close()
        before = path.read_bytes()
        with pytest.raises(SchemaTooNew, match="9999-from-the-future"):
            open_store(str(path))
        with pytest.raises(SchemaTooNew):
            open_store(str(path), StoreOptions(read_only=True))
        assert path.read_bytes() == before


def fill(disk: Path) -> None:
    """Not a byte is left."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0" * size)


class TestReadingOnAFullDisk:
    def test_everything_can_be_read(self, tmp_path: Path) -> None:
        """Searching too, though it would have liked to index what is new; another process may have the file open."""
        with small_disk(tmp_path / "disk", 4) as disk:
            url = f"sqlite:///{disk}/a.db"
            with open_store(url) as first:
                first.conversations.create("c")
                first.log.append("c", [user("needle one")])
                first.index.catch_up()
                first.log.append("c", [user(f"needle {number} " + "x" * 900) for number in range(60)])
                fill(disk)
                with open_store(url) as store:
                    assert store.log.count("c") == 61
                    assert len(list(store.log.iterate("c"))) == 61
                    assert [hit.number for hit in store.index.search(SearchQuery("needle one"))] == [1]
                    assert len(store.conversations.page().conversations) == 1
                    assert store.usage.insights().conversations == 1
                    with pytest.raises(StoreUnavailable):
                        store.log.append("c", [user("no room " * 2_000)])
                    assert store.log.count("c") == 61

    def test_what_a_killed_process_left_can_be_read(self, tmp_path: Path) -> None:
        """Its log was never taken over, and there is no room for the file that reading it needs."""
        with small_disk(tmp_path / "disk", 4) as disk:
            url = f"sqlite:///{disk}/a.db"
            program = f"""
import os, signal
from leporello.store import open_store
store = open_store({url!r})
store.conversations.create("c")
store.log.append("c", [{{"role": "user", "content": "kept"}}] * 40)
os.kill(os.getpid(), signal.SIGKILL)
"""
            subprocess.run([sys.executable, "-c", program], check=False)
            (disk / "a.db-shm").unlink()
            fill(disk)
            before = [(disk / name).read_bytes() for name in ("a.db", "a.db-wal")]
            with open_store(url) as store:
                assert store.log.count("c") == 40
                assert store.url.endswith("a.db")
            assert [(disk / name).read_bytes() for name in ("a.db", "a.db-wal")] == before


class TestBackups:
    def test_a_backup_that_fails_leaves_nothing(self, path: Path, tmp_path: Path) -> None:
        """Its name appears when it is whole: not while it is written, and not on a disk that is too small."""
        with open_store(f"sqlite:///{path}") as store:
            store.conversations.create("c")
            store.log.append("c", [user(os.urandom(1_000).hex()) for _ in range(1_500)])
            with small_disk(tmp_path / "disk", 1) as disk:
                with pytest.raises(StoreUnavailable):
                    store.care.backup(str(disk / "backup.db"))
                assert list(disk.iterdir()) == []
            seen: list[bool] = []
            store.care.backup(str(tmp_path / "backup.db"), lambda *_: seen.append((tmp_path / "backup.db").exists()))
            assert seen
            assert not any(seen)
        assert [found.name for found in tmp_path.glob("*backup*")] == ["backup.db"]
        with open_store(f"sqlite:///{tmp_path}/backup.db") as copy:
            assert copy.log.count("c") == 1_500

    def test_a_file_that_appears_meanwhile_is_not_replaced(self, path: Path, tmp_path: Path) -> None:
        with open_store(f"sqlite:///{path}") as store:
            store.conversations.create("c")
            with pytest.raises(InputError):
                store.care.backup(str(tmp_path / "b.db"), lambda *_: (tmp_path / "b.db").write_text("mine") and None)
        assert (tmp_path / "b.db").read_text() == "mine"
        assert [found.name for found in tmp_path.glob("*b.db*")] == ["b.db"]
