"""Shared by the gateway's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .clerks import close_clients


@pytest.fixture(autouse=True)
def _clients_end() -> Iterator[None]:
    """No client outlives its test."""
    yield
    close_clients()
