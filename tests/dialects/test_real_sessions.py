"""Recorded sessions of many agents go out in every dialect and are accepted, with either cache layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.caching import LAYOUTS
from leporello.dialects import (
    ANTHROPIC,
    DIALECTS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Dialect,
    Target,
)
from leporello.errors import InputError
from leporello.importers import load_sessions
from leporello.messages import Message
from leporello.turns import open_group, validate
from tests.support.wire import VIOLATIONS

TARGETS = {
    ANTHROPIC: Target("anthropic", "claude-sonnet-5"),
    OPENAI_CHAT: Target("openai", "gpt-6-sol", native=True),
    OPENAI_RESPONSES: Target("openai", "gpt-6-sol", native=True),
}
SHAPES = {"neighbours", "late_system", "bad_arguments", "no_user"}
"""Faults that the codecs mend; pairing is the caller's."""


@pytest.fixture(scope="module")
def recorded(real_sessions: Path) -> list[list[Message]]:
    """Every recorded conversation in which calls and results pair, up to its open calls."""
    found = []
    for path in sorted(path for path in real_sessions.rglob("*") if path.is_file()):
        try:
            sessions = load_sessions(path)
        except InputError:
            continue
        for session in sessions:
            waiting = open_group(session.messages)
            messages = session.messages[: waiting.start] if waiting else session.messages
            if messages and not {violation.fault.value for violation in validate(messages)} - SHAPES:
                found.append(messages)
    return found


@pytest.mark.parametrize("dialect", list(DIALECTS.values()), ids=str)
def test_accepted(dialect: Dialect, recorded: list[list[Message]]) -> None:
    """No real server would refuse the request."""
    assert recorded
    refused = []
    for messages in recorded:
        for layout in LAYOUTS.values():
            marked = layout(messages) if dialect is ANTHROPIC else messages
            refused += VIOLATIONS[dialect](dialect.encode_request(marked, target=TARGETS[dialect]))
    assert refused[:3] == []
