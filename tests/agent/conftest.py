"""An agent on a real store with real tools and a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen
from leporello.agent.session import open_agent
from leporello.config import Home, load_settings
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.summaries.base import Summariser
from leporello.summaries.model import ModelSummariser
from leporello.tokens import TokenCounter


def call(name: str, id: str = "c1", **arguments: Any) -> dict:
    """An assistant message that asks for one tool call."""
    return calls((id, name, arguments))


def calls(*wanted: tuple[str, str, dict]) -> dict:
    """An assistant message that asks for several calls at once."""
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id, name, arguments in wanted
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


class Bench:
    """Makes agents that share a home, a store and a working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workdir = folder / "work"
        self.workdir.mkdir(exist_ok=True)
        self.home = Home(folder / "home")
        self.flags: dict[str, object] = {"tools.approval": "auto"}
        self.store = open_store(f"sqlite:///{folder}/talk.db")
        self.background = False
        self.summariser: Summariser | None = None

    def agent(
        self, script: Any, id: str = "a", window: int = 64_000, model: str = "gpt-4o", summaries: bool = False
    ) -> Agent:
        """`summaries` lets the scripted model write summaries too; else they are made without a model."""
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script, window=window)
        chosen = Chosen(model, provider, "openai", "", window)
        settings = load_settings(self.flags, home=self.home)
        return open_agent(
            settings,
            chosen,
            store=self.store,
            id=id,
            workdir=self.workdir,
            today=date(2026, 1, 2),
            background=self.background,
            summariser=self.summariser or (None if summaries else ModelSummariser([], TokenCounter.for_model(model))),
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def wire() -> Callable[..., dict]:
    return call
