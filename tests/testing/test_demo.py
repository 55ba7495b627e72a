"""The demo runs to its end without key or network, says the same every time, and what it claims is so."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

import leporello
from leporello.config import Home, load_settings
from leporello.gateway.auth import Keys
from leporello.gateway.config import GatewayConfig
from leporello.gateway.server import Gateway
from leporello.messages import text_of
from leporello.models import LearnedLimits
from leporello.store import open_store
from leporello.testing import demo
from leporello.testing.demo import fold_of, source_of
from leporello.testing.demo_session import FOLD, ID, OVERFLOW, RESTART, RULES, SAVED, SWITCH, Play
from leporello.turns import validate
from tests.conftest import RunCli
from tests.gateway.house import running

SERVED = 24_576
TURNS = 90


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """A short demo in an even smaller window."""
    folder = tmp_path_factory.mktemp("demo") / "place"
    made = Play(folder, Path(leporello.__file__).parent, TURNS, served=SERVED, smaller=20_480)
    made.run(lambda moment: None, lambda number: None)
    yield made
    made.close()


@pytest.fixture
def shown(play: Play, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed about it."""
    for moment in play.moments:
        demo.show_moment(moment)
    demo.ending(play)
    return capsys.readouterr().out


def test_everything_happens(play: Play) -> None:
    kinds = [moment.kind for moment in play.moments]
    assert kinds.count(OVERFLOW) == kinds.count(SAVED) == kinds.count(RESTART) == kinds.count(SWITCH) == 1
    assert kinds.count(FOLD) >= 4


def test_every_fold_shown_was_made(play: Play, shown: str) -> None:
    told = re.findall(r"fold (f\d+) +(m\d+-m\d+) +([\d,]+) -> +([\d,]+) tokens", shown)
    made = [attempt.report for attempt in play.store.views.attempts(ID, 1_000) if attempt.report.committed]
    numbers = [(r.fold, str(r.covered), f"{r.tokens_before:,}", f"{r.tokens_after:,}") for r in made]
    assert sorted(told) == sorted(numbers)


def test_the_overflow_was_real_and_taught_the_window(play: Play) -> None:
    book = LearnedLimits.load(play.home.limits_file, now=time.time())
    attempts = play.store.views.attempts(ID, 1_000)
    assert [window for window, _ in book.entries.values()] == [SERVED]
    assert sum(attempt.report.trigger.startswith("overflow") for attempt in attempts) == 1


def test_the_saved_output_is_whole(play: Play) -> None:
    told = next(moment.text for moment in play.moments if moment.kind == SAVED)
    size = int(re.findall(r"[\d,]+", told)[0].replace(",", ""))
    source = b"".join(path.read_bytes() for path in sorted((play.work / "src").rglob("*.py"), key=str))
    kept = play.store.artifacts.all(ID)
    assert any(info.size == size for info in kept)
    assert any(play.store.artifacts.get(ID, info.handle) == source for info in kept)


def test_the_chain_shown_is_the_chain(play: Play, shown: str) -> None:
    sessions = play.store.sessions.all(ID)
    assert f"{play.agent.conversation.runtime.log.view.last:,} messages, {len(sessions)} sessions" in shown
    assert len(sessions) == play.agent.conversation.runtime.log.compactions + 1
    assert [session.end_reason for session in sessions] == ["compression"] * (len(sessions) - 1) + [None]


def test_the_bill_is_the_sum_of_its_calls(play: Play, shown: str) -> None:
    totals = play.agent.conversation.usage
    row = re.search(r"together +(\d+) +([\d,]+) +([\d.]+)% +\$([\d.]+)", shown)
    assert row is not None
    assert row.groups() == (
        str(play.model.calls),
        f"{totals.usage.prompt_tokens:,}",
        f"{totals.cache_hit_rate:.1%}"[:-1],
        f"{totals.cost:.2f}",
    )
    whole = re.search(r"never folded +(\d+) +([\d,]+)", shown)
    assert whole is not None
    assert whole[1] == row[1]
    assert int(whole[2].replace(",", "")) > totals.usage.prompt_tokens


def test_rules_and_view_are_as_claimed(play: Play, shown: str) -> None:
    context = "\n".join(text_of(message) for message in play.agent.conversation.messages)
    assert [rule for rule in RULES if rule in context] == list(RULES)
    assert f"{len(RULES)} of {len(RULES)} word for word" in shown
    assert validate(play.agent.conversation.messages) == []
    assert "valid for every provider" in shown


def test_the_answers_come_from_folded_messages(play: Play, shown: str) -> None:
    """Right, found by the search, and not because the message is still on show."""
    visible = {line.number for line in play.agent.conversation.runtime.log.view.lines}
    assert len(play.answers) == 3
    for answer in play.answers:
        number = source_of(play, answer)
        assert answer.right
        assert answer.question.gold in answer.found_in
        assert number not in visible
        assert f"[m{number}], folded into {fold_of(play, number)}" in shown
    assert not re.search(r"WRONG|LOST|NOT VALID|NOTHING", shown)


def test_what_is_suggested_works(play: Play, shown: str, run_cli: RunCli) -> None:
    lines = re.findall(r"--home (\S+) (?!serve)(.+)$", shown, re.MULTILINE)
    assert len(lines) == 4
    for home, words in lines:
        arguments = re.findall(r'"[^"]+"|\S+', words)
        ran = run_cli("--home", home, *(argument.strip('"') for argument in arguments))
        assert ran.code == 0, ran.err


def test_it_says_the_same_every_time(tmp_path: Path) -> None:
    """Plain text when it is not on a terminal, and no time, path or chance in it but the folder it was given."""
    place = str(tmp_path / "here")
    first, second = (
        CliRunner().invoke(demo.main, ["--turns", "40", "--dir", place], catch_exceptions=False) for _ in range(2)
    )
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    assert "\x1b" not in first.stdout


def test_it_throws_away_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("keep me")
    ran = CliRunner().invoke(demo.main, ["--turns", "40", "--dir", str(tmp_path)])
    assert ran.exit_code == 1
    assert "--dir" in ran.stderr
    assert (tmp_path / "precious.txt").read_text() == "keep me"


def demo_in(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Run a short demo with `LEPORELLO_HOME` set; what it noted."""
    monkeypatch.setenv("LEPORELLO_HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = CliRunner().invoke(demo.main, ["--turns", "40"], catch_exceptions=False)
    assert ran.exit_code == 0
    return ran.stderr


def test_it_works_in_the_home_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    """The conversation is where the next command looks for it, also after a second demo; no window is learned."""
    home = tmp_path / "mine"
    for _ in range(2):
        assert f"Everything is written below {home.resolve()}." in demo_in(home, monkeypatch, tmp_path)
        assert ID in run_cli("sessions", "list").out
    assert not Home(home).limits_file.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_it_leaves_the_users_conversations_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    """A home with a conversation, or with settings only, is not touched, an earlier demo in it or not."""
    home = tmp_path / "mine"
    demo_in(home, monkeypatch, tmp_path)
    with open_store(Home(home).store_url) as store:
        store.conversations.create("precious")
    said = demo_in(home, monkeypatch, tmp_path)
    assert "left alone" in said
    assert f"written below {(tmp_path / 'leporello-demo').resolve()}." in said
    assert "precious" in run_cli("sessions", "list").out
    settled = tmp_path / "settled"
    settled.mkdir()
    (settled / "config.yaml").write_text("model:\n  default: gpt-4o\n")
    assert "left alone" in demo_in(settled, monkeypatch, tmp_path)
    assert [path.name for path in settled.iterdir()] == ["config.yaml"]


def test_the_dashboard_is_opened_as_printed(play: Play, shown: str) -> None:
    """The command names the demo's store, and the address shows its conversation with all folds."""
    command = re.search(r"--home (\S+) serve --store (\S+)", shown)
    address = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+)", shown)
    assert command is not None
    assert address is not None
    settings = load_settings({"gateway.port": 0, "store.url": command[2]}, environ={}, home=Home(command[1]))
    assert load_settings({}, environ={}, home=Home(command[1])).get("gateway.port") == int(address[1])
    config = GatewayConfig.read(settings)
    with (
        open_store(settings.store_url) as store,
        running(Gateway(settings, config, Keys(), store).app(), config) as url,
    ):
        page = httpx2.get(url + address[2], timeout=60)
    assert page.status_code == 200
    newest = play.store.views.folds(ID)[-1].id
    assert f'data-key="fold-{newest}"' in page.text
