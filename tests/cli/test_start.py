"""What a start costs, counted instead of timed: patterns that are compiled, modules that are loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from leporello.lazy_regex import LazyRegex, lazy_regex

COUNTED = """
import re._compiler, sys
from leporello.cli import main
compiled, compile = [], re._compiler.compile
re._compiler.compile = lambda *given: compiled.append(given[0]) or compile(*given)
main(sys.argv[1:])
print(len(compiled), sum(name.startswith("leporello") for name in sys.modules))
"""


def started(*arguments: str) -> tuple[int, int]:
    """Patterns compiled and modules of ours loaded by one command in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True)
    patterns, modules = done.stdout.splitlines()[-1].split()
    return int(patterns), int(modules)


def test_sessions_are_listed_with_few_patterns_and_modules(tmp_path: Path) -> None:
    patterns, modules = started("--home", str(tmp_path), "sessions", "list")
    assert patterns <= 30
    assert modules <= 65


def test_a_message_is_answered_with_few_patterns(tmp_path: Path) -> None:
    patterns, modules = started("--home", str(tmp_path), "run", "--model", "scripted:demo", "hello")
    assert patterns <= 150
    assert modules <= 228


def test_importing_the_package_loads_nothing_but_itself() -> None:
    code = "import sys; before = {*sys.modules}; import leporello; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    small = {"__future__", "importlib", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.machinery"}
    assert {*done.stdout.split()} - small - {"warnings"} == {"leporello", "leporello.deprecation"}


def test_a_lazy_pattern_is_the_pattern_from_its_first_use_on() -> None:
    lazy = lazy_regex("(?P<name>a+)b")
    assert isinstance(lazy, LazyRegex)
    assert "search" not in vars(lazy)
    found = lazy.search("xaab")
    assert found is not None
    assert found["name"] == "aa"
    assert lazy.search.__self__ is lazy.compiled()
    assert lazy.groupindex == {"name": 1}
    assert lazy.pattern == "(?P<name>a+)b"
