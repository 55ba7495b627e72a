"""Four workers on one database are one gateway to a key's day, whatever becomes of one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from leporello.store import open_store
from tests.scaleout.plant import MODEL, plant, until

DAY_TOKENS = 10_000
ONE = 2_000
"""What each request may use: four of them and its text fit into the day."""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_requests_at_four_workers_share_a_day(tmp_path: Path, database: str, kind: str) -> None:
    """Without a key of its own a client's day is that of the gateway; the workers hear of each other by the store."""
    url = database if kind == "postgres" else f"sqlite:///{tmp_path}/shared.db"
    flags = {"gateway.tokens_per_day": DAY_TOKENS}
    with plant(tmp_path, url, workers=4, flags=flags) as made, open_store(url) as store:

        def ask(number: int) -> int:
            body = {"model": MODEL, "max_tokens": ONE, "messages": [{"role": "user", "content": f"Number {number}"}]}
            place = made.workers[number % len(made.workers)]
            headers = {"authorization": "Bearer mine"}
            try:
                return httpx2.post(
                    f"{place.url}/v1/chat/completions", json=body, headers=headers, timeout=240
                ).status_code
            except httpx2.TransportError:
                return 0

        def reserved() -> int:
            with store.database.read() as tx:
                row = tx.row("SELECT count(*) FROM reservations WHERE id <> '' AND expires > ?", store.database.now())
            return 0 if row is None else int(row[0])

        made.model.held.set()
        with ThreadPoolExecutor(16) as clients:
            asked = [clients.submit(ask, number) for number in range(16)]
            until(lambda: sum(answer.done() for answer in asked) == 12, "those that pass the day are refused")
            assert {answer.result() for answer in asked if answer.done()} == {429}
            until(lambda: len(made.model.asked) == 4, "the others reach the model")
            assert reserved() == 4
            # What a killed worker had reserved is held for a while, and then no longer.
            dead = next(number for number, answer in enumerate(asked) if not answer.done()) % 4
            lost = sum(not answer.done() and number % 4 == dead for number, answer in enumerate(asked))
            made.workers[dead].kill()
            assert reserved() == 4
            until(lambda: reserved() == 4 - lost, "the reservation of the killed worker ends, those of the others last")
            made.model.held.clear()
            assert sorted(answer.result() for answer in asked) == [0] * lost + [200] * (4 - lost) + [429] * 12
        until(lambda: reserved() == 0, "what ended is released")
