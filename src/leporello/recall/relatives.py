"""Words used for one another, read once from `relatives.txt` beside this file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from leporello.text_features.words import query_words


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    related: dict[str, dict[str, None]] = {}
    for line in files(__package__).joinpath("relatives.txt").read_text("utf-8").splitlines():
        words = query_words(line.partition("#")[0])
        for word in words:
            related.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in related.items()}


def relatives_of(word: str) -> tuple[str, ...]:
    """The words (as the index spells them) that may stand for this one."""
    return _groups().get(word, ())
