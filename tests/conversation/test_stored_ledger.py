"""When the ledger of a stored conversation is loaded, read on and kept: never for an opening or a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.config import load_settings
from leporello.conversation import Conversation
from leporello.conversation.log import STRIDES_KEPT, stride
from leporello.ledger import ledger as snapshot
from leporello.messages import Message
from leporello.store import Store, open_store
from leporello.testing.sessions import generate
from tests.support.statements import listening_to_sqlite

SESSION = generate(seed=11, messages=400, tokens=24_000, images=0, huge_outputs=0).messages


SETTINGS = load_settings({}, {})


def kept(store: Store) -> int:
    """Up to which message there is a snapshot."""
    found = store.ledgers.latest("a", snapshot.VERSION)
    return found.base if found else 0


@pytest.mark.parametrize("folded", [False, True], ids=["unfolded", "folded"])
def test_opening_and_the_first_request_read_the_view_and_nothing_else(tmp_path: Path, folded: bool) -> None:
    """As many statements for 400 messages as for 40, and none of them about the ledger."""
    said = []
    for length in (40, 400):
        url = f"sqlite:///{tmp_path}/{folded}-{length}.db"
        with Conversation.open("a", window=1_000_000, store=url) as conversation:
            conversation.append(*SESSION[:length])
            if folded:
                conversation.compact()
        with open_store(url) as store, listening_to_sqlite(store) as heard:
            conversation = Conversation.open("a", window=1_000_000, store=store)
            conversation.append({"role": "user", "content": "What next?"})
            conversation.request(system="Be brief.")
            said.append(heard.statements)
    assert len(said[0]) == len(said[1])
    assert not [statement for statement in said[1] if "ledgers" in statement or "stated_values" in statement]


def test_short_lives_keep_what_they_read(tmp_path: Path) -> None:
    """A life for each two messages: the snapshot follows the log, and a compaction has little left to read."""
    with open_store(f"sqlite:///{tmp_path}/short.db") as store:
        for start in range(0, 100, 2):
            with Conversation.open("a", window=1_000_000, store=store, settings=SETTINGS) as conversation:
                conversation.append(*SESSION[start : start + 2])
        assert 100 - kept(store) <= 2 * stride(100)


def test_a_long_life_keeps_snapshots_on_the_way(tmp_path: Path) -> None:
    """A process that is killed leaves little to be read again."""
    with open_store(f"sqlite:///{tmp_path}/long.db") as store:
        conversation = Conversation.open("a", window=1_000_000, store=store, settings=SETTINGS)
        for start in range(0, 400, 4):
            conversation.append(*SESSION[start : start + 4])
        assert 400 - kept(store) <= (STRIDES_KEPT + 1) * stride(400)
        assert kept(store) > 0


def test_a_long_history_that_nobody_read_is_read_in_slices(tmp_path: Path) -> None:
    """As stores of earlier versions have it: no single append pays for all of it."""
    url = f"sqlite:///{tmp_path}/unread.db"
    with open_store(url) as store:
        store.conversations.create("a")
        store.log.append("a", SESSION[:360])
        conversation = Conversation.open("a", window=1_000_000, store=store)
        fresh: list[Message] = [{"role": "user", "content": f"Note {number}."} for number in range(64)]
        most = 0
        for message in fresh:
            with listening_to_sqlite(store) as heard:
                conversation.append(message)
            reads = [said for said in heard.statements if "FROM messages m LEFT JOIN" in said]
            most = max(most, len(reads))
        assert most == 1, "a slice is one query"
        assert conversation.runtime.log.ledger.last == 424


def test_the_ledger_is_whole_for_whoever_compacts(tmp_path: Path) -> None:
    """However it was read: not at all before the compaction, or in many lives."""
    shown = []
    for step in (120, 4):
        with open_store(f"sqlite:///{tmp_path}/{step}.db") as store:
            for start in range(0, 120, step):
                with Conversation.open("a", window=16_000, store=store, settings=SETTINGS) as conversation:
                    conversation.append(*SESSION[start : start + step])
            with Conversation.open("a", window=16_000, store=store, settings=SETTINGS) as conversation:
                assert conversation.compact().committed
                shown.append(conversation.messages)
    assert shown[0] == shown[1]


def test_processes_that_take_turns_read_a_message_once(tmp_path: Path) -> None:
    """Each sees what the other said; the ledger is read on by one of them, a stride at a time."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        both = [Conversation.open("a", window=1_000_000, store=store, settings=SETTINGS) for _ in range(2)]
        for number in range(4):
            both[number % 2].append({"role": "user", "content": f"First {number}."})
        with listening_to_sqlite(store) as heard:
            for number in range(100):
                both[number % 2].runtime.log.refresh()
                both[number % 2].append({"role": "user", "content": f"Note {number}."})
        reads = [said for said in heard.statements if "FROM messages m LEFT JOIN" in said]
        assert len(reads) <= 100 + 100 // stride(100) + 1
        assert both[1].runtime.log.ledger.last == 104
