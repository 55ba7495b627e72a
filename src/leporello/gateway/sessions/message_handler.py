"""How one inbox message is answered: hygiene, then a command or a turn of the agent; in a thread, behind a fence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


def clean(agent: Agent) -> None:
    """Compact a conversation that needs it before it goes on."""
    # The provider's own count of the last request where there is one; else all is an estimate.
    agent.measure()
    if agent.conversation.runtime.compactor.decide(Occasion.HYGIENE).compacts:
        agent.conversation.runtime.compactor.shrink("hygiene")


T = TypeVar("T")
MOST_ATTEMPTS = 5
"""So often a letter is begun. What ends the server every time must not do so for ever."""
OPEN_TO_CLIENTS = ("help", "compress", "undo", "context", "search", "expand", "pin", "unpin", "usage")
"""Commands about one's own conversation; those about the whole store or the machine's settings are not for clients."""
_CLIENT_COMMANDS = {name: COMMANDS[name] for name in OPEN_TO_CLIENTS}


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """How a message ended. `status` is `done`, `failed` or `interrupted`."""

    status: str
    text: str
    reason: str = ""

    def as_dict(self) -> dict[str, str]:
        """For clients and for storing."""
        return {"status": self.status, "text": self.text, "reason": self.reason}


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
    """Answers the letters of one conversation. One thread at a time, and only in a turn."""

    def __init__(self, id: str, store: Store, open_agent: Callable[[Store, BackgroundJobs], Agent]) -> None:
        """`store` is behind the fence of whoever holds the turn."""
        self.id = id
        self._store = store
        self._open = open_agent
        self._jobs = BackgroundJobs()
        self.agent: Agent | None = None
        """As it was when it was last used; other workers may have gone on since."""

    def answer(self, letter: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]) -> MessageOutcome:
        """The outcome of a letter, written down."""
        begun = self._store.inbox.begin(self.id, letter.id)
        if begun.outcome is not None:
            return MessageOutcome(**begun.outcome)
        with self._forgetting():
            outcome = self._outcome(begun, cancel, tell)
            self._store.inbox.end(self.id, letter.id, outcome.as_dict())
        return outcome

    def run(self, work: Callable[[Agent], T]) -> T:
        """Something else with the conversation as it is now."""
        with self._forgetting():
            return work(self._at_hand())

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

    def _at_hand(self) -> Agent:
        if self.agent is None:
            self.agent = self._open(self._store, self._jobs)
        else:
            self.agent.refresh()
        return self.agent

    def _outcome(self, letter: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]) -> MessageOutcome:
        if letter.attempts > MOST_ATTEMPTS:
            return GIVEN_UP
        if cancel.cancelled and letter.message is None:
            return INTERRUPTED
        command = letter.message is None and is_command(letter.text)
        if command and letter.attempts > 1:
            return BROKEN_COMMAND
        try:
            if not self._store.conversations.resolve(self.id).open:
                self._store.conversations.reopen(self.id)
            agent = self._at_hand()
            if command:
                return MessageOutcome("done", client_command(agent, letter.text), "command")
            return self._turn(agent, letter, cancel, tell)
        except StoreError:
            raise
        except LeporelloError as error:
            if self.agent is not None:
                self.agent.close_open_calls("Error: the turn ended before this call had a result")
            return MessageOutcome("failed", str(error), type(error).__name__)

    def _turn(
        self, agent: Agent, letter: InboxMessage, cancel: CancelToken, tell: Callable[[AgentEvent], None]
    ) -> MessageOutcome:
        if letter.message is not None:
            answer = self._answer_after(letter.message)
            if answer is not None:
                return MessageOutcome("done", text_of(answer), "stop")
        agent.watchers.append(tell)
        agent.conversation.runtime.hooks.cancel = cancel
        try:
            clean(agent)
            if letter.message is None:
                agent.close_open_calls(LOST)
                self._store.inbox.append_to_log(self.id, letter.id, {"role": "user", "content": letter.text})
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
    """Whether a letter is a command; a path or a sentence that begins with a slash is none."""
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
