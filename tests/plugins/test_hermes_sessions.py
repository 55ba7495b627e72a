"""Our engines in the real Hermes: its own program, agent loop and session database, with a model server on loopback.

Whatever Hermes does to its list between two compactions, every message that anybody said is found and opened again, in
one conversation.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leporello.messages import text_of
from leporello.store import open_store
from leporello.testing.stub_server import Say, Seen, StubServer
from leporello.usage import CanonicalUsage
from tests.conftest import RunCli
from tests.plugins.environments import environment, run
from tests.plugins.test_hermes import HERMES

DRIVER = Path(__file__).with_name("hermes_session_driver.py")
THRESHOLD = 6_000
QUESTION = "What did I ask in the first hour?"
FILLER = "the tide table of the harbour says nothing about it. " * 25


@dataclass
class Upstream:
    """Looks into a file at each request of the user, then answers; every answer and file has a word of its own."""

    folder: Path
    summaries: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _turns: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.answer

    def answer(self, seen: Seen) -> Say:
        messages = seen.body["messages"]
        usage = CanonicalUsage(len(json.dumps(messages)) // 4, 40, 0, 0, 0)
        if not seen.body.get("tools"):
            self.summaries.append(seen.body)
            return Say("## Goal\n- Keep the harbour's books", usage=usage)
        newest = str(messages[-1]["content"])
        if "lighthouse9word" in newest:
            return Say("Noted.", usage=usage)
        if newest.endswith(QUESTION):  # behind the task list, when Hermes joined the two
            return Say(None, calls=(("lcm_grep", json.dumps({"query": "request1word"})),), usage=usage)
        if messages[-1]["role"] == "tool" and "request1word" in newest:
            return Say("You asked me to look after request1word.", usage=usage)
        number = next(self._turns)
        if messages[-1]["role"] == "tool":
            self.said.append(f"answer{number}word")
            return Say(f"It is answer{number}word. {FILLER}", usage=usage)
        file = self.folder / f"ledger{number}.txt"
        file.write_text(f"ledger{number}word\n" + "\n".join(f"line {line} of {number}" for line in range(60)))
        self.said.append(f"ledger{number}word")
        todo = {"todos": [{"id": "1", "content": f"finish part {number}", "status": "in_progress"}]}
        return Say(
            "Let me look.",
            calls=(("read_file", json.dumps({"path": str(file)})), ("todo", json.dumps(todo))),
            usage=usage,
        )


@dataclass
class Program:
    """Runs Hermes, one process for each call."""

    python: Path
    home: Path
    folder: Path
    upstream: Upstream
    users: list[str] = field(default_factory=list)

    def run(self, *steps: tuple[str, Any], resume: str = "") -> dict[str, Any]:
        given = self.folder / "steps.json"
        given.write_text(json.dumps({"steps": steps, "resume": resume, "threshold": THRESHOLD}))
        told: dict[str, Any] = json.loads(run(self.python, DRIVER, given, home=self.home).splitlines()[-1])
        return told

    def turns(self, count: int) -> list[tuple[str, Any]]:
        """Requests of the user, each with a word of its own."""
        texts = []
        for _ in range(count):
            self.users.append(f"request{len(self.users) + 1}word")
            texts.append(f"Please look after {self.users[-1]}. {FILLER}")
        # When the policy compacts by itself is not the question here: every other turn it is asked to.
        return [step for k, text in enumerate(texts) for step in [("say", text), ("command", "/compress")][: 1 + k % 2]]


@pytest.fixture(params=["leporello", "leporello-lcm"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["in place", "new session id"])
def program(request: pytest.FixtureRequest, engine: str, tmp_path: Path, run_cli: RunCli) -> Iterator[Program]:
    python = environment("hermes", HERMES)
    home = tmp_path / "hermes"
    assert run_cli("plugins", "install", "--host", "hermes", "--home", home).code == 0
    upstream = Upstream(tmp_path)
    with StubServer(upstream) as server:
        here = {"provider": "custom", "base_url": f"{server.url}/v1", "api_key": "none"}
        config = {
            "plugins": {"enabled": ["leporello"]},
            "context": {"engine": engine},
            "compression": {"in_place": request.param == "in place"},
            "model": {"default": "gpt-4o", "context_length": 80_000, **here},
            "auxiliary": {"compression": {"model": "summary-model", **here}},
        }
        (home / "config.yaml").write_text(json.dumps(config))
        yield Program(python, home, tmp_path, upstream)


def test_ten_compactions_restarts_and_commands_lose_nothing(program: Program, engine: str, run_cli: RunCli) -> None:
    first = program.run(*program.turns(14), *program.turns(6))
    assert first["engine"] == engine
    second = program.run(*program.turns(12), ("model", "gpt-4o-mini"), *program.turns(6), resume=first["session"])
    third = program.run(
        *program.turns(2),
        ("command", "/compress the harbour"),
        ("command", "/new now"),
        ("say", "Another matter: the keeper of lighthouse9word."),
        ("missing", ["lighthouse9word", program.users[0]]),
        ("command", f"/resume {second['session']}"),
        *program.turns(4),
        resume=second["session"],
    )
    assert third["answers"][6] == [program.users[0]], "a new conversation finds its own words and no others"
    words = [*program.users, *program.upstream.said]
    assert len(words) > 60
    # In a new process, before anything is said there.
    assert program.run(("missing", words), resume=third["session"])["answers"] == [[]]
    with open_store(f"sqlite:///{program.home}/leporello.db") as store:
        records = list(store.conversations.each())
        assert len(records) == 2, [record.id for record in records]
        told = max(records, key=lambda record: record.messages)
        assert store.views.view(told.id).compactions >= 10
        log = [text_of(stored.message) for stored in store.log.iterate(told.id)]
    for word in words:
        assert sum(word in text for text in log) <= 2, f"{word} was stored again and again"
    assert not any("before the archive began" in text or "<leporello-" in text for text in log)
    assert program.upstream.summaries, "Hermes' summary model was never asked"
    assert {body["model"] for body in program.upstream.summaries} >= {"summary-model"}
    answered = program.run(("say", QUESTION), resume=third["session"])["answers"]
    assert answered == ["You asked me to look after request1word."]
    checked = run_cli("doctor", "--store", f"sqlite:///{program.home}/leporello.db")
    assert checked.code == 0, checked.out
