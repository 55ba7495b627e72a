"""The commands about the store: sessions, doctor, insights, store. Each is run as the program runs it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.config import Home
from leporello.conversation import Conversation
from leporello.errors import InputError
from leporello.events import Outcome
from leporello.present.text import breadth, parse_age, parse_moment, safe, safe_block, short
from leporello.store import open_store
from leporello.store.records import Metadata, ModelCall, SearchQuery
from leporello.testing.sessions import FactKind, GeneratedSession, generate
from leporello.usage import CanonicalUsage
from tests.conftest import Ran, RunCli
from tests.store.disks import full_disk, read_only_disk, small_disk

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What must never reach a terminal; a line end may."""

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 \x9b31m red",
    "nul\0 and \x08\x08\x08 back\rover",
    "\u202eright to left\u202c \u2066isolated\u2069 \u2028line",
    "half a pair \ud800 and \udfff",
    "tab\tand\nline",
    "x" * 1_000_000,
)


@pytest.fixture(scope="module")
def session() -> GeneratedSession:
    return generate(seed=11, messages=160)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, session: GeneratedSession) -> Path:
    """A store with a conversation that was folded three times, one that ended, and one that was never used."""
    path = tmp_path_factory.mktemp("template") / "store.db"
    with open_store(str(path)) as store:
        about = Metadata(title="Fix the 失敗 test", platform="cli", model="gpt-4.1", owner="ann", custom={"ticket": 7})
        conversation = Conversation.open("build-42", store=store, model="gpt-4.1", window=24_000, metadata=about)
        third = len(session.messages) // 3 + 1
        for start in range(0, len(session.messages), third):
            conversation.append(*session.messages[start : start + third])
            assert conversation.compact().outcome is Outcome.COMMITTED
        store.usage.add("build-42", ModelCall(CanonicalUsage(1_000, 200, 9_000, 500, 0), "gpt-4.1", cost=0.25))
        store.usage.add("build-42", ModelCall(CanonicalUsage(100, 20), "gpt-4.1-mini", "summary"))
        store.pins.add("build-42", 3, "the important one")
        store.artifacts.put("build-42", b"log " * 5_000, "test.log")
        store.conversations.create("talk-7", Metadata(title="Small talk", platform="gateway", owner="bob"))
        store.log.append("talk-7", [{"role": "user", "content": "Which zebra?"}])
        store.conversations.end("talk-7", "exit")
        store.conversations.create("empty")
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "store.db"))


@pytest.fixture
def cli(run_cli: RunCli, path: Path) -> RunCli:
    """The program on the filled store."""

    def run(*arguments: object) -> Ran:
        return run_cli(*arguments, "--store", path)

    return run


@pytest.fixture
def old(path: Path) -> Path:
    """Three conversations of long ago: ended, ended with a pin, still open."""
    long_ago = time.time() - 200 * 86_400
    with open_store(str(path)) as store:
        for id in ("old", "pinned", "unfinished"):
            store.conversations.create(id, created_at=long_ago)
            store.log.append(id, [{"role": "user", "content": "long ago"}], at=[long_ago])
        store.pins.add("pinned", 1)
        store.conversations.end("old", "exit")
        store.conversations.end("pinned", "exit")
    return path


def ids(path: Path) -> set[str]:
    with open_store(str(path)) as store:
        return {record.id for record in store.conversations.page(limit=1000).conversations}


def chain(path: Path) -> list[str]:
    with open_store(str(path)) as store:
        return [session.id for session in store.sessions.all("build-42")]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


class TestList:
    def test_shows_all_with_their_titles(self, cli: RunCli) -> None:
        """Newest activity first, one line each."""
        ran = cli("sessions", "list")
        assert ran.code == 0
        assert [line.split()[0] for line in ran.out.splitlines()] == ["id", "empty", "talk-7", "build-42"]
        assert "Fix the 失敗 test" in ran.out

    def test_pages_follow_one_another(self, cli: RunCli) -> None:
        """Each page names the next; together they are everything, once."""
        seen, more = [], []
        while True:
            answer = json.loads(cli("sessions", "list", "--limit", 1, "--json", *more).out)
            seen += [item["id"] for item in answer["conversations"]]
            if answer["next"] is None:
                break
            more = ["--next", answer["next"]]
        assert seen == ["empty", "talk-7", "build-42"]
        assert "--next " in cli("sessions", "list", "--limit", 1).err

    @pytest.mark.parametrize(
        ("option", "value", "expected"),
        [
            ("--platform", "gateway", ["talk-7"]),
            ("--owner", "ann", ["build-42"]),
            ("--kind", "branch", []),
            ("--platform", "nothing", []),
        ],
    )
    def test_filters(self, cli: RunCli, option: str, value: str, expected: list[str]) -> None:
        """Only what was asked for; none is no failure."""
        ran = cli("sessions", "list", option, value, "--json")
        assert ran.code == 0
        assert [item["id"] for item in json.loads(ran.out)["conversations"]] == expected
        assert cli("sessions", "list", option, value).code == 0

    def test_a_cursor_from_nowhere_is_refused(self, cli: RunCli) -> None:
        """Bad input, one line."""
        ran = cli("sessions", "list", "--next", "; DROP TABLE")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)

    def test_a_store_that_is_not_there_is_not_made(self, run_cli: RunCli, tmp_path: Path) -> None:
        """A mistyped name is an error and leaves no file behind."""
        for arguments in (["list"], ["show", "x"], ["search", "x"], ["delete", "x", "--yes"]):
            ran = run_cli("sessions", *arguments, "--store", tmp_path / "typo.db")
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            assert "typo.db" in ran.err
        assert not (tmp_path / "typo.db").exists()

    def test_before_the_first_conversation_lists_are_empty(self, run_cli: RunCli) -> None:
        """No error: how to get conversations is said, programs get an empty list, and no store is made."""
        for arguments, field in (
            (["sessions", "list"], "conversations"),
            (["sessions", "search", "clock"], "hits"),
            (["insights"], "by_day"),
            (["sessions", "prune", "--older-than", "1d"], "old"),
        ):
            ran = run_cli(*arguments)
            assert ran.code == 0, ran.err
            if "prune" not in arguments:
                assert all(f"`leporello {way}`" in ran.err for way in ("chat", "import", "serve"))
            told = run_cli(*arguments, "--json")
            assert (told.code, told.err, len(json.loads(told.out)[field])) == (0, "", 0)
        assert not Home.from_environment().database.exists()

    def test_an_empty_store_and_a_filter_are_told_apart(self, run_cli: RunCli, cli: RunCli, tmp_path: Path) -> None:
        """With conversations in the store, it is the filter that found none."""
        open_store(str(tmp_path / "new.db")).close()
        assert "no conversations yet" in run_cli("sessions", "list", "--store", tmp_path / "new.db").err
        assert "No conversations match." in cli("sessions", "list", "--platform", "nowhere").err
        assert "Nothing found." in cli("sessions", "search", "xylophonist").err


class TestShow:
    def test_any_id_of_the_chain_shows_the_conversation(self, cli: RunCli, path: Path) -> None:
        """The first id, the newest and one in between give the same page."""
        pages = {cli("sessions", "show", id, "--json").out for id in chain(path)}
        assert len(chain(path)) == 4
        assert len(pages) == 1

    def test_the_page_holds_everything(self, cli: RunCli, path: Path, session: GeneratedSession) -> None:
        """Chain, metadata, usage, folds, pins and newest messages, each whole."""
        page = json.loads(cli("sessions", "show", "build-42", "--last", 4, "--json").out)
        assert [item["id"] for item in page["chain"]] == chain(path)
        assert [item["end_reason"] for item in page["chain"]] == ["compression"] * 3 + [None]
        assert (page["title"], page["owner"], page["custom"]) == ("Fix the 失敗 test", "ann", {"ticket": 7})
        assert (page["usage"]["calls"], page["usage"]["cost"], page["usage"]["unpriced_calls"]) == (2, 0.25, 1)
        assert [fold["id"] for fold in page["folds"]] == ["f1", "f2", "f3"]
        assert [pin["id"] for pin in page["pins"]] == ["m3"]
        assert [item["name"] for item in page["artifacts"]] == ["test.log"]
        assert [item["message"] for item in page["last_messages"]] == session.messages[-4:]
        with open_store(str(path)) as store:
            assert page["messages_shown"] == len(store.views.view("build-42").lines)

    def test_the_page_for_people_names_the_same(self, cli: RunCli, path: Path) -> None:
        """Every session, every fold, the pin and the newest message can be found on it."""
        ran = cli("sessions", "show", "build-42")
        assert ran.code == 0
        for text in (*chain(path), "f1", "f2", "f3", "the important one", "$0.25", "m160", "compression"):
            assert text in ran.out

    def test_a_fold_that_was_undone_says_so(self, cli: RunCli, path: Path) -> None:
        """Only that one, for people and for programs."""
        with Conversation.open("build-42", window=16_000, store=str(path)) as talk:
            talk.undo()
        folds = json.loads(cli("sessions", "show", "build-42", "--json").out)["folds"]
        assert [fold["undone"] for fold in folds] == [False, False, True]
        assert len(re.findall(r"^f\d.*, undone", cli("sessions", "show", "build-42").out, re.MULTILINE)) == 1

    def test_an_empty_conversation(self, cli: RunCli) -> None:
        """Nothing in it is no failure."""
        assert cli("sessions", "show", "empty").code == 0
        assert json.loads(cli("sessions", "show", "empty", "--json").out)["last_messages"] == []

    @pytest.mark.parametrize(
        ("wrong", "right"), [("biuld-42", "build-42"), ("tal", "talk-7"), ("small TALK", "talk-7")]
    )
    def test_an_unknown_id_is_answered_with_the_nearest(self, cli: RunCli, wrong: str, right: str) -> None:
        """One line on stderr that names what was probably meant: a similar id, a longer one, or the id of a title."""
        ran = cli("sessions", "show", wrong)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert right in ran.err

    def test_an_unknown_id_like_no_other(self, cli: RunCli) -> None:
        """The line then says where to look."""
        ran = cli("sessions", "show", "\x1b[31mqqqqqqqq")
        assert ran.code == 2
        assert "sessions list" in ran.err
        assert CONTROL.search(ran.err) is None


class TestSearch:
    def test_finds_what_was_planted(self, cli: RunCli, session: GeneratedSession) -> None:
        """Facts are found in the message they stand in, folded or not."""
        facts = [fact for fact in session.of(FactKind.ASK)][:5]
        for fact in facts:
            hits = json.loads(cli("sessions", "search", fact.text, "--json").out)["hits"]
            assert f"m{fact.index + 1}" in [hit["id"] for hit in hits]

    def test_hits_for_people_have_id_and_snippet(self, cli: RunCli) -> None:
        """Where it is, and the line that answers."""
        ran = cli("sessions", "search", "zebra")
        assert "talk-7 m1" in ran.out
        assert "Which zebra?" in ran.out

    def test_filters(self, cli: RunCli) -> None:
        """Conversation, role, tool and time each narrow the search."""

        def hits(*options: object) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(cli("sessions", "search", *options, "--json").out)["hits"]
            return found

        assert hits("zebra", "--conversation", "build-42") == []
        assert len(hits("zebra", "--conversation", "talk-7")) == 1
        assert {hit["role"] for hit in hits("test", "--role", "user")} == {"user"}
        assert {hit["tool"] for hit in hits("src", "--tool", "read_file")} == {"read_file"}
        assert len(hits("zebra", "--since", "1h")) == 1
        assert hits("zebra", "--since", "2999-01-01") == []
        assert len(hits("the", "--limit", 3)) == 3

    def test_a_name_typed_as_words_comes_first(self, cli: RunCli, path: Path) -> None:
        """Many messages hold the words, one holds the name they make together."""
        scattered = "dispatch the cached shipment; a cached dispatch of shipment, shipment, shipment"
        name = "see dispatch_cached_shipment in the other file, which does something else entirely"
        with open_store(str(path)) as store:
            store.log.append("talk-7", [{"role": "user", "content": f"{n} {scattered}"} for n in range(30)])
            store.log.append("talk-7", [{"role": "user", "content": name}])
        best = json.loads(cli("sessions", "search", "dispatch cached shipment", "--json").out)["hits"][0]
        assert best["id"] == "m32"

    def test_letter_by_letter(self, cli: RunCli) -> None:
        """--exact finds a piece of a word, which words don't."""
        assert "Nothing found" not in cli("sessions", "search", "ebr", "--exact").err
        assert "Nothing found" in cli("sessions", "search", "ebrx", "--exact").err

    def test_a_bad_time_is_refused(self, cli: RunCli) -> None:
        """With an example of what would do."""
        ran = cli("sessions", "search", "zebra", "--since", "yesterday-ish")
        assert (ran.code, ran.out) == (2, "")
        assert "7d" in ran.err


class TestExport:
    def test_json_lines_are_the_log(self, cli: RunCli, session: GeneratedSession) -> None:
        """Every message as it was appended, ids from m1 on, times that never go back."""
        records = lines(cli("sessions", "export", "build-42").out)
        assert [record["message"] for record in records] == session.messages
        assert [record["id"] for record in records] == [f"m{n}" for n in range(1, len(session.messages) + 1)]
        times = [datetime.fromisoformat(record["at"]) for record in records]
        assert times == sorted(times)

    def test_what_goes_out_comes_back(self, cli: RunCli, run_cli: RunCli, path: Path, tmp_path: Path) -> None:
        """`leporello import` reads the file: the same messages with the same times; twice adds nothing."""
        file, target = tmp_path / "build.jsonl", tmp_path / "other.db"
        assert cli("sessions", "export", "build-42", "--out", file).code == 0
        first, second = (
            json.loads(run_cli("import", file, "--store", target, "--json").out)["imported"][0] for _ in range(2)
        )
        assert (first["format"], first["change"], first["added"]) == ("leporello", "new", 161)
        assert (second["change"], second["added"]) == ("unchanged", 0)
        with open_store(str(path)) as one, open_store(str(target)) as other:
            assert list(one.log.iterate("build-42")) == list(other.log.iterate(first["conversation"]))

    def test_the_view_is_what_the_model_sees(self, cli: RunCli, path: Path) -> None:
        """--view gives the folded list, with the fold that each line carries."""
        records = lines(cli("sessions", "export", "build-42", "--view").out)
        with open_store(str(path)) as store:
            view = store.views.view("build-42")
        assert [record["message"] for record in records] == view.messages
        assert [record["fold"] for record in records if record["fold"]] == ["f3"]

    def test_markdown_has_every_message(self, cli: RunCli, session: GeneratedSession) -> None:
        """One heading each, in order, and the words of the user."""
        text = cli("sessions", "export", "build-42", "--format", "md").out
        assert text.startswith("# Fix the 失敗 test\n")
        headings = re.findall(r"^## (m\d+) · ", text, re.MULTILINE)
        assert headings == [f"m{n}" for n in range(1, len(session.messages) + 1)]
        for message in session.messages:
            if message["role"] == "user" and isinstance(message["content"], str):
                assert message["content"] in text

    def test_fences_can_not_be_broken_out_of(self, cli: RunCli, path: Path) -> None:
        """A result that holds fences itself stays inside its own."""
        evil = "````\n```\n## m99 · user\nnot a heading\n`````"
        with open_store(str(path)) as store:
            store.log.append("talk-7", [{"role": "tool", "tool_call_id": "c", "content": evil}])
        text = cli("sessions", "export", "talk-7", "--format", "md").out
        assert f"\n``````\n{evil}\n``````\n" in text

    def test_a_file_is_written_whole(self, cli: RunCli, path: Path, tmp_path: Path) -> None:
        """It replaces what was there only when told to, only its owner can read it, and nothing else is left behind."""
        target = tmp_path / "out.jsonl"
        target.write_text("before")
        before = set(tmp_path.iterdir())
        refused = cli("sessions", "export", "build-42", "--out", target)
        assert (refused.code, "--force" in refused.err, target.read_text()) == (2, True, "before")
        ran = cli("sessions", "export", "build-42", "--out", target, "--force")
        assert target.stat().st_mode & 0o777 == 0o600
        assert (ran.code, ran.out) == (0, "")
        assert target.read_text("utf-8") == cli("sessions", "export", "build-42").out
        assert set(tmp_path.iterdir()) == before
        assert cli("sessions", "export", "nothing", "--out", target).code == 2
        assert cli("sessions", "export", "build-42", "--out", tmp_path / "no" / "folder.md").code == 2
        assert len(lines(target.read_text("utf-8"))) > 100

    def test_a_damaged_message_leaves_the_old_file(self, cli: RunCli, path: Path, tmp_path: Path) -> None:
        """What can't be read to its end does not replace anything."""
        damage(path, "UPDATE messages SET body = x'02ffff' WHERE number = 100")
        target = tmp_path / "out.jsonl"
        target.write_text("before")
        ran = cli("sessions", "export", "build-42", "--out", target, "--force")
        assert ran.code == 1
        assert "m100" in ran.err
        assert target.read_text() == "before"
        assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


class TestChanging:
    def test_rename(self, cli: RunCli, path: Path) -> None:
        """By any id of the chain; what the model sees does not change."""
        assert cli("sessions", "rename", chain(path)[1], "Better title").code == 0
        assert json.loads(cli("sessions", "show", "build-42", "--json").out)["title"] == "Better title"

    def test_delete_without_a_terminal_needs_yes(self, cli: RunCli, path: Path) -> None:
        """Nobody can be asked, so nothing happens; with --yes all of it is gone."""
        ran = cli("sessions", "delete", "build-42")
        assert ran.code == 2
        assert "--yes" in ran.err
        assert "build-42" in ids(path)
        assert cli("sessions", "delete", chain(path)[2], "--yes").code == 0
        assert ids(path) == {"talk-7", "empty"}
        assert json.loads(cli("doctor", "--json").out)["clean"]

    @pytest.mark.parametrize(("answer", "left"), [("n", {"build-42", "talk-7", "empty"}), ("y", {"build-42", "empty"})])
    def test_delete_asks_at_a_terminal(self, path: Path, answer: str, left: set[str]) -> None:
        """The question says what would go; only yes deletes."""
        program = str(Path(sys.executable).with_name("leporello"))
        child = pexpect.spawn(program, ["sessions", "delete", "talk-7", "--store", str(path)], timeout=60)
        child.expect("Delete talk-7 .*Small talk.*for good")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.wait()
        child.close()
        assert child.exitstatus == (0 if answer == "y" else 3)
        assert ids(path) == left

    def test_prune_shows_first_and_deletes_only_when_told(self, cli: RunCli, old: Path) -> None:
        """Old and ended goes; pinned and open conversations stay, whatever their age."""
        ran = cli("sessions", "prune", "--older-than", "90d")
        assert ran.code == 0
        assert [line.split()[0] for line in ran.out.splitlines()] == ["id", "old"]
        assert "--yes" in ran.err
        before = ids(old)
        assert "old" in before
        answer = json.loads(cli("sessions", "prune", "--older-than", "90d", "--yes", "--json").out)
        assert answer["deleted"] == ["old"]
        assert ids(old) == before - {"old"}
        assert json.loads(cli("sessions", "prune", "--older-than", "90d", "--yes", "--json").out)["deleted"] == []

    def test_prune_leaves_what_is_not_that_old(self, cli: RunCli, old: Path) -> None:
        """The age counts from the last activity."""
        assert json.loads(cli("sessions", "prune", "--older-than", "1y", "--json").out) == {"old": [], "deleted": []}
        assert cli("sessions", "prune", "--older-than", "soon").code == 2

    def test_prune_asks_at_a_terminal(self, old: Path) -> None:
        """No is no."""
        program = str(Path(sys.executable).with_name("leporello"))
        arguments = ["sessions", "prune", "--older-than", "90d", "--store", str(old)]
        child = pexpect.spawn(program, arguments, timeout=60)
        child.expect("Delete this conversation")
        child.sendline("n")
        child.expect(pexpect.EOF)
        child.wait()
        child.close()
        assert "old" in ids(old)


def damage(path: Path, statement: str) -> None:
    other = sqlite3.connect(path)
    assert other.execute(statement).rowcount
    other.commit()
    other.close()


class TestDoctor:
    def test_a_sound_store(self, cli: RunCli) -> None:
        """Clean, exit code 0, with counts and sizes."""
        ran = cli("doctor")
        assert ran.code == 0
        assert "No problems found." in ran.out
        answer = json.loads(cli("doctor", "--json").out)
        assert (answer["clean"], answer["conversations"], answer["findings"]) == (True, 3, [])
        assert answer["sizes"]["messages"] > 0

    def test_damage_is_found_and_not_mended(self, cli: RunCli, path: Path) -> None:
        """A message that no longer has its hash: exit code 1, and --repair leaves it as it is."""
        damage(path, "UPDATE messages SET body = x'007b7d' WHERE number = 100")
        for options in ([], ["--repair"]):
            answer = json.loads(cli("doctor", *options, "--json").out)
            assert "m100" in answer["findings"][0]["text"]
            ran = cli("doctor", *options)
            assert ran.code == 1
            assert "m100" in ran.out
            assert "backup" in ran.err
        assert cli("doctor", "--quick").code == 0

    def test_a_broken_index_is_repaired(self, cli: RunCli, path: Path) -> None:
        """Found, named as mendable, mended."""
        assert cli("sessions", "search", "zebra").code == 0
        damage(path, "DELETE FROM documents WHERE document = 1")
        ran = cli("doctor")
        assert ran.code == 1
        assert "--repair" in ran.err
        assert cli("doctor", "--repair").code == 0
        assert cli("doctor").code == 0
        assert "Which zebra?" in cli("sessions", "search", "zebra").out

    def test_a_file_that_is_no_store_is_a_finding(self, run_cli: RunCli, tmp_path: Path) -> None:
        """Even that is told as JSON, and the file is left alone."""
        file = tmp_path / "noise.db"
        file.write_bytes(b"no database " * 1000)
        ran = run_cli("doctor", "--store", file, "--json")
        assert ran.code == 1
        assert json.loads(ran.out)["findings"][0]["check"] == "open"
        assert file.read_bytes() == b"no database " * 1000

    def test_a_store_that_can_not_be_opened_is_told_plainly(self, cli: RunCli, path: Path) -> None:
        """Nothing is said about how much it holds, and nobody is sent to the command that is running."""
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * (size - 100))
        ran = cli("doctor")
        assert ran.code == 1
        assert str(path) in ran.out
        assert "conversation" not in ran.out + ran.err
        assert "leporello doctor" not in ran.out + ran.err
        assert "Restore a backup" in ran.err
        answer = json.loads(cli("doctor", "--json").out)
        assert (answer["clean"], answer["conversations"]) == (False, None)


class TestInsights:
    def test_numbers_are_the_stores(self, cli: RunCli) -> None:
        """By model, platform, purpose, tool and day, with the cache's hit rate, cost and compactions."""
        answer = json.loads(cli("insights", "--json").out)
        assert answer["totals"]["calls"] == 2
        assert answer["totals"]["cache_hit_rate"] == round(9_000 / 10_600, 4)
        assert answer["by_model"]["gpt-4.1"]["cost"] == 0.25
        assert set(answer["by_platform"]) == {"cli"}
        assert set(answer["by_purpose"]) == {"chat", "summary"}
        assert sum(day["calls"] for day in answer["by_day"].values()) == 2
        assert answer["compactions"]["attempts"]["committed"] == 3
        assert answer["by_tool"]["read_file"]["calls"] > 0

    def test_tables_with_bars(self, cli: RunCli) -> None:
        """The longest bar belongs to the largest number, and small ones can still be seen."""
        ran = cli("insights")
        assert ran.code == 0
        bars = {line.split()[0]: line.count("█") for line in ran.out.splitlines() if line.startswith("gpt-4.1")}
        assert bars["gpt-4.1"] > bars["gpt-4.1-mini"]
        assert re.search(r"^model +calls .* cost +prompt \+ output$", ran.out, re.MULTILINE)
        assert re.search(r"^tool +calls .* characters of results$", ran.out, re.MULTILINE)
        assert "85%" in ran.out
        assert "unknown" in ran.out

    def test_narrowed(self, cli: RunCli) -> None:
        """One platform or conversation; an unknown one is told from an empty one."""
        assert json.loads(cli("insights", "--platform", "gateway", "--json").out)["totals"]["calls"] == 0
        assert json.loads(cli("insights", "--conversation", "build-42", "--json").out)["totals"]["calls"] == 2
        assert cli("insights", "--conversation", "biuld-42").code == 2
        assert cli("insights", "--platform", "gateway", "--days", 1).code == 0


class TestStore:
    def test_info(self, cli: RunCli, path: Path) -> None:
        """Where it is, how much it holds, what takes the space."""
        answer = json.loads(cli("store", "info", "--json").out)
        assert (answer["conversations"], answer["open"], answer["messages"]) == (3, 2, 162)
        assert answer["sizes"]["file"] == path.stat().st_size
        assert "conversations    3\n" in cli("store", "info").out

    def test_copy_and_copy_again(self, run_cli: RunCli, path: Path, tmp_path: Path) -> None:
        """The second time everything is there already; the copy is searchable and sound."""
        target = tmp_path / "copy.db"
        first = json.loads(run_cli("store", "copy", path, target, "--json").out)
        assert (first["conversations"], first["messages"], first["already_there"]) == (3, 162, 0)
        again = json.loads(run_cli("store", "copy", path, target, "--json").out)
        assert (again["conversations"], again["already_there"]) == (0, 3)
        assert run_cli("doctor", "--store", target).code == 0
        one = run_cli("sessions", "show", "build-42", "--store", path, "--json").out
        assert run_cli("sessions", "show", "build-42", "--store", target, "--json").out == one
        assert "Which zebra?" in run_cli("sessions", "search", "zebra", "--store", target).out

    def test_an_interrupted_copy_goes_on(self, run_cli: RunCli, path: Path, tmp_path: Path) -> None:
        """What is missing in the target is copied, what is there is left alone."""
        target = tmp_path / "copy.db"
        run_cli("store", "copy", path, target)
        run_cli("sessions", "delete", "talk-7", "--yes", "--store", target)
        answer = json.loads(run_cli("store", "copy", path, target, "--json").out)
        assert (answer["conversations"], answer["already_there"]) == (1, 2)

    @pytest.mark.parametrize("where", ["source", "target"])
    def test_a_conversation_that_differs_is_not_overwritten(
        self, run_cli: RunCli, path: Path, tmp_path: Path, where: str
    ) -> None:
        """Whichever side moved on: nothing at all is copied, and the line names it."""
        target = tmp_path / "copy.db"
        run_cli("store", "copy", path, target)
        with open_store(str(path if where == "source" else target)) as store:
            store.log.append("talk-7", [{"role": "user", "content": "The striped one."}])
        with open_store(str(path)) as store:
            store.conversations.create("new")
        ran = run_cli("store", "copy", path, target)
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert "talk-7" in ran.err
        assert "new" not in ids(target)

    def test_onto_itself_and_from_nowhere(self, run_cli: RunCli, path: Path, tmp_path: Path) -> None:
        """Both are refused before anything is made."""
        assert run_cli("store", "copy", path, path).code == 2
        assert run_cli("store", "copy", tmp_path / "typo.db", tmp_path / "new.db").code == 2
        assert not (tmp_path / "typo.db").exists()
        assert not (tmp_path / "new.db").exists()

    def test_backup(self, cli: RunCli, run_cli: RunCli, path: Path, tmp_path: Path) -> None:
        """A sound copy only its owner can read; a second one does not overwrite it; no other file stays."""
        target = tmp_path / "backup.db"
        before = set(tmp_path.iterdir())
        with open_store(str(path)) as store:
            # The store is in use.
            store.log.append("talk-7", [{"role": "user", "content": "The striped one."}])
            assert cli("store", "backup", target).code == 0
        assert {file.name for file in set(tmp_path.iterdir()) - before} == {"backup.db"}
        assert target.stat().st_mode & 0o777 == 0o600
        assert run_cli("doctor", "--store", target).code == 0
        with open_store(str(target)) as copy:
            assert copy.log.count("talk-7") == 2
        data = target.read_bytes()
        again = cli("store", "backup", target)
        assert again.code == 2
        assert target.read_bytes() == data
        assert cli("store", "backup", tmp_path / "no" / "folder.db").code == 2


READING = (
    ["sessions", "list"],
    ["sessions", "show", "{id}"],
    ["sessions", "search", "marker"],
    ["sessions", "search", "marker", "--exact"],
    ["sessions", "export", "{id}"],
    ["sessions", "export", "{id}", "--view"],
    ["sessions", "export", "{id}", "--format", "md"],
    ["doctor"],
    ["insights"],
    ["store", "info"],
)


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every text that can come from outside is hostile somewhere."""
    path = tmp_path_factory.mktemp("hostile") / "store.db"
    with open_store(str(path)) as store:
        for number, text in enumerate(HOSTILE):
            id = f"id{number}"
            long = len(text) > 10_000
            fields = Metadata(title=text, platform=text, model=text, owner=text, custom={text: text, "nan": 2**80})
            store.conversations.create(id, fields)
            store.log.append(
                id,
                [
                    {"role": "user", "content": f"marker {text}", "nan": float("nan"), "huge": 2**70},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"id": text, "type": "function", "function": {"name": text, "arguments": text}}],
                    },
                    {"role": "tool", "tool_call_id": text, "name": text, "content": f"marker {text}"},
                    {"role": text[:100], "content": [{"type": "text", "text": f"marker {text}"}, {"type": text[:100]}]},
                ],
            )
            store.pins.add(id, 1, text)
            store.usage.add(id, ModelCall(CanonicalUsage(10, 10), text, text))
            store.artifacts.put(id, b"x", text)
            store.conversations.end(id, text if not long else "exit")
        store.conversations.create("\x1b[31mid\0\u202e")
        store.log.append("\x1b[31mid\0\u202e", [{"role": "user", "content": "marker"}])
    return path


class TestHostileContent:
    @pytest.mark.parametrize("command", READING, ids=" ".join)
    def test_nothing_reaches_the_terminal(self, run_cli: RunCli, hostile_path: Path, command: list[str]) -> None:
        """No control character, no turn of direction, no half pair; and no line of a megabyte except in an export."""
        for number in range(len(HOSTILE)) if "{id}" in command else (0,):
            ran = run_cli(*(part.format(id=f"id{number}") for part in command), "--store", hostile_path)
            assert ran.code == 0
            plain = ran.out.replace("\t", " ") if "md" in command else ran.out
            assert CONTROL.search(plain) is None
            assert CONTROL.search(ran.err) is None
            if "export" not in command:
                assert max(map(len, ran.out.splitlines())) < 2_000

    @pytest.mark.parametrize("command", [c for c in READING if "export" not in c], ids=" ".join)
    def test_json_is_json(self, run_cli: RunCli, hostile_path: Path, command: list[str]) -> None:
        """It parses by the strict rules, and no character in it moves a terminal."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        for number in range(len(HOSTILE)) if "{id}" in command else (0,):
            arguments = [part.format(id=f"id{number}") for part in command]
            ran = run_cli(*arguments, "--json", "--store", hostile_path)
            assert ran.code == 0
            assert CONTROL.search(ran.out) is None
            json.loads(ran.out, parse_constant=refuse)

    def test_json_keeps_the_text(self, run_cli: RunCli, hostile_path: Path) -> None:
        """Escaped is not changed: a program reads exactly what is stored."""
        for number, text in enumerate(HOSTILE):
            page = json.loads(run_cli("sessions", "show", f"id{number}", "--json", "--store", hostile_path).out)
            assert page["title"] == text
            assert page["last_messages"][0]["message"]["content"] == f"marker {text}"
            assert page["last_messages"][0]["message"]["huge"] == 2**70

    def test_arguments_may_be_hostile(self, cli: RunCli) -> None:
        """What is typed comes back safely, too."""
        for text in ("\x1b[31m", "'; DROP TABLE messages; --", "x" * 100_000, "\udcff", "%s{}", "../../etc"):
            ran = cli("sessions", "show", text)
            assert ran.code == 2
            assert ran.err.count("\n") == 1
            assert CONTROL.search(ran.err) is None
            assert cli("sessions", "search", text).code == 0
        assert cli("sessions", "rename", "empty", "\x1b[31m").code == 0
        assert cli("doctor").code == 0

    @given(st.text(), st.integers(4, 60))
    def test_any_text_is_safe(self, text: str, columns: int) -> None:
        """For all texts: one line is one line of at most so many columns; a block keeps its lines."""
        assert CONTROL.search(safe(text)) is None
        assert "\n" not in safe(text)
        assert CONTROL.search(safe_block(text).replace("\t", "")) is None
        assert breadth(short(text, columns)) <= columns
        assert CONTROL.search(short(text, columns)) is None

    @given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
    def test_ordinary_text_is_not_changed(self, text: str) -> None:
        """Escaping is for the dangerous only."""
        assert safe(text) == text
        assert short(text, max(1, len(text))) == text


class TestReadOnly:
    @pytest.mark.parametrize("indexed", [True, False])
    def test_reading_commands_work_on_a_read_only_disk(
        self, run_cli: RunCli, template: Path, tmp_path: Path, indexed: bool
    ) -> None:
        """All of them; what could not be indexed is said; what would write says why it can't."""
        with small_disk(tmp_path / "disk", 20) as disk:
            path = Path(shutil.copy(template, disk / "store.db"))
            with open_store(str(path)) as store:
                if indexed:
                    store.index.search(SearchQuery("x"))
            with read_only_disk(disk):
                for command in READING:
                    arguments = [part.format(id="build-42") for part in command]
                    ran = run_cli(*arguments, "--store", path)
                    assert ran.code == 0, ran.err
                    behind = ("search" in command or "insights" in command) and not indexed
                    assert ("162 messages left out" in ran.err) == behind
                for command in (["rename", "empty", "x"], ["delete", "empty", "--yes"]):
                    ran = run_cli("sessions", *command, "--store", path)
                    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
                assert run_cli("store", "backup", tmp_path / "backup.db", "--store", path).code == 0
                assert run_cli("store", "copy", path, tmp_path / "copy.db").code == 0

    def test_reading_commands_work_on_a_full_disk(self, run_cli: RunCli, template: Path, tmp_path: Path) -> None:
        """The store can be written but has no room: what is not indexed yet is said to be left out."""
        with small_disk(tmp_path / "disk", 20) as disk:
            path = Path(shutil.copy(template, disk / "store.db"))
            open_store(str(path)).close()
            with full_disk(disk):
                for command in READING:
                    ran = run_cli(*(part.format(id="build-42") for part in command), "--store", path)
                    assert ran.code == 0, ran.err
                    assert ("162 messages left out" in ran.err) == ("search" in command or "insights" in command)


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "days"), [("90d", 90), ("12h", 0.5), ("2w", 14), ("6m", 180), ("1y", 365), (" 3 D ", 3), ("0d", 0)]
    )
    def test_ages(self, text: str, days: float) -> None:
        """A number and a unit."""
        assert parse_age(text) == days * 86_400

    @pytest.mark.parametrize("text", ["", "d", "90", "-1d", "1.5d", "90 days ago", "1s", "٣d", "9" * 5000 + "d"])
    def test_what_is_no_age(self, text: str) -> None:
        """Better refused than guessed: these decide what is deleted."""
        with pytest.raises(InputError):
            parse_age(text)

    def test_moments(self) -> None:
        """Dates with and without a time, and ages before now."""
        assert parse_moment("2026-01-31T12:00:00Z") == 1769860800
        assert parse_moment("2026-01-31") == datetime(2026, 1, 31).timestamp()
        assert abs(parse_moment("7d") - (time.time() - 7 * 86_400)) < 60

    @given(st.integers(0, 10**30), st.sampled_from("hdwmy"))
    def test_ages_are_bounded(self, number: int, unit: str) -> None:
        """No number of years breaks the arithmetic."""
        assert 0 <= parse_age(f"{number}{unit}") < 1e12
