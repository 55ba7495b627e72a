"""Hypothesis strategies of message lists: what providers accept, and everything that turns up anyway.

conversations()        valid lists, any mix of talk and tool groups, open calls at the end now and then
nasty_conversations()  orphans, missing results, reused ids, broken arguments, odd contents, forged folds
any_conversation()     one or the other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from hypothesis import strategies as st

from leporello.messages import Message
from leporello.testing import broken_lists
from tests.support import pieces

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


class Drawn(list[Message]):
    """A drawn list. It is shown by its shape and plan: the full text of a huge example helps nobody."""

    plan: Any = None

    def __repr__(self) -> str:
        roles = "".join(str(message.get("role", "?"))[:1] for message in self)
        return f"<{len(self)} messages {roles!r}, drawn from {self.plan!r}>"


_SEEDS = st.integers(0, 2**32 - 1)
_Piece: TypeAlias = tuple[str, int]

_NASTY: dict[str, Callable[[Random], list[Message]]] = {
    "user": lambda rng: [broken_lists.user(rng)],
    "tools": pieces.tool_group,
    "nasty tools": broken_lists.nasty_tool_group,
    "assistant": lambda rng: [pieces.assistant(rng)],
    "instruction": lambda rng: [pieces.instruction(rng)],
    "fold": lambda rng: [pieces.fold(rng)],
    "forged fold": lambda rng: [pieces.forged_fold(rng)],
    "oddity": lambda rng: [broken_lists.oddity(rng)],
}


def _plans(kinds: Sequence[str], longest: int) -> st.SearchStrategy[list[_Piece]]:
    return st.lists(st.tuples(st.sampled_from(kinds), _SEEDS), max_size=longest)


def texts(longest: int = 20_000) -> st.SearchStrategy[str]:
    """Text of every kind and of up to `longest` characters."""
    return st.one_of(_SEEDS.map(lambda seed: broken_lists.text(Random(seed), longest)), st.text(max_size=30))


def folds() -> st.SearchStrategy[Message]:
    """Fold messages as Leporello writes them."""
    return _SEEDS.map(lambda seed: pieces.fold(Random(seed)))


def forged_folds() -> st.SearchStrategy[Message]:
    """Messages that only look like folds."""
    return _SEEDS.map(lambda seed: pieces.forged_fold(Random(seed)))


@st.composite
def conversations(
    draw: Draw, *, longest: int = 12, open_calls: bool | None = None, with_folds: bool = False
) -> list[Message]:
    """A list that providers accept: leading instructions, then user messages, answers and tool groups."""
    seed = draw(_SEEDS)
    plan = draw(_plans(("user", "assistant", "tools", "tools"), longest))
    opening = Random(seed)
    messages = Drawn(pieces.instruction(opening) for _ in range(opening.choice((0, 0, 1, 2))))
    messages.plan = (seed, plan)
    messages.append(broken_lists.user(opening))
    if with_folds and opening.random() < 0.3:
        messages.append({**pieces.fold(opening), "role": "assistant"})
    for kind, number in plan:
        rng = Random(number)
        if kind == "tools":
            messages.extend(pieces.tool_group(rng))
        elif kind == "assistant" or messages[-1]["role"] == "user":
            messages.append(pieces.assistant(rng))
        else:
            messages.append(broken_lists.user(rng))
    if open_calls or (open_calls is None and opening.random() < 0.2):
        messages.extend(pieces.tool_group(opening, finished=False))
    return messages


@st.composite
def nasty_conversations(draw: Draw, *, longest: int = 12) -> list[Message]:
    """A list of dicts with known roles in which everything else may be wrong."""
    messages = Drawn()
    messages.plan = draw(_plans(tuple(_NASTY), longest))
    for kind, seed in messages.plan:
        messages.extend(_NASTY[kind](Random(seed)))
    return messages


def any_conversation(longest: int = 12) -> st.SearchStrategy[list[Message]]:
    """Valid or nasty."""
    return st.one_of(conversations(longest=longest, with_folds=True), nasty_conversations(longest=longest))
