"""A backtracking matcher that counts its work.

It follows Python's own `re`: the same parse tree, the same order of attempts, the same restart at the next character
when an attempt fails. Work is every character consumed and every continuation tried again after a failure, so it grows
as the time of the C engine does, and is the same number on every machine.

A finite bound is a constant factor whatever it is; `CLAMP` lowers it, so that a short input already shows the growth.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

CLAMP = 4
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
SINGLE = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)

Next = Callable[[int], bool]
Node = Callable[[int, Next], bool]


class TooMuchWork(Exception):
    """The budget of one measurement is spent."""


@dataclass
class Run:
    """The text of one measurement and what was spent on it."""

    text: str = ""
    work: int = 0
    budget: int = 0
    groups: dict[int, tuple[int, int]] = field(default_factory=dict)

    def spend(self, amount: int) -> None:
        self.work += amount
        if self.work > self.budget:
            raise TooMuchWork


class Counter:
    """One pattern, ready to be measured."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.tree = _parser.parse(pattern.pattern, pattern.flags)
        self._run = Run()
        self._flags = self.tree.state.flags
        self._start = self._sequence(self.tree, self._flags)

    def work(self, text: str, how: str, budget: int) -> int:
        """What a `match`, a `fullmatch` or the `search` for every match costs; `budget` + 1 if that is too little."""
        run = self._run
        run.text, run.work, run.budget = text, 0, budget
        at = 0
        try:
            while at <= len(text):
                end = self._attempt(at, whole=how == "fullmatch")
                run.spend(1)
                if how != "search":
                    break
                at = end if end is not None and end > at else at + 1
        except TooMuchWork:
            return budget + 1
        return run.work

    def _attempt(self, at: int, *, whole: bool) -> int | None:
        found: list[int] = []

        def accept(end: int) -> bool:
            if whole and end < len(self._run.text):
                return False
            found.append(end)
            return True

        self._run.groups.clear()
        return found[0] if self._start(at, accept) else None

    def _sequence(self, items: Any, flags: int) -> Node:
        nodes = [self._node(operation, argument, flags) for operation, argument in items]
        if not nodes:
            return lambda at, then: then(at)
        whole = nodes[-1]
        for node in reversed(nodes[:-1]):
            whole = _then(node, whole)
        return whole

    def _node(self, operation: Any, argument: Any, flags: int) -> Node:
        if operation in SINGLE:
            return self._single(operation, argument, flags)
        if operation in REPEATS:
            return self._repeat(operation, argument, flags)
        if operation is _constants.AT:
            return self._place(argument, flags)
        if operation is _constants.BRANCH:
            return self._branch([self._sequence(branch, flags) for branch in argument[1]])
        if operation is _constants.SUBPATTERN:
            group, added, removed, inner = argument
            return self._group(group, self._sequence(inner, (flags | added) & ~removed))
        if operation is _constants.ATOMIC_GROUP:
            return _atomic(self._sequence(argument, flags))
        if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            return self._look(argument, flags, wanted=operation is _constants.ASSERT)
        if operation is _constants.GROUPREF:
            return self._again(argument)
        raise NotImplementedError(f"the counter does not know {operation}")

    def accepts(self, operation: Any, argument: Any, flags: int) -> Callable[[str], bool]:
        """Whether one character matches; answered by the C engine itself, once for each character."""
        single = _parser.SubPattern(_parser.State(), [(operation, argument)])
        single.state.flags = flags
        engine = _compiler.compile(single, flags & ~re.DEBUG)
        known: dict[str, bool] = {}

        def test(character: str) -> bool:
            answer = known.get(character)
            if answer is None:
                answer = known[character] = engine.match(character) is not None
            return answer

        return test

    def _single(self, operation: Any, argument: Any, flags: int) -> Node:
        run, test = self._run, self.accepts(operation, argument, flags)

        def node(at: int, then: Next) -> bool:
            if at >= len(run.text) or not test(run.text[at]):
                return False
            run.spend(1)
            return then(at + 1)

        return node

    def _repeat(self, operation: Any, argument: Any, flags: int) -> Node:
        least, most, inner = argument
        least = min(least, CLAMP)
        most = None if most is _constants.MAXREPEAT else min(most, CLAMP)
        greedy = operation is not _constants.MIN_REPEAT
        if len(inner) == 1 and inner[0][0] in SINGLE:
            test = self.accepts(*inner[0], flags)
            return self._run_of(test, least, most, greedy, operation is _constants.POSSESSIVE_REPEAT)
        body = self._sequence(inner, flags)
        if operation is _constants.POSSESSIVE_REPEAT:
            return self._possessive(body, least, most)
        return self._rounds(body, least, most, greedy)

    def _run_of(
        self, test: Callable[[str], bool], least: int, most: int | None, greedy: bool, possessive: bool
    ) -> Node:
        run = self._run

        def reach(at: int, limit: int) -> int:
            end = at
            while end < limit and test(run.text[end]):
                end += 1
            run.spend(end - at)
            return end

        def node(at: int, then: Next) -> bool:
            limit = len(run.text) if most is None else min(len(run.text), at + most)
            if not greedy:
                end = reach(at, min(limit, at + least))
                while end - at >= least:
                    if then(end):
                        return True
                    if end >= limit or not test(run.text[end]):
                        return False
                    run.spend(1)
                    end += 1
                return False
            end = reach(at, limit)
            if possessive:
                return end - at >= least and then(end)
            while end - at >= least:
                if then(end):
                    return True
                run.spend(1)
                end -= 1
            return False

        return node

    def _rounds(self, body: Node, least: int, most: int | None, greedy: bool) -> Node:
        run = self._run

        def node(at: int, then: Next, done: int = 0, since: int = -1) -> bool:
            def more() -> bool:
                if most is not None and done >= most:
                    return False
                if at == since and done >= least:
                    return False
                return body(at, lambda end: node(end, then, done + 1, at))

            if done < least:
                return more()
            if greedy:
                if more():
                    return True
                run.spend(1)
                return then(at)
            return then(at) or more()

        return node

    def _possessive(self, body: Node, least: int, most: int | None) -> Node:
        once = _atomic(body)

        def node(at: int, then: Next) -> bool:
            done = 0
            while most is None or done < most:
                ends: list[int] = []
                if not once(at, lambda end, ends=ends: not ends.append(end)):  # type: ignore[misc]
                    break
                done += 1
                if ends[0] == at:
                    break
                at = ends[0]
            return done >= least and then(at)

        return node

    def _branch(self, branches: list[Node]) -> Node:
        return lambda at, then: any(branch(at, then) for branch in branches)

    def _group(self, group: int | None, body: Node) -> Node:
        if group is None:
            return body
        run = self._run

        def node(at: int, then: Next) -> bool:
            def close(end: int) -> bool:
                before = run.groups.get(group)
                run.groups[group] = (at, end)
                if then(end):
                    return True
                run.groups.pop(group)
                if before is not None:
                    run.groups[group] = before
                return False

            return body(at, close)

        return node

    def _again(self, group: int) -> Node:
        run = self._run

        def node(at: int, then: Next) -> bool:
            span = run.groups.get(group)
            if span is None or not run.text.startswith(run.text[slice(*span)], at):
                return False
            run.spend(span[1] - span[0])
            return then(at + span[1] - span[0])

        return node

    def _look(self, argument: Any, flags: int, *, wanted: bool) -> Node:
        direction, inner = argument
        body = self._sequence(inner, flags)
        width = inner.getwidth()[0] if direction < 0 else 0

        def node(at: int, then: Next) -> bool:
            seen = at >= width and body(at - width, lambda end: True)
            return seen is wanted and then(at)

        return node

    def _place(self, place: Any, flags: int) -> Node:
        run = self._run
        bare = _parser.SubPattern(_parser.State(), [(_constants.AT, place)])
        bare.state.flags = flags
        engine = _compiler.compile(bare, flags & ~re.DEBUG)

        def node(at: int, then: Next) -> bool:
            return engine.match(run.text, at) is not None and then(at)

        return node


def _then(first: Node, second: Node) -> Node:
    return lambda at, then: first(at, lambda end: second(end, then))


def _atomic(body: Node) -> Node:
    def node(at: int, then: Next) -> bool:
        ends: list[int] = []
        return body(at, lambda end: not ends.append(end)) and then(ends[0])  # type: ignore[func-returns-value]

    return node
