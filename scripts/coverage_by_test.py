"""A pytest plugin: which lines each test ran, and how long it took. Needs a run under `coverage run`.

`coverage` has this for names of functions only; here a test is what pytest calls it, so that it can be run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

TAKEN: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fixtures count as part of the test."""
    measuring = coverage.Coverage.current()
    assert measuring is not None
    measuring.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Only tests that pass can say something about a change."""
    if report.when == "call" and report.passed:
        TAKEN[report.nodeid] = TAKEN.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    Path("seconds.json").write_text(json.dumps(TAKEN), encoding="utf-8")
