"""Sixty turns with parallel calls in a small window, through every official client: what the server gets to see."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leporello.messages import calls_of, is_result, text_of
from leporello.testing.stub_server import Step
from leporello.turns import validate

from .office import KINDS, Kind, Office, kept, marks_in, opened, say, without_marks

TURNS = 60
NOTES = "\n".join(f"note {k}: the port of service {k} is {8_000 + k}" for k in range(400))


def worker() -> Iterator[Step]:
    """A model that reads three places at once, then one more, then answers; sometimes without a word beside calls."""
    for turn in itertools.count():
        places = [{"path": "notes.txt", "offset": 1 + (turn * 7 + k * 40) % 300, "limit": 12} for k in range(4)]
        yield say("Looking." if turn % 2 else None, *(("read_file", place) for place in places[:3]))
        yield say(None, ("read_file", places[3]))
        yield say(f"Part {turn} is done: service {turn} listens on {8_000 + turn}.")


@pytest.mark.parametrize("layout", ["anchored", "system_and_3"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sixty_turns(tmp_path: Path, kind: Kind, layout: str) -> None:
    """Every request is valid and fits, marks are few and well placed, a prefix changes only where a fold was made."""
    with opened(tmp_path, kind, worker(), layout=layout) as office:
        (office.workdir / "notes.txt").write_text(NOTES)
        agent = office.agent()
        for turn in range(TURNS):
            if turn == TURNS // 2:
                agent = office.agent()
            ended = agent.turn(f"Do part {turn}. Never touch file_{turn % 5}.py.")
            assert ended.text.startswith(f"Part {turn} is done")
        _all_valid(office, TURNS * 3)
        assert office.folds >= 5
        _prefixes_stable(office)
        _marks_in_place(office)
        _nothing_lost(office)
        shown = " ".join(text_of(message) for message in agent.conversation.messages)
        assert all(f"Never touch file_{k}.py." in shown for k in range(5))


def _all_valid(office: Office, calls: int) -> None:
    assert [seen.violations for seen in office.server.requests] == [()] * calls
    # The server counts four bytes to a token; none of its counts may exceed the window.
    assert max(len(seen.raw) // 4 for seen in office.server.requests) <= 16_384


def _said(body: dict[str, Any]) -> list[Any]:
    said: list[Any] = without_marks(body.get("messages") or body.get("input"))
    return said


def _fixed(body: dict[str, Any]) -> str:
    """What stands before the conversation; the note about compressions is added to it once."""
    return json.dumps([body["tools"], without_marks(body.get("system")), body.get("instructions")])


def _prefixes_stable(office: Office) -> None:
    """Each request begins with the bytes of the one before it, except once for every fold."""
    broken = 0
    for before, after in itertools.pairwise(office.server.bodies()):
        earlier, later = json.dumps(_said(before)), json.dumps(_said(after))
        # Up to the bracket that ends the list, the text of the earlier list opens the later one.
        broken += _fixed(before) != _fixed(after) or not later.startswith(earlier[:-1])
    assert broken == office.folds


def _marks_in_place(office: Office) -> None:
    """Claude: the system prompt and the newest messages, results only at Anthropic itself. Others: no mark at all."""
    for seen in office.server.requests:
        if not office.kind.model.endswith("claude-sonnet-4-5"):
            assert "cache_control" not in seen.raw.decode()
            continue
        system, *others = marks_in(seen.body)
        assert system == "system"
        if office.layout == "anchored":
            assert len(others) <= 3
            if office.kind.provider == "anthropic":
                assert others[-1] == "-1"
            continue
        if office.kind.provider == "anthropic":
            assert others[-1] == "-1"
            assert len(others) == 3 or len(seen.body["messages"]) < 3
        else:
            assert len(others) <= 3
            assert all(int(place) >= -3 for place in others)


def _nothing_lost(office: Office) -> None:
    stored = kept(office)
    assert len(stored) == TURNS * 8
    assert validate(stored) == []
    assert sum(len(calls_of(message)) for message in stored) == TURNS * 4 == sum(map(is_result, stored))
