"""Names of earlier versions work for one release, and say what they are called now."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello import Conversation
from leporello.testing.sessions import generate


def test_attributes_moved_to_the_runtime(tmp_path: Path) -> None:
    with Conversation.open("a", window=8_000, store=f"sqlite:///{tmp_path}/a.db") as conversation:
        conversation.append(*generate(seed=3, messages=6).messages)
        with pytest.warns(
            DeprecationWarning, match=r"Conversation\.view is now .*Conversation\.runtime\.log\.view"
        ) as warned:
            assert conversation.view is conversation.runtime.log.view
        assert warned[0].filename == __file__, "the warning names the caller's own line"
        with pytest.warns(DeprecationWarning, match="runtime.log.compactions"):
            assert conversation.compressions == 0
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = conversation.nonsense
