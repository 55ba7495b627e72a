"""Work that is done beside the answering: on a durable queue that all workers share, or in threads of one process.

    queue = open_queue(url)
    queue.submit(Job("fold", key="build-42:3", facts={...}))

A job may be lost, done twice or done late; whoever does it looks at the store first. What happens once must be decided
there. So a queue needs no promise beyond: what was submitted is tried, also when the worker that took it dies.
"""

from __future__ import annotations

from leporello.errors import InputError
from leporello.jobs.base import Handler, Job, Queue
from leporello.jobs.threads import ThreadQueue

__all__ = ["Handler", "Job", "Queue", "ThreadQueue", "open_queue"]


def open_queue(url: str) -> Queue:
    """The queue that belongs to a store: PostgreSQL keeps one for all workers, anything else has threads."""
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        return ThreadQueue()
    try:
        # An optional extra, and slow to import: only workers on PostgreSQL pay for it.
        from leporello.jobs.postgres import PostgresQueue  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"The queue needs more packages ({error.name}): pip install 'leporello[postgres]'") from None
    return PostgresQueue(url)
