"""What can sit the exam: engines and searches by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leporello.engines.base import ContextEngine
from leporello.engines.builtin import BUILTIN, make_builtin
from leporello.errors import InputError
from leporello.messages import Message
from leporello.models import Limits
from leporello.recall.memory import MemoryRecall
from leporello.replay.baselines import ClearToolsEngine, PlainSearch, WholeEngine
from leporello.replay.counting import text_tokens
from leporello.replay.exam import Search
from leporello.tokens import TokenCounter

BASELINES: dict[str, Callable[[int], ContextEngine]] = {"whole": WholeEngine, "clear-tools": ClearToolsEngine}


def _recall(messages: Sequence[Message]) -> Search:
    return MemoryRecall(messages, text_tokens).answer


SEARCHES: dict[str, Callable[[Sequence[Message]], Search]] = {"recall": _recall, "plain": PlainSearch}


def make_engine(name: str, window: int) -> ContextEngine:
    """A fresh engine without a summary model, for one conversation."""
    if name in BASELINES:
        return BASELINES[name](window)
    if name in BUILTIN:
        return make_builtin(name, Limits.for_window(window), TokenCounter.for_model(None), None)
    raise InputError(f"there is no engine {name!r} (known: {', '.join([*BUILTIN, *BASELINES])})")


def make_search(name: str, messages: Sequence[Message]) -> Search:
    """A search over one session."""
    if name not in SEARCHES:
        raise InputError(f"there is no search {name!r} (known: {', '.join(SEARCHES)})")
    return SEARCHES[name](messages)
