"""`leporello store`: the database itself: what it holds, a copy of it elsewhere, a backup."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import click

from leporello.cli.context import CommandContext, pass_context
from leporello.cli.doctor_command import print_sizes
from leporello.cli.exits import ExitCode
from leporello.cli.store_access import bring_index_up_to_date, conversations, file_of, open_existing, store_option
from leporello.errors import InputError
from leporello.present.numbers import plural, size
from leporello.present.output import json_option, note, print_json, print_table, progress, say
from leporello.present.text import safe
from leporello.store import open_store
from leporello.store.sql.copying import copy_store

_FILE = click.Path(path_type=Path)


@click.group("store", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """What the store holds, copies of it, and backups."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("info")
@store_option
@json_option
@pass_context
def info(context: CommandContext, url: str | None, as_json: bool) -> ExitCode:
    """Show where the store is, how much it holds and what takes the space."""
    with open_existing(context, url) as store:
        held = list(conversations(store))
        facts = {
            "store": store.url,
            "read_only": store.read_only,
            "conversations": len(held),
            "open": sum(record.open for record in held),
            "messages": sum(record.messages for record in held),
            "not_indexed_yet": store.index.pending(),
        }
        sizes = store.care.sizes()
    if as_json:
        print_json({**facts, "sizes": dict(sizes)})
        return ExitCode.OK
    print_table((name.replace("_", " "), _fact(value)) for name, value in facts.items())
    say()
    print_sizes(sizes)
    return ExitCode.OK


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else safe(str(value))


@command.command("copy")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@json_option
@pass_context
def copy(context: CommandContext, source: str, target: str, as_json: bool) -> ExitCode:
    """Copy every conversation of SRC into DST, for example from a SQLite file to postgresql://...

    SRC may be in use. Each conversation is copied whole or not at all and compared with its original; an interrupted
    copy is taken up again by the same command. If DST holds one of the conversations already and it differs, nothing
    is copied.
    """
    if _same_file(source, target):
        raise InputError("SRC and DST are the same store.")
    with open_existing(context, source, read_only=True) as first, open_store(target) as second:
        with progress("Conversations copied:") as line:
            copied = copy_store(first, second, line.update)
        bring_index_up_to_date(second)
        where = second.url
    if as_json:
        print_json(
            {
                "target": where,
                "conversations": copied.conversations,
                "messages": copied.messages,
                "already_there": copied.equal,
                "verified": True,
            }
        )
        return ExitCode.OK
    already = f"; {copied.equal:,} were there already, equal in every row" if copied.equal else ""
    say(
        f"Copied and compared {plural(copied.conversations, 'conversation')} with "
        f"{plural(copied.messages, 'message')} to {safe(where)}{already}."
    )
    return ExitCode.OK


def _same_file(source: str, target: str) -> bool:
    first, second = file_of(source), file_of(target)
    if first is None or second is None:
        return source == target
    return first.exists() and second.exists() and first.samefile(second)


@command.command("backup")
@click.argument("destination", type=_FILE, metavar="DEST")
@store_option
@json_option
@pass_context
def backup(context: CommandContext, destination: Path, url: str | None, as_json: bool) -> ExitCode:
    """Write a complete copy to the new SQLite file DEST, while the store is in use.

    The file appears when it is complete, never overwrites another, and can be read only by you.
    """
    if destination.exists():
        raise _taken(destination)
    with open_existing(context, url) as store, progress("Backed up:") as line:
        try:
            folder = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}."))
        except OSError as error:
            raise InputError(error.strerror or str(error), str(destination)) from error
        try:
            store.care.backup(str(folder / "backup.db"), line.update)
            written = _put_in_place(folder / "backup.db", destination)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        print_json({"backup": str(destination), "bytes": written})
    else:
        note(f"Backed up to {safe(str(destination))}, {size(written)}.")
    return ExitCode.OK


def _put_in_place(file: Path, destination: Path) -> int:
    try:
        file.chmod(0o600)
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            # Unlike a renaming, a link fails where a file has appeared meanwhile.
            destination.hardlink_to(file)
        except FileExistsError:
            raise _taken(destination) from None
        except OSError:
            # Some disks know no links.
            if destination.exists():
                raise _taken(destination) from None
            file.rename(destination)
        return destination.stat().st_size
    except OSError as error:
        raise InputError(error.strerror or str(error), str(destination)) from error


def _taken(destination: Path) -> InputError:
    return InputError("The file exists. A backup never overwrites; choose another name.", str(destination))
