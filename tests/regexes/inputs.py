"""Texts that a pattern finds hardest, built from the pattern itself.

Three parts: a head that brings the matcher to one of its repeats, a pump that is repeated, a tail that makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from re import _constants  # type: ignore[attr-defined]
from typing import Any

from .steps import CLAMP, REPEATS, SINGLE, Counter

COMMON = "aA0_-./: \t\n\"'`([{<@#=,\\*+|!é中。"
PAIRS = ("a.", "a/", "a-", "a_", "a=", "a ", "a\n", "aA", "a0", "0.", "0,", " \n", "\\n", "a:", "<a", "a@", "中a")
LEAST_TIMES, LEAST_SIZE = 12, 80
TAILS = ("", "\x00", "\n")


@dataclass(frozen=True)
class Shape:
    """A family of texts: the head, the pump so many times, the tail."""

    head: str
    pump: str
    tail: str

    def text(self, doublings: int) -> str:
        times = max(LEAST_TIMES, LEAST_SIZE // len(self.pump)) << doublings
        return self.head + self.pump * times + self.tail


class Sampler:
    """Writes texts that parts of the pattern match (assertions aside)."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._flags = counter.tree.state.flags
        self.alphabet = _alphabet(counter.tree)
        self._known: dict[int, str] = {}

    def characters(self, operation: Any, argument: Any) -> str:
        """Every character of the alphabet that a class accepts."""
        key = id(argument) if not isinstance(argument, int) else hash((str(operation), argument))
        if key not in self._known:
            test = self._counter.accepts(operation, argument, self._flags)
            self._known[key] = "".join(character for character in self.alphabet if test(character))
        return self._known[key]

    def sample(self, items: Any, variant: int) -> str:
        """A text that the items match; another variant takes other branches and other counts."""
        return "".join(self._one(operation, argument, variant) for operation, argument in items)

    def _one(self, operation: Any, argument: Any, variant: int) -> str:
        if operation in SINGLE:
            if operation is _constants.LITERAL:
                return chr(argument)
            found = self.characters(operation, argument)
            return found[variant % len(found)] if found else ""
        if operation in REPEATS:
            least, most, inner = argument
            return self.sample(inner, variant) * min(max(min(least, CLAMP), variant % 3), most)
        if operation is _constants.BRANCH:
            return self.sample(argument[1][variant % len(argument[1])], variant)
        if operation is _constants.SUBPATTERN:
            return self.sample(argument[3], variant)
        if operation is _constants.ATOMIC_GROUP:
            return self.sample(argument, variant)
        return ""

    def repeats(self, items: Any, head: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Every unbounded repeat with texts that lead to it."""
        for index, (operation, argument) in enumerate(items):
            here = tuple(before + self.sample(items[:index], variant) for variant, before in enumerate(head))
            for inner in _inner(operation, argument):
                yield from self.repeats(inner, here)
            if operation in REPEATS and argument[1] is _constants.MAXREPEAT:
                yield here, argument[2]

    def beginnings(self, items: Any) -> Iterator[str]:
        """Near-matches: every first part of the pattern and of each of its branches."""
        for variant in range(3):
            for index in range(len(items)):
                yield self.sample(items[: index + 1], variant)
        for operation, argument in items:
            for inner in _inner(operation, argument):
                yield from self.beginnings(inner)


def shapes(counter: Counter) -> list[Shape]:
    """The inputs of one pattern, each once."""
    sampler = Sampler(counter)
    whole = list(counter.tree)
    near = [pump for pump in dict.fromkeys(sampler.beginnings(whole)) if pump]
    found = {Shape("", pump, tail): None for pump in (*sampler.alphabet, *PAIRS) for tail in TAILS[:2]}
    found |= {Shape("", pump, TAILS[1]): None for word in near for pump in (word, f"{word} ")}
    for heads, body in sampler.repeats(whole, ("", "")):
        inside = {sampler.sample(body, variant) for variant in range(4)}
        if len(body) == 1 and body[0][0] in SINGLE:
            inside |= set(sampler.characters(*body[0])[:40])
        else:
            inside |= {pump for pump in (*sampler.alphabet, *PAIRS)}
        for head in dict.fromkeys(heads):
            found |= {Shape(head, pump, tail): None for pump in inside if pump for tail in TAILS}
    return list(found)


def _inner(operation: Any, argument: Any) -> list[Any]:
    if operation in REPEATS:
        return [argument[2]]
    if operation is _constants.BRANCH:
        return list(argument[1])
    if operation is _constants.SUBPATTERN:
        return [argument[3]]
    if operation is _constants.ATOMIC_GROUP:
        return [argument]
    if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [argument[1]]
    return []


def _alphabet(tree: Any) -> str:
    """Common characters and those that the pattern names."""
    named: dict[str, None] = dict.fromkeys(COMMON)

    def visit(items: Any) -> None:
        for operation, argument in items:
            if operation in (_constants.LITERAL, _constants.NOT_LITERAL):
                named.setdefault(chr(argument))
            elif operation is _constants.IN:
                for kind, value in argument:
                    if kind is _constants.LITERAL:
                        named.setdefault(chr(value))
                    elif kind is _constants.RANGE:
                        named.setdefault(chr(value[0]))
            for inner in _inner(operation, argument):
                visit(inner)

    visit(tree)
    return "".join(list(named)[:90])
