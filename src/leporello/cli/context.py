"""What every command gets: the settings of this run, the home folder, and a hint for whoever has no model yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar

import click

from leporello.cli.exits import ExitCode
from leporello.config import Home, Settings, load_settings
from leporello.errors import InputError
from leporello.events import Outcome

P = ParamSpec("P")
R = TypeVar("R")


class CommandContext:
    """The options given before the command's name, and what follows from them."""

    def __init__(self, home: str | None = None, assignments: tuple[str, ...] = ()) -> None:
        self._home = home
        self._flags = dict(_split(item) for item in assignments)

    @property
    def flags(self) -> Mapping[str, object]:
        """What `--set` gave, for another process to go by."""
        return dict(self._flags)

    @cached_property
    def home(self) -> Home:
        """The folder with settings and data."""
        return Home(self._home) if self._home else Home.from_environment()

    @cached_property
    def settings(self) -> Settings:
        """The settings, `--set` included."""
        return load_settings(self._flags, home=self.home)

    def settings_with(self, flags: Mapping[str, object]) -> Settings:
        """The settings with a command's own flags on top; flags that are None were not given."""
        given = {key: value for key, value in flags.items() if value is not None}
        return load_settings({**self._flags, **given}, home=self.home) if given else self.settings


def _split(assignment: str) -> tuple[str, str]:
    key, separator, value = assignment.partition("=")
    if not separator or not key.strip():
        raise InputError(f"--set wants KEY=VALUE, not {assignment!r}")
    return key.strip(), value


def pass_context(function: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """Decorator: the command's function receives the frame as its first argument."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        options = click.get_current_context().find_root().obj or {}
        return function(CommandContext(**options), *args, **kwargs)

    return wrapper


WAYS = """\
Three ways to a model:

  a key          leporello setup asks for provider, model and key, tries them and keeps them
                 (or set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY,
                 then: leporello chat --model NAME)
  your server    anything that speaks OpenAI's or Anthropic's API (llama.cpp, Ollama, vLLM):
                 leporello setup --base-url http://127.0.0.1:8080/v1 --model NAME
                 (or, for once: leporello --set model.base_url=URL chat --model NAME)
  no key at all  a small model on this machine, fetched once (about 130 MB):
                 leporello setup --local, then: leporello chat --model local

To see what a chat looks like without any of them: leporello chat --model scripted:demo
"""


def code_of(outcome: Outcome) -> ExitCode:
    """The code an attempt to fold ends with."""
    if outcome is Outcome.COMMITTED:
        return ExitCode.OK
    return ExitCode.NOTHING_DONE if outcome in (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN) else ExitCode.BLOCKED
