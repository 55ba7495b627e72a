"""A real Chromium for the dashboard's tests. Whatever a test does, its pages must stay clean: see `Watch`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.dashboard.watch import Watch

HOW = "Chromium is missing; install it (Debian, Ubuntu: apt-get install chromium) and run the tests again"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
PATIENCE = 60_000
"""Milliseconds until a condition counts as never met: machines may be slow, tests are not about speed."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests. It ends with the file: its event loop would be in the way of others'."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip(HOW)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=list(FLAGS), timeout=PATIENCE)
        yield made
        made.close()


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watch]:
    """Opens pages, and checks at the end that nothing happened that never may."""
    made = Watch(browser, PATIENCE)
    yield made
    made.close()


@pytest.fixture
def page(watch: Watch) -> Page:
    """A page of ordinary size in light colours."""
    return watch.open()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a file of tests keeps its store."""
    return tmp_path_factory.mktemp("dashboard")
