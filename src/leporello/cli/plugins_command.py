"""`leporello plugins`: what is installed, which engine is used, whether an engine keeps its promises."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson

from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, pass_context
from leporello.config.config_file import write_setting
from leporello.config.sources import scratch_environment
from leporello.errors import InputError, LeporelloError
from leporello.plugins.hermes import HOSTS, install
from leporello.plugins.host import DEFAULT_ENGINE, PLUGIN_MARKS, PluginHost, PluginRow, PluginStatus
from leporello.plugins.isolation import command_line
from leporello.plugins.loading import PluginKind
from leporello.present.output import dim, json_option, note, print_json, print_table, say, strong, warn
from leporello.present.text import safe

HERMES_HOME = "~/.hermes"


@click.group("plugins", invoke_without_command=True)
@click.pass_context
@pass_context
def command(context: CommandContext, ctx: click.Context) -> None:
    """Engines and other plugins: list them, choose an engine, load a plugin, examine an engine.

    Without a command it lets you pick an engine on a terminal, and lists them elsewhere. An engine is a folder in
    LEPORELLO_HOME/plugins/context_engine or an installed package; nothing is active unless the settings name it.
    """
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        _pick(context)
    else:
        _print_list(_listing(context))


@command.command("list")
@json_option
@pass_context
def list_command(context: CommandContext, as_json: bool) -> None:
    """Show every engine and plugin, its state, and why it is not loaded."""
    listed = _listing(context)
    if as_json:
        print_json([asdict(line) for line in listed])
    else:
        _print_list(listed)


@command.command("use")
@click.argument("name")
@pass_context
def use_command(context: CommandContext, name: str) -> None:
    """Fold conversations with the engine NAME from now on. Loads it once before saving that."""
    _use(context, name)


@command.command("enable")
@click.argument("name")
@pass_context
def enable_command(context: CommandContext, name: str) -> None:
    """Load the general plugin NAME from now on. Loads it once before saving that."""
    enabled = context.settings.plugins.enabled
    wanted = enabled if name in enabled else (*enabled, name)
    host = PluginHost(context.settings_with({"plugins.enabled": wanted}))
    if name not in _general(host):
        raise InputError(_no_plugin(host, name))
    row = next(line for line in host.listing() if line.name == name and line.kind == PluginKind.GENERAL)
    for text in host.troubles:
        warn(safe(text))
    if row.status is not PluginStatus.ENABLED:
        raise InputError(row.why)
    _write(context, "plugins.enabled", wanted)


@command.command("disable")
@click.argument("name")
@pass_context
def disable_command(context: CommandContext, name: str) -> ExitCode:
    """Stop loading the general plugin NAME; its files stay."""
    enabled = context.settings.plugins.enabled
    if name not in enabled:
        note(f"{name} is not enabled.")
        return ExitCode.NOTHING_DONE
    _write(context, "plugins.enabled", tuple(other for other in enabled if other != name))
    return ExitCode.OK


@command.command("doctor")
@click.argument("name")
@json_option
@pass_context
def doctor_command(context: CommandContext, name: str, as_json: bool) -> ExitCode:
    """Examine the engine NAME, promise by promise. Exit code 4 when one is broken."""
    _must_exist(PluginHost(context.settings), name)
    lines = []
    for line in _examined(context, name):
        lines.append(line)
        if not as_json:
            mark = click.style("ok    ", fg="green") if line["kept"] else click.style("BROKEN", fg="red")
            say(f"{mark} {line['promise']}" + (f"\n       {safe(str(line['why']))}" if line["why"] else ""))
    broken = [line for line in lines if not line["kept"]]
    if as_json:
        print_json({"engine": name, "promises": lines, "broken": len(broken)})
    elif broken:
        note(
            f"{len(broken)} of {len(lines)} promises are broken. In use, the host mends what it can; what can't be "
            "sent is not used, and the built-in compressor compacts instead."
        )
    else:
        note(f"{name} keeps all {len(lines)} promises.")
    return ExitCode.BLOCKED if broken else ExitCode.OK


@command.command("install")
@click.option("--host", type=click.Choice(HOSTS), required=True, help="The program to put Leporello's engines into.")
@click.option("--home", "folder", type=click.Path(path_type=Path), help=f"Its home folder. [{HERMES_HOME}]")
@json_option
def install_command(host: str, folder: Path | None, as_json: bool) -> None:
    """Put Leporello's engines into another host, as a plugin of that host."""
    done = install(host, folder or Path(HERMES_HOME))
    if as_json:
        print_json(asdict(done))
    else:
        note(f"Written: {done.folder}")
        say(done.next)


# -- parts


def _listing(context: CommandContext) -> list[PluginRow]:
    """Everything that is there; the chosen engine is loaded, so that its state is true."""
    host = PluginHost(context.settings)
    with suppress(LeporelloError):  # the listing says why
        _load_once(host, context.settings.get("context.engine"))
    listed = host.listing()
    for text in host.troubles:
        warn(safe(text))
    return listed


def _load_once(host: PluginHost, name: str) -> None:
    offer = host.make_engine(name) if name != DEFAULT_ENGINE else None
    if offer is not None:
        offer.hosted.close()


def _print_list(listed: list[PluginRow]) -> None:
    rows = [
        (
            PLUGIN_MARKS.get(line.status, " "),
            safe(line.name),
            line.kind,
            safe(line.version),
            line.status.value,
            _about(line),
        )
        for line in listed
    ]
    print_table(rows, ("", "name", "kind", "version", "status", ""))
    say(dim("Another engine: leporello plugins use NAME. Other plugins: leporello plugins enable NAME"))


def _engines(listed: list[PluginRow]) -> list[PluginRow]:
    return [line for line in listed if line.kind != "general" and line.status is not PluginStatus.MISSING]


def _about(line: PluginRow) -> str:
    return safe(" · ".join(filter(None, (line.why, line.description, line.where))))


_LEAVES = ("q", "\x1b")  # the Esc key sends the second


def _pick(context: CommandContext) -> None:
    listed = _engines(_listing(context))
    for number, line in enumerate(listed, 1):
        here = strong("*") if line.status is PluginStatus.IN_USE else " "
        say(f"{here} {number}  {safe(line.name)}  {dim(line.kind)}  {_about(line)}")
    numbers = [str(number) for number in range(1, len(listed) + 1)]
    picked = click.prompt(
        f"Which engine? (1-{len(listed)}; q leaves)",
        type=click.Choice([*numbers, *_LEAVES]),
        show_choices=False,
        err=True,
    )
    if picked in _LEAVES:
        note("Nothing was changed.")
        return
    _use(context, listed[int(picked) - 1].name)


def _use(context: CommandContext, name: str) -> None:
    settings = context.settings_with({"context.engine": name})
    host = PluginHost(settings)
    _must_exist(host, name)
    _load_once(host, name)
    _write(context, "context.engine", name)


def _write(context: CommandContext, key: str, value: str | tuple[str, ...]) -> None:
    write_setting(context.home, key, value)
    shown = value if isinstance(value, str) else f"[{', '.join(value)}]"
    note(f"{key} is {safe(shown)} now ({context.home.config_file}). Conversations that are open stay as they are.")
    source = context.settings.source(key)
    if source.origin.value in ("environment", "flag"):
        warn(f"For this run it is still {context.settings.get(key)}: {source}.")


def _general(host: PluginHost) -> list[str]:
    missing = PluginStatus.MISSING
    return [line.name for line in host.listing() if line.kind == PluginKind.GENERAL and line.status is not missing]


def _no_plugin(host: PluginHost, name: str) -> str:
    if name in (line.name for line in _engines(host.listing())):
        return f"{name} is an engine: leporello plugins use {name}"
    there = ", ".join(map(safe, _general(host))) or f"none in {host.settings.home.plugins_dir} or among the packages"
    return f"There is no plugin {name!r}. There are: {there}."


def _must_exist(host: PluginHost, name: str) -> None:
    there = [line.name for line in _engines(host.listing())]
    if name not in there:
        if name in _general(host):
            raise InputError(f"{name} is not an engine. It is loaded with: leporello plugins enable {name}")
        raise InputError(f"There is no engine {name!r}. There are: {', '.join(map(safe, there))}.")


def _examined(context: CommandContext, name: str) -> Iterator[dict[str, Any]]:
    ended = False
    # In a process and a home of its own: a plugin under examination may hang, print, exit or write to its database.
    with (
        tempfile.TemporaryDirectory() as scratch,
        subprocess.Popen(
            command_line("leporello.testing.engine_doctor", name, context.settings, Path(scratch)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=scratch_environment(Path(scratch)),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                line: dict[str, Any] = orjson.loads(raw)
                if "error" in line:
                    raise InputError(str(line["error"]))
                ended = "ended" in line
                if not ended:
                    yield line
        finally:
            process.kill()
    if not ended:
        yield {"promise": "the examination comes to its end", "kept": False, "why": "the plugin ended the program"}
