"""The shape of the project: public names, import layers, who reads the environment, what is installed."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import leporello
from leporello.redact import redact_spans

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "leporello"
FILES = sorted(SOURCE.rglob("*.py"))


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_public_surface() -> None:
    """`__all__`, the lazy table and the names that type checkers see are the same, and all can be imported."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    shown = [node for node in guarded.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    typed = {alias.name for node in shown for alias in node.names}
    assert sorted(typed) == sorted(leporello.__all__) == sorted(leporello._HOMES)
    for name in leporello.__all__:
        assert getattr(leporello, name) is not None
    assert set(leporello.__all__) <= set(dir(leporello))


def test_unknown_public_name() -> None:
    """A name that is not there is an ordinary `AttributeError`."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = leporello.nonsense


def test_every_module_has_its_layer() -> None:
    """A module that the import contract does not place fails it; otherwise it could import anything."""
    assert "containers = leporello\nlayers =\n" in (ROOT / ".importlinter").read_text()
    assert "\nexhaustive = True\n" in (ROOT / ".importlinter").read_text()


def test_every_folder_of_modules_is_a_package() -> None:
    """Without its `__init__.py` a folder is invisible to type checks, import layers and the wheel's users."""
    folders = {path.parent for path in FILES}
    assert [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_only_config_reads_the_environment() -> None:
    """One place decides what a variable means."""
    reads = []
    for path in FILES:
        if path.is_relative_to(SOURCE / "config"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb"):
                reads.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert reads == []


def test_nobody_imports_the_testing_tools() -> None:
    """What helps tests is not needed to run; `plugins doctor` starts the engine contract as a process of its own."""
    users = [
        str(path.relative_to(SOURCE))
        for path in FILES
        if not path.is_relative_to(SOURCE / "testing") and "leporello.testing" in path.read_text(encoding="utf-8")
    ]
    assert users == ["cli/plugins_command.py"]
    tree = ast.parse((SOURCE / "cli" / "plugins_command.py").read_text(encoding="utf-8"))
    imported = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not [line for line in imported if "testing" in line]


ENTRY_POINTS = {
    "leporello.__main__": "run by `python -m leporello`",
    "leporello.cli.*_command": "loaded by name when its command is called",
    "leporello.adapters.*": "imported by users of another framework",
    "leporello.tools.reaper": "run as a program around a command",
}
"""Modules that no other module imports, and who does."""


def _module(path: Path) -> str:
    return ".".join(("leporello", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def _named_modules(path: Path) -> set[str]:
    """What a file may import, packages of it included; a name in a string counts, it may be imported later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update((str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("leporello."):
            names.add(node.value)
    return {name.rsplit(".", count)[0] for name in names for count in range(name.count(".") + 1)}


def test_no_module_is_there_for_tests_only() -> None:
    """What only tests read is no part of the package; `leporello.testing` is for other people's tests."""
    files = [path for path in FILES if not path.is_relative_to(SOURCE / "testing")]
    used = {name for path in files for name in _named_modules(path) - {_module(path)}}
    alone = [name for name in map(_module, files) if name not in used]
    assert [name for name in alone if not any(fnmatch(name, entry) for entry in ENTRY_POINTS)] == []
    assert [entry for entry in ENTRY_POINTS if not any(fnmatch(name, entry) for name in alone)] == []


def test_every_module_says_what_it_is() -> None:
    """A stranger understands a file from its first lines."""
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    silent = [
        str(path.relative_to(ROOT)) for path, text in texts.items() if text and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def test_core_dependencies_are_few_and_open_above() -> None:
    """The core installs beside any agent: light packages, lower bounds only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[\w-]+", line)[0] for line in project["dependencies"]]  # type: ignore[index]
    assert names == ["click", "pyyaml", "orjson", "msgspec", "zstandard", "splintr-rs", "google-re2"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    for line in [*project["dependencies"], *extras]:
        assert not re.search(r"(?<![>])[<=~]=|<", line), line


def test_constraints_are_plain_pins() -> None:
    """Name and version only, so that every package index can serve them."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+", line)] == []


def test_make_has_the_promised_targets() -> None:
    """The targets that the documents name."""
    makefile = (ROOT / "Makefile").read_text()
    for target in ("test", "test-extended", "test-all", "test-fast", "lint", "types", "bench", "docs", "fuzz", "soak"):
        assert re.search(rf"^{target}:.*(setup|lint|test)", makefile, re.MULTILINE), target
    assert re.search(r"^demo: \$\(DEMO_READY\)$", makefile, re.MULTILINE), "the demo needs no tools for development"
    assert "make --no-print-directory test\n" in (ROOT / ".ci" / "run").read_text()


def test_no_secret_stands_in_the_repository() -> None:
    """Our own rules find nothing in our own files but vendors' keys made of words and marked as examples."""
    found = []
    for path in _tracked():
        if path.suffix in (".py", ".md", ".toml", ".yaml", ".txt", "") and path.parent.name != "redact":
            text = path.read_text(encoding="utf-8", errors="replace")
            for span in redact_spans(text):
                if span.kind in ("vendor_key", "web_token", "private_key") or "_" in span.kind:
                    line = text.count("\n", 0, span.start) + 1
                    found.append(f"{path.relative_to(ROOT)}:{line} {span.kind}")
    assert found == []
