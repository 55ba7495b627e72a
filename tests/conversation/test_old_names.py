"""Names of earlier versions work for one release, and say what they are called now."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello import Conversation
from leporello.conversation import conversation
from leporello.testing.sessions import generate


def test_attributes_moved_to_the_runtime(tmp_path: Path) -> None:
    with Conversation.open("a", window=8_000, store=f"sqlite:///{tmp_path}/a.db") as talk:
        talk.append(*generate(seed=3, messages=6).messages)
        with pytest.warns(
            DeprecationWarning, match=r"Conversation\.view is now .*Conversation\.runtime\.log\.view"
        ) as warned:
            assert talk.view is talk.runtime.log.view
        assert warned[0].filename == __file__, "the warning names the caller's own line"
        with pytest.warns(DeprecationWarning, match="runtime.log.compactions"):
            assert talk.compressions == 0
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = talk.nonsense


def test_assigning_an_old_attribute_sets_the_new_one(tmp_path: Path) -> None:
    """An assignment that is quietly lost would switch off a listener without anybody noticing."""
    events: list[object] = []
    with Conversation.open("a", window=8_000, store=f"sqlite:///{tmp_path}/a.db") as talk:
        with pytest.warns(DeprecationWarning, match=r"Conversation\.runtime\.hooks\.listeners") as warned:
            talk.listeners = [events.append]
        assert warned[0].filename == __file__
        assert talk.runtime.hooks.listeners == [events.append]
        talk.compact()
        assert len(events) == 1
        with pytest.warns(DeprecationWarning, match="compactions"), pytest.raises(AttributeError):
            talk.compressions = 3
        talk.note_of_my_own = "kept"
        assert talk.note_of_my_own == "kept"


@pytest.mark.parametrize("name", conversation._MOVED)
def test_every_old_attribute_is_found(tmp_path: Path, name: str) -> None:
    with (
        Conversation.open("a", store=f"sqlite:///{tmp_path}/a.db") as talk,
        pytest.warns(DeprecationWarning, match=rf"Conversation\.{name} is "),
    ):
        assert getattr(talk, name) is not None
