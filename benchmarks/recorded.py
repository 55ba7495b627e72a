"""Recorded sessions (LEPORELLO_DATA), one after another, as one long conversation of a given size."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from leporello.importers import load_sessions
from leporello.messages import Message
from leporello.tokens import TokenCounter

FOLDERS = ("claude-code", "codex", "openai-chat", "pi")
SMALLEST = 100_000
"""Bytes of a file that is taken: small ones are fixtures."""


def joined(tokens: int) -> list[Message]:
    """The sessions' messages in the order of their files, from the beginning again when all were taken.

    Ids of calls are told apart, so that the whole is a valid list however often a session stands in it.
    """
    counter = TokenCounter.for_model(None)
    found: list[Message] = []
    size = 0
    for message in _endless():
        found.append(message)
        size += counter.message(message)
        if size >= tokens:
            break
    return found


def _endless() -> Iterator[Message]:
    for number in itertools.count():
        for place, session in enumerate(_sessions()):
            for message in session:
                yield _with_own_ids(message, f"{number}-{place}-")


@cache
def _sessions() -> tuple[list[Message], ...]:
    root = Path(os.environ["LEPORELLO_DATA"])
    files = sorted(file for name in FOLDERS for file in root.joinpath(name).iterdir())
    sessions = (session for file in files if file.stat().st_size > SMALLEST for session in load_sessions(file))
    return tuple([message for message in session.messages if message["role"] != "system"] for session in sessions)


def _with_own_ids(message: Message, prefix: str) -> Message:
    if "tool_calls" not in message and "tool_call_id" not in message:
        return message
    own: dict[str, Any] = copy.deepcopy(message)
    for call in own.get("tool_calls") or ():
        call["id"] = prefix + str(call["id"])
    if own.get("tool_call_id"):
        own["tool_call_id"] = prefix + str(own["tool_call_id"])
    return own
