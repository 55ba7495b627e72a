"""The engine contract holds for plugins: for a good one by itself, and for any of them in the host's hands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leporello.config import Home, load_settings
from leporello.engines.base import ContextEngine
from leporello.engines.compressor import ContextCompressor
from leporello.engines.plugin_engine import HostedEngine, PluginEngine
from leporello.messages import Message
from leporello.plugins.host import PluginHost
from leporello.testing import EngineContract
from tests.plugins.conftest import House
from tests.plugins.spec_sample import TINY


class HostedContract(EngineContract):
    """The contract on an engine of the samples, loaded as a plugin written for the original host."""

    context_length = 12_000

    @pytest.fixture(autouse=True)
    def _host(self, tmp_path: Path) -> None:
        house = House(tmp_path)
        house.sample("steady")
        house.write("tiny", TINY)
        self.host = PluginHost(load_settings({"context.engine": self.name}, home=Home(house.home.path)))

    def hosted(self) -> HostedEngine:
        offer = self.host.make_engine(self.name)
        assert offer is not None
        return offer.hosted


class TestSteadyByItself(HostedContract):
    """A good engine needs no host to behave."""

    name = "steady"

    def make_engine(self, context_length: int) -> ContextEngine:
        engine = self.hosted().engine
        engine.update_model("m", context_length)
        return engine


class InTheHostsHands(ContextCompressor):
    """A host of plain lists whose engine is a plugin, as a conversation's may be."""

    def __init__(self, hosted: HostedEngine, context_length: int) -> None:
        self._engine: PluginEngine = PluginEngine(hosted)
        super().__init__(context_length)
        self.update_model("m", context_length)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        super().update_from_response(usage)
        self._engine.update_from_response(usage)

    def update_model(self, model: str, context_length: int, *args: str, **kwargs: str) -> None:
        super().update_model(model, context_length, *args, **kwargs)
        self._engine.update_model(model, context_length)
        self.threshold_tokens = self._engine.adjusted(self.limits).threshold_tokens

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        self._engine.on_session_start(session_id, **kwargs)

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        self._engine.on_session_end(session_id, messages)

    def on_session_reset(self) -> None:
        super().on_session_reset()
        self._engine.on_session_reset()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self._engine.get_tool_schemas()

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        return self._engine.handle_tool_call(name, args, **kwargs)


class ThroughTheHost(HostedContract):
    def make_engine(self, context_length: int) -> ContextEngine:
        return InTheHostsHands(self.hosted(), context_length)


class TestSteadyThroughTheHost(ThroughTheHost):
    name = "steady"


class TestTinyThroughTheHost(ThroughTheHost):
    """The ten lines of the sample lose calls and requests; the host makes up for it."""

    name = "tiny"
