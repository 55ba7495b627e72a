"""The promises on recorded sessions of real agents, when LEPORELLO_DATA names a folder with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leporello.errors import InputError
from leporello.events import Outcome
from leporello.importers import load_session
from leporello.messages import Message, encode_json
from leporello.tokens import TokenCounter
from leporello.turns import validate
from tests.support import checks
from tests.support.rounds import rounds

COUNTER = TokenCounter.for_model(None)
LEAST_MESSAGES = 40
MOST_SESSIONS = 16
ROUNDS = 5


def recorded() -> list[Path]:
    """The largest recordings of each folder."""
    folder = Path(os.environ.get("LEPORELLO_DATA", "") or "/nonexistent")
    chosen: list[Path] = []
    for part in sorted(path for path in folder.glob("*") if path.is_dir() and path.name != "fixtures"):
        files = sorted((path for path in part.iterdir() if path.is_file()), key=lambda path: -path.stat().st_size)
        chosen.extend(files[:3])
    return chosen[:MOST_SESSIONS]


def messages_of(path: Path) -> list[Message]:
    try:
        return list(load_session(path).messages)
    except InputError as error:
        pytest.skip(f"{path.name} is not a session of one conversation: {error}")


@pytest.mark.usefixtures("real_sessions")
@pytest.mark.parametrize("path", recorded() or [None], ids=lambda path: path.name if path else "none")
def test_promises_hold_on_a_recorded_session(path: Path | None) -> None:
    assert path is not None, "the folder of LEPORELLO_DATA holds no sessions"
    messages = messages_of(path)
    if len(messages) < LEAST_MESSAGES:
        pytest.skip(f"{path.name} has only {len(messages)} messages")
    before = encode_json(messages)
    window = max(16_000, COUNTER.messages(messages) // 4)
    committed = 0
    for done in rounds(messages, window, ROUNDS):
        committed += done.report.committed
        if not done.report.committed:
            assert encode_json(done.after) == encode_json(done.before)
            assert done.report.outcome in (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN), done.report.reason
            continue
        assert validate(done.after) == []
        assert COUNTER.messages(done.after) < COUNTER.messages(done.before)
        assert COUNTER.messages(done.after) <= window
        assert checks.same_newest_request(done.before, done.after)
        assert checks.open_tail(done.after) == checks.open_tail(done.before)
        assert checks.invented_texts(done.before, done.after) == []
        assert checks.invented_arguments(done.before, done.after) == []
    assert committed, "nothing was ever folded"
    assert encode_json(messages) == before
