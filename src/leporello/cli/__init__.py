"""The `leporello` program. Each command lives in its own file and is imported only when it runs.

To add a command: write `cli/<name>_command.py` with a click command called `command`, and one line in COMMANDS.
Exit codes are the same for every command, so that scripts can rely on them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from leporello.errors import (
    ConfigError,
    EngineError,
    FixedPartTooLarge,
    InputError,
    LeporelloError,
    NotFound,
    SummaryError,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (group of the help page, one line of help)
    "chat": ("Work", "Talk to the agent in the terminal."),
    "run": ("Work", "Send one message to the agent and print its work and its answer."),
    "compress": ("Work", "Fold a message list now and print what is left."),
    "import": ("Sessions", "Put recorded sessions of other agents into the store."),
    "doctor": ("Sessions", "Check the store: hashes, chains, indexes; rebuild indexes."),
    "insights": ("Sessions", "Show usage and cost by day, model, platform and tool."),
    "store": ("Sessions", "Show, copy and back up the database."),
    "sessions": ("Sessions", "List, show, search, export, rename and remove conversations."),
    "exam": ("Measure", "Replay sessions into engines and measure what is still known."),
    "replay": ("Measure", "Replay recorded sessions call by call and bill them by the cache rules."),
    "serve": ("Connect", "Serve the proxy for model clients and agent sessions over HTTP."),
    "mcp": ("Connect", "Let MCP clients search and open stored conversations."),
    "plugins": ("Settings", "List engines and plugins, choose an engine, examine one."),
    "setup": ("Settings", "Choose provider, model and key; --local fetches a model that needs none."),
    "config": ("Settings", "Show every setting with its value and where it comes from."),
    "explain": ("Settings", "Show window, reserve, threshold and caps, and where each comes from."),
}

GROUPS = ("Work", "Sessions", "Measure", "Connect", "Settings")
NEIGHBOURS = {**dict.fromkeys(("config", "explain"), "setup"), "doctor": "store", "mcp": "serve"}
"""Commands that live in the file of another one, as a click command of their own name."""

EXAMPLES = """\
Examples:

  leporello setup                                  provider, model and key, tested before they are saved
  leporello chat                                   talk to the agent; --continue resumes the newest conversation
  leporello chat --model scripted:demo             see what that looks like, without a key
  leporello run "Fix the failing test" --yes       one message, for scripts
  leporello compress session.json --window 128000 --out shorter.json
  leporello explain --model claude-sonnet-4-5
  leporello --set compression.threshold=0.6 config
"""


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


class _ReaderGone(Exception):
    """The reader of our output (`head`, a pager) closed the pipe."""


@contextmanager
def _readers_may_go() -> Iterator[None]:
    """Renames a broken pipe: click would end the program with code 1 where it sees one."""
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGone from None


class LazyGroup(click.Group):
    """Knows the names and help lines of all commands; loads the code of the one that is run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _readers_may_go():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _readers_may_go():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # Nothing of what is imported becomes garbage; looking for it would be a tenth of the start.
        gc.disable()
        module = import_module(f"leporello.cli.{NEIGHBOURS.get(cmd_name, cmd_name)}_command")
        gc.freeze()
        gc.enable()
        command: click.Command = getattr(module, cmd_name if cmd_name in NEIGHBOURS else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a suggestion for a mistyped name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415  # only a mistake needs it

            near = get_close_matches(name, COMMANDS, n=1)
            hint = f"Did you mean `leporello {near[0]}`?" if near else "`leporello --help` lists them all."
            ctx.fail(f"There is no command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names from the table: asking each command for its help would load all of them for one keystroke."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # only completion needs it

        return [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl(sorted((name, line) for name, (its, line) in COMMANDS.items() if its == group))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\n" + EXAMPLES)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415  # it loads half of the standard library

        click.echo(f"leporello {version('leporello')}")
        ctx.exit()


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--home", metavar="DIR", help="Folder with settings and data, instead of LEPORELLO_HOME.")
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Set any setting for this run.")
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
@click.pass_context
def program(ctx: click.Context, home: str | None, assignments: tuple[str, ...]) -> None:
    """Keeps an LLM agent's conversation inside the model's window and loses nothing."""
    ctx.obj = {"home": home, "assignments": assignments}
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and give its exit code. Errors are one line on stderr, never a traceback."""
    _open_closed_streams()
    try:
        result = program.main(args=argv, prog_name="leporello", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _shown(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return ExitCode.INTERRUPTED
    except LeporelloError as error:
        click.echo(f"leporello: {_without_secrets(str(error))}", err=True)
        return exit_code_for(error)
    except (_ReaderGone, BrokenPipeError):
        sys.stdout = None  # Python would complain again when it flushes at exit
        return ExitCode.OK
    except OSError as error:
        return _output_failed(error)
    return result if isinstance(result, int) else ExitCode.OK


def _open_closed_streams() -> None:
    """A closed stream is replaced by the null device: its number would go to the next file that is opened."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it lasts as long as we do


def _shown(error: click.ClickException) -> int:
    try:
        error.show()
    except OSError as failure:
        return _output_failed(failure)
    return error.exit_code


def _output_failed(error: OSError) -> ExitCode:
    """Reports output that could not be written, mostly to a full disk."""
    where = error.filename or "The output can't be written"
    sys.stdout = None  # Python would complain again when it flushes at exit
    # Where stderr is full as well, only the exit code is left to tell it.
    with suppress(OSError):
        click.echo(f"leporello: {_without_secrets(str(where))}: {error.strerror or error}.", err=True)
    return ExitCode.FAILED


def _without_secrets(text: str) -> str:
    """An error quotes the value it complains about, and that may be a key in the wrong place."""
    from leporello.redact import redact  # noqa: PLC0415  # start-up does not pay for what only errors need

    return redact(text)
