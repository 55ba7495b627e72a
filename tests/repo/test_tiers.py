"""`make test` looks at everything that matters, and `make test-all` adds the rest without running a test twice."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.tiers import EXTENDED, SAMPLED, SLOW

ROOT = Path(__file__).resolve().parents[2]
FACES = {
    "library": "tests/conversation/",
    "command line": "tests/cli/",
    "chat": "tests/chat/test_terminal.py",
    "gateway": "tests/gateway/",
    "dashboard": "tests/dashboard/",
    "plugins": "tests/plugins/",
    "adapters": "tests/adapters/",
    "MCP": "tests/mcp/",
    "importers": "tests/importers/",
    "exam": "tests/exam/",
    "engines": "tests/promises/test_engine_contract.py",
    "model clients": "tests/providers/",
    "engines from outside": "tests/plugins/test_contract.py",
    "release before": "tests/compatibility/",
}


def expressions() -> dict[str, str]:
    """What each target of the Makefile selects."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r'^(test[\w-]*):(?:.|\n\t)*?-m "([^"]+)"', text, re.MULTILINE))


@pytest.fixture(scope="module")
def chosen() -> list[str]:
    """The files from which `make test` runs tests, with how many."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-m", expressions()["test"]]
    ran = subprocess.run([*command, "-p", "no:xdist"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in ran.stdout.splitlines() if line.startswith("tests/")]


def test_the_two_halves_are_the_whole() -> None:
    """`.ci/run` calls both: no test is in both, none in neither."""
    told = expressions()
    assert told["test"] == "not extended and not soak"
    assert told["test-extended"] == "extended and not soak"
    assert re.search(r"^test-all: test test-extended$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    called = re.findall(r"^make .*?([\w-]+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert called == ["test", "test-extended"]


def test_names_in_the_tiers_are_there() -> None:
    """A renamed file does not silently change its tier."""
    for name in (*EXTENDED, *SAMPLED, *SLOW):
        file, _, rest = name.partition("::")
        test, _, case = rest.partition("[")
        assert (ROOT / file).exists(), name
        module, _, pattern = case.rstrip("]").rpartition(".")
        assert not case or hasattr(import_module(module), pattern), name
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), name


def test_every_promise_is_tested(chosen: list[str]) -> None:
    """The whole file, and with each promise one of the faults that it must notice; `make test-all` has the others."""
    per_file = dict(line.split(": ") for line in chosen)
    promises = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "promises").glob("test_*.py"))]
    assert len(promises) > 12
    assert [name for name in promises if name not in per_file] == []
    assert [name for name in (*EXTENDED, *SAMPLED) if name.startswith("tests/promises/")] == []


def test_every_contract_is_tested_on_every_store(chosen: list[str]) -> None:
    """All of the store contract, on SQLite and on PostgreSQL."""
    for store in ("sqlite", "postgres"):
        file = f"tests/store/test_{store}_contract.py"
        assert file not in EXTENDED + tuple(SAMPLED)
        assert any(line.startswith(file) for line in chosen)


@pytest.mark.parametrize("face", FACES)
def test_every_face_is_tested(chosen: list[str], face: str) -> None:
    assert any(line.startswith(FACES[face]) for line in chosen)
