"""What release 0.1.0 wrote opens unchanged: its store, its config.yaml, its exports, its folded lists.

The archive was made by 0.1.0's own code (`make_release_0_1_0.py` beside this file shows how).
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from leporello import Conversation, compress, load_settings, validate
from leporello.config import Home
from leporello.importers import load_session
from leporello.store import Store, open_store
from tests.conftest import RunCli

ARCHIVE = Path(__file__).with_name("release_0_1_0.tar.xz")
IDS = ("api", "worker", "openai:imported-e9b2b97c")
EXPORTS = {"api": "api.jsonl", "worker": "worker.jsonl", "openai:imported-e9b2b97c": "imported.jsonl"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def expected(old: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((old / "expected.json").read_text(encoding="utf-8"))
    return read


def _store(old: Path) -> Store:
    return open_store(f"sqlite:///{old / 'home' / 'leporello.db'}")


@pytest.mark.parametrize("id", IDS)
def test_a_conversation_of_0_1_0_opens_as_it_was(old: Path, expected: dict[str, Any], id: str) -> None:
    """Every message byte for byte, the folded view and the next request as 0.1.0 would have sent it."""
    was = expected["conversations"][id]
    store = _store(old)
    settings = load_settings(environ={}, home=Home(old / "home"))
    with Conversation.open(id, model="gpt-4o", window=9_000, store=store, settings=settings) as conversation:
        assert [line.message for line in store.log.iterate(id)] == was["log"]
        assert conversation.messages == was["view"]
        assert list(conversation.request(system="You are careful.").messages) == was["request"]
        assert set(was["search"][:3]) <= {window.message for window in conversation.search("port 7003")}
    assert store.conversations.resolve(id).metadata.title == was["title"]
    store.close()


@pytest.mark.parametrize("id", ["api", "worker"])
def test_a_conversation_of_0_1_0_goes_on(old: Path, id: str) -> None:
    """It grows, is compacted again and undone, and its first message is still there."""
    store = _store(old)
    settings = load_settings(environ={}, home=Home(old / "home"))
    with Conversation.open(id, model="gpt-4o", window=9_000, store=store, settings=settings) as conversation:
        before = conversation.messages
        for number in range(30):
            conversation.append({"role": "assistant", "content": f"Step {number}: " + "it goes on. " * 60})
            conversation.append({"role": "user", "content": f"Go on after {number}."})
        request = conversation.request()
        assert validate(list(request.messages)) == []
        conversation.compact()
        assert "Never touch the public API" in str(conversation.messages)
        conversation.undo()
        assert conversation.expand("m1")["messages"]
        assert before[0] == conversation.messages[0]
    store.close()


def test_the_store_of_0_1_0_is_found_whole(old: Path, run_cli: RunCli) -> None:
    """`doctor` has nothing to say against it."""
    ran = run_cli("doctor", "--store", f"sqlite:///{old / 'home' / 'leporello.db'}")
    assert ran.code == 0, ran.err


NEW_DEFAULTS = {"prompt_caching.layout": "anchored"}
"""Defaults that were changed by a decision (0033); no one who set them is concerned."""


def test_settings_of_0_1_0_mean_the_same(old: Path, expected: dict[str, Any]) -> None:
    """Each setting that 0.1.0 knew has the value it had there, unless it was never set and its default is another."""
    settings = load_settings(environ={}, home=Home(old / "home"))
    read = {name: json.loads(json.dumps(settings.get(name), default=str)) for name in expected["settings"]}
    assert read == expected["settings"] | NEW_DEFAULTS
    assert not any(name.rpartition(".")[2] in (old / "home" / "config.yaml").read_text() for name in NEW_DEFAULTS)
    kept = load_settings({"prompt_caching.layout": "system_and_3"}, environ={}, home=Home(old / "home"))
    assert kept.prompt_caching.layout == "system_and_3"


@pytest.mark.parametrize("id", IDS)
def test_exports_of_0_1_0_can_be_read(old: Path, expected: dict[str, Any], id: str) -> None:
    """An export is the log it was made of."""
    assert list(load_session(old / EXPORTS[id]).messages) == expected["conversations"][id]["log"]


def test_a_list_that_0_1_0_folded_can_be_folded_again(old: Path) -> None:
    """Its rules are still there after another compaction, and the list is valid."""
    folded = json.loads((old / "folded.json").read_text(encoding="utf-8"))
    more = [
        {"role": role, "content": f"Step {number}: " + "and so it goes on. " * 60}
        for number in range(40)
        for role in ("assistant", "user")
    ]
    again = list(compress([*folded, *more], window=9_000))
    assert validate(again) == []
    assert "Never touch the public API" in json.dumps(again)
