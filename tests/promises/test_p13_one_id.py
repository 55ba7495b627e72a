"""Promise 13, one id for life: the id the user got first works for ever; session rotation is internal."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.messages import encode_json
from leporello.testing.sessions import SessionSpec, generate

SESSION = generate(SessionSpec(seed=131, messages=120, tokens=24_000, images=0)).messages
PARTS = [SESSION[start : start + 20] for start in range(0, 120, 20)]


@pytest.mark.fault(
    "after a compaction the conversation goes by its newest session",
    "store/sql/views.py",
    old="        conversation=unpack(id),\n        session=unpack(session),",
    new="        conversation=unpack(session),\n        session=unpack(session),",
)
def test_the_first_id_and_every_later_one_open_the_same_conversation(tmp_path: Path) -> None:
    """Six parts, each compacted and led by another process that knows only the first id."""
    url = f"sqlite:///{tmp_path}/store.db"
    sessions: list[str] = []
    for part in PARTS:
        with Conversation.open("given-by-the-user", window=4_000, store=url) as conversation:
            conversation.append(*part)
            assert conversation.compact().committed
            view = conversation.runtime.log.view
            assert (conversation.id, view.conversation) == ("given-by-the-user", "given-by-the-user")
            sessions.append(view.session)
            shown = encode_json(conversation.messages)
    assert len(set(sessions)) == 6
    for id in ("given-by-the-user", *sessions):
        with Conversation.open(id, window=4_000, store=url) as conversation:
            assert conversation.id == "given-by-the-user"
            assert encode_json(conversation.messages) == shown


def test_an_id_that_was_made_up_for_the_user_works_as_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with Conversation.open(window=4_000, store=url) as conversation:
        first = conversation.id
        conversation.append(*PARTS[0])
        conversation.compact()
        conversation.undo()
        conversation.append(*PARTS[1])
        conversation.compact()
        assert conversation.id == first
        assert conversation.runtime.log.view.session != first
    with Conversation.open(first, window=4_000, store=url) as conversation:
        assert conversation.runtime.log.store.log.count(first) == 40


def test_a_messages_id_never_changes(tmp_path: Path) -> None:
    """What `append` returned still names the message after compactions, an undo and a restart."""
    url = f"sqlite:///{tmp_path}/store.db"
    ids: list[str] = []
    for part in PARTS:
        with Conversation.open("a", window=4_000, store=url) as conversation:
            ids += conversation.append(*part)
            conversation.compact()
            if len(ids) == 60:
                conversation.undo()
    assert ids == [f"m{number}" for number in range(1, 121)]
    with Conversation.open("a", window=4_000, store=url) as conversation:
        for id in ("m1", "m7", "m60", "m120"):
            (found,) = conversation.expand(id)["messages"]
            assert found["id"] == id
            assert conversation.runtime.log.store.log.message("a", int(id[1:])).message == SESSION[int(id[1:]) - 1]
