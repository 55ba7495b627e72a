"""The exit code of an attempt to fold."""

from __future__ import annotations

from leporello.cli.exits import ExitCode
from leporello.events import Outcome


def code_of(outcome: Outcome) -> ExitCode:
    """The code an attempt to fold ends with."""
    if outcome is Outcome.COMMITTED:
        return ExitCode.OK
    return ExitCode.NOTHING_DONE if outcome in (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN) else ExitCode.BLOCKED
