"""A home with plugins in it, and conversations that use them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from leporello.config import Home, Settings, load_settings
from leporello.conversation import Conversation
from leporello.messages import Message, role_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import ModelReply
from leporello.usage import CanonicalUsage

SAMPLES = Path(__file__).parent / "samples"


class House:
    """A home folder that plugins are put into."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")
        self.store = f"sqlite:///{folder}/talk.db"
        self.home.plugins_dir.mkdir(parents=True, mode=0o755)
        self._open = ExitStack()

    def sample(self, name: str) -> Path:
        """Put a sample plugin where it belongs."""
        engine = SAMPLES / "context_engine" / name
        source = engine if engine.is_dir() else SAMPLES / name
        place = self.home.plugins_dir / ("context_engine" if engine.is_dir() else "") / name
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        return place

    def write(self, name: str, code: str, kind: str = "context_engine") -> Path:
        """A plugin from source text."""
        place = self.home.plugins_dir / kind / name
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
        return place

    def settings(self, **flags: Any) -> Settings:
        """Settings of this home; `a__b` stands for `a.b`."""
        return load_settings({key.replace("__", "."): value for key, value in flags.items()}, home=self.home)

    def host(self, **flags: Any) -> PluginHost:
        return PluginHost(self.settings(**flags))

    def talk(self, id: str = "a", window: int = 16_000, **flags: Any) -> Conversation:
        """A conversation in the store of this house; closed at the end of the test."""
        conversation = Conversation.open(id, window=window, store=self.store, settings=self.settings(**flags))
        return self._open.enter_context(conversation)

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.close()


def play(talk: Conversation, messages: list[Message]) -> None:
    """An agent's loop without the agent."""
    for message in messages:
        if role_of(message) == "assistant":
            request = talk.request()
            assert request.tokens <= talk.runtime.sizes.limits.window
            talk.record(ModelReply(message, CanonicalUsage(input_tokens=request.tokens, output_tokens=9)))
        else:
            talk.append(message)
