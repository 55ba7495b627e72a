"""How one inbox message is answered: hygiene, then a command or a turn of the agent; in a thread, behind a fence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TypeVar

from leporello.agent.agent import LOST, Agent
from leporello.agent.commands import COMMANDS, help_text, parse_known, run_command, unknown
from leporello.agent.events import AgentEvent
from leporello.cancel import CancelToken
from leporello.errors import LeporelloError, StoreError
from leporello.messages import Message, calls_of, role_of, text_of
from leporello.policy import Occasion
from leporello.store import Store
from leporello.store.records import InboxMessage
from leporello.tools.terminal import BackgroundJobs

T = TypeVar("T")
MOST_ATTEMPTS = 5
"""So often a message is begun. What ends the server every time must not do so for ever."""
OPEN_TO_CLIENTS = ("help", "compress", "undo", "context", "search", "expand", "pin", "unpin", "usage")
"""Commands about one's own conversation; those about the whole store or the machine's settings are not for clients."""
_CLIENT_COMMANDS = {name: COMMANDS[name] for name in OPEN_TO_CLIENTS}


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """How a message ended."""

    status: str
    """`done`, `failed` or `interrupted`."""
    text: str
    reason: str = ""


INTERRUPTED = MessageOutcome("interrupted", "", "interrupted")
BROKEN_COMMAND = MessageOutcome(
    "interrupted", "The server stopped while it ran this command. Look whether it took effect.", "interrupted"
)
GIVEN_UP = MessageOutcome(
    "failed",
    f"The server failed {MOST_ATTEMPTS} times while it answered this message. It is not tried again.",
    "server",
)


class MessageHandler:
    """Answers the inbox messages of one conversation. One thread at a time, and only in a turn."""

    def __init__(self, id: str, store: Store, open_agent: Callable[[Store, BackgroundJobs], Agent]) -> None:
        """`store` is behind the fence of whoever holds the turn."""
        self.id = id
        self._store = store
        self._open = open_agent
        self._jobs = BackgroundJobs()
        self.agent: Agent | None = None
        """As it was when it was last used; other workers may have gone on since."""

    def answer(self, queued: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]) -> MessageOutcome:
        """The outcome of a message, written down."""
        begun = self._store.inbox.begin(self.id, queued.id)
        if begun.outcome is not None:
            return MessageOutcome(**begun.outcome)
        with self._forgetting():
            outcome = self._outcome(begun, cancel, tell)
            self._store.inbox.end(self.id, queued.id, asdict(outcome))
        return outcome

    def run(self, work: Callable[[Agent], T]) -> T:
        """Something else with the conversation as it is now."""
        with self._forgetting():
            return work(self._current_agent())

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Whatever goes wrong, the agent is opened anew from the store: nobody knows what it had in mind."""
        try:
            yield
        except BaseException:
            self._forget()
            raise

    def close(self) -> None:
        """Let go of everything; the conversation can be taken up again, here or elsewhere."""
        self._forget()
        self._jobs.close()

    def _forget(self) -> None:
        if self.agent is not None:
            self.agent.conversation.close()
            self.agent = None

    def _current_agent(self) -> Agent:
        if self.agent is None:
            self.agent = self._open(self._store, self._jobs)
        else:
            self.agent.refresh()
        return self.agent

    def _outcome(self, queued: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]) -> MessageOutcome:
        if queued.attempts > MOST_ATTEMPTS:
            return GIVEN_UP
        if cancel.cancelled and queued.message is None:
            return INTERRUPTED
        command = queued.message is None and is_command(queued.text)
        if command and queued.attempts > 1:
            return BROKEN_COMMAND
        try:
            if not self._store.conversations.resolve(self.id).open:
                self._store.conversations.reopen(self.id)
            agent = self._current_agent()
            if command:
                return MessageOutcome("done", client_command(agent, queued.text), "command")
            return self._turn(agent, queued, cancel, tell)
        except StoreError:
            raise
        except LeporelloError as error:
            if self.agent is not None:
                self.agent.close_open_calls("Error: the turn ended before this call had a result")
            return MessageOutcome("failed", str(error), type(error).__name__)

    def _turn(
        self, agent: Agent, queued: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]
    ) -> MessageOutcome:
        answer = self._answer_after(queued.message) if queued.message is not None else None
        if answer is not None:
            return MessageOutcome("done", text_of(answer), "stop")
        agent.watchers.append(tell)
        agent.conversation.runtime.hooks.cancel = cancel
        try:
            # Hygiene, by the provider's own count of the last request where there is one; else all is an estimate.
            agent.measure()
            if agent.conversation.runtime.compactor.decide(Occasion.HYGIENE).compacts:
                agent.conversation.runtime.compactor.shrink("hygiene")
            if queued.message is None:
                agent.close_open_calls(LOST)
                self._store.inbox.append_to_log(self.id, queued.id, {"role": "user", "content": queued.text})
                agent.refresh()
            ended = agent.go_on(cancel=cancel)
        finally:
            agent.watchers.remove(tell)
            agent.conversation.runtime.hooks.cancel = None
        return MessageOutcome("interrupted" if ended.reason == "interrupted" else "done", ended.text, ended.reason)

    def _answer_after(self, number: int) -> Message | None:
        """The answer to a message, where it was stored before its worker ended."""
        newest = None
        for stored in self._store.log.iterate(self.id, number + 1):
            newest = stored.message
        return newest if newest is not None and role_of(newest) == "assistant" and not calls_of(newest) else None


def is_command(text: str) -> bool:
    """Whether a message is a command; a path or a sentence that begins with a slash is none."""
    found = parse_known(text, _CLIENT_COMMANDS)
    return found is not None and (found[0] in _CLIENT_COMMANDS or not found[1])


def client_command(agent: Agent, text: str) -> str:
    """The answer of a command a client may give."""
    found = parse_known(text, _CLIENT_COMMANDS)
    assert found is not None
    if found[0] == "help":
        return help_text(_CLIENT_COMMANDS)
    if found[0] not in _CLIENT_COMMANDS:
        return unknown(found[0], _CLIENT_COMMANDS)
    agent.measure()
    return run_command(agent.conversation, text) or ""
