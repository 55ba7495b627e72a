"""What a compaction was decided from is stored with it, and decides the same again."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from leporello import Conversation
from leporello.config import Home, load_settings
from leporello.policy.decision import Situation, decide
from leporello.providers.base import ModelReply
from leporello.store import open_store
from leporello.store.sql.database import StoreOptions
from leporello.usage import CanonicalUsage

WORDS = "harbour crane barge ledger tide anchor signal buoy chart mast rope deck port berth quay cargo "


def conversation(folder: Path, clock: list[float], **flags: object) -> Conversation:
    settings = load_settings(flags, environ={}, home=Home(folder / "home"))
    store = open_store(f"sqlite:///{folder}/talk.db", StoreOptions(clock=lambda: clock[0]))
    return Conversation.open("a", model="claude-sonnet-5", window=200_000, store=store, settings=settings)


def one_call(talk: Conversation, clock: list[float], number: int, seconds: float = 10.0) -> None:
    clock[0] += seconds
    talk.append({"role": "user", "content": f"{number} " + WORDS * 120})
    talk.request(system="You sort pages.")
    talk.record(ModelReply({"role": "assistant", "content": f"Page {number} is sorted."}, CanonicalUsage()))


def inputs(talk: Conversation) -> list[Situation]:
    attempts = talk.runtime.log.store.views.attempts("a", 500)
    stored = [orjson.loads(orjson.dumps(attempt.report.details["situation"])) for attempt in attempts]
    return [Situation.from_dict(data) for data in reversed(stored)]


def test_a_decision_is_made_again_from_what_was_stored(tmp_path: Path) -> None:
    """By price, by a cold cache, and by hand."""
    clock = [1_000_000.0]
    talk = conversation(tmp_path, clock)
    for number in range(60):
        one_call(talk, clock, number)
    by_price = len(inputs(talk))
    assert by_price >= 2
    while talk.runtime.compactor.reading.tokens < 30_000:
        one_call(talk, clock, 99)
    before = len(inputs(talk))
    one_call(talk, clock, 100, seconds=3_600.0)
    assert len(inputs(talk)) == before + 1, "a cold cache makes it free"
    talk.append({"role": "user", "content": WORDS * 2_000}, {"role": "assistant", "content": "Read."})
    assert talk.compact().committed
    made = inputs(talk)
    assert {situation.occasion.value for situation in made} >= {"manual", "preflight"}
    for situation in made:
        assert decide(situation).compacts, situation


def test_what_was_saved_lasts(tmp_path: Path) -> None:
    """Over a change of the window and a restart; an undone compaction saves nothing more."""
    clock = [1_000_000.0]
    talk = conversation(tmp_path, clock)
    for number in range(60):
        one_call(talk, clock, number)
    state = talk.runtime.memory.state
    assert state.dropped > 0
    talk.runtime.use_window(150_000)
    assert talk.runtime.memory.state.saved == state.saved
    talk.runtime.suspend()
    again = Conversation.open(
        "a", model="claude-sonnet-5", window=150_000, store=talk.runtime.log.store, settings=talk.runtime.settings
    )
    assert again.runtime.memory.state.saved == state.saved
    again.undo()
    assert again.runtime.memory.state.dropped == 0


def test_what_was_saved_keeps_its_worth_when_the_model_changes(tmp_path: Path) -> None:
    """A dollar saved with one model is a dollar with the next, whatever its tokens cost."""
    clock = [1_000_000.0]
    talk = conversation(tmp_path, clock)
    for number in range(60):
        one_call(talk, clock, number)
    memory = talk.runtime.memory
    before = memory.prices.money(memory.state.saved)
    assert memory.state.saved != 0
    talk.runtime.use_model("claude-haiku-4-5")
    assert memory.prices.money(memory.state.saved) == before


@pytest.mark.parametrize("off", [True, False])
def test_switched_off_nothing_is_decided_by_price(tmp_path: Path, off: bool) -> None:
    clock = [1_000_000.0]
    talk = conversation(tmp_path, clock, **{"compression.enabled": not off})
    for number in range(50):
        one_call(talk, clock, number)
    assert (talk.runtime.log.compactions == 0) is off
