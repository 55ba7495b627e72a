"""Recorded sessions of many agents go out in every dialect and are accepted, with either cache layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.caching import LAYOUTS
from leporello.dialects import Dialect, Target, anthropic, chat, responses
from leporello.errors import InputError
from leporello.importers import load_sessions
from leporello.messages import Message
from leporello.turns import open_group, validate
from tests.support.wire import VIOLATIONS

CODECS = {
    Dialect.ANTHROPIC: (anthropic, Target("anthropic", "claude-sonnet-5")),
    Dialect.OPENAI_CHAT: (chat, Target("openai", "gpt-6-sol", native=True)),
    Dialect.OPENAI_RESPONSES: (responses, Target("openai", "gpt-6-sol", native=True)),
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


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
def test_accepted(dialect: Dialect, recorded: list[list[Message]]) -> None:
    """No real server would refuse the request."""
    assert recorded
    codec, target = CODECS[dialect]
    refused = []
    for messages in recorded:
        for layout in LAYOUTS.values():
            marked = layout(messages) if dialect is Dialect.ANTHROPIC else messages
            refused += VIOLATIONS[dialect](codec.encode_request(marked, target=target))
    assert refused[:3] == []
