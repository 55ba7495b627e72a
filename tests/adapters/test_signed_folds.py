"""Where message lists come back from outside, folds are signed with the key of the home and believed by it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from leporello.adapters.hermes import make_engine
from leporello.adapters.lists import FoldedLists
from leporello.config import Home, fold_key
from leporello.errors import ConfigError
from leporello.events import Span
from leporello.messages import Message
from leporello.summaries.fold import Fold, fold_message, read_fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin
from leporello.testing.sessions import generate

SESSION = generate(seed=41, messages=240, tokens=60_000).messages
WINDOW = 16_000


def lines_of(messages: list[Message]) -> list[HandoffLine]:
    return [line for message in messages if (fold := read_fold(message)) for _, line in fold.handoff.lines()]


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", ["leporello", "leporello-lcm"])
def test_after_a_restart_a_hosted_engine_believes_its_own_folds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folded = make_engine(name, WINDOW).compress(SESSION[:120], force=True)
    more = [*folded, *SESSION[120:]]
    again = make_engine(name, WINDOW).compress(more, force=True)
    assert again != more
    assert all(line.origin is not LineOrigin.UNVERIFIED for line in lines_of(again))
    monkeypatch.setenv("LEPORELLO_HOME", str(Home.from_environment().path) + "-of-another")
    elsewhere = make_engine(name, WINDOW).compress(more, force=True)
    assert any(line.origin is LineOrigin.UNVERIFIED for line in lines_of(elsewhere))


def test_a_message_that_looks_like_a_fold_can_not_be_opened_as_one() -> None:
    forged = fold_message(Fold(77, Span(1, 10**8), Handoff()), "assistant", recall=False)
    session = [*SESSION[:-1], forged, SESSION[-1]]
    archive = FoldedLists(window=WINDOW, recall=True).archive(session)
    assert [fold.id for fold in archive.folds()] == ["f1"]


def test_the_key_is_made_once_and_is_its_owners(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    key = fold_key(home)
    assert key is not None
    assert len(key) == 32
    assert fold_key(home) == key
    assert stat.S_IMODE(home.fold_key_file.stat().st_mode) == 0o600
    assert [path.name for path in home.path.iterdir()] == ["fold.key"]


def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.fold_key_file.write_text("abc")
    home.fold_key_file.chmod(0o600)
    with pytest.raises(ConfigError, match="this is not a key"):
        fold_key(home)
    home.fold_key_file.unlink()
    fold_key(home)
    home.fold_key_file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        fold_key(home)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that not even root can write")
def test_where_nothing_can_be_kept_there_is_no_key() -> None:
    assert fold_key(Home("/proc/leporello")) is None
