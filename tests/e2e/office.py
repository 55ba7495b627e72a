"""An agent on an official client, talking to the strict server: real store, real tools, real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen
from leporello.agent.events import AgentEvent, Compacted
from leporello.agent.session import open_agent
from leporello.config import Home, load_settings
from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.messages import Message
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.sdk import RetryPolicy, SdkProvider
from leporello.store import Store, open_store
from leporello.summaries.model import ModelSummariser
from leporello.testing.stub_server import Say, Seen, Step, StubServer
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage
from tests.support.strict_server import strict_server


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to call a model: its dialect, a model and who serves it."""

    dialect: Dialect
    model: str
    provider: str
    path: str = "/v1"
    router: bool = False

    def __str__(self) -> str:
        return "router" if self.router else self.dialect.name


KINDS = (
    Kind(OPENAI_CHAT, "gpt-4o", "openai"),
    Kind(OPENAI_RESPONSES, "gpt-4o", "openai"),
    Kind(ANTHROPIC, "claude-sonnet-4-5", "anthropic", path=""),
    Kind(OPENAI_CHAT, "anthropic/claude-sonnet-4-5", "openrouter", router=True),
)


@dataclass(slots=True)
class Office:
    """Makes agents of one conversation; each is a fresh start on the same store."""

    folder: Path
    kind: Kind
    server: StubServer
    store: Store
    window: int | None = 16_384
    layout: str = "anchored"
    timeout: float = 60.0
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(first=0.01))
    events: list[AgentEvent] = field(default_factory=list)
    providers: list[SdkProvider] = field(default_factory=list)

    @property
    def workdir(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def agent(self) -> Agent:
        kind = self.kind
        base_url = self.server.url + kind.path
        provider = make_provider(
            ProviderChoice(
                kind.model,
                kind.provider,
                base_url,
                kind.dialect.name,
                "key",
                timeout=self.timeout,
                retry=self.retry,
            )
        )
        self.providers.append(provider)
        flags = {
            "tools.approval": "auto",
            # What it adds stands behind the last message of one request only; its own tests look at that.
            "recall.unasked": False,
            "prompt_caching.layout": self.layout,
            "agent.tools": ["read_file", "terminal", "lcm_grep", "lcm_expand"],
        }
        agent = open_agent(
            load_settings(flags, home=self.home),
            Chosen(kind.model, provider, kind.provider, base_url, self.window, kind.dialect.name),
            store=self.store,
            id="talk",
            workdir=self.workdir,
            today=date(2026, 1, 2),
            background=False,
            summariser=ModelSummariser([], TokenCounter.for_model(kind.model)),
        )
        agent.watchers.append(self.events.append)
        return agent

    @property
    def folds(self) -> int:
        """Compactions that were committed."""
        return sum(isinstance(event, Compacted) and event.event.report.committed for event in self.events)


@contextmanager
def opened(folder: Path, kind: Kind, script: Iterator[Step] | Sequence[Step], **more: Any) -> Iterator[Office]:
    """An office whose server plays the script."""
    (folder / "work").mkdir()
    with strict_server(script, router=kind.router) as server, open_store(f"sqlite:///{folder}/talk.db") as store:
        office = Office(folder, kind, server, store, **more)
        yield office
        for provider in office.providers:
            provider.close()


def counted(seen: Seen) -> CanonicalUsage:
    """What a provider might count for this request: four bytes to a token."""
    return CanonicalUsage(input_tokens=len(seen.raw) // 4, output_tokens=20)


def say(text: str | None = None, *calls: tuple[str, Mapping[str, Any]]) -> Callable[[Seen], Step]:
    """An answer with a plausible count."""
    made = tuple((name, json.dumps(arguments)) for name, arguments in calls)
    return lambda seen: Say(text, made, usage=counted(seen))


def kept(office: Office) -> list[Message]:
    """Everything that was stored."""
    return [entry.message for entry in office.store.log.iterate("talk")]


def without_marks(value: Any) -> Any:
    """A request's part without cache marks, which move from request to request."""
    if isinstance(value, dict):
        return {key: without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [without_marks(inner) for inner in value]
    return value


def marks_in(body: Mapping[str, Any]) -> list[str]:
    """Where cache marks stand: `system`, or the distance of the marked block from the request's last one."""
    found = []
    blocks = [
        block
        for message in body["messages"]
        if message["role"] != "system"
        for block in (message["content"] if isinstance(message["content"], list) else [message])
    ]
    system = body.get("system") or [
        block
        for message in body["messages"]
        if message["role"] == "system" and isinstance(message["content"], list)
        for block in message["content"]
    ]
    found += ["system" for block in system if "cache_control" in block]
    found += [str(place - len(blocks)) for place, block in enumerate(blocks) if "cache_control" in block]
    return found
