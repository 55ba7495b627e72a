"""Regular expressions from a model or a user, matched in linear time by `google-re2`.

A careless pattern can keep Python's own matcher busy for years.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import re2

from leporello.errors import InputError

LONGEST_PATTERN = 500

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a line matches."""


def matcher(pattern: str) -> Matcher:
    """A matcher that ignores case; `InputError` when the pattern is wrong or needs a matcher that can backtrack."""
    if not pattern:
        raise InputError("the pattern is empty")
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"the pattern has {len(pattern)} characters; at most {LONGEST_PATTERN} are taken")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        compiled = re2.compile(_encodable(pattern), options)
    except re2.error as error:
        raise InputError(
            f"the pattern is not a regular expression this search can match: {error}. "
            "Look-around and references back to a group are not supported"
        ) from error
    return lambda line: compiled.search(_encodable(line)) is not None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
