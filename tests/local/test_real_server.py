"""Conversations with a real model behind a real server: real overflows, real cache reads, all three dialects.

The model is too small to call tools, so the tool history is supplied by the script; everything else is real.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen, choose_model
from leporello.agent.events import AgentEvent, Notice
from leporello.agent.session import open_agent
from leporello.config import Home, load_settings
from leporello.dialects import ANTHROPIC, DIALECTS, Dialect
from leporello.local import ALIAS, LocalServer
from leporello.messages import text_of
from leporello.models import LearnedLimits
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.providers.sdk import SdkProvider
from leporello.store import Store, open_store
from leporello.summaries.model import ModelSummariser
from leporello.tokens import TokenCounter
from leporello.turns import validate
from leporello.usage import CanonicalUsage

from .conftest import SERVED

DECLARED = 12_000
"""A window the server does not have: it is the server that must refuse, and the agent that must cope."""
RULE = "Never touch the file called secrets.toml."


@dataclass(slots=True)
class Watched:
    """The real provider, with everything that went through it."""

    provider: SdkProvider
    name: str = "here"
    requests: list[ModelRequest] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)
    refusals: list[ErrorVerdict] = field(default_factory=list)

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        try:
            reply = self.provider.complete(request, on_text)
        except CallFailed as error:
            self.refusals.append(error.verdict)
            raise
        self.requests.append(request)
        self.replies.append(reply)
        return reply


@dataclass(slots=True)
class Desk:
    """One store and working directory; agents come and go, each with a home of its own or a kept one."""

    folder: Path
    provider: Watched
    store: Store
    url: str
    homes: int = 0

    def home(self) -> Home:
        return Home(self.folder / f"home-{self.homes}")

    def agent(self, *, forget: bool = False) -> Agent:
        """The conversation taken up again, as after a restart; `forget`: on a machine that knows nothing yet."""
        self.homes += forget
        settings = load_settings({"agent.tools": ["read_file"], "tools.approval": "auto"}, home=self.home())
        book = LearnedLimits.load(settings.home.limits_file, now=time.time())
        window = book.window(ALIAS, "here", self.url, now=time.time()) or DECLARED
        agent = open_agent(
            settings,
            Chosen(ALIAS, self.provider, "here", self.url, window),
            store=self.store,
            id="talk",
            workdir=self.folder,
            summariser=ModelSummariser([], TokenCounter.for_model(ALIAS)),
        )
        agent.max_output = 6
        return agent


@pytest.fixture(params=list(DIALECTS.values()), ids=str)
def desk(request: pytest.FixtureRequest, server: LocalServer, tmp_path: Path) -> Iterator[Desk]:
    dialect: Dialect = request.param
    url = server.url if dialect is ANTHROPIC else f"{server.url}/v1"
    provider = make_provider(ProviderChoice(ALIAS, "here", url, dialect.name, server.key))
    with open_store(f"sqlite:///{tmp_path}/talk.db") as store:
        yield Desk(tmp_path, Watched(provider), store, url)
    provider.close()


def read(agent: Agent, part: int) -> None:
    """What an agent does before it answers: a request, a call, a result."""
    call = {"name": "read_file", "arguments": json.dumps({"path": f"part_{part}.py"})}
    agent.conversation.append(
        {"role": "user", "content": f"Read part {part}." + (f" {RULE}" if part == 3 else "")},
        {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{part}", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": f"c{part}", "content": f"# part {part}\n" + "return the value as it is\n" * 4},
        {"role": "assistant", "content": f"part_{part}.py returns the value as it is."},
    )


def test_ten_turns_through_real_overflows(desk: Desk) -> None:
    """To the end, with valid requests, a chain of sessions, every rule alive and every cached token counted."""
    notices: list[str] = []

    def watch(event: AgentEvent) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    agent = desk.agent()
    parts = iter(range(1_000))
    for turn in range(10):
        if turn in (3, 6):
            agent = desk.agent(forget=turn == 6)
        # Before these turns more was done than the window holds, and nobody there knows how small it is.
        for _ in range(40 if turn in (0, 6) else 1):
            read(agent, next(parts))
        ended = agent.turn("Is it fine? Say yes or no.", watch)
        assert ended.reason in ("stop", "length")
        assert validate(agent.conversation.messages) == []
    provider = desk.provider
    assert [verdict.kind for verdict in provider.refusals] == [ErrorKind.INPUT_OVERFLOW] * len(provider.refusals)
    assert len(provider.refusals) >= 2
    assert {verdict.stated_limit for verdict in provider.refusals} == {SERVED}
    assert len(provider.replies) == 10
    assert any("2,048" in text for text in notices)
    assert agent.conversation.runtime.sizes.limits.window == SERVED
    _check_prefixes(provider)
    _check_records(agent, provider)


def _check_prefixes(provider: Watched) -> None:
    """Between compactions the server itself finds the whole previous request in its cache."""
    calls = list(zip(provider.requests, provider.replies, strict=True))
    steady = 0
    for (before, answer), (request, reply) in itertools.pairwise(calls):
        if list(request.messages[: len(before.messages)]) == list(before.messages):
            steady += 1
            # The last few tokens of a prompt open the answer, and are written anew.
            assert reply.usage.cache_read_tokens >= answer.usage.prompt_tokens - 4
    assert steady >= 4


def _check_records(agent: Agent, provider: Watched) -> None:
    conversation = agent.conversation
    reported = sum((reply.usage for reply in provider.replies), CanonicalUsage())
    assert conversation.usage.usage == reported
    assert reported.cache_read_tokens > 0
    assert all(reply.has_usage and reply.usage.prompt_tokens <= SERVED for reply in provider.replies)
    sessions = conversation.runtime.log.store.sessions.all("talk")
    assert conversation.runtime.log.compactions >= 2
    assert [session.end_reason for session in sessions[:-1]] == ["compression"] * conversation.runtime.log.compactions
    shown = " ".join(text_of(message) for message in conversation.messages)
    assert RULE in shown
    first = next(iter(conversation.runtime.log.store.log.iterate("talk"))).message
    assert text_of(first) == "Read part 0."
    assert "part 3" in " ".join(map(str, conversation.search("Which file must not be touched?")))


def test_the_real_window_is_asked_for(server: LocalServer, tmp_path: Path) -> None:
    """The name of the model says nothing; the server does."""
    home = Home(tmp_path)
    home.keys_file.write_text(f"here: {server.key}\n")
    home.keys_file.chmod(0o600)
    flags = {"model.default": "anything", "model.provider": "here", "providers.here.base_url": f"{server.url}/v1"}
    chosen = choose_model(load_settings(flags, home=home))
    assert chosen.served_window == SERVED
