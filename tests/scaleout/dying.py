"""A worker of the queue that is killed at work; in a file of its own, so that another process can import it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from multiprocessing.synchronize import Event
from typing import Any

from leporello.gateway.background import QueuedJob, open_queue


def die_at_work(url: str, began: Event) -> None:
    """A worker that takes a job and never ends it."""

    def work(_: Mapping[str, Any]) -> None:
        began.set()
        time.sleep(600)

    async def serve() -> None:
        queue = open_queue(url)
        async with queue.serving({"work": work}):
            assert await asyncio.to_thread(queue.submit, QueuedJob("work", "key"))
            await asyncio.sleep(600)

    asyncio.run(serve())
