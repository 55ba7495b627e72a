"""Regular expressions from a model or a user, matched in bounded time.

A careless pattern can keep Python's matcher busy for years. With the package `google-re2` installed every pattern is
matched in linear time. Without it only patterns are taken whose cost has a bound on short lines: no repeat inside a
repeat, no choice inside a repeat, no back references, few open-ended repeats. Others are refused with the reason.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

from leporello.errors import InputError

LONGEST_PATTERN = 500
MOST_REPEATS = 4
"""Open-ended repeats (`*`, `+`, `{2,}`) in a pattern that Python matches."""

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a line matches."""

_BOUNDED = re.compile(r"\{(\d*+)(,?)(\d*+)\}")


def matcher(pattern: str) -> Matcher:
    """A matcher that ignores case; `InputError` when the pattern is wrong or could take too long."""
    if not pattern:
        raise InputError("the pattern is empty")
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"the pattern has {len(pattern)} characters; at most {LONGEST_PATTERN} are taken")
    linear = _linear_engine()
    if linear is not None:
        return _with_re2(linear, pattern)
    try:
        with warnings.catch_warnings():
            # `[[` may mean something else to a later Python; it is what it is here.
            warnings.simplefilter("ignore", FutureWarning)
            compiled = re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"the pattern is not a regular expression: {error}") from error
    _Reader(pattern).check()
    return lambda line: compiled.search(line) is not None


def _linear_engine() -> Any:
    try:
        return importlib.import_module("re2")
    except ImportError:
        return None


def _with_re2(engine: Any, pattern: str) -> Matcher:
    options = engine.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        compiled = engine.compile(_encodable(pattern), options)
    except engine.error as error:
        raise InputError(f"the pattern is not a regular expression this search can match: {error}") from error
    return lambda line: compiled.search(_encodable(line)) is not None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class _Reader:
    """Walks over a pattern that is known to be valid and refuses what could backtrack without end."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._repeats = 0
        self._open: list[set[str]] = [set()]
        """For each open group what stands in it: `repeat`, `choice`."""

    def check(self) -> None:
        while self._at < len(self._pattern):
            inside = self._atom()
            self._quantifier(inside)
        if self._repeats > MOST_REPEATS:
            self._refuse(f"it has {self._repeats} open-ended repeats; at most {MOST_REPEATS} are taken")

    def _atom(self) -> set[str]:
        """Step over one atom; what it contains when it is a group that ends here."""
        character = self._pattern[self._at]
        self._at += 1
        if character == "\\":
            if self._pattern[self._at : self._at + 1] in set("123456789"):
                self._refuse("it refers back to a group")
            self._at += 1
        elif character == "[":
            self._skip_class()
        elif character == "(":
            if self._pattern.startswith(("?P=", "?("), self._at):
                self._refuse("it refers back to a group")
            self._open.append(set())
        elif character == "|":
            self._open[-1].add("choice")
        elif character == ")" and len(self._open) > 1:
            inside = self._open.pop()
            self._open[-1] |= inside & {"repeat"}
            return inside
        return set()

    def _skip_class(self) -> None:
        # A bracket right behind the opening (or behind ^) is a member of the class.
        self._at += self._pattern.startswith("^", self._at)
        self._at += self._pattern.startswith("]", self._at)
        while self._pattern[self._at] != "]":
            self._at += 2 if self._pattern[self._at] == "\\" else 1
        self._at += 1

    def _quantifier(self, inside: set[str]) -> None:
        bounded = _BOUNDED.match(self._pattern, self._at)
        if self._pattern.startswith(("*", "+"), self._at):
            self._at += 1
            self._repeats += 1
        elif bounded and (bounded[1] or bounded[2]):
            self._at = bounded.end()
            self._repeats += bool(bounded[2] and not bounded[3])
            if int(bounded[3] or bounded[1] or 0) < 2 and not (bounded[2] and not bounded[3]):
                return
        else:
            return
        if inside:
            self._refuse(f"a {' and a '.join(sorted(inside))} stands inside a repeat")
        self._open[-1].add("repeat")

    def _refuse(self, reason: str) -> None:
        raise InputError(
            f"the pattern could take too long to match: {reason}. Write it more simply, search for words, "
            "or install google-re2, which matches every pattern in linear time"
        )
