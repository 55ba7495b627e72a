"""Tools for testing Leporello and anything that plugs into it.

- `leporello.testing.sessions`: seeded generator of long sessions with planted facts
- `leporello.testing.strategies`: hypothesis strategies of message lists, valid and nasty (needs hypothesis)
- `leporello.testing.EngineContract`: the suite any `ContextEngine` must pass
- `python -m leporello.testing.demo`: a long session, compressed as it grows
"""
