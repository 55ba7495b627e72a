"""What a start costs, counted instead of timed: patterns compiled, dataclasses generated, modules loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from leporello.lazy_regex import LazyRegex, lazy_regex

COUNTED = """
import dataclasses, re._compiler, sys
sys.pycache_prefix = sys.argv[2]  # no patterns that an earlier run has compiled
made, make = [], dataclasses._process_class
dataclasses._process_class = lambda cls, *given: made.append(cls) or make(cls, *given)
from leporello.cli import main
compiled, compile = [], re._compiler._code
re._compiler._code = lambda *given: compiled.append(given[0]) or compile(*given)
main(sys.argv[1:])
ours = sum(name.startswith("leporello") for name in sys.modules)
print(len(compiled), len(made), ours, *sorted({"asyncio", "email", "ssl", "yaml"} & {*sys.modules}))
"""


def started(*arguments: str) -> tuple[int, int, int, set[str]]:
    """Patterns, dataclasses and modules of ours of one command in a process of its own, and what is slow to load."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True)
    patterns, classes, modules, *slow = done.stdout.splitlines()[-1].split()
    return int(patterns), int(classes), int(modules), {*slow}


def test_sessions_are_listed_with_few_patterns_and_modules(tmp_path: Path) -> None:
    patterns, classes, modules, slow = started("--home", str(tmp_path), "sessions", "list")
    assert patterns <= 26
    assert classes <= 20
    assert modules <= 42
    assert not slow


def test_a_message_is_answered_with_few_patterns(tmp_path: Path) -> None:
    patterns, classes, modules, slow = started("--home", str(tmp_path), "run", "--model", "scripted:demo", "hello")
    assert patterns <= 150
    assert classes <= 90
    assert modules <= 228
    assert slow <= {"email"}  # by importlib.metadata, which finds plugins


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
    assert lazy.search.__self__ == lazy.compiled()
    assert lazy.groupindex == {"name": 1}
    assert lazy.pattern == "(?P<name>a+)b"


def test_the_package_runs_as_a_program() -> None:
    """`python -m leporello` is what people type where the script is not on their path."""
    done = subprocess.run([sys.executable, "-m", "leporello", "compress", "absent"], capture_output=True, text=True)
    assert (done.returncode, "absent" in done.stderr, done.stdout) == (2, True, "")
