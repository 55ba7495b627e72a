"""Processes the inbox messages of one conversation, each exactly once, and streams events to subscribers.

A message is in the store before anything else happens. Whichever process gets the conversation's turn answers all
messages that wait, in the order of their arrival. While another process has the turn, this one polls how its own
messages ended, and takes the turn over when its holder is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

from leporello.agent.agent import Agent
from leporello.agent.events import AgentEvent
from leporello.cancel import CancelToken
from leporello.conversation.compact import owner_name
from leporello.errors import InboxConflict, InboxFull, LeaseLost, NotFound, StoreError
from leporello.events import CompactionReport
from leporello.gateway.api_errors import refuse
from leporello.gateway.conversation_cache import MOST_BYTES, OPEN_WEIGHT
from leporello.gateway.sessions.message_handler import MessageHandler, MessageOutcome
from leporello.store import Fence, Store
from leporello.store.records import Lease
from leporello.tools.terminal import BackgroundJobs

T = TypeVar("T")
Args = TypeVarTuple("Args")
MOST_WAITING = 32
TURN_SECONDS = 8.0  # a holder that did not renew its lease for so long counts as dead
BEAT_SECONDS = 1.5
LOOK_SECONDS = 0.05
SELDOM_SECONDS = 0.4  # the longest pause between two polls while another process has the turn
AGAIN_SECONDS = 1.0
WORKER_WEIGHT = MOST_BYTES // 200
"""A worker with its agent, tools and connections, without the text of its conversation: about 2 MB."""
BYTES_PER_TOKEN = 4
GONE = MessageOutcome("interrupted", "The conversation was deleted before this message was answered.", "interrupted")
log = logging.getLogger("leporello.gateway")


@dataclass(slots=True)
class PendingMessage:
    """An inbox message that clients of this process wait for; any number may watch it."""

    id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    outcome: MessageOutcome | None = None
    lost: bool = False
    """This process stops: another one answers, and whoever waits here must ask again."""
    cancel: CancelToken = field(default_factory=CancelToken)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def publish(self, event: AgentEvent) -> None:
        """Pass an event on to all who watch; called in the thread of the turn."""
        self._loop.call_soon_threadsafe(self._add, event.as_dict())

    def _add(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._wake()

    def end(self, outcome: MessageOutcome | None) -> None:
        """Publish the outcome; None: it is not known here, because this process stops."""
        self.outcome, self.lost = outcome or self.outcome, outcome is None
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def watch(self, silence: float) -> AsyncIterator[dict[str, Any] | None]:
        """All events from the first one until the outcome is there; None after each so many seconds of silence."""
        seen = 0
        while True:
            changed = self._changed
            for event in self.events[seen:]:
                yield event
            seen = len(self.events)
            if self.outcome is not None or self.lost:
                return
            try:
                await asyncio.wait_for(changed.wait(), silence)
            except TimeoutError:
                yield None

    async def ended(self) -> MessageOutcome:
        while self.outcome is None:
            if self.lost:
                raise refuse(503, "stopping", "This worker stops and another one answers: send the message again.", 1)
            await self._changed.wait()
        return self.outcome


@dataclass(frozen=True, slots=True)
class WorkerServices:
    """What all workers of a process share."""

    store: Store
    turns: Executor
    """Threads for the agents, which wait for their models."""
    queries: Executor
    """Threads for short queries of the store, which must not wait behind the agents."""
    spending: Callable[[str], AbstractContextManager[None]]
    """Holds a part of the day of whoever asked last in a conversation; raises `RequestRefused` when it is used up."""


class ConversationWorker:
    """A conversation with its agent, in this process."""

    def __init__(self, id: str, services: WorkerServices, open_agent: Callable[[Store, BackgroundJobs], Agent]) -> None:
        self.id = id
        self._services = services
        self._store = services.store
        self._fence = Fence()
        self._mine = services.store.behind(self._fence)
        self.handler = MessageHandler(id, self._mine, open_agent, services.spending)
        self._line = asyncio.Lock()
        self._pending: dict[str, PendingMessage] = {}
        self._running: PendingMessage | None = None
        self._task: asyncio.Task[None] | None = None
        self._rescuing = False
        self._given_back = False  # whether the outcome of a message gave the turn back already
        self.closed = False

    @property
    def in_use(self) -> bool:
        """Whether something is under way or waits."""
        return self._task is not None or self._line.locked()

    @property
    def weight(self) -> int:
        agent = self.handler.agent
        tokens = agent.conversation.runtime.sizes.last_prompt_tokens if agent is not None else 0
        return WORKER_WEIGHT + tokens * BYTES_PER_TOKEN * OPEN_WEIGHT

    # -- what clients ask for

    async def enqueue(self, text: str, id: str) -> PendingMessage:
        """Store a message and wake the worker. One that was stored before is not handled again.

        A worker that was closed meanwhile has stored it, too, but does not follow it.
        """
        try:
            inbox_message = await self._query(self._store.inbox.enqueue, self.id, id, text, MOST_WAITING)
        except InboxFull:
            words = f"{MOST_WAITING} messages wait for this conversation already."
            raise refuse(429, "too_many_waiting", words, 5) from None
        except InboxConflict:
            words = "A message with this id and another text was sent before, and this one was not taken in. "
            raise refuse(409, "id_reused", words + "Send it with a new id.") from None
        # One that came to another process may be under way here: whoever asks for it again waits for that.
        running = self._running if self._running is not None and self._running.id == id else None
        pending = self._pending.get(id) or running or PendingMessage(id)
        if inbox_message.outcome is not None:
            pending.end(MessageOutcome(**inbox_message.outcome))
        elif not self.closed:
            self._pending[id] = pending
            self._wake()
        return pending

    async def run(self, work: Callable[[Agent], T]) -> T:
        """Run something else with the agent, in line with the messages."""
        async with self._turn(wait=True):
            return await self._thread(self.handler.run, work)

    async def compact(self, focus: str) -> CompactionReport:
        """Compact now, by hand, in line with the messages."""

        def work(agent: Agent) -> CompactionReport:
            agent.measure()
            return agent.conversation.compact(focus)

        return await self.run(work)

    async def run_if_free(self, work: Callable[[Store], T]) -> T | None:
        """Run something in a turn, with a store that accepts writes as long as the turn lasts.

        None at once when somebody has the turn, here or in another process.
        """
        if self.in_use:
            return None
        async with self._turn(wait=False) as held:
            return await self._thread(work, self._mine) if held else None

    async def cancel(self) -> int:
        """Cancel all messages that are under way or wait, in any process; how many."""
        found = await self._query(self._store.inbox.cancel, self.id)
        for pending in (*self._pending.values(), *((self._running,) if self._running else ())):
            pending.cancel.cancel()
        if found:
            self.rescue()
        return found

    def rescue(self) -> None:
        """Answer messages that wait, though nobody here waits for them: their process may be dead."""
        self._rescuing = True
        self._wake()

    # -- the end

    async def drain(self, seconds: float | None = None) -> None:
        """Wait until all messages accepted here are answered; after a time the rest is left to other processes."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=seconds)

    async def close(self, outcome: MessageOutcome | None = None) -> None:
        """Stop. What is under way is cancelled and can't write any more: another process continues it.

        Whoever waits here gets the outcome, if it is known already.
        """
        self.closed = True
        if self._task is not None:
            self._fence.lease = None
            if self._running is not None:
                self._running.cancel.cancel()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._end_all(outcome)
        async with self._line:
            await self._query(self.handler.close)

    # -- answering

    def _wake(self) -> None:
        if self._task is None and not self.closed:
            self._task = asyncio.create_task(self._serve())
            self._task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # A bug, not the store: logged as an error. The message is tried again, and given up after a few attempts.
            log.error('{"problem": "worker", "kind": "%s"}', type(error).__name__, exc_info=error)
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._wake)
        elif self._pending or self._rescuing:
            self._wake()

    async def _serve(self) -> None:
        pause = LOOK_SECONDS
        while self._pending or self._rescuing:
            try:
                async with self._turn(wait=False) as held:
                    if held:
                        await self._answer_all()
                self._rescuing = False
                await self._look()
            except NotFound:
                self._rescuing = False
                self._end_all(GONE)
            except StoreError as error:
                log.warning('{"problem": "store", "kind": "%s"}', type(error).__name__)
                await asyncio.sleep(AGAIN_SECONDS)
            if self._pending:
                await asyncio.sleep(pause)
                pause = min(2 * pause, SELDOM_SECONDS)

    async def _answer_all(self) -> None:
        """All that clients of this process wait for; all there is, where the process of others may be dead."""
        while self._pending or self._rescuing:
            inbox_message = await self._query(self._mine.inbox.begin_next, self.id)
            if inbox_message is None:
                return
            pending = self._running = self._pending.get(inbox_message.id) or PendingMessage(inbox_message.id)
            # A new one for each attempt: the last may have been stopped because its turn was lost, not by a client.
            pending.cancel = CancelToken()
            if inbox_message.cancelled:
                pending.cancel.cancel()
            try:
                outcome = await self._thread(
                    self.handler.answer, inbox_message, pending.cancel, pending.publish, self._last_turn
                )
            except BaseException:
                self._given_back = False
                raise
            finally:
                self._running = None
            self._pending.pop(inbox_message.id, None)
            pending.end(outcome)
            if self._given_back:
                return

    def _last_turn(self) -> Lease | None:
        """The turn, if nothing else waits here: the outcome of the last message gives it back.

        Whoever hears the outcome may say more to another process, which then need not wait for this one.
        """
        lease, running = self._fence.lease, self._running
        if lease is None or running is None or self._rescuing or self._pending.keys() - {running.id}:
            return None
        self._given_back = True
        return lease

    async def _look(self) -> None:
        """Poll how messages ended that another process answered."""
        for id, pending in list(self._pending.items()):
            inbox_message = await self._query(self._store.inbox.get, self.id, id)
            if inbox_message.outcome is not None:
                self._pending.pop(id, None)
                pending.end(MessageOutcome(**inbox_message.outcome))

    def _end_all(self, outcome: MessageOutcome | None) -> None:
        for id in list(self._pending):
            self._pending.pop(id).end(outcome)

    # -- the turn

    @asynccontextmanager
    async def _turn(self, *, wait: bool) -> AsyncIterator[bool]:
        """Hold the conversation's turn; False when another process has it and it is not waited for."""
        acquire = partial(self._query, self._store.turns.acquire, self.id, owner_name(), TURN_SECONDS)
        async with self._line:
            while (lease := await acquire()) is None:
                if not wait:
                    yield False
                    return
                await asyncio.sleep(SELDOM_SECONDS)
            self._fence.lease = lease
            self._given_back = False
            beat = asyncio.create_task(self._beat(lease))
            try:
                yield True
            finally:
                self._fence.lease = None
                beat.cancel()
                await asyncio.gather(beat, return_exceptions=True)
                if not self._given_back:
                    with suppress(StoreError):
                        await self._query(self._store.turns.release, lease)

    async def _beat(self, lease: Lease) -> None:
        """Renew the lease, and cancel what clients of other processes cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            running = self._running
            try:
                await self._query(self._store.turns.renew, lease, TURN_SECONDS)
                stop = running is not None and running.id in await self._query(self._store.inbox.cancelled, self.id)
            except (LeaseLost, NotFound):
                # What is under way can't be written any more.
                stop = True
            except StoreError:
                continue
            if running is not None and stop:
                running.cancel.cancel()

    # -- threads

    async def _query(self, work: Callable[[*Args], T], *args: *Args) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._services.queries, work, *args)

    async def _thread(self, work: Callable[[*Args], T], *args: *Args) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._services.turns, work, *args)
