"""Questions to a person at a terminal: one key, or one line."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from leporello.config import colours_wanted

KEYS = {"y": "yes", "n": "no", "a": "always", "e": "no, and say why"}


def ask_key(more: bool = False) -> str:
    """`y`, `n`, `a`, `e` or (when there is more to see) `v`. Enter and Escape are no; Ctrl-C interrupts."""
    bindings = KeyBindings()
    allowed = [*KEYS, *(["v"] if more else [])]

    for key in allowed:
        for typed in (key, key.upper()):
            bindings.add(typed, eager=True)(_exit_with(key))
    for refusal in ("enter", "escape"):
        bindings.add(refusal, eager=True)(_exit_with("n"))

    @bindings.add("<any>")
    def _ignore(_: KeyPressEvent) -> None:
        """Any other key is no answer."""

    shown = "  ".join(f"{key} {meaning}" for key, meaning in KEYS.items())
    session: PromptSession[str] = PromptSession(key_bindings=bindings, color_depth=depth(), erase_when_done=True)
    forget_typed(session.app.input)
    return session.prompt(f"  {shown}{'  v see all' if more else ''}  ")


def ask_line(message: str) -> str:
    """A line of text; empty when the person has nothing to say."""
    session: PromptSession[str] = PromptSession(color_depth=depth())
    try:
        return session.prompt(message)
    except EOFError:
        return ""


def depth() -> ColorDepth | None:
    """No colours when the user wants none; otherwise what the terminal can do."""
    return None if colours_wanted() else ColorDepth.DEPTH_1_BIT


def forget_typed(source: Input) -> None:
    """Throw away keys pressed before the question was on the screen: they can't be meant for it.

    Some may have been read together with the line before and wait for the next prompt.
    """
    clear_typeahead(source)
    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, ValueError, OSError):
        return


def _exit_with(key: str) -> Callable[[KeyPressEvent], None]:
    def answer(event: KeyPressEvent) -> None:
        event.app.exit(result=key)

    return answer
