"""What `leporello chat` was started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.config import Settings

if TYPE_CHECKING:
    from leporello.agent.commands import SlashCommand

HISTORY_FILE = "history"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Settings and the choices of the command line."""

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
        """The model's name as configured."""
        return str(self.settings.model.default or "")

    @property
    def history(self) -> Path:
        """Where typed lines are kept."""
        return self.settings.home.path / HISTORY_FILE
