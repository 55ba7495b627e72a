"""`Conversation.tool_result`: the same three layers for an agent of one's own as for the one that is built in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import outputs_folder
from leporello.messages import Message, text_of
from leporello.tools.base import OutputLimits
from leporello.tools.budget import OPENING
from leporello.turns import validate

WINDOW = 16_384
LIMITS = OutputLimits.for_window(WINDOW)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Conversation]:
    settings = load_settings(home=Home(tmp_path / "home"))
    with Conversation.open("t", window=WINDOW, store=f"sqlite:///{tmp_path}/t.db", settings=settings) as made:
        made.append({"role": "user", "content": "go"})
        yield made


def asks(*wanted: tuple[str, dict[str, object]]) -> Message:
    calls = [
        {"id": id, "type": "function", "function": {"name": "mine", "arguments": json.dumps(arguments)}}
        for id, arguments in wanted
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def shown(talk: Conversation, id: str) -> str:
    number = int(id.removeprefix("m"))
    return text_of(next(talk.runtime.log.store.log.iterate(talk.id, number, number)).message)


def saved_path(block: str) -> Path:
    found = re.search(r"^path: (.+)$", block, re.MULTILINE)
    assert found is not None
    return Path(found[1])


def test_results_of_one_turn_share_a_limit_and_nothing_is_lost(talk: Conversation) -> None:
    """Each fits alone; together they don't, so the later ones are saved whole. The next turn begins anew."""
    size = LIMITS.result_chars - 100
    ids = [f"c{k}" for k in range(5)]
    talk.append(asks(*((id, {}) for id in ids)))
    texts = [shown(talk, talk.tool_result(id, letter * size)) for id, letter in zip(ids, "abcde", strict=True)]
    assert sum(map(len, texts)) <= LIMITS.turn_chars
    for text, inbox_message in zip(texts, "abcde", strict=True):
        assert inbox_message * size == (saved_path(text).read_text() if text.startswith(OPENING) else text)
    assert texts[-1].startswith(OPENING)
    assert validate(talk.messages) == []
    talk.append({"role": "assistant", "content": "so"}, {"role": "user", "content": "more"}, asks(("c0", {})))
    assert shown(talk, talk.tool_result("c0", "f" * size)) == "f" * size


def test_reading_a_saved_output_is_never_saved_again(talk: Conversation) -> None:
    """The call's arguments tell: a path in the conversation's outputs folder, whatever the tool is called."""
    long = "x" * (LIMITS.result_chars + 1_000)
    talk.append(asks(("c1", {"url": "http://127.0.0.1/"})))
    path = saved_path(shown(talk, talk.tool_result("c1", long)))
    kept = sorted(outputs_folder(talk.runtime.settings.home, talk.id).iterdir())
    talk.append(asks(("c2", {"where": {"file": str(path)}, "lines": [1, 2]})))
    assert shown(talk, talk.tool_result("c2", long)) == long
    talk.append(asks(("c3", {"file": str(path)})))
    flood = shown(talk, talk.tool_result("c3", long * 3))
    assert len(flood) < 1_000
    assert str(path) in flood
    assert sorted(outputs_folder(talk.runtime.settings.home, talk.id).iterdir()) == kept


@pytest.mark.parametrize("path", ["/etc/hosts", "a\0b", "x" * 5_000, "../..", ""])
def test_other_arguments_exempt_nothing(talk: Conversation, path: str) -> None:
    talk.append(asks(("c1", {"path": path})))
    assert shown(talk, talk.tool_result("c1", "x" * (LIMITS.result_chars + 1))).startswith(OPENING)


def test_calls_with_one_id_and_calls_nobody_knows(talk: Conversation) -> None:
    """Ids that a provider reuses are answered in order; an unknown one still meets the limit of one result."""
    long = "x" * (LIMITS.result_chars + 1)
    saved = outputs_folder(talk.runtime.settings.home, talk.id) / "any"
    talk.append(asks(("same", {"path": "a"}), ("same", {"path": str(saved)})))
    assert shown(talk, talk.tool_result("same", long)).startswith(OPENING)
    assert shown(talk, talk.tool_result("same", long)) == long
    assert shown(talk, talk.tool_result("nobody", long)).startswith(OPENING)
