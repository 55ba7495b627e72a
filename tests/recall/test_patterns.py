"""Regular expressions from outside: useful ones work, dangerous ones are refused."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import InputError
from leporello.recall import patterns
from leporello.recall.patterns import matcher


@pytest.fixture(autouse=True)
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guards are what is tested here; the optional engine may or may not be installed."""
    monkeypatch.setattr(patterns, "_linear_engine", lambda: None)


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
    "pattern",
    [
        r"(a+)+$",
        r"(a*)*b",
        r"(\w+\s?)+:",
        r"((ab)+)+",
        r"(a|aa)+$",
        r"(a|b|ab)*c",
        r"(x+x+)+y",
        r"(.*a){20}",
        r"(a)\1+",
        r"(?P<n>a)(?P=n)",
        r".*.*.*.*.*x",
    ],
)
def test_patterns_that_may_explode_are_refused(pattern: str) -> None:
    """The error says why and what to do."""
    with pytest.raises(InputError, match="too long to match"):
        matcher(pattern)


@pytest.mark.parametrize("pattern", ["", "(", "[a", "a{2,1}", "*a", "x" * 501])
def test_wrong_patterns_are_refused(pattern: str) -> None:
    """A pattern that is none is an error, not an exception from inside."""
    with pytest.raises(InputError):
        matcher(pattern)


@given(st.text("ab(|)*+?{}12,[]^\\.-", max_size=12))
def test_any_pattern_is_matched_or_refused(pattern: str) -> None:
    """Whatever the pattern: a clear refusal, or the same answer as Python's own matcher on a line that would hurt."""
    line = "ab" * 40 + "c"
    warnings.simplefilter("ignore", FutureWarning)
    try:
        found = matcher(pattern)(line)
    except InputError:
        return
    assert found == (re.search(pattern, line, re.IGNORECASE) is not None)
