"""The face port: how a conversation is shown and a person is asked, whatever stands behind it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from leporello.agent.commands_context import WindowUse
from leporello.agent.events import AgentEvent
from leporello.tools.approval import ApprovalAnswer
from leporello.tools.base import ApprovalRequest


class TurnView(Protocol):
    """Shows one turn as it happens."""

    @property
    def uninterruptible(self) -> bool:
        """Whether the work at this moment can't be cancelled softly: a person is asked something."""

    def __call__(self, event: AgentEvent) -> None:
        """Something happened."""


class Face(Protocol):
    """A way of showing things."""

    @property
    def width(self) -> int:
        """Columns there are for text."""

    def say(self, text: str) -> None:
        """The answer of a command."""

    def note(self, text: str) -> None:
        """A remark of lesser weight."""

    def warn(self, text: str) -> None:
        """Something the user should know."""

    def error(self, text: str) -> None:
        """Something went wrong."""

    def answer(self, text: str) -> None:
        """An answer of the model from earlier, shown again."""

    def window(self, use: WindowUse) -> None:
        """The picture of `/context`."""

    def turn(self) -> AbstractContextManager[TurnView]:
        """The view of one turn."""

    def working(self, label: str) -> AbstractContextManager[None]:
        """Shows that something is going on, and for how long."""

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Asks a person for consent; Ctrl-C raises `KeyboardInterrupt`."""
