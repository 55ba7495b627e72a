"""How one inbox message is answered: hygiene, then a command or a turn of the agent; in a thread, behind a fence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TypeVar

from leporello.agent.agent import LOST, Agent
from leporello.agent.commands import COMMANDS, help_text, parse_known, run_command, unknown
from leporello.agent.events import AgentEvent
from leporello.cancel import CancelToken
from leporello.errors import LeporelloError, StoreError
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.limits import DailyBudget
from leporello.messages import Message, calls_of, role_of, text_of
from leporello.policy.decision import Occasion
from leporello.store import Store
from leporello.store.records import InboxMessage, Lease, Pulse
from leporello.tools.terminal import BackgroundJobs
from leporello.usage import CanonicalUsage

T = TypeVar("T")
MOST_ATTEMPTS = 5  # so often a message is begun. What ends the server every time must not do so for ever.
OPEN_TO_CLIENTS = ("help", "compress", "undo", "context", "search", "expand", "pin", "unpin", "usage")
"""Commands about one's own conversation; those about the whole store or the machine's settings are not for clients."""
_CLIENT_COMMANDS = {name: COMMANDS[name] for name in OPEN_TO_CLIENTS}


@dataclass(frozen=True, slots=True)
class MessageOutcome:
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

    def __init__(
        self,
        id: str,
        store: Store,
        open_agent: Callable[[Store, BackgroundJobs], Agent],
        spending: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """`store` is behind the fence of whoever holds the turn."""
        self._spending = spending
        self.id = id
        self._store = store
        self._open = open_agent
        self._jobs = BackgroundJobs()
        self.agent: Agent | None = None
        """As it was when it was last used; other workers may have gone on since."""

    def answer(
        self,
        begun: InboxMessage,
        cancel: CancelToken,
        tell: Callable[[AgentEvent], None],
        given_back: Callable[[], Lease | None],
    ) -> MessageOutcome:
        """The outcome of a message whose answering was begun, written down.

        `given_back` is asked then for the turn that ends with it; None: more is to be answered in it.
        """
        with self._forgetting():
            outcome = self._outcome(begun, cancel, tell)
            self._store.inbox.end(self.id, begun.id, asdict(outcome), begun.text, given_back())
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

    def _current_agent(self, pulse: Pulse | None = None) -> Agent:
        if self.agent is None:
            self.agent = self._open(self._store, self._jobs)
        else:
            self.agent.refresh(pulse)
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
            # Others that waited before it, or are under way, may have used up the day.
            with self._spending(self.id) if queued.message is None else nullcontext():
                pulse = self._store.conversations.pulse(self.id)
                if not pulse.open:
                    self._store.conversations.reopen(self.id)
                agent = self._current_agent(pulse)
                if command:
                    return MessageOutcome("done", client_command(agent, queued.text), "command")
                return self._turn(agent, queued, cancel, tell)
        except StoreError:
            raise
        except RequestRefused as refused:
            return MessageOutcome("failed", refused.error.message, refused.error.code)
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
            begun = queued.message is not None
            if not begun:
                agent.close_open_calls(LOST)
                asked: Message = {"role": "user", "content": queued.text}
                number = self._store.inbox.append_to_log(self.id, queued.id, asked)
                agent.conversation.runtime.log.appended([number], [asked])
            ended = agent.go_on(cancel=cancel, begun=begun)
        finally:
            agent.watchers.remove(tell)
            agent.conversation.runtime.hooks.cancel = None
        # Calls that no provider counted: the one that was given up, or all of a server that sends no figures.
        uncounted = (ended.reason == "interrupted") + (0 if ended.usage.total_tokens else ended.calls)
        if uncounted:
            used = [CanonicalUsage(agent.measure().tokens)] * uncounted
            owner = self._store.conversations.resolve(self.id).metadata.owner
            DailyBudget(self._store, 0, 0.0).set_aside_calls(owner, agent.conversation.runtime.sizes.model, used)
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
