"""`kill -9` at any moment leaves exactly the state before or after (promises 1 and 11), on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.crash import Campaign


@pytest.mark.parametrize("round", range(6))
def test_killed_at_random_moments(tmp_path: Path, round: int) -> None:
    campaign = Campaign(f"sqlite:///{tmp_path}/store.db", seed=round)
    for _ in range(25):
        campaign.kill_once()
    assert sum(len(model.log) for model in campaign.models.values()) > 25


@pytest.mark.soak
@pytest.mark.parametrize("round", range(100, 180))
def test_killed_at_random_moments_for_long(tmp_path: Path, round: int) -> None:
    campaign = Campaign(f"sqlite:///{tmp_path}/store.db", seed=round)
    for _ in range(25):
        campaign.kill_once()
