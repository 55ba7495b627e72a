"""Logs that version 0.1.0 split: `doctor` says so, and with `--repair` joins what has a message in common."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.adapters.hermes import PLACEHOLDER, SESSION_KEY, split_logs
from leporello.adapters.host_log import FOLDS_KEY, HostLog
from leporello.messages import Message
from leporello.store import Store, open_store
from leporello.store.records import Metadata
from leporello.testing.sessions import generate
from tests.conftest import RunCli

SESSION = generate(seed=6, messages=60, tokens=8_000, huge_outputs=0).messages
UNKNOWN: Message = {"role": "assistant", "content": PLACEHOLDER}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/leporello.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """As 0.1.0 left it: each part begins with the head and placeholders, and repeats the tail of the one before."""
    with open_store(url) as made:
        write(made, "hermes-s1", SESSION[:20])
        write(made, "hermes-s1-2", [*SESSION[:3], *[UNKNOWN] * 11, *SESSION[14:40]])
        write(made, "hermes-s1-3", [*SESSION[:3], *[UNKNOWN] * 31, *SESSION[34:]])
        made.state.set("hermes-s1", FOLDS_KEY, [["f1", 4, 14, "the first fold", []]])
        made.state.set("hermes-s1-2", FOLDS_KEY, [["f2", 4, 34, "the second fold", ["f1"]]])
        made.state.set(None, SESSION_KEY + "s1", "hermes-s1-3")
        write(made, "hermes-s2", SESSION[:5])
        # The host itself calls this session so.
        write(made, "hermes-s2-2", SESSION[5:9])
        made.state.set(None, SESSION_KEY + "s2-2", "hermes-s2-2")
        yield made


def write(store: Store, id: str, messages: list[Message]) -> None:
    store.conversations.create(id, Metadata(platform="hermes"))
    store.log.append(id, messages)


def test_doctor_reports_and_joins_a_split_log(store: Store, url: str, run_cli: RunCli) -> None:
    assert [(split.first, split.others) for split in split_logs(store)] == [
        ("hermes-s1", ("hermes-s1-2", "hermes-s1-3"))
    ]
    told = run_cli("doctor", "--store", url, "--json")
    assert told.code == 1
    (finding,) = json.loads(told.out)["findings"]
    assert finding["check"] == "split log"
    assert finding["where"] == "hermes-s1"
    assert run_cli("doctor", "--repair", "--store", url).code == 0
    assert split_logs(store) == []
    assert [stored.message for stored in store.log.iterate("hermes-s1")] == SESSION
    assert store.state.get(None, SESSION_KEY + "s1") == "hermes-s1"
    assert not store.conversations.exists("hermes-s1-2")
    assert store.conversations.exists("hermes-s2-2")
    folds = {fold.id: (fold.covered.first, fold.covered.last) for fold in HostLog(store, "hermes-s1").archive.folds()}
    assert folds == {"f1": (4, 14), "f2": (4, 34)}
    assert run_cli("doctor", "--store", url).code == 0


def test_what_has_no_message_in_common_stays_and_is_still_reported(url: str, run_cli: RunCli) -> None:
    with open_store(url) as store:
        write(store, "hermes-s1", SESSION[:20])
        write(store, "hermes-s1-2", SESSION[20:])
        assert run_cli("doctor", "--repair", "--store", url).code == 1
        assert store.log.count("hermes-s1") == 20
        assert store.log.count("hermes-s1-2") == len(SESSION) - 20
