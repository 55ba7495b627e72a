"""Lists on terminals of any width, ids by their beginning, and what insights say about imported recordings."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import orjson
import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.agent.commands import sessions
from leporello.conversation import Conversation
from leporello.present.output import LEAST_COLUMN, fitted
from leporello.present.text import breadth
from leporello.store import open_store
from leporello.store.records import Metadata, ModelCall
from leporello.testing.sessions import generate
from leporello.usage import CanonicalUsage
from tests.conftest import Ran, RunCli

STYLES = re.compile(r"\x1b\[[0-9;]*m")
LONG = "claude-code:0d3f8f2e-6c5b-4a55-9d3c-1f2e3d4c5b6a"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with ids of many shapes and titles of many lengths."""
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        for id, title in ((LONG, "Fix " + "the tower clock " * 20), ("talk-7", "短い題" * 12), ("talk-8", "Short")):
            store.conversations.create(id, Metadata(title, platform="claude-code", model="claude-sonnet-4-5-20250929"))
            store.log.append(id, [{"role": "user", "content": "The zebra_f_count is 12"}])
    return path


@pytest.fixture
def cli(run_cli: RunCli, path: Path) -> RunCli:
    def run(*arguments: object) -> Ran:
        return run_cli(*arguments, "--store", path)

    return run


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """The lines the program prints on a terminal of so many columns."""
    program = str(Path(sys.executable).with_name("leporello"))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    child = pexpect.spawn(
        program, list(arguments), timeout=60, dimensions=(40, columns), env=environment, encoding="utf-8"
    )
    child.expect(pexpect.EOF)
    child.wait()
    child.close()
    assert child.exitstatus == 0
    return [STYLES.sub("", line) for line in str(child.before).splitlines() if line.strip()]


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_the_list_fits_the_terminal(path: Path, columns: int) -> None:
    """No line is wider than the terminal, every column has a heading, every conversation its line."""
    shown = on_terminal(columns, "sessions", "list", "--store", str(path))
    assert max(map(breadth, shown)) <= columns
    assert len(shown) == 4
    assert shown[0].split()[:5] == ["id", "active", "messages", "folds", "state"]
    assert ("platform" in shown[0]) == (columns >= 110)


def test_an_undone_fold_is_not_counted(tmp_path: Path, run_cli: RunCli) -> None:
    """The list counts folds in force, as the dashboard does."""
    path = tmp_path / "folds.db"
    with open_store(str(path)) as store, Conversation.open("talk-9", window=8_000, store=store) as talk:
        talk.append(*generate(seed=4, messages=60, tokens=12_000, images=0).messages)
        assert talk.compact().committed
        listed = orjson.loads(run_cli("sessions", "list", "--json", "--store", path).out)["conversations"]
        assert [row["folds"] for row in listed] == [1]
        talk.undo()
    listed = orjson.loads(run_cli("sessions", "list", "--json", "--store", path).out)["conversations"]
    assert [row["folds"] for row in listed] == [0]
    assert run_cli("sessions", "list", "--store", path).out.splitlines()[1].split()[4] == "0"


def test_a_shortened_id_of_the_list_is_enough(path: Path, cli: RunCli) -> None:
    """What the narrow list shows of an id, with its ellipsis, names the conversation."""
    row = on_terminal(80, "sessions", "list", "--store", str(path))[-1]
    assert row.split()[0] != LONG
    assert row.split()[0].endswith(LONG[-8:]), "cut in the middle"
    assert LONG in cli("sessions", "show", row.split()[0]).out
    assert LONG in on_terminal(80, "sessions", "list", "--wide", "--store", str(path))[-1]
    assert "Fix the tower clock the tower" in on_terminal(100, "sessions", "list", "--store", str(path))[-1]


def test_shown_messages_break_between_words(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    with open_store(str(path)) as store:
        store.conversations.create("talk-1")
        store.log.append("talk-1", [{"role": "user", "content": "harbour master " * 60}])
    shown = on_terminal(100, "sessions", "show", "talk-1", "--store", str(path))
    assert max(map(breadth, shown)) <= 100
    assert {word for line in shown[-2:] for word in line.rstrip("…").split()} <= {"harbour", "master"}


def test_a_replay_fits_a_terminal_of_100_columns(tmp_path: Path) -> None:
    """The bill and what was known stand in two tables where one would be too wide."""
    file = tmp_path / "session.json"
    file.write_bytes(orjson.dumps(generate(seed=3, messages=60, tokens=20_000, images=0).messages))
    for columns, tables in ((100, 2), (160, 1)):
        shown = [line.rpartition("\x1b[2K")[2] for line in on_terminal(columns, "replay", str(file))]
        assert max(map(breadth, shown)) <= columns
        assert sum(line.startswith("Leporello (balanced)") for line in shown) == tables


@given(
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60), st.text(max_size=9)), min_size=1, max_size=6),
    st.integers(40, 200),
)
def test_a_table_fits_where_cutting_suffices(rows: list[tuple[str, ...]], room: int) -> None:
    """Cut columns keep their least; with room for that the table fits, and what fits is not changed."""
    table = fitted(rows, room, (1, 0))
    widest = [max(breadth(row[column]) for row in table) for column in range(3)]
    assert sum(widest) + 4 <= max(room, 2 * LEAST_COLUMN + 9 + 4)
    assert [row[2] for row in table] == [row[2] for row in rows]
    assert fitted(table, 200, (1, 0)) == table


class TestBeginnings:
    @pytest.mark.parametrize("begin", [LONG[:14], "0d3f8f2e", "talk-7"])
    def test_the_beginning_of_one_id_is_enough(self, cli: RunCli, begin: str) -> None:
        """With its platform or without."""
        assert cli("sessions", "show", begin).code == 0
        assert cli("insights", "--conversation", begin).code == 0
        assert cli("sessions", "search", "zebra", "--conversation", begin).code == 0

    def test_the_beginning_of_several_lists_them(self, cli: RunCli) -> None:
        """Nothing is guessed, least of all when something is to be deleted."""
        ran = cli("sessions", "delete", "talk", "--yes")
        assert ran.code == 2
        assert "talk-7" in ran.err
        assert "talk-8" in ran.err

    def test_few_letters_are_no_beginning(self, cli: RunCli) -> None:
        """Three letters name nobody; the nearest ids are shown."""
        assert cli("sessions", "delete", "0d3", "--yes").code == 2


@pytest.mark.parametrize("piece", ["f_", "z"])
def test_exact_search_for_less_than_it_can_find_is_refused(cli: RunCli, piece: str) -> None:
    """Too short a piece is no "nothing found"."""
    ran = cli("sessions", "search", "--exact", piece)
    assert ran.code == 2
    assert "at least 3 letters" in ran.err
    assert "zebra_f_count" in cli("sessions", "search", "--exact", "_f_").out


class TestInsights:
    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_the_tables_fit_the_terminal(self, path: Path, columns: int) -> None:
        """Bars are shortened, and left out where even their heading has no room."""
        with open_store(str(path)) as store:
            store.usage.add(
                LONG, ModelCall(CanonicalUsage(123_456, 7_890, 1_234_567), "claude-sonnet-4-5-20250929", cost=1.5)
            )
        shown = on_terminal(columns, "insights", "--store", str(path))
        tables = shown[shown.index(next(line for line in shown if line.startswith("day"))) :]
        assert max(map(breadth, tables)) <= columns
        assert any("prompt + output" in line for line in tables) == (columns >= 80)

    def test_the_time_and_the_bars_say_what_they_are(self, cli: RunCli, path: Path) -> None:
        """The first line names first and last day; each bar column has a heading."""
        ran = cli("insights", "--days", 7)
        today = time.strftime("%Y-%m-%d", time.gmtime())
        assert re.match(rf"Last 7 days \(\d{{4}}-\d\d-\d\d to {today}, UTC\)", ran.out)
        assert "3 messages in 3 conversations; 3 sessions begun" in ran.out

    def test_nothing_in_this_time_names_the_time_of_something(self, run_cli: RunCli, tmp_path: Path) -> None:
        """Imported recordings of long ago are found by the number of days that is suggested."""
        file = tmp_path / "old.db"
        long_ago = time.time() - 300 * 86_400
        with open_store(str(file)) as store:
            store.conversations.create("old", created_at=long_ago)
            store.log.append("old", [{"role": "user", "content": "hello"}], at=[long_ago])
        ran = run_cli("insights", "--store", file)
        assert "0 messages in 0 conversations" in ran.out
        days = re.search(r"--days (\d+)", ran.err)
        assert days
        assert "1 message in 1 conversation;" in run_cli("insights", "--days", days[1], "--store", file).out
        assert "0 messages" in run_cli("insights", "--days", int(days[1]) - 1, "--store", file).out


def test_the_rows_of_slash_sessions_fit_and_have_headings(path: Path) -> None:
    """The list within a chat: one line for each conversation, on a terminal of the usual width."""
    with open_store(str(path)) as store:
        listed = sessions(Conversation.open("talk-8", store=store), "").splitlines()
    assert listed[0].split() == ["#", "id", "active", "messages", "title"]
    assert len(listed) == 4
    assert max(map(len, listed)) <= 80
    assert listed[1].startswith("* 1  talk-8")
