"""The log of an engine inside another host: every message once, under its number, whatever happens to the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.adapters.hermes import KeptLog
from leporello.compaction.view import number_messages
from leporello.engines.compressor import ContextCompressor
from leporello.events import Span
from leporello.store import Store, open_store
from leporello.testing.sessions import generate

SESSION = generate(seed=6, messages=60, tokens=8_000, huge_outputs=0).messages


@pytest.fixture
def store(tmp_path: Path):
    with open_store(f"sqlite:///{tmp_path}/kept.db") as made:
        yield made


def kept(log: KeptLog) -> list:
    assert log.archive is not None
    return [message for _, message in log.archive.read(Span(1, 10_000))]


def test_messages_are_kept_once_across_sessions_and_restarts(store: Store) -> None:
    log = KeptLog(store)
    log.open("s1")
    log.keep(number_messages(SESSION[:20]))
    log.keep(number_messages(SESSION[:30]))
    log.open("s2", older="s1")
    log.keep(number_messages(SESSION[:40]))
    again = KeptLog(store)
    again.open("s2")
    again.keep(number_messages(SESSION))
    assert kept(again) == SESSION


def test_after_a_compression_numbers_go_on(store: Store) -> None:
    log = KeptLog(store)
    log.open("s1")
    log.keep(number_messages(SESSION[:40]))
    engine = ContextCompressor(4_000)
    folded = engine.compress(SESSION[:40], force=True)
    assert len(folded) < 40
    log.open("s2", older="s1")
    log.keep(number_messages([*folded, *SESSION[40:]], engine.trust))
    assert kept(log) == SESSION


def test_a_list_that_was_rewritten_goes_on_in_a_log_of_its_own(store: Store) -> None:
    log = KeptLog(store)
    log.open("s1")
    log.keep(number_messages(SESSION[:20]))
    again = KeptLog(store)
    again.open("s1")
    other = [{"role": "user", "content": "Something else"}, *SESSION[1:10]]
    again.keep(number_messages(other))
    assert kept(again) == other
    assert kept(log) == SESSION[:20]


def test_a_list_that_was_cut_back_and_goes_on_otherwise_loses_nothing(store: Store) -> None:
    log = KeptLog(store)
    log.open("s1")
    log.keep(number_messages(SESSION[:20]))
    log.keep(number_messages(SESSION[:10]))
    other = [*SESSION[:10], {"role": "user", "content": "Another way"}]
    log.keep(number_messages(other))
    assert kept(log) == other


def test_what_was_folded_before_the_log_began_is_marked_as_unknown(store: Store) -> None:
    engine = ContextCompressor(4_000)
    folded = engine.compress(SESSION[:40], force=True)
    log = KeptLog(store)
    log.open("s9")
    log.keep(number_messages(folded, engine.trust))
    assert any("before the archive began" in str(message["content"]) for message in kept(log))
