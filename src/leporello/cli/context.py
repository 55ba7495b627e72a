"""What commands share: the settings of this run, options, files, the hint for users without a model."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from msgspec import Struct

from leporello.cli import ExitCode
from leporello.config import Home, Settings, load_settings
from leporello.errors import InputError
from leporello.events import Outcome
from leporello.files import Decoded, decode_text, known_encoding, open_atomically

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class CommandContext:
    """The options given before the command's name, and what follows from them."""

    def __init__(self, home: str | None = None, assignments: tuple[str, ...] = ()) -> None:
        self._home = home
        self.flags: Mapping[str, object] = dict(_split(item) for item in assignments)
        """What `--set` gave."""

    @cached_property
    def home(self) -> Home:
        return Home(self._home) if self._home else Home.from_environment()

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.flags, home=self.home)

    def settings_with(self, flags: Mapping[str, object]) -> Settings:
        """The settings with a command's own flags on top; flags that are None were not given."""
        given = {key: value for key, value in flags.items() if value is not None}
        return load_settings({**self.flags, **given}, home=self.home) if given else self.settings


def _split(assignment: str) -> tuple[str, str]:
    key, separator, value = assignment.partition("=")
    if not separator or not key.strip():
        raise InputError(f"--set needs KEY=VALUE, not {assignment!r}")
    return key.strip(), value


def pass_context(function: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """Decorator: passes the `CommandContext` as the first argument."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        options = click.get_current_context().find_root().obj or {}
        return function(CommandContext(**options), *args, **kwargs)

    return wrapper


def utf8_text(_: click.Context, __: click.Parameter, value: str) -> str:
    """Refuses text for a model or the store that is not UTF-8: such bytes of an argument arrive as half characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("It is not UTF-8 text.") from None
    return value


class AgentOptions(Struct, frozen=True):
    """The options of `chat` and `run`: which model, which conversation, where and how freely its tools work."""

    model: str | None
    go_on: bool
    resume: str | None
    workdir: Path | None
    yes: bool

    def settings(self, context: CommandContext) -> Settings:
        if self.go_on and self.resume is not None:
            raise click.UsageError("--continue and --resume name two conversations; give only one of them.")
        return context.settings_with({"model.default": self.model, "tools.approval": "auto" if self.yes else None})


_AGENT_OPTIONS = (
    click.option(
        "--model", metavar="NAME", help="The model, instead of model.default. `local`, `scripted:demo`: no key."
    ),
    click.option("--continue", "go_on", is_flag=True, help="Continue the newest conversation of chat or run."),
    click.option("--resume", metavar="ID", help="Continue this conversation (any id of its chain)."),
    click.option(
        "--dir",
        "workdir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where tools work, instead of here.",
    ),
    click.option("--yes", is_flag=True, help="Approve everything the tools want to do."),
)


def agent_options(function: F) -> F:
    for option in reversed(_AGENT_OPTIONS):
        function = option(function)
    return function


def encoding_option(function: F) -> F:
    """The `--encoding` option, for files that are not UTF-8."""
    text = "How FILE is encoded (latin-1, cp1252, ...), instead of UTF-8 or what its byte order mark says."
    return click.option("--encoding", metavar="NAME", callback=_encoding, help=text)(function)


def _encoding(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not known_encoding(name):
        raise click.BadParameter(f"{name!r} is not a known encoding; examples: latin-1, cp1252, utf-16.")
    return name


def read_text(source: str, encoding: str | None = None) -> Decoded:
    """The text of a file, or of standard input for `-`; an error names the place."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), source) from error
    return decode_text(data, source_name(source), encoding)


def source_name(source: str) -> str:
    return "standard input" if source == "-" else source


def write_atomically(path: Path, data: bytes) -> None:
    with open_atomically(path) as stream:
        stream.write(data)


def must_be_another(out: Path, source: str, remedy: str) -> None:
    """Refuse to write over the file that is read, whatever name it goes by."""
    try:
        read = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
        same = os.path.samestat(read, os.stat(out)) and stat.S_ISREG(read.st_mode)
    except (OSError, ValueError):
        # One of them is not there (whoever opens it says so), or standard input is no file.
        return
    if same:
        raise InputError(f"is the input file; nothing was written. {remedy}", str(out))


WAYS = """\
Three ways to get a model:

  a key          leporello setup asks for provider, model and key, tests them and saves them
                 (or set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY,
                 then: leporello chat --model NAME)
  your server    anything with OpenAI's or Anthropic's API (llama.cpp, Ollama, vLLM):
                 leporello setup --base-url http://127.0.0.1:8080/v1 --model NAME
                 (or, once: leporello --set model.base_url=URL chat --model NAME)
  no key at all  a small model on this machine, fetched once (about 130 MB):
                 leporello setup --local, then: leporello chat --model local

To see what a chat looks like without any of them: leporello chat --model scripted:demo
"""


def code_of(outcome: Outcome) -> ExitCode:
    """The code an attempt to fold ends with."""
    if outcome is Outcome.COMMITTED:
        return ExitCode.OK
    return ExitCode.NOTHING_DONE if outcome in (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN) else ExitCode.BLOCKED
