"""The real model and its server, fetched once into build/local by Leporello's own code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.local import SMOLLM2, DownloadFailed, LocalServer, ServerJob, find_runtime, install

MODELS = Path(__file__).resolve().parents[2] / "build" / "local" / "models"
SERVED = 2_048


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the model file and the server's package (about 130 MB, fetched once)."""
    try:
        install(MODELS, lambda step, done=0, total=None: None)
    except DownloadFailed as error:
        pytest.skip(f"the local model is not in build/ and can't be fetched: {error}")
    return MODELS


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[LocalServer]:
    """A server with a window of 2,048 tokens, for all tests."""
    job = ServerJob(models / SMOLLM2.name, SERVED, find_runtime(models) or "")
    with LocalServer.start(job) as running:
        yield running
