"""One agent conversation that is open: messages wait in line, each is handled once, whoever still listens or not.

A message is written down before it is handled. The same message id again gives the same outcome, never a second turn; a
client that lost its connection sends it again and hears how it ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from leporello.agent.agent import Agent
from leporello.agent.commands import COMMANDS, help_text, parse, run_command, unknown
from leporello.agent.events import AgentEvent
from leporello.cancel import CancelToken
from leporello.errors import LeporelloError, StoreError
from leporello.gateway.faults import refuse
from leporello.gateway.hygiene import clean

KEPT = 256
"""Outcomes that are remembered for each conversation."""
MOST_WAITING = 32
OUTCOMES = "gateway.outcomes"
OPEN_TO_CLIENTS = ("help", "compress", "undo", "context", "search", "expand", "pin", "unpin", "usage")
"""Commands about one's own conversation; those about the whole store or the machine's settings are not for clients."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a message ended. `status` is `done`, `failed` or `interrupted`."""

    status: str
    text: str
    reason: str = ""

    def as_dict(self) -> dict[str, str]:
        """For clients and for storing."""
        return {"status": self.status, "text": self.text, "reason": self.reason}


@dataclass(slots=True)
class Job:
    """A message on its way; anybody may watch."""

    id: str
    text: str
    events: list[dict[str, Any]] = field(default_factory=list)
    outcome: Outcome | None = None
    cancel: CancelToken = field(default_factory=CancelToken)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, event: dict[str, Any] | None = None, outcome: Outcome | None = None) -> None:
        """Something happened; called on the event loop."""
        if event is not None:
            self.events.append(event)
        if outcome is not None:
            self.outcome = outcome
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
            if self.outcome is not None:
                return
            await changed.wait()

    async def ended(self) -> Outcome:
        """Wait for the outcome."""
        while self.outcome is None:
            await self._changed.wait()
        return self.outcome


class Desk:
    """An open conversation with its agent."""

    def __init__(self, agent: Agent, threads: Executor) -> None:
        self.agent = agent
        self.used = time.monotonic()
        self._threads = threads
        self._line = asyncio.Lock()
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcomes: dict[str, dict[str, str]] = dict(agent.talk.store.state.get(self.id, OUTCOMES) or {})

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.agent.talk.id

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._tasks and not self._line.locked()

    def post(self, text: str, id: str) -> Job:
        """Take a message in; one that was taken in before is not handled again."""
        self.used = time.monotonic()
        if id in self._jobs:
            return self._jobs[id]
        known = self._outcomes.get(id)
        job = Job(id, text)
        if known is not None:
            running = known["status"] == "running"
            stopped = Outcome("interrupted", "The server stopped before this message was answered.", "interrupted")
            job.outcome = stopped if running else Outcome(**known)
            return job
        if len(self._jobs) >= MOST_WAITING:
            raise refuse(429, "too_many_waiting", f"{MOST_WAITING} messages wait for this conversation already.", 5)
        self._jobs[id] = job
        task = asyncio.create_task(self._handle(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def run(self, work: Callable[[Agent], Any]) -> Any:
        """Something else with the conversation, in line with the messages."""
        self.used = time.monotonic()
        async with self._line:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, self.agent)

    def cancel(self) -> int:
        """Stop what is under way or waits; how many messages that were."""
        for job in self._jobs.values():
            job.cancel.cancel()
        return len(self._jobs)

    async def drain(self) -> None:
        """Wait for all messages that were taken in."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _handle(self, job: Job) -> None:
        async with self._line:
            loop = asyncio.get_running_loop()

            def tell(event: AgentEvent) -> None:
                loop.call_soon_threadsafe(job.tell, event.as_dict())

            try:
                outcome = await loop.run_in_executor(self._threads, self._turn, job, tell)
            except StoreError:
                outcome = Outcome("failed", "The conversation can't be stored now. Try again later.", "store")
            finally:
                self._jobs.pop(job.id, None)
                self.used = time.monotonic()
            job.tell(outcome=outcome)

    def _turn(self, job: Job, tell: Callable[[AgentEvent], None]) -> Outcome:
        """One message, in a thread: hygiene, then a command or a turn of the agent. Written down before and after."""
        self._write(job.id, Outcome("running", ""))
        outcome = self._answered(job, tell)
        self._write(job.id, outcome)
        return outcome

    def _answered(self, job: Job, tell: Callable[[AgentEvent], None]) -> Outcome:
        agent = self.agent
        if job.cancel.cancelled:
            return Outcome("interrupted", "", "interrupted")
        try:
            answer = client_command(agent, job.text)
            if answer is not None:
                return Outcome("done", answer, "command")
            agent.watchers.append(tell)
            try:
                clean(agent)
                ended = agent.turn(job.text, cancel=job.cancel)
            finally:
                agent.watchers.remove(tell)
        except StoreError:
            raise
        except LeporelloError as error:
            agent.close_open_calls("Error: the turn ended before this call had a result")
            return Outcome("failed", str(error), type(error).__name__)
        return Outcome("interrupted" if ended.reason == "interrupted" else "done", ended.text, ended.reason)

    def _write(self, id: str, outcome: Outcome) -> None:
        self._outcomes.pop(id, None)
        self._outcomes[id] = outcome.as_dict()
        while len(self._outcomes) > KEPT:
            del self._outcomes[next(iter(self._outcomes))]
        self.agent.talk.store.state.set(self.id, OUTCOMES, self._outcomes)


def client_command(agent: Agent, text: str) -> str | None:
    """The answer of a command a client may give; None when the text is none."""
    found = parse(text)
    if found is None:
        return None
    allowed = {name: COMMANDS[name] for name in OPEN_TO_CLIENTS}
    if found[0] == "help":
        return help_text(allowed)
    if found[0] in allowed:
        agent.measure()
        return run_command(agent.talk, text)
    return unknown(found[0], allowed) if not found[1] else None
