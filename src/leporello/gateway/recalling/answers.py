"""Answers to a model's recall calls, out of its own conversation and within what its window has room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.conversation.artifacts import StoredArchive
from leporello.gateway.recalling.weave import RecallCall
from leporello.messages import parse_json
from leporello.recall.base import DEFAULT_TOKENS
from leporello.recall.paging import json_text
from leporello.recall.tools import LEAST_TOKENS, RecallTools
from leporello.store.base import Store
from leporello.tokens import TokenCounter

NO_ROOM = json_text({"error": "the window has no room for a result; answer with what you have"})
_SIZED = ("lcm_grep", "lcm_expand")


class Answers:
    """Answers calls for one request of a client; what was indexed for the first serves the others."""

    def __init__(self, store: Store, conversation: str, model: str, *, by_meaning: bool = False) -> None:
        archive = StoredArchive(store, conversation, by_meaning=by_meaning)
        self._tools = RecallTools(archive, TokenCounter.for_model(model or None).text)

    def answer(self, calls: Sequence[RecallCall], room: int) -> list[str]:
        """A result for each call; together they take at most half of the room that is left."""
        share = room // (2 * max(1, len(calls)))
        return [self._one(call, share) for call in calls]

    def _one(self, call: RecallCall, share: int) -> str:
        given: Any = parse_json(call.arguments) if call.arguments.strip() else {}
        if not isinstance(given, dict):
            return json_text({"error": "the arguments must be a JSON object"})
        if share < LEAST_TOKENS:
            return NO_ROOM
        if call.name in _SIZED:
            wanted = given.get("max_tokens", DEFAULT_TOKENS)
            if isinstance(wanted, int) and wanted > share:
                given = {**given, "max_tokens": share}
        return self._tools.handle(call.name, given)
