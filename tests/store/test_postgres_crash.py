"""Killed clients and a crashed server leave exactly the state before or after (promises 1 and 11), on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.store.crash import Campaign
from tests.store.server import Server


@pytest.mark.parametrize("round", range(2))
def test_clients_killed_at_random_moments(server: Server, postgres_url: str, round: int) -> None:
    campaign = Campaign(postgres_url, seed=round)
    for _ in range(25):
        campaign.kill_once()
    assert sum(len(model.log) for model in campaign.models.values()) > 25


def test_a_server_that_crashes_loses_nothing_acknowledged(server: Server, postgres_url: str) -> None:
    campaign = Campaign(postgres_url, seed=77)
    server.checkpoint()
    for _ in range(3):
        campaign.crash_once(lambda: server.stop("immediate"), server.start)


@pytest.mark.soak
@pytest.mark.parametrize("round", range(100, 120))
def test_clients_killed_at_random_moments_for_long(server: Server, postgres_url: str, round: int) -> None:
    campaign = Campaign(postgres_url, seed=round)
    for _ in range(25):
        campaign.kill_once()
    for _ in range(3):
        campaign.crash_once(lambda: server.stop("immediate"), server.start)
