"""Tools for testing what plugs into Leporello.

- `leporello.testing.EngineContract`: the suite any `ContextEngine` must pass
- `leporello.testing.engine_doctor`: runs that suite against an installed engine
- `leporello.testing.sessions`: seeded generator of long sessions with planted facts
- `leporello.testing.stub_server`: a model server on loopback that plays a script
- `python -m leporello.testing.demo`: the agent at work for a few hundred turns in a small window

`leporello.providers.scripted` holds the scripted provider.
"""

from leporello.testing.engine_contract import EngineContract

__all__ = ["EngineContract"]
