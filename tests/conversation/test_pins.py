"""Pinned messages stay in the view word for word, in a section of their own, through every fold."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello import compress
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.errors import InputError
from leporello.messages import Message, encode_json
from leporello.summaries.fold import read_fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section, joined, parse, render
from leporello.testing.sessions import generate

NOTE = "  Release checklist:\n\n## Goal\n- tag v4.2.0 \n\n\tthen \u2028 wait for QA\r\n  (two days) [m1]"


def folded(messages: list[Message]) -> Handoff:
    return joined(*(fold.handoff for fold in map(read_fold, messages) if fold))


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_pin_is_in_every_later_view_byte_for_byte(tmp_path: Path, engine: str, role: str) -> None:
    filler = generate(seed=21, messages=240, tokens=60_000).messages
    settings = load_settings({"context.engine": engine}, {}, Home(tmp_path))
    with Conversation.open("a", window=16_000, store=f"sqlite:///{tmp_path}/a.db", settings=settings) as conversation:
        conversation.append(*filler[:40])
        number = _say(conversation, role)
        conversation.pins.add(number)
        for start in (40, 100, 160):
            conversation.append(*filler[start : start + 60])
            assert conversation.compact().committed
            assert [line.text for line in folded(conversation.messages)[Section.PINNED]] == [NOTE]
            assert folded(conversation.messages)[Section.PINNED][0].origin is LineOrigin(role)
        conversation.pins.remove(number)
        conversation.append(*filler[220:])
        assert conversation.compact().committed
        assert not folded(conversation.messages)[Section.PINNED]


def _say(talk: Conversation, role: str) -> str:
    if role == "tool":
        call = {"id": "p1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
        asked: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
        return talk.append(asked, {"role": "tool", "tool_call_id": "p1", "content": NOTE})[1]
    return talk.append({"role": role, "content": NOTE})[0]


def test_pins_are_carried_by_the_list_itself(tmp_path: Path) -> None:
    """Somebody without the store folds the list again: the pin is still there."""
    filler = generate(seed=22, messages=300, tokens=80_000).messages
    with Conversation.open("a", window=16_000, store=f"sqlite:///{tmp_path}/a.db") as conversation:
        conversation.append(*filler[:30], {"role": "user", "content": NOTE}, *filler[30:150])
        conversation.pins.add("m31")
        assert conversation.compact().committed
        again = compress([*conversation.messages, *filler[150:]], window=16_000)
    assert again.report.committed
    assert [line.text for line in folded(list(again))[Section.PINNED]] == [NOTE]


def test_a_secret_in_a_pin_is_masked(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    filler = generate(seed=23, messages=120, tokens=40_000).messages
    with Conversation.open("a", window=16_000, store=f"sqlite:///{tmp_path}/a.db") as conversation:
        conversation.append(
            *filler[:30], {"role": "user", "content": f"Deploy with {secret}, port 8443."}, *filler[30:]
        )
        conversation.pins.add("m31")
        assert conversation.compact().committed
        shown = folded(conversation.messages)[Section.PINNED][0].text
        assert "port 8443" in shown
        assert secret not in encode_json(conversation.messages).decode()


def test_a_pin_beyond_its_share_is_refused_with_the_sizes(tmp_path: Path) -> None:
    with Conversation.open("a", window=16_000, store=f"sqlite:///{tmp_path}/a.db") as conversation:
        conversation.append({"role": "user", "content": "word " * 2_000})
        with pytest.raises(InputError, match=r"m1 has 2,\d\d\d tokens; pins may take 800"):
            conversation.pins.add("m1")
        assert conversation.pins.all() == []


def test_pins_that_fit_no_more_are_named(tmp_path: Path) -> None:
    """A pin set in a large window may be too large for a small one: the report says which is left out."""
    filler = generate(seed=24, messages=160, tokens=60_000).messages
    with Conversation.open("a", window=64_000, store=f"sqlite:///{tmp_path}/a.db") as conversation:
        conversation.append({"role": "user", "content": "word " * 2_500}, *filler[1:])
        conversation.pins.add("m1")
        conversation.runtime.use_window(8_000)
        report = conversation.compact()
        assert report.committed
        assert report.details["pins_left_out"] == [1]
        assert any("pinned" in warning for warning in report.warnings)


def test_a_pinned_section_reads_back_as_written() -> None:
    handoff = Handoff(
        {Section.PINNED: (HandoffLine(NOTE, (7,), LineOrigin.TOOL), HandoffLine("x", (9,), LineOrigin.USER))}
    )
    assert parse(render(handoff)) == handoff
