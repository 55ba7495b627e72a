"""One agent conversation in this process: letters come in, whoever listens hears what happens, each is answered once.

A letter is in the store before anything else happens. Whoever gets the conversation's turn answers all letters that
wait, in the order of their arrival; it may be this process or another one. While another one has the turn, this one
looks now and then how its own letters ended, and takes the turn over when its holder is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from leporello.agent.agent import Agent
from leporello.agent.events import AgentEvent
from leporello.cancel import CancelToken
from leporello.conversation.compact import owner_name
from leporello.errors import InboxFull, LeaseLost, LetterConflict, NotFound, StoreError
from leporello.gateway.api_errors import refuse
from leporello.gateway.sessions.message_handler import MessageHandler, MessageOutcome
from leporello.store import Fence, Store
from leporello.store.records import Lease
from leporello.tools.terminal import BackgroundJobs

P = ParamSpec("P")
T = TypeVar("T")
MOST_WAITING = 32
TURN_SECONDS = 8.0
"""A holder that was silent for so long is thought dead."""
BEAT_SECONDS = 1.5
LOOK_SECONDS = 0.05
SELDOM_SECONDS = 0.4
"""Between two looks at a turn that another worker has."""
AGAIN_SECONDS = 1.0
GONE = MessageOutcome("interrupted", "The conversation was deleted before this message was answered.", "interrupted")
log = logging.getLogger("leporello.gateway")


@dataclass(slots=True)
class PendingMessage:
    """A letter somebody here waits for; anybody may watch."""

    id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    outcome: MessageOutcome | None = None
    lost: bool = False
    """This worker stops: another one answers, and whoever waits here must ask again."""
    cancel: CancelToken = field(default_factory=CancelToken)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(
        self, event: dict[str, Any] | None = None, outcome: MessageOutcome | None = None, *, lost: bool = False
    ) -> None:
        """Something happened; called on the event loop."""
        if event is not None:
            self.events.append(event)
        if outcome is not None:
            self.outcome = outcome
        self.lost = lost
        self._changed.set()
        self._changed = asyncio.Event()

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """Everything that happened and will happen, until the outcome is there."""
        seen = 0
        while True:
            changed = self._changed
            for event in self.events[seen:]:
                yield event
            seen = len(self.events)
            if self.outcome is not None or self.lost:
                return
            await changed.wait()

    async def ended(self) -> MessageOutcome:
        """Wait for the outcome."""
        while self.outcome is None:
            if self.lost:
                raise refuse(503, "stopping", "This worker stops and another one answers: send the message again.", 1)
            await self._changed.wait()
        return self.outcome


@dataclass(frozen=True, slots=True)
class WorkerServices:
    """What all desks of a process share."""

    store: Store
    turns: Executor
    """Threads for the agents, which wait for their models."""
    queries: Executor
    """Threads for short questions to the store, which must not wait behind the agents."""


class ConversationWorker:
    """A conversation with its agent, as far as this process has to do with it."""

    def __init__(self, id: str, around: WorkerServices, open_agent: Callable[[Store, BackgroundJobs], Agent]) -> None:
        self.id = id
        self.used = time.monotonic()
        self._around = around
        self._store = around.store
        self._fence = Fence()
        self._mine = around.store.behind(self._fence)
        self.reader = MessageHandler(id, self._mine, open_agent)
        self._line = asyncio.Lock()
        self._jobs: dict[str, PendingMessage] = {}
        self._running: PendingMessage | None = None
        self._task: asyncio.Task[None] | None = None
        self._rescuing = False
        self.closed = False

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything."""
        return self._task is None and not self._line.locked()

    # -- what clients ask for

    async def post(self, text: str, id: str) -> PendingMessage:
        """Take a letter in; when this returns it is stored. One that was taken in before is not handled again.

        A desk that was closed meanwhile has stored it, too, but nobody here will hear how it ended.
        """
        self.used = time.monotonic()
        try:
            inbox_message = await self._query(self._store.inbox.enqueue, self.id, id, text, MOST_WAITING)
        except InboxFull:
            raise refuse(
                429, "too_many_waiting", f"{MOST_WAITING} messages wait for this conversation already.", 5
            ) from None
        except LetterConflict:
            raise refuse(
                409,
                "id_reused",
                "A message with this id and another text was sent before, and this one was not taken in. "
                "Send it with a new id.",
            ) from None
        # One that came to another worker may be under way here: whoever asks for it again waits for that.
        running = self._running if self._running is not None and self._running.id == id else None
        job = self._jobs.get(id) or running or PendingMessage(id)
        if inbox_message.outcome is not None:
            job.tell(outcome=MessageOutcome(**inbox_message.outcome))
        elif not self.closed:
            self._jobs[id] = job
            self._wake()
        return job

    async def run(self, work: Callable[[Agent], T]) -> T:
        """Something else with the agent, in line with the messages."""
        self.used = time.monotonic()
        return await self.turn(lambda _: self.reader.run(work))

    async def turn(self, work: Callable[[Store], T]) -> T:
        """Something in a turn of its own; the store it is given lets it write as long as the turn lasts."""
        async with self._line:
            while (lease := await self._take()) is None:
                await asyncio.sleep(SELDOM_SECONDS)
            async with self._holding(lease):
                return await self._thread(work, self._mine)

    async def turn_if_free(self, work: Callable[[Store], T]) -> T | None:
        """The same unless somebody has the turn, here or elsewhere: then None, at once."""
        if not self.idle:
            return None
        async with self._line:
            lease = await self._take()
            if lease is None:
                return None
            async with self._holding(lease):
                return await self._thread(work, self._mine)

    async def cancel(self) -> int:
        """Stop what is under way or waits, wherever it does; how many letters that were."""
        found = await self._query(self._store.inbox.cancel, self.id)
        for job in (*self._jobs.values(), *((self._running,) if self._running else ())):
            job.cancel.cancel()
        if found:
            self.rescue()
        return found

    def rescue(self) -> None:
        """Answer letters that wait, though nobody here waits for them: their worker may be dead."""
        self._rescuing = True
        self._wake()

    # -- the end

    async def drain(self, seconds: float | None = None) -> None:
        """Wait for all letters that were taken in here; those left after a time are handed over to other workers."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=seconds)

    async def close(self, outcome: MessageOutcome | None = None) -> None:
        """Let go. What is under way is broken off and can't write any more: another worker goes on with it.

        Whoever waits here is told the outcome, if it is known already.
        """
        self.closed = True
        if self._task is not None:
            self._fence.lease = None
            if self._running is not None:
                self._running.cancel.cancel()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for id in list(self._jobs):
            self._jobs.pop(id).tell(outcome=outcome, lost=outcome is None)
        async with self._line:
            await self._query(self.reader.close)

    # -- answering

    def _wake(self) -> None:
        if self._task is None and not self.closed:
            self._task = asyncio.create_task(self._serve())
            self._task.add_done_callback(self._slept)

    def _slept(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # A bug, not the store: said aloud. The letter is tried again, and given up after a few times.
            log.error('{"problem": "desk", "kind": "%s"}', type(error).__name__, exc_info=error)
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._wake)
        elif self._jobs or self._rescuing:
            self._wake()

    async def _serve(self) -> None:
        pause = LOOK_SECONDS
        while self._jobs or self._rescuing:
            try:
                async with self._line:
                    lease = await self._take()
                    if lease is not None:
                        async with self._holding(lease):
                            await self._answer_all()
                self._rescuing = False
                await self._look()
            except NotFound:
                self._conversation_is_gone()
            except StoreError as error:
                log.warning('{"problem": "store", "kind": "%s"}', type(error).__name__)
                await asyncio.sleep(AGAIN_SECONDS)
            if self._jobs:
                await asyncio.sleep(pause)
                pause = min(2 * pause, SELDOM_SECONDS)

    async def _answer_all(self) -> None:
        while waiting := await self._query(self._store.inbox.waiting, self.id, 1):
            inbox_message = waiting[0]
            job = self._running = self._jobs.get(inbox_message.id) or PendingMessage(inbox_message.id)
            # A new one for each attempt: the last may have been stopped because its turn was lost, not by a client.
            job.cancel = CancelToken()
            if inbox_message.cancelled:
                job.cancel.cancel()
            try:
                outcome = await self._thread(self.reader.answer, inbox_message, job.cancel, _telling(job))
            finally:
                self._running = None
                self.used = time.monotonic()
            self._jobs.pop(inbox_message.id, None)
            job.tell(outcome=outcome)

    async def _look(self) -> None:
        """Hear how letters ended that another worker answered."""
        for id, job in list(self._jobs.items()):
            inbox_message = await self._query(self._store.inbox.get, self.id, id)
            if inbox_message.outcome is not None:
                self._jobs.pop(id, None)
                job.tell(outcome=MessageOutcome(**inbox_message.outcome))

    def _conversation_is_gone(self) -> None:
        self._rescuing = False
        for id in list(self._jobs):
            self._jobs.pop(id).tell(outcome=GONE)

    # -- the turn

    async def _take(self) -> Lease | None:
        return await self._query(self._store.turns.acquire, self.id, owner_name(), TURN_SECONDS)

    @asynccontextmanager
    async def _holding(self, lease: Lease) -> AsyncIterator[None]:
        self._fence.lease = lease
        beat = asyncio.create_task(self._beat(lease))
        try:
            yield
        finally:
            self._fence.lease = None
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            with suppress(StoreError):
                await self._query(self._store.turns.release, lease)

    async def _beat(self, lease: Lease) -> None:
        """Say that we are alive, and hear what is not wanted any more."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            running = self._running
            try:
                await self._query(self._store.turns.renew, lease, TURN_SECONDS)
                stop = running is not None and running.id in await self._query(self._store.inbox.cancelled, self.id)
            except (LeaseLost, NotFound):
                # Whatever is under way can't be written any more.
                stop = True
            except StoreError:
                continue
            if running is not None and stop:
                running.cancel.cancel()

    # -- threads

    async def _query(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._around.queries, lambda: work(*args, **kwargs))

    async def _thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._around.turns, lambda: work(*args, **kwargs))


def _telling(job: PendingMessage) -> Callable[[AgentEvent], None]:
    """Passes what happens in a thread on to those who watch on the event loop."""
    loop = asyncio.get_running_loop()

    def tell(event: AgentEvent) -> None:
        loop.call_soon_threadsafe(job.tell, event.as_dict())

    return tell
