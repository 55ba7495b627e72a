"""The public door: every type in a public signature is public, signatures change only on purpose, old names warn."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import leporello
from leporello import Conversation, Summary, SummaryTask, compress
from leporello.deprecation import MOVED, renamed_parameter
from tests.repo.test_documents import docs_script

DOCS = docs_script()
PUBLIC = [getattr(leporello, name) for name in leporello.__all__]
REGENERATE = (
    "The public signatures changed. Callers depend on them: keep the old form working (leporello/deprecation.py), say "
    "so in CHANGELOG.md, and then accept the change with `.venv/bin/python scripts/docs.py --freeze`."
)


class Silent:
    """A summariser that writes nothing."""

    def __init__(self) -> None:
        self.tasks = 0

    def summarise(self, task: SummaryTask) -> Summary:
        """No narrative: the fold is built from facts alone."""
        self.tasks += 1
        return Summary(None)


def test_signatures_change_only_on_purpose() -> None:
    """Whoever changes what callers rely on sees it, and says so."""
    assert DOCS.FROZEN.read_text(encoding="utf-8") == DOCS.signatures(), REGENERATE


def test_every_public_name_has_its_place_on_the_page() -> None:
    """docs/reference/library.md shows each name once, with what it is for."""
    listed = [name for names in DOCS.LIBRARY.values() for name in names.split()]
    assert sorted(listed) == sorted(leporello.__all__)
    assert {*DOCS.OPAQUE, *DOCS.MADE_FOR_YOU} <= set(leporello.__all__)
    assert [
        name for name in listed if name not in ("Message", "Messages") and not getattr(leporello, name).__doc__
    ] == []


def _functions(value: object) -> Iterator[tuple[str, object]]:
    name = getattr(value, "__name__", "")
    if inspect.isfunction(value):
        yield name, value
    if isinstance(value, type) and name not in DOCS.OPAQUE:
        for member, raw in DOCS._declared(value).items():
            hidden = f"{name}.{member}" in DOCS.INTERNAL_MEMBERS or (member == "__init__" and name in DOCS.MADE_FOR_YOU)
            raw = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
            if inspect.isfunction(raw) and not hidden and (member == "__init__" or not member.startswith("_")):
                yield f"{name}.{member}", raw


def _types(hint: object) -> Iterator[type]:
    if isinstance(hint, list):
        for part in hint:
            yield from _types(part)
    if isinstance(hint, type) and hint.__module__.split(".")[0] == "leporello":
        yield hint
    for part in typing.get_args(hint):
        yield from _types(part)


def test_what_the_door_takes_and_returns_is_public() -> None:
    """A caller can write down the type of everything that goes in and comes out."""
    internal = [
        f"{where}: {found.__module__}.{found.__name__}"
        for value in PUBLIC
        for where, function in _functions(value)
        for hint in typing.get_type_hints(function).values()
        for found in _types(hint)
        if found not in PUBLIC
    ]
    assert internal == []


def test_importing_the_package_loads_nothing() -> None:
    """`import leporello` is cheap: a name's module is loaded when the name is used."""
    code = "import sys, leporello; print([name for name in sys.modules if name.startswith('leporello.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['leporello.deprecation']"


def test_narrator_is_the_old_name_of_summariser(tmp_path: Path) -> None:
    """What 0.1.0 called `narrator` does its work for one more release, and says what it is called now."""
    messages = [{"role": "user", "content": f"Look at file {number}. " + "It is long. " * 60} for number in range(80)]
    listening = Silent()
    with pytest.warns(DeprecationWarning, match=r"compress\(narrator=\) is now called summariser=") as warned:
        compress(messages, window=8_000, narrator=listening)  # type: ignore[call-arg]
    assert listening.tasks
    assert warned[0].filename == __file__
    with (
        pytest.warns(DeprecationWarning, match="summariser="),
        Conversation.open(window=8_000, store=str(tmp_path / "a.db"), narrator=listening) as talk,  # type: ignore[call-arg]
    ):
        assert talk.runtime.hooks.summariser is listening


def test_old_and_new_name_together_are_refused() -> None:
    """Nobody has to guess which one counts."""

    @renamed_parameter("old", "new")
    def add(*, new: int = 0) -> int:
        return new + 1

    assert add(new=1) == 2
    with pytest.raises(TypeError, match="new= or its old name old=, not both"):
        add(new=1, old=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in MOVED.items() for name in names])
def test_documented_imports_of_the_last_release_work(module: str, name: str) -> None:
    """A program written with the documentation of 0.1.0 runs, and is told where the name is now."""
    home, _, current = MOVED[module][name].partition(":")
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{name} is now called {home}\.{current};") as warned:
        exec(compile(f"from {module} import {name} as found", __file__, "exec"), names := {})  # type: ignore[var-annotated]
    assert names["found"] is getattr(importlib.import_module(home), current)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("module", MOVED)
def test_nothing_else_is_found_in_old_modules(module: str) -> None:
    """A mistyped name is an ordinary error."""
    with pytest.raises(ImportError, match="nonsense"):
        exec(f"from {module} import nonsense")
