"""What of Hermes an engine is made from, where Hermes itself is not there."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one class of Hermes that an engine is made from."""
    package, module = ModuleType("agent"), ModuleType("agent.context_engine")
    module.ContextEngine = type("ContextEngine", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agent", package)
    monkeypatch.setitem(sys.modules, "agent.context_engine", module)
