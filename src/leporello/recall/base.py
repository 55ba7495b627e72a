"""The recall port: what may be asked of a conversation's past, and what comes back.

A search answers with *windows*: a few lines of a message around the evidence, with the message's id. Many small windows
bring more evidence for the same tokens than a few large ones, so a search fills its token budget with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from leporello.events import Span
from leporello.messages import Message
from leporello.store.records import StatedValue

DEFAULT_TOKENS = 4_000
"""What one search may bring back, in o200k tokens."""
SEARCH_TOOLS = frozenset({"lcm_grep", "lcm_describe", "lcm_expand", "lcm_status"})
"""Tools that show again what stands in the conversation; MCP clients put the server's name before theirs."""
GAP = "…"
"""Stands for lines left out between two lines of a window."""


def shows_again(tool: str) -> bool:
    """Whether a tool only repeats the conversation: its calls and results answer nothing."""
    return tool.rpartition("__")[2] in SEARCH_TOOLS


class RecallMode(StrEnum):
    """How a query is read."""

    HYBRID = "hybrid"
    """As a question or as words: relatives of the words and the kind of answer count too."""
    WORDS = "words"
    """As words, no more."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What to look for, in words or as a question, and how much may come back."""

    text: str
    max_tokens: int = DEFAULT_TOKENS
    mode: RecallMode = RecallMode.HYBRID
    limit: int | None = None
    """At most so many windows; None leaves it to the tokens."""
    roles: tuple[str, ...] = ()
    """Only messages of these roles (`user`, `assistant`, `tool`, `system`); empty for all."""
    last: int | None = None
    """Only messages up to this number; None for all."""

    def admits(self, role: str, number: int) -> bool:
        """Whether a message may be shown."""
        return (not self.roles or role in self.roles) and (self.last is None or number <= self.last)


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines of one message around what was found."""

    message: int
    """Number of the message in the conversation's log."""
    role: str
    tool: str
    """The tool that was called or gave the result; empty for plain text."""
    is_call: bool
    """Whether the lines are arguments of a tool call."""
    text: str
    """The lines, `…` between lines that do not follow each other."""
    score: float
    conversation: str = ""
    """Set where several conversations are searched at once."""
    at: float | None = None
    """When it was said (seconds since the epoch), where that is known."""
    about: str = ""
    """What the lines belong to, in one line: the call of a result, the question of an answer."""

    @property
    def id(self) -> str:
        """`m<N>`."""
        return f"m{self.message}"

    @property
    def heading(self) -> str:
        """`[m12] user`, `[m13] read_file call`, `[m14] read_file`."""
        where = f"{self.conversation} {self.id}" if self.conversation else self.id
        return f"[{where}] {self.tool or self.role}" + (" call" if self.is_call else "")

    def __str__(self) -> str:
        return f"{self.heading}: {self.about}\n{self.text}" if self.about else f"{self.heading}\n{self.text}"


class Recall(Protocol):
    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first; together, headings included, within the token budget."""


class ArchivedFold(Struct, frozen=True):
    """A span of the log that the model now sees as a summary."""

    id: str
    covered: Span
    text: str = ""
    children: tuple[str, ...] = ()
    """Folds it was made of."""


class Archive(Recall, Protocol):
    """What the recovery tools read: the whole log by number, the folds by id, and a search. In memory or in a store."""

    def newest(self) -> int:
        """Number of the newest message; 0 when there is none."""

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        """The messages of a span in order, with their numbers; numbers that don't exist are left out."""

    def folds(self) -> Sequence[ArchivedFold]:
        """All folds, oldest first."""

    def values(self, span: Span) -> Sequence[StatedValue]:
        """What messages of a span say about things, oldest first, and what replaced it."""
