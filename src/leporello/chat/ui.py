"""The user-interface port: how a conversation is shown and a person is asked; and what chat was started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from leporello.config import Settings

if TYPE_CHECKING:  # the prompt must stand before any of these is loaded
    from leporello.agent.commands import SlashCommand
    from leporello.agent.events import AgentEvent
    from leporello.present.window import WindowUse
    from leporello.tools.approval import ApprovalAnswer
    from leporello.tools.base import ApprovalRequest


HISTORY_FILE = "history"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    settings: Settings
    workdir: Path
    resume: str | None = None
    """Any id of a conversation's chain."""
    go_on: bool = False
    """Take up the newest conversation."""
    plain: bool = False
    more: Callable[[], Mapping[str, SlashCommand]] = dict
    """Loads the commands that the command line adds; called behind the prompt."""

    @property
    def model(self) -> str:
        return str(self.settings.model.default or "")

    @property
    def history(self) -> Path:
        return self.settings.home.path / HISTORY_FILE


class TurnView(Protocol):
    """Shows one turn as it happens."""

    @property
    def uninterruptible(self) -> bool:
        """Whether the work at this moment can't be cancelled softly: a person is asked something."""

    def __call__(self, event: AgentEvent) -> None:
        """Something happened."""


class Ui(Protocol):
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
