"""Faults: proof that the promise tests can fail.

A promise test names one line of the program and a way to break it:

    @pytest.mark.fault("the size check is left out", "compaction/outcome.py", old="if saved < least:", new="if False:")

For each mark a second test is collected. It copies the package, changes that line, runs the promise test against the
copy in a process of its own, and passes only if the promise test fails there by an assertion.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import leporello

PACKAGE = Path(leporello.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
COPY_VARIABLE = "PROMISES_RUN_ON_COPY"
"""Set in the process that runs a promise test on a broken copy: the folder of the copy."""

QUICK_START = ("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout")
"""Plugins cost a second each time; only those whose settings stand in the project file are loaded."""

COPY = os.environ.get(COPY_VARIABLE, "")

if COPY:
    # A fault shows up soon or not at all, and nobody reads a shrunk example of it.
    settings.register_profile(
        "fault",
        max_examples=60,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("fault")


@dataclass(frozen=True)
class Fault:
    """One line that breaks the program, and the promise test that must notice."""

    name: str
    module: str
    old: str
    new: str

    @classmethod
    def of(cls, mark: pytest.Mark) -> Fault:
        name, module = mark.args
        return cls(name, module, mark.kwargs["old"], mark.kwargs["new"])


class FaultItem(pytest.Item):
    """The generated test of one fault."""

    def __init__(self, *, promise: pytest.Item, fault: Fault, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.promise = promise
        self.fault = fault

    def runtest(self) -> None:
        with tempfile.TemporaryDirectory(prefix="fault-") as folder:
            copy = Path(folder)
            self._break(copy)
            failures = self._run(copy)
        if failures != ["AssertionError"]:
            raise FaultNotNoticed(f"{self.promise.name} ended with {failures or 'success'} under: {self.fault.name}")

    def _break(self, copy: Path) -> None:
        shutil.copytree(PACKAGE, copy / "leporello", ignore=shutil.ignore_patterns("*.pyc.*"))
        module = copy / "leporello" / self.fault.module
        text = module.read_text(encoding="utf-8")
        if text.count(self.fault.old) != 1:
            raise FaultNotNoticed(
                f"{self.fault.old!r} occurs {text.count(self.fault.old)} times in {self.fault.module}"
            )
        module.write_text(text.replace(self.fault.old, self.fault.new), encoding="utf-8")

    def _run(self, copy: Path) -> list[str]:
        outcome = copy / "outcome.json"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", *QUICK_START, self.promise.nodeid],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(copy),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                COPY_VARIABLE: str(copy),
            },
            capture_output=True,
            check=False,
            timeout=300,
        )
        found: list[str] = json.loads(outcome.read_text(encoding="utf-8")) if outcome.exists() else ["no run at all"]
        return found

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        if isinstance(excinfo.value, FaultNotNoticed):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, f"{self.promise.name} fails when {self.fault.name}"


class FaultNotNoticed(Exception):
    """The promise test passed, or failed for another reason than a broken promise."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(name, module, old, new): a one-line fault under which the test must fail")
    if COPY and not Path(leporello.__file__).is_relative_to(COPY):
        pytest.exit(f"the copy in {COPY} is not the package that was imported", returncode=3)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not COPY:
        items.extend(list(_fault_items(items)))


def _fault_items(items: Iterable[pytest.Item]) -> Iterable[FaultItem]:
    seen: set[tuple[str, Fault]] = set()
    for item in items:
        for mark in item.iter_markers("fault"):
            fault = Fault.of(mark)
            test = item.nodeid.partition("[")[0]
            if (test, fault) in seen:
                # One parameter of a test is proof enough.
                continue
            seen.add((test, fault))
            name = f"{item.name}[breaks when {fault.name}]"
            assert item.parent is not None
            yield FaultItem.from_parent(item.parent, name=name, promise=item, fault=fault)


def pytest_exception_interact(call: pytest.CallInfo[object], report: pytest.CollectReport | pytest.TestReport) -> None:
    """In a run on a copy: note by what the test failed."""
    if not COPY or call.excinfo is None:
        return
    failed_by = call.excinfo.type
    kind = "AssertionError" if issubclass(failed_by, (AssertionError, pytest.fail.Exception)) else failed_by.__name__
    if getattr(report, "when", "") != "call":
        kind = f"{kind} outside the test"
    (Path(COPY) / "outcome.json").write_text(json.dumps([kind]), encoding="utf-8")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a run on a copy: a test that passed leaves an empty outcome."""
    outcome = Path(COPY) / "outcome.json" if COPY else None
    if outcome is not None and not outcome.exists() and session.testscollected:
        outcome.write_text("[]", encoding="utf-8")
