"""Regular expressions from outside: useful ones work, none takes long."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import InputError
from leporello.recall.tools import matcher

POSSESSIVE = re.compile(r"[*+?]\+")
"""RE2 reads `a*+` as a repeated repeat."""


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("error", "an ERROR here"),
        (r"m\d+-m\d+", "see m1-m22"),
        (r"^\s*def \w+\(", "  def run(self)"),
        (r"[0-9a-f]{7,40}\b", "commit 9ab3f1e"),
        (r"(foo|bar)baz", "xbarbaz"),
        (r"(?:ab)+c", "ababc"),
        (r"a{3}", "baaa"),
        (r"[]a]+x", "]ax"),
        (r"[^]]*z", "abz"),
        (r"\(\*", "(*"),
        (r"(?i)port", "PORT"),
    ],
)
def test_useful_patterns_match(pattern: str, line: str) -> None:
    """Ordinary patterns work, whatever the case of letters."""
    assert matcher(pattern)(line)
    assert not matcher(pattern)("--")


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a*)*b$", r"(\w+\s?)+:$", r"(a|aa)+$", r"(x+x+)+y$", r"(.*a){20}$", r".*.*.*.*.*x$"]
)
def test_patterns_that_would_explode_are_matched(pattern: str) -> None:
    """Each would keep a backtracking matcher busy for years on this line; here it is an answer."""
    assert not matcher(pattern)("a" * 5_000 + "!")


@pytest.mark.parametrize("pattern", [r"(a)\1+", r"(?P<n>a)(?P=n)", r"(?=a)b", r"(?<!a)b"])
def test_what_needs_backtracking_is_refused(pattern: str) -> None:
    """The error says what is not supported."""
    with pytest.raises(InputError, match="Look-around and references back"):
        matcher(pattern)


@pytest.mark.parametrize("pattern", ["", "(", "[a", "a{2,1}", "*a", "x" * 501])
def test_wrong_patterns_are_refused(pattern: str) -> None:
    """A pattern that is none is an error, not an exception from inside."""
    with pytest.raises(InputError):
        matcher(pattern)


@given(st.text("ab(|)*+?[]^.-", max_size=12))
def test_any_pattern_is_matched_or_refused(pattern: str) -> None:
    """Whatever the pattern: a clear refusal, or the answer of Python's own matcher where both mean the same by it."""
    line = "ab" * 40 + "c"
    try:
        found = matcher(pattern)(line)
    except InputError:
        return
    if POSSESSIVE.search(pattern):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            compiled = re.compile(pattern, re.IGNORECASE)
        except re.error:
            return  # RE2 takes a few patterns that Python does not, such as `a**`
    assert found == (compiled.search(line) is not None)
