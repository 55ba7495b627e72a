"""No text can make a pattern slow: the work of every regular expression grows no faster than its text.

Work is counted, not timed: `steps` runs the parse tree of each pattern with a backtracking matcher of its own that
counts, on the texts that `inputs` builds from that tree (long words, long runs of every class the pattern uses,
repeated near-matches, each with an end at which the match fails). A text twice as long may cost twice the work and not
more. That catches nested and adjacent repeats, and a search that reads the rest of the text again from each character.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import pytest

from leporello.tools.python_search import glob_expression

from .collect import SOURCE, Found, patterns
from .inputs import Shape, shapes
from .steps import Counter

CALLS = {f"re.{name}" for name in "compile search match fullmatch findall finditer split sub subn".split()} | {
    "lazy_regex"
}
PER_CHARACTER = 4
"""Less work than this for each character needs no second look."""
GROWTH = 1.3
"""What the work for a character may grow by when the text doubles; a quadratic pattern's doubles."""
TABLES = (("tokens.families", "_PATTERNS"), ("models.facts", "_VENDORS"), ("redact.vendors", "_START_PATTERNS"))
"""Patterns kept as texts, because most programs need one of them: each is compiled when it is first tried."""
AT_RUN_TIME = {
    # Called while the module is imported: these make the patterns that are measured.
    "ledger/rule_phrases.py any_of",
    "providers/error_rules.py _re",
    "recall/question.py _pattern",
    "regex_cache.py compile",
    # From the tables above.
    "models/facts.py vendor_of",
    "redact/vendors.py _start_pattern",
    "tokens/families.py family_of",
    "tokens/families.py _claude",
    # Words that are escaped, with assertions and bounded repeats around them.
    "chat/prompt.py expand",
    "gateway/dashboard/pages.py marked",
    "ledger/user_text.py _block_end",
    "summaries/fold.py _footer_pattern",
    "summaries/verify/judge.py holds_name",
    # Written by the user or the model: refused, or matched by a linear engine, or in a process that can be ended.
    "tools/python_search.py search",
    "tools/search_files.py _check_pattern",
    # Globs, on paths.
    "tools/python_search.py glob_expression",
    "tools/python_search.py glob_filter",
    # The scripts of the demonstration.
    "testing/demo.py source_of",
    "testing/demo_session.py recall",
    "testing/demo_session.py seen",
}
"""Where a pattern is made inside a function. A new place needs a reason why its work is bounded."""


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)


def superlinear(pattern: re.Pattern[str], how: frozenset[str]) -> tuple[str, Shape] | None:
    """A text on which the work grows faster than the text, if there is one."""
    counter = Counter(pattern)
    for shape in shapes(counter):
        short = shape.text(0)
        for way in how:
            first = counter.work(short, way, budget=len(short) ** 2) / len(short)
            if first > PER_CHARACTER:
                long = shape.text(1)
                second = counter.work(long, way, budget=int(2 * GROWTH * first * len(long))) / len(long)
                if second > GROWTH * first:
                    return way, shape
    return None


@pytest.mark.parametrize("found", patterns(), ids=lambda found: found.name)
def test_pattern_is_linear(found: Found) -> None:
    """Twice the text, at most twice the work."""
    pattern = found.pattern
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode("ascii"), (pattern.flags & ~re.LOCALE) | re.ASCII)
    assert superlinear(pattern, found.how) is None


@pytest.mark.parametrize(("module", "table"), TABLES)
def test_tables_of_patterns_are_linear(module: str, table: str) -> None:
    """The names of models come with requests."""
    for pattern in _texts(getattr(importlib.import_module(f"leporello.{module}"), table)):
        assert superlinear(re.compile(pattern), frozenset({"search"})) is None, pattern


def _texts(table: Mapping[str, str] | Sequence[tuple[str, object]]) -> list[str]:
    return list(table.values()) if isinstance(table, Mapping) else [pattern for pattern, _ in table]


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"[A-Za-z_][A-Za-z0-9_]*(?:[./:-][A-Za-z0-9_]+)+", "search"),
        (r"\s*,?\s*x", "match"),
        (r"(?:a+)+b", "match"),
        (r"npm.*install", "search"),
        (r"(.*?)\s*$", "fullmatch"),
    ],
)
def test_the_count_sees_the_known_traps(pattern: str, way: str) -> None:
    """A search that starts again, adjacent and nested repeats, two words with anything between them."""
    assert superlinear(re.compile(pattern), frozenset({way})) is not None


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"(?<!\w)\w++:", "search"),
        (r"npm.{0,9}install", "search"),
        (r"\w+", "search"),
        (r"\s*+,?\s*+x", "match"),
        (r"(?>a+)+b", "match"),
    ],
)
def test_the_count_lets_linear_patterns_pass(pattern: str, way: str) -> None:
    """Lookbehinds, bounds, possessive repeats and atomic groups are how to write them."""
    assert superlinear(re.compile(pattern), frozenset({way})) is None


def test_patterns_are_made_at_the_top_of_modules() -> None:
    """There they are found and measured; inside a function only where it is said why."""
    assert set(_made_in_functions()) == AT_RUN_TIME


def _made_in_functions() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS:
                        yield f"{path.relative_to(SOURCE).as_posix()} {function.name}"


@pytest.mark.parametrize("glob", ["*a*a*a*b", "**/a/**/b/**/c", "**/*a*/**/*b*/x*y*z", "a**b**c"])
def test_globs_of_many_stars_are_linear(glob: str) -> None:
    """The ignore files of a stranger's project are read too."""
    assert superlinear(glob_expression(glob), frozenset({"fullmatch"})) is None
