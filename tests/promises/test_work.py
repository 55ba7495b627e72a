"""The work of a compaction and of a turn, counted instead of timed: it stays in proportion to the text.

The figures are what it takes today, and a little more. Whoever needs more work for each line has to change them here.
"""

from __future__ import annotations

import functools
import gc
from pathlib import Path

import pytest

from leporello import compress, redact
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.messages import Message, encode_json, text_of
from leporello.testing.sessions import generate
from tests.support.work import Work, counting

WINDOW = 16_000
SCANS_PER_LINE = 4.5
"""Of texts that nobody has read yet in this process."""
COUNTED_PER_MESSAGE = 2.2
HASHED_PER_BYTE = 2.1
"""A message is hashed as itself and as what it says."""


def session(messages: int, seed: int = 4242) -> list[Message]:
    return list(generate(seed=seed, messages=messages, tokens=messages * 250, images=0, huge_outputs=0).messages)


@pytest.fixture(autouse=True)
def _nothing_is_known() -> None:
    """Other tests read the same texts: what they left in memory would make the work look less."""
    known = [found for found in gc.get_objects() if isinstance(found, functools._lru_cache_wrapper)]
    for memory in known:
        if memory.__module__.startswith("leporello."):
            memory.cache_clear()
    redact._clean.clear()


def compaction(messages: list[Message]) -> Work:
    with counting() as work:
        compress(messages, window=WINDOW)
    return work


def size_of(messages: list[Message]) -> int:
    return sum(len(encode_json(message)) for message in messages)


@pytest.mark.fault(
    "one more pattern reads each line",
    "ledger/importance.py",
    old='yield "number", _with_digit(rare, words)\n',
    new='yield "number", [_NAME.search(text) is None for text in texts] and _with_digit(rare, words)\n',
)
def test_few_patterns_read_each_line() -> None:
    compaction(session(24, seed=1))  # what is read once in a process is read
    messages = session(240)
    lines = sum(text_of(message).count("\n") + 1 for message in messages)
    work = compaction(messages)
    assert work.scans <= SCANS_PER_LINE * lines
    assert work.counted <= COUNTED_PER_MESSAGE * len(messages)
    assert work.hashed <= HASHED_PER_BYTE * size_of(messages)


@pytest.mark.fault(
    "all that is known is looked through for each message",
    "ledger/ledger.py",
    old="self.last = max(self.last, number)",
    new="self.last = max(self.last, number); [_COMMIT.search(known.role) for known in self.facts.values()]",
)
def test_twice_the_text_is_twice_the_work() -> None:
    compaction(session(24, seed=1))
    one, two = (compaction(session(messages, seed=4343)) for messages in (160, 320))
    assert two.scans <= 2.3 * one.scans
    assert two.hashed <= 2.3 * one.hashed


def turn(folder: Path, messages: int) -> Work:
    """The work of one turn of a conversation that is already so long, without a provider's count."""
    folder.mkdir()
    settings = load_settings(environ={}, home=Home(folder))
    with Conversation.open(model="gpt-4.1", window=900_000, settings=settings, store=f"sqlite:///{folder}/a") as long:
        long.append(*session(messages, seed=4444))
        long.request()
        assert long.runtime.log.ledger.last  # what the earlier messages say is read, else a slice of them would be
        with counting() as work:
            long.append({"role": "user", "content": "What about port 8042? " * 20})
            long.request()
        return work


@pytest.mark.fault(
    "every message of the conversation is hashed again",
    "tokens/meter.py",
    old="if known is None or not _begins_with(messages, known):",
    new="if True:",
)
def test_a_turn_of_a_long_conversation_is_no_more_work(tmp_path: Path) -> None:
    short, long = turn(tmp_path / "short", 60), turn(tmp_path / "long", 240)
    assert long.hashed <= 2 * short.hashed
    assert long.scans <= 2 * short.scans
    assert long.counted <= short.counted + 2
