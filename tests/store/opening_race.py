"""Many processes open the same new conversations at the same moment; each must get them."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

from leporello.conversation import Conversation
from leporello.errors import LeporelloError
from leporello.store import StoreOptions, open_store
from tests.store.crash import CONTEXT

PROCESSES = 4
ROUNDS = 25


def open_all(url: str, barrier: Any, pipe: Connection) -> None:
    """One of the racers: says what it got each time, or the error's name."""
    with open_store(url, StoreOptions(wait_seconds=60.0, connections=2)) as store:
        for number in range(ROUNDS):
            barrier.wait(60)
            try:
                pipe.send(Conversation.open(f"new-{number}", store=store).id)
            except LeporelloError as error:
                pipe.send(repr(error))


def race_to_open(url: str) -> None:
    """Everybody gets every conversation, and each is there once."""
    open_store(url).close()
    barrier = CONTEXT.Barrier(PROCESSES)
    racers = []
    for _ in range(PROCESSES):
        ours, theirs = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=open_all, args=(url, barrier, theirs))
        process.start()
        theirs.close()
        racers.append((process, ours))
    told = [[ours.recv() for _ in range(ROUNDS)] for _, ours in racers]
    for process, ours in racers:
        process.join()
        ours.close()
    assert told == [[f"new-{number}" for number in range(ROUNDS)]] * PROCESSES
    with open_store(url) as store:
        assert len(store.conversations.page(limit=100).conversations) == ROUNDS
