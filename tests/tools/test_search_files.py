"""`search_files`: with ripgrep and without, the same finds in the same order."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.tools.base import OutputLimits
from leporello.tools.python_search import glob_filter, iter_files, parse_rules
from leporello.tools.search_files import ripgrep, search_tool
from leporello.tools.toolbox import Toolbox

ENGINES = ["python", pytest.param("rg", marks=pytest.mark.skipif(ripgrep() is None, reason="ripgrep is not installed"))]


@pytest.fixture(params=ENGINES)
def shop(request: pytest.FixtureRequest, workshop: Any) -> Any:
    """The workshop, searching with one of the two."""
    workshop.box = Toolbox([search_tool(ripgrep() if request.param == "rg" else None)])
    return workshop


@pytest.fixture
def tree(shop: Any) -> Any:
    shop.write("README.md", "Hello\nsee docs\n")
    shop.write("src/app.py", "import os\n\n\ndef hello(name):\n    return name\n")
    shop.write("src/app_test.py", "def test_hello():\n    assert hello('x')\n")
    shop.write("src/web/index.ts", "const hello = 1\n")
    shop.write("build/out.py", "def hello(): pass\n")
    shop.write("secret.log", "hello\n")
    shop.write("src/keep.log", "hello\n")
    shop.write(".github/workflow.yml", "hello: yes\n")
    shop.write(".git/config", "hello\n")
    shop.write("image.png", b"\x89PNG\x00hello")
    shop.write(".gitignore", "build/\n*.log\n!keep.log\n")
    return shop


def test_content_is_found_by_line_in_the_order_of_paths(tree: Any) -> None:
    assert tree.text("search_files", pattern="hello").split("\n") == [
        ".github/workflow.yml:1: hello: yes",
        "src/app.py:4: def hello(name):",
        "src/app_test.py:1: def test_hello():",
        "src/app_test.py:2:     assert hello('x')",
        "src/keep.log:1: hello",
        "src/web/index.ts:1: const hello = 1",
    ]


def test_options_narrow_the_search(tree: Any) -> None:
    assert tree.text("search_files", pattern="hello", glob="*.py", path="src").count("\n") == 2
    assert tree.text("search_files", pattern="hello", glob="*.{ts,md}") == "src/web/index.ts:1: const hello = 1"
    assert tree.text("search_files", pattern="hello", glob="src/**/*.ts") == "src/web/index.ts:1: const hello = 1"
    assert "README.md:1: Hello" in tree.text("search_files", pattern="hello", ignore_case=True)
    assert tree.text("search_files", pattern="hello(", regex=False).count("\n") == 2
    assert tree.text("search_files", pattern="hello", path="src/app.py") == "src/app.py:4: def hello(name):"
    assert tree.text("search_files", pattern=r"^def \w+\(name") == "src/app.py:4: def hello(name):"
    assert tree.text("search_files", pattern="not there at all") == "(nothing found)"


def test_a_glob_does_not_bring_ignored_files_back(tree: Any) -> None:
    assert tree.text("search_files", pattern="hello", glob="*.log") == "src/keep.log:1: hello"
    assert "secret.log" not in tree.text("search_files", pattern="*.log", mode="files")


def test_lines_around_a_find(tree: Any) -> None:
    assert tree.text("search_files", pattern="def hello", context_lines=1).split("\n") == [
        "src/app.py:3- ",
        "src/app.py:4: def hello(name):",
        "src/app.py:5-     return name",
    ]


def test_files_are_found_by_glob_or_by_part_of_their_path(tree: Any) -> None:
    assert tree.text("search_files", pattern="*.py", mode="files") == "src/app.py\nsrc/app_test.py"
    assert tree.text("search_files", pattern="APP", mode="files") == "src/app.py\nsrc/app_test.py"
    assert tree.text("search_files", pattern="src/*.{py,log}", mode="files").count("\n") == 2
    assert tree.text("search_files", pattern="web/", mode="files") == "src/web/index.ts"
    assert tree.text("search_files", pattern="*.ts", mode="files", path="src") == "src/web/index.ts"


def test_many_finds_come_in_parts_that_join_without_gap(shop: Any) -> None:
    shop.write("a.txt", "".join(f"hit {n}\n" for n in range(250)))
    rows: list[str] = []
    offset = 0
    while True:
        part = shop.text("search_files", pattern="hit", offset=offset, limit=100)
        more = re.search(r"\n\[… there are more finds; go on with offset=(\d+)", part)
        rows += part[: more.start() if more else None].split("\n")
        if more is None:
            break
        offset = int(more[1])
    assert rows == [f"a.txt:{n + 1}: hit {n}" for n in range(250)]


def test_a_small_window_gets_less_and_can_go_on(shop: Any) -> None:
    shop.write("a.txt", "".join(f"hit {n}\n" for n in range(1_000)))
    small = shop.with_context(limits=OutputLimits.for_window(4_000))
    first = small.text("search_files", pattern="hit", limit=1_000)
    assert len(first) < 2_300
    offset = int(re.search(r"offset=(\d+)", first)[1])  # type: ignore[index]
    assert small.text("search_files", pattern="hit", offset=offset).startswith(f"a.txt:{offset + 1}: hit {offset}\n")


def test_long_lines_are_cut_visibly_around_the_find(shop: Any) -> None:
    shop.write("min.js", "a" * 5_000 + "NEEDLE" + "b" * 5_000)
    text = shop.text("search_files", pattern="NEEDLE")
    assert "[… 4,900 characters …]" in text
    assert "NEEDLE" in text
    assert len(text) < 500


def test_bad_patterns_are_answered(shop: Any) -> None:
    text = shop.error("search_files", pattern="hello(")
    assert "regex" in text
    assert "regex to false" in text
    assert "empty" in shop.error("search_files", pattern="")
    assert "line break" in shop.error("search_files", pattern="a\nb")
    assert "Similar names there: src" in _with(shop, "src/a").error("search_files", pattern="x", path="scr")
    assert "not a valid glob" in shop.error("search_files", pattern="x", glob="[a")


def _with(shop: Any, name: str) -> Any:
    shop.write(name, "x")
    return shop


def test_a_pattern_that_explodes_can_be_stopped(workshop: Any) -> None:
    """Python's regular expressions take for ever on this one; the search is a process that can be killed."""
    workshop.box = Toolbox([search_tool(None)])
    workshop.write("a.txt", "a" * 60 + "!")
    timer = threading.Timer(0.5, workshop.context.cancel.cancel)
    timer.start()
    result = workshop.run("search_files", pattern="(a+)+$")
    timer.join()
    assert result.is_error
    assert "stopped before its end" in result.text


def test_a_search_in_a_saved_output_is_exempt(shop: Any) -> None:
    saved = shop.context.outputs / "big.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text("needle\n")
    result = shop.run("search_files", pattern="needle", path=str(saved))
    assert result.exempt
    assert "needle" in result.text


NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.log", "c d", "x", "#c", "!d", "a[b"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "*", "**", "/", "?", "[ab]", "[!a]", ".py", "!", "#", "\\", " ", "x", "[a-c]"]),
    min_size=1,
    max_size=6,
).map("".join)


@given(
    files=st.sets(PATHS, min_size=1, max_size=6),
    top=st.lists(PATTERNS, max_size=4),
    deep=st.lists(PATTERNS, max_size=2),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_ignore_files_mean_what_git_says(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], top: list[str], deep: list[str]
) -> None:
    """Against git itself, on random patterns and files (plain ASCII: for git `?` is one byte, for us one character)."""
    root = tmp_path_factory.mktemp("repo")
    for name in sorted(files):
        path = root / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    if (root / "a").is_dir():
        (root / "a" / ".gitignore").write_text("\n".join(deep) + "\n")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    expected = sorted(name for name in listed.stdout.decode().split("\0") if name)
    assert sorted(name for _, name in iter_files(root)) == expected


@given(st.text(max_size=30))
def test_any_ignore_file_can_be_read(text: str) -> None:
    for rule in parse_rules(text):
        rule.matches("a/b", False)


def test_globs_with_alternatives() -> None:
    assert glob_filter("*.{ts,tsx}").fullmatch("src/a.tsx")
    assert glob_filter("{src,lib}/**/*.py").fullmatch("lib/x/y.py")
    assert not glob_filter("{src,lib}/**/*.py").fullmatch("doc/x/y.py")
    assert glob_filter("a{b}").fullmatch("a{b}")


def test_ignore_files_above_the_searched_folder_count(shop: Any) -> None:
    shop.write(".gitignore", "*.tmp\n")
    shop.write("sub/a.tmp", "hello")
    shop.write("sub/b.txt", "hello")
    (shop.workdir / ".git").mkdir()
    assert shop.text("search_files", pattern="hello", path="sub") == "sub/b.txt:1: hello"


def test_a_find_is_a_line_of_the_file(tree: Any) -> None:
    """Every row names a file and a line that really holds the text."""
    for row in tree.text("search_files", pattern="h").split("\n"):
        name, number, text = re.fullmatch(r"(.+?):(\d+): (.*)", row).groups()  # type: ignore[union-attr]
        assert (Path(tree.workdir) / name).read_text().split("\n")[int(number) - 1] == text
