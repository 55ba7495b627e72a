"""What the documents show is true: examples run, generated parts are fresh, links lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from leporello.config import SETTINGS, Home, load_settings
from tests.conftest import RunCli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^ *from (leporello[\w.]*) import ([\w, ]+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


def blocks(language: str) -> list[tuple[str, str]]:
    """Every code block of a language that stands for itself, with a name for the report."""
    found = []
    for page in PAGES:
        if page in TUTORIALS:
            continue
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            if match[1] == language:
                found.append((f"{page.relative_to(ROOT)}:{number}", match[2]))
    return found


def docs_script() -> ModuleType:
    """`scripts/docs.py` as a module."""
    spec = importlib.util.spec_from_file_location("leporello_docs_script", ROOT / "scripts" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("where", "code"), blocks("python"), ids=[name for name, _ in blocks("python")])
def test_python_examples_run(where: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who pastes an example sees it work."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, where, "exec"), {"__name__": "example"})


@pytest.mark.parametrize(("where", "text"), blocks("yaml"), ids=[name for name, _ in blocks("yaml")])
def test_yaml_examples_are_valid_settings(where: str, text: str, tmp_path: Path) -> None:
    """Settings that the documents show are accepted."""
    home = Home(tmp_path)
    home.config_file.write_text(text, encoding="utf-8")
    load_settings(environ={}, home=home)


def _imports() -> list[tuple[str, str]]:
    """Every module and name that a page imports, in blocks that are executed and in others."""
    found = set()
    for page in PAGES:
        for module, names in IMPORT.findall(page.read_text(encoding="utf-8")):
            found |= {(module, name.strip()) for name in names.split(",")}
    return sorted(found)


@pytest.mark.parametrize(("module", "name"), _imports())
def test_imports_on_pages_are_right(module: str, name: str) -> None:
    """The name stands in the module's source: not every block can be executed, and not every framework is installed."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert name in defined | imported


def _session(path: Path) -> None:
    messages = [{"role": "user", "content": "Count the files."}]
    for number in range(200):
        messages.append({"role": "assistant", "content": f"Step {number}: " + "looking at the next folder. " * 40})
        messages.append({"role": "user", "content": f"Go on with folder {number}. " + "It holds many files. " * 40})
    path.write_text(json.dumps(messages))


@pytest.mark.parametrize(("where", "text"), blocks("console"), ids=[name for name, _ in blocks("console")])
def test_console_examples_run(
    where: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    """Each `$ leporello ...` line ends well in a folder with a `session.json`."""
    monkeypatch.chdir(tmp_path)
    _session(tmp_path / "session.json")
    _run_commands(where, text, run_cli)


def _run_commands(where: str, text: str, run_cli: RunCli) -> None:
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ leporello ")]
    assert lines, f"{where} shows no command"
    for line in lines:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO())  # a chat ends where its input ends
            ran = run_cli(*shlex.split(line)[1:])
        assert ran.code in (0, 3), ran.err


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_tutorials_work_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    """Each step finds what the steps before it left: program and commands run in one folder, in their order."""
    monkeypatch.chdir(tmp_path)
    steps = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert {language for language, _ in steps} == {"python", "console"}
    for number, (language, text) in enumerate(steps):
        if language == "python":
            exec(compile(text, f"{page.name}:{number}", "exec"), {"__name__": "example"})
        else:
            _run_commands(f"{page.name}:{number}", text, run_cli)


def test_readme_is_short_and_names_the_two_commands() -> None:
    """The front page stays a page: two screens, with a picture and with what it can't do."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert re.search(r"^!\[.+\]\(docs/images/\w+\.svg\)$", text, re.MULTILINE)
    assert "## What it does not do" in text
    assert "make demo" in text
    assert "make test" in text


def test_what_a_change_touches_is_there() -> None:
    """The table of CONTRIBUTING.md names files that exist."""
    table = re.findall(r"^\|.*\|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"`(\w+/[\w/]+\.py)`", "\n".join(table))
    assert len(named) > 10
    assert [name for name in named if "NAME" not in name and not (ROOT / "src" / "leporello" / name).is_file()] == []


def test_generated_parts_are_fresh() -> None:
    """`make docs` was run after the last change of settings or commands."""
    assert [str(page.relative_to(ROOT)) for page in docs_script().stale_pages()] == []


def test_every_setting_is_documented() -> None:
    """No setting without its line, and no line without its setting."""
    text = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([\w.<>]+)` \| .+ \| .+ \| .+ \|$", text, re.MULTILINE)
    assert documented == [setting.name for setting in SETTINGS]
    assert all(setting.help.endswith(".") for setting in SETTINGS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links name files that exist, and anchors name headings."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name} links to {target}"


def test_every_page_can_be_found() -> None:
    """`docs/index.md` is the map: it links to every page, in whatever folder."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in LINK.findall(index.read_text())}
    lost = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if page not in linked | {index}]
    assert lost == []


def test_every_page_is_of_one_kind() -> None:
    """A page stands in a folder that the map has a heading for."""
    kinds = {*docs_script().KINDS, "decisions"}
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if page.parts[0] not in kinds and str(page) != "index.md"] == []
