"""Shared by all tests: hypothesis profiles, real sessions when they are there, and a runner for the command line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Failed assertions inside the contract show their values; whoever imports it first must not come before this.
pytest.register_assert_rewrite("tests.store.contract")

from leporello.cli import main  # noqa: E402
from tests.tiers import mark_tiers  # noqa: E402

settings.register_profile("fast", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


LONG = ("verify", "adapters", "scaleout", "repo", "plugins", "local")
"""Folders with files that take a minute or more: begun first, so that no worker is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Within a folder the order stays as it is."""
    mark_tiers(items)
    turn = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: turn.get(item.nodeid.split("/")[1], len(LONG)))


_numbers = itertools.count()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _own_home(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings or data of the person who runs it."""
    for variable in [name for name in os.environ if name.startswith("LEPORELLO_") and "__" in name]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("LEPORELLO_HOME", str(_homes / f"home-{next(_numbers)}"))


@pytest.fixture(scope="session")
def real_sessions() -> Path:
    """The folder with recorded sessions, one sub-folder per format."""
    folder = os.environ.get("LEPORELLO_DATA", "")
    if not folder:
        pytest.skip("LEPORELLO_DATA is not set: it names a folder with recorded sessions")
    if not Path(folder).is_dir():
        pytest.fail(f"LEPORELLO_DATA names {folder}, which is not a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def banks() -> Path:
    """The folder with question banks over the recorded sessions."""
    folder = os.environ.get("LEPORELLO_BANKS", "")
    if not folder:
        pytest.skip("LEPORELLO_BANKS is not set: it names a folder with question banks")
    if not Path(folder).is_dir():
        pytest.fail(f"LEPORELLO_BANKS names {folder}, which is not a folder")
    return Path(folder)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the program printed and how it ended."""

    code: int
    out: str
    err: str


RunCli = Callable[..., Ran]


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str]) -> RunCli:
    """Runs `leporello` with arguments inside this process, in an empty home of its own."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
