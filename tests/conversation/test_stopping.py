"""A folding that is stopped while its summary is written changes nothing and leaves nothing in the way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from leporello.cancel import CancelToken
from leporello.conversation import Conversation
from leporello.errors import Cancelled
from leporello.summaries.base import Summary, SummaryTask
from leporello.testing.sessions import generate

SESSION = generate(seed=5, messages=80, tokens=9_000, huge_outputs=0).messages


class Waiting:
    """A narrator that tells nothing until somebody stops it."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def summarise(self, task: SummaryTask) -> Summary:
        self.begun.set()
        assert task.cancel is not None
        assert task.cancel.wait(60)
        return Summary(None)


def test_a_stopped_folding_changes_nothing(tmp_path: Path) -> None:
    summariser = Waiting()
    with Conversation.open(
        "a", window=16_000, store=f"sqlite:///{tmp_path}/a.db", summariser=summariser
    ) as conversation:
        conversation.append(*SESSION)
        before = conversation.runtime.log.view
        conversation.runtime.hooks.cancel = CancelToken()
        stopper = threading.Thread(
            target=lambda: (summariser.begun.wait(60), conversation.runtime.hooks.cancel.cancel())
        )
        stopper.start()
        with pytest.raises(Cancelled):
            conversation.compact()
        stopper.join()
        conversation.runtime.log.refresh()
        assert conversation.runtime.log.view == before
        conversation.runtime.hooks.cancel = None
        conversation.runtime.hooks.summariser = None
        assert conversation.compact().committed, "the lease of the stopped folding is free again"
