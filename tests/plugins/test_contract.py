"""The engine contract holds for plugins: for a good one by itself, and for any of them in the host's hands."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.config import Home, load_settings
from leporello.engines.base import ContextEngine
from leporello.engines.plugin_engine import HostedEngine, PluginEngine
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

    def guest(self) -> HostedEngine:
        hosted = self.host.guest(self.name)
        assert hosted is not None
        return hosted.guest


class TestSteadyByItself(HostedContract):
    """A good engine needs no host to behave."""

    name = "steady"

    def make_engine(self, context_length: int) -> ContextEngine:
        engine = self.guest().engine
        engine.update_model("m", context_length)
        return engine


class ThroughTheHost(HostedContract):
    def make_engine(self, context_length: int) -> ContextEngine:
        engine = PluginEngine(self.guest(), context_length)
        engine.tell_model("m")
        return engine


class TestSteadyThroughTheHost(ThroughTheHost):
    name = "steady"


class TestTinyThroughTheHost(ThroughTheHost):
    """The ten lines of the sample lose calls and requests; the host makes up for it."""

    name = "tiny"
