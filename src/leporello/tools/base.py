"""The tool port: what a tool is, what it is given, and what it gives back.

A tool is a function with a schema. It gets a frozen `ToolContext` and checked arguments, and returns a `ToolResult`.
What it can't do it says with `ToolError`; nothing a tool does ends the loop that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from leporello.cancel import CancelToken
from leporello.tools.confine import Confinement

DEFAULT_RESULT_CHARS = 100_000
DEFAULT_TIMEOUT = 60.0
_LEAST_RESULT_CHARS = 800


class OutputLimits(Struct, frozen=True):
    """How many characters of tool output the model gets to see."""

    result_chars: int = DEFAULT_RESULT_CHARS
    """One result over this is saved and shown as a preview; a tool may have a lower threshold of its own."""
    turn_chars: int = 200_000
    """All results of one assistant turn together."""
    read_chars: int = 50_000
    """What `read_file` shows in one call."""
    read_lines: int = 2_000
    preview_chars: int = 1_500
    """Characters of the original inside a `<persisted-output>` block."""

    @classmethod
    def for_window(cls, window: int) -> OutputLimits:
        """Limits for a model's window in tokens: half a character per token for one result, one for a turn.

        At 200,000 tokens that is exactly the defaults, so smaller windows continue the same line. Program output has
        2 to 4 characters per token: one result fills at most a quarter of any window, usually an eighth. Windows of
        unknown size (0) get the defaults.
        """
        usual = cls()
        if window <= 0:
            return usual
        result = min(usual.result_chars, max(_LEAST_RESULT_CHARS, window // 2))
        preview = min(usual.preview_chars, result // 4)
        return cls(result, min(usual.turn_chars, 2 * result), min(usual.read_chars, result), preview_chars=preview)


@dataclass(frozen=True, slots=True)
class SavedOutput:
    path: Path
    size: int
    """Bytes."""
    lines: int
    artifact: str = ""
    """Handle in the store, when there is one."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    text: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    """Facts for the program (exit code, path, counts); the model never sees them."""
    status: str = ""
    """One line that stands before the text and is never cut, such as the exit code."""
    saved: SavedOutput | None = None
    """Where the whole output is, when `text` is only a part of it."""
    exempt: bool = False
    """Comes from reading a saved output: it is never saved again."""

    @classmethod
    def error(cls, text: str, **details: Any) -> ToolResult:
        """A failed call; the text is for the model."""
        return cls(f"Error: {text}", is_error=True, details=details)


def _never(_: Path) -> bool:
    return False


class ApprovalRequest(Struct, frozen=True):
    tool: str
    title: str
    """One line: what is going to happen."""
    detail: Callable[[], str] = str
    """Gives the command, or the change as a diff; only called when a person is asked."""
    command: str = ""
    """The shell command, for the allow-list."""
    folder: Path = Path()
    """Where the command runs."""
    may_read: Callable[[Path], bool] = _never
    """Whether tools may read there."""
    writes: tuple[Path, ...] = ()
    """Files that are going to change."""


class ApprovalVerdict(Struct, frozen=True):
    """Whether it may happen; the reason goes to the model."""

    allowed: bool
    reason: str = ""


class Approver(Protocol):
    def check(self, request: ApprovalRequest) -> ApprovalVerdict:
        """Answer by policy or by asking; called from the thread that runs the loop."""


class ArtifactSink(Protocol):
    """Keeps bytes for ever and gives back a handle by which they are found."""

    def put(self, data: bytes) -> str:
        """Store the bytes; the same bytes give the same handle."""


def _discard(_: str) -> None:
    """The output sink of a context that nobody watches."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    workdir: Path
    outputs: Path
    """The conversation's own folder: saved outputs and the todo list. Always readable, never written by file tools."""
    approver: Approver
    roots: tuple[Path, ...] = ()
    """Folders beside the working directory that tools may use."""
    readable: tuple[Path, ...] = ()
    """Folders that tools may only read, such as skills."""
    limits: OutputLimits = field(default_factory=OutputLimits)
    emit: Callable[[str], None] = _discard
    """Receives output while a tool runs, for a person to watch."""
    cancel: CancelToken = field(default_factory=CancelToken)
    env: Mapping[str, str] | None = None
    """Environment of commands; None inherits the program's own."""
    call_id: str = ""
    confinement: Confinement | Callable[[], Confinement] | None = None
    """The sandbox of commands, or what finds it before the first one runs; None leaves them as they are."""

    @property
    def sandbox(self) -> Confinement | None:
        """The sandbox of commands, found out now at the latest."""
        return self.confinement() if callable(self.confinement) else self.confinement


Arguments: TypeAlias = dict[str, Any]


class Tool(Struct, frozen=True):
    """One callable tool: how the model sees it, and how it runs."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""
    check: Callable[[Mapping[str, Any]], Arguments]
    """Turns raw arguments into checked ones; raises `ToolError` with a text for the model."""
    run: Callable[[ToolContext, Arguments], object]
    """Does the work; a `ToolResult`, text, or anything that can be shown as JSON."""
    ask: Callable[[ToolContext, Arguments], ApprovalRequest | None] | None = None
    """What consent is needed for; also finds out, before anybody is asked, that it can't work."""
    timeout: float | None = DEFAULT_TIMEOUT
    """Seconds; None for a tool that minds its own time."""
    threshold: int | None = DEFAULT_RESULT_CHARS
    """Characters above which a result is saved; None for never."""

    def schema(self) -> dict[str, Any]:
        """The tool in OpenAI's format."""
        inner = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": inner}
