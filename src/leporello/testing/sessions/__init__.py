"""A seeded generator of long coding sessions: the data of tests, demo and benchmarks.

    session = generate(seed=7, messages=1_000)
    session.messages      # OpenAI format, valid, deterministic
    session.live_rules()  # what the user said and did not take back
    session.facts         # everything planted, with message index and a question that asks for it

Nothing in it comes from real sessions; code, logs and talk are composed from word lists.
"""

from __future__ import annotations

from random import Random
from typing import Any

from leporello.testing.sessions.runs import ToolRuns, system_prompt, tool_schemas
from leporello.testing.sessions.spec import Fact, FactKind, GeneratedSession, SessionSpec, Style, Writer
from leporello.testing.sessions.story import Story
from leporello.testing.sessions.world import World

__all__ = ["Fact", "FactKind", "GeneratedSession", "SessionSpec", "Style", "generate"]


def generate(spec: SessionSpec | None = None, **options: Any) -> GeneratedSession:
    """A session by spec, or by the spec's fields given as keywords."""
    spec = spec or SessionSpec(**options)
    rng = Random(spec.seed)
    world = World(rng)
    writer = Writer(spec, rng)
    tools = ToolRuns(world, writer, rng.choice(("json", "text")))
    Story(spec, world, writer, tools).tell()
    schemas = () if spec.style is Style.CHAT else tool_schemas()
    return GeneratedSession(spec, system_prompt(world.project), schemas, writer.messages, tuple(writer.facts))
