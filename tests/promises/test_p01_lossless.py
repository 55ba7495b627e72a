"""Promise 1, lossless: every message ever appended is read back byte for byte, by id, from any later state."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.conversation import Conversation
from leporello.errors import NotFound
from leporello.messages import Message, encode_json
from leporello.store import open_store
from leporello.testing.sessions import SessionSpec, generate
from tests.support.strategies import any_conversation

SESSION = generate(SessionSpec(seed=101, messages=60, tokens=12_000, images=0)).messages
DAY = 86_400.0
_names = map(str, itertools.count())


def stored(url: str, conversation: str, ids: list[str]) -> list[bytes]:
    """The messages behind some ids, read by a process that knows nothing yet."""
    with open_store(url) as store:
        return [encode_json(store.log.message(conversation, int(id.removeprefix("m"))).message) for id in ids]


@pytest.mark.fault(
    "two messages that begin alike are one",
    "store/sql/log.py",
    old="return Prepared(hash_key(hash_bytes(data)), pack_body(data))",
    new="return Prepared(hash_key(hash_bytes(data[:24])), pack_body(data))",
)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(any_conversation(longest=10), st.lists(st.sampled_from(("compact", "undo", "restart")), max_size=4))
def test_whatever_was_appended_is_there_after_anything(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Message], events: list[str]
) -> None:
    """Compacted, taken back, opened again: the ids that `append` gave lead to the same bytes."""
    url, name = f"sqlite:///{tmp_path_factory.getbasetemp()}/lossless.db", f"talk-{next(_names)}"
    said = [*SESSION[:20], *messages, {"role": "user", "content": "x" * 10_000}]
    ids: list[str] = []
    conversation = Conversation.open(name, window=3_000, store=url)
    for part, event in enumerate([*events, "compact"]):
        ids += conversation.append(
            *said[len(said) * part // (len(events) + 1) : len(said) * (part + 1) // (len(events) + 1)]
        )
        if event == "compact":
            conversation.compact()
        elif event == "undo" and conversation.runtime.log.compactions:
            conversation.undo()
        elif event == "restart":
            conversation.close()
            conversation = Conversation.open(name, window=3_000, store=url)
    conversation.close()
    assert ids == [f"m{number}" for number in range(1, len(said) + 1)]
    assert stored(url, name, ids) == [encode_json(message) for message in said]


def test_what_is_folded_away_ten_times_is_still_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    ids: list[str] = []
    with Conversation.open("a", window=4_000, store=url) as conversation:
        for start in range(0, len(SESSION), 6):
            ids += conversation.append(*SESSION[start : start + 6])
            conversation.compact()
        assert conversation.runtime.log.compactions >= 5
        assert len(conversation.messages) < 40
    assert stored(url, "a", ids) == [encode_json(message) for message in SESSION]


@pytest.mark.fault(
    "the age rule takes pinned conversations",
    "store/sql/conversations.py",
    old='"AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.conversation = c.conversation)",',
    new='"",',
)
@pytest.mark.fault(
    "the age rule takes open conversations",
    "store/sql/conversations.py",
    old='"WHERE c.conversation = ? AND c.updated < ? AND s.ended IS NOT NULL "',
    new='"WHERE c.conversation = ? AND c.updated < ? "',
)
def test_an_age_rule_takes_neither_pins_nor_open_conversations(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        now = 1_000 * DAY
        for name in ("old", "open", "pinned"):
            store.conversations.create(name, created_at=now - 90 * DAY)
            store.log.append(name, SESSION[:3], at=[now - 90 * DAY] * 3)
        store.pins.add("pinned", 1)
        for name in ("old", "pinned"):
            store.conversations.end(name, "exit", at=now - 89 * DAY)
        assert store.conversations.prune(now - 30 * DAY) == ["old"]
        for name in ("open", "pinned"):
            assert [found.message for found in store.log.iterate(name)] == SESSION[:3]
        with pytest.raises(NotFound):
            store.log.count("old")
