"""Tools for testing Leporello and anything that plugs into it.

- `leporello.testing.EngineContract`: the suite any `ContextEngine` must pass
- `leporello.testing.sessions`: seeded generator of long sessions with planted facts
- `leporello.testing.strategies`: hypothesis strategies of message lists, valid and nasty (needs hypothesis)
- `python -m leporello.testing.demo`: the agent at work for a few hundred turns in a small window
"""

from leporello.testing.engine_contract import EngineContract

__all__ = ["EngineContract"]
