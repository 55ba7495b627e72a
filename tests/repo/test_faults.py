"""Every fault that a promise test must notice is still a line of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def faults() -> Iterator[tuple[str, str, str]]:
    """Name, module and line of each."""
    for path in sorted((ROOT / "tests" / "promises").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
                name, module = map(ast.literal_eval, node.args)
                told = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
                yield name, module, told["old"]


FAULTS = list(faults())


def test_there_are_faults() -> None:
    assert len(FAULTS) > 50


@pytest.mark.parametrize(("name", "module", "line"), FAULTS, ids=[name for name, _, _ in FAULTS])
def test_its_line_occurs_once(name: str, module: str, line: str) -> None:
    text = (ROOT / "src" / "leporello" / module).read_text(encoding="utf-8")
    assert text.count(line) == 1, f"The fault {name!r} has to follow its line in {module}."
