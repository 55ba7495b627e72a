"""Without the packages of an extra every command that needs them says which extra to install, and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from leporello.testing.sessions import generate

WITHOUT = """
import sys

hidden = set(sys.argv[1].split(","))
finders = list(sys.meta_path)


class Finder:
    # As if nobody had installed them.
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)

    def find_distributions(self, *context):
        return finders[-1].find_distributions(*context)


sys.meta_path[:] = [Finder()]
if __name__ == "__main__":
    from leporello.cli import main

    sys.exit(main(sys.argv[2:]))
"""
POSTGRES = "postgresql://nobody@127.0.0.1:1/nothing"
CALLS = [
    ("postgres", ("import", "long.json", "--store", POSTGRES)),
    ("postgres", ("store", "info", "--store", POSTGRES)),
    ("postgres", ("store", "copy", "full.db", POSTGRES)),
    ("postgres", ("store", "copy", POSTGRES, "other.db")),
    ("postgres", ("store", "backup", "backup.db", "--store", POSTGRES)),
    ("postgres", ("doctor", "--store", POSTGRES)),
    ("postgres", ("insights", "--store", POSTGRES)),
    ("postgres", ("sessions", "list", "--store", POSTGRES)),
    ("postgres", ("mcp", "--store", POSTGRES)),
    ("postgres", ("serve", "--port", "0", "--store", POSTGRES)),
    ("postgres", ("--set", f"store.url={POSTGRES}", "run", "hello", "--model", "scripted:demo")),
    ("postgres", ("--set", f"store.url={POSTGRES}", "chat", "--plain", "--model", "scripted:demo")),
    ("vectors", ("--set", "recall.vectors=true", "run", "/search port", "--model", "scripted:demo")),
    ("gateway", ("serve",)),
    ("gateway", ("serve", "--list-keys")),
    ("mcp", ("mcp",)),
    ("openai", ("run", "hello", "--model", "gpt-5")),
    ("openai", ("setup", "--provider", "openai", "--model", "gpt-5")),
    ("anthropic", ("run", "hello", "--model", "claude-sonnet-5")),
    ("local", ("run", "hello", "--model", "local")),
]
NEEDING_NONE = [
    ("chat", "--model", "scripted:demo"),
    ("run", "hello", "--model", "scripted:demo"),
    ("compress", "long.json", "--window", "8000"),
    ("import", "long.json"),
    ("doctor", "--store", "full.db"),
    ("insights", "--store", "full.db"),
    ("store", "info", "--store", "full.db"),
    ("sessions", "list", "--store", "full.db"),
    ("exam", "--make", "long.json"),
    ("plugins",),
    ("config",),
    ("explain",),
]


def _packages(extra: str | None = None) -> set[str]:
    """Modules that an extra, or any of them, brings."""
    extras = [extra] if extra else ["chat", "openai", "anthropic", "gateway", "postgres", "mcp", "vectors", "local"]
    found = set()
    for requirement in map(Requirement, requires("leporello") or ()):
        marker = requirement.marker
        if marker and not marker.evaluate({"extra": ""}) and any(marker.evaluate({"extra": name}) for name in extras):
            found.add(requirement.name.replace("-", "_").lower())
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "long.json").write_text(json.dumps(generate(seed=1, messages=60).messages))
    (folder / "without.py").write_text(WITHOUT)
    _run(folder, set(), ("import", "long.json", "--store", "full.db"))
    return folder


def _run(place: Path, hidden: set[str], call: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "without.py", ",".join(sorted(hidden)), *call],
        cwd=place,
        env={**os.environ, "LEPORELLO_HOME": str(place), "OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("extra", "call"), CALLS, ids=[" ".join(call) for _, call in CALLS])
def test_the_extra_is_named(extra: str, call: tuple[str, ...], place: Path) -> None:
    hidden = _packages("openai") | _packages("anthropic") | _packages(extra) if extra == "local" else _packages(extra)
    ran = _run(place, hidden, call)
    assert "Traceback" not in ran.stderr
    said = ran.stderr.strip().splitlines()[-1]
    assert f"pip install 'leporello[{extra}]'" in said
    assert f"from a clone of it: pip install 'PATH/OF/CLONE[{extra}]'" in said
    assert ran.returncode == 2


@pytest.mark.parametrize("package", sorted(_packages("postgres") | _packages("vectors")))
def test_one_missing_package_of_an_extra_is_enough(package: str, place: Path) -> None:
    extra = "postgres" if package in _packages("postgres") else "vectors"
    if package == "procrastinate":
        pytest.skip("only the queue of the gateway needs it")
    call = next(call for name, call in CALLS if name == extra)
    ran = _run(place, {package}, call)
    assert "Traceback" not in ran.stderr
    assert f"pip install 'leporello[{extra}]'" in ran.stderr
    assert ran.returncode == 2


@pytest.mark.parametrize("call", NEEDING_NONE, ids=" ".join)
def test_the_rest_works_without_any_extra(call: tuple[str, ...], place: Path) -> None:
    ran = _run(place, _packages(), call)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 0, ran.stderr
