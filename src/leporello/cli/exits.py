"""Exit codes: the same for every command, so that scripts can rely on them."""

from __future__ import annotations

from enum import IntEnum

from leporello.errors import (
    ConfigError,
    EngineError,
    FixedPartTooLarge,
    InputError,
    LeporelloError,
    NotFound,
    SummaryError,
)


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    NOTHING_DONE = 3
    """Nothing to do, or it would not have helped."""
    BLOCKED = 4
    """Blocked, failed, or the part that can't be folded is too large."""
    INTERRUPTED = 130


def exit_code_for(error: LeporelloError) -> ExitCode:
    """The code an error that reached the top ends with."""
    if isinstance(error, ConfigError | InputError | NotFound):
        return ExitCode.BAD_INPUT
    if isinstance(error, FixedPartTooLarge | EngineError | SummaryError):
        return ExitCode.BLOCKED
    return ExitCode.FAILED
