"""`leporello store` and `leporello doctor`: the database itself: what it holds, copies, backups, checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict, replace

from leporello.adapters.hermes import findings as split_findings
from leporello.adapters.hermes import join_split_logs
from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, pass_context
from leporello.cli.store_access import bring_index_up_to_date, file_of, open_existing, pass_store_options
from leporello.errors import InputError, StoreCorrupt
from leporello.lazy_regex import lazy_regex
from leporello.present.output import json_option, note, print_json, print_table, progress, say, strong
from leporello.present.text import plural, safe, short, size, words_of
from leporello.store import Store, open_store
from leporello.store.sql.checkup import Checkup, Finding, Severity
from leporello.store.sql.copying import copy_store

_MOST_FINDINGS = 50
_MOST_SIZES = 12
_ADVICE = lazy_regex(r"\s{0,8}Run `leporello doctor`[^.]{0,400}\.")


@click.group("store", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """What the store holds, copies of it, and backups."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("info", short_help="Where the store is, and what takes the room.")
@pass_store_options
def info(context: CommandContext, url: str | None, as_json: bool) -> None:
    """Show where the store is, how much it holds and what takes the space."""
    with open_existing(context, url) as store:
        held = list(store.conversations.each())
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
        return
    print_table((name.replace("_", " "), _fact(value)) for name, value in facts.items())
    say()
    _print_sizes(sizes)


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else safe(str(value))


def _print_sizes(sizes: Mapping[str, int]) -> None:
    parts = {name: count for name, count in sizes.items() if name != "file"}
    largest = sorted(parts.items(), key=lambda item: -item[1])
    rows = [(short(name, 40), size(count)) for name, count in largest[:_MOST_SIZES]]
    rest = sum(count for _, count in largest[_MOST_SIZES:])
    if rest:
        rows.append((f"{len(largest) - _MOST_SIZES} more", size(rest)))
    # While somebody has a store open, its newest pages are not in the file yet.
    rows.append(("all together", size(max(sizes.get("file", 0), sum(parts.values())))))
    print_table(rows, ("table or index", "size"), numbers=(1,))


@command.command("copy", short_help="Copy every conversation of SRC into DST.")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@json_option
@pass_context
def copy(context: CommandContext, source: str, target: str, as_json: bool) -> None:
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
        told = {"conversations": copied.conversations, "messages": copied.messages, "already_there": copied.equal}
        print_json({"target": where, **told, "verified": True})
        return
    already = f"; {copied.equal:,} were there already, equal in every row" if copied.equal else ""
    say(
        f"Copied and compared {plural(copied.conversations, 'conversation')} with "
        f"{plural(copied.messages, 'message')} to {safe(where)}{already}."
    )


def _same_file(source: str, target: str) -> bool:
    first, second = file_of(source), file_of(target)
    if first is None or second is None:
        return source == target
    return first.exists() and second.exists() and first.samefile(second)


@command.command("backup", short_help="Write a complete copy to a new SQLite file.")
@click.argument("destination", type=click.Path(path_type=Path), metavar="DEST")
@pass_store_options
def backup(context: CommandContext, destination: Path, url: str | None, as_json: bool) -> None:
    """Write a complete copy to the new SQLite file DEST, while the store is in use.

    The file appears when it is complete, never overwrites another, and can be read only by you.
    """
    if destination.exists():
        raise InputError("The file exists. A backup never overwrites; choose another name.", str(destination))
    with open_existing(context, url) as store, progress("Backed up:") as line:
        if not destination.parent.is_dir():
            raise InputError("there is no such folder", str(destination.parent))
        try:
            store.care.backup(str(destination), line.update)
            written = destination.stat().st_size
        except OSError as error:
            raise InputError(error.strerror or str(error), str(destination)) from error
    if as_json:
        print_json({"backup": str(destination), "bytes": written})
    else:
        note(f"Backed up to {safe(str(destination))}, {size(written)}.")


# -- checking

_SQLITE = b"SQLite format 3\x00"  # what each of its files begins with


def _unopened(file: Path | None) -> str:
    """What to do with a store that can't be opened, or with a file that is none."""
    try:
        with open(file or "", "rb") as stream:
            is_store = stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        is_store = True
    if is_store:
        return "Restore a backup."
    return "Its first bytes are not those of a store: name the right file with --store, or restore a backup."


@click.command("doctor")
@click.option(
    "--repair",
    is_flag=True,
    help="Rebuild the search indexes, and join conversations of Hermes whose log an older version stored in parts. "
    "Nothing else is ever changed.",
)
@click.option("--quick", is_flag=True, help="Skip the checks that read every message: hashes and pages.")
@pass_store_options
def doctor(context: CommandContext, repair: bool, quick: bool, url: str | None, as_json: bool) -> ExitCode:
    """Check the store: every message and artifact against its hash, chains, views, indexes, split logs, sizes.

    Exit codes: 0 no problems, 1 problems found.
    """
    file = file_of(url or context.settings.store_url)
    where = "the store" if file is None else str(file)
    opened = True
    try:
        with open_existing(context, url) as store:
            where = store.url
            found = _examine(store, repair, deep=not quick)
    except StoreCorrupt as error:
        # So damaged that it can't be opened: a finding like any other. What it advises is this very command.
        opened = False
        found = Checkup((Finding("open", Severity.DAMAGE, where, _ADVICE.sub("", str(error))),), 0, 0, 0, 0, {})
    if as_json:
        print_json(_checkup_json(where, found, opened))
    elif opened:
        _print_checkup(found)
    else:
        say(safe(found.findings[0].text))
        note(f"It could not be opened, so nothing in it was checked or changed. {_unopened(file)}")
    return ExitCode.OK if found.clean else ExitCode.FAILED


def _examine(store: Store, repair: bool, deep: bool) -> Checkup:
    if repair:
        joined = join_split_logs(store)
        if joined:
            note(f"Joined {plural(joined, 'part')} of split logs with the rest of their conversations.")
        with progress("Indexing and checking, messages:") as line:
            found = store.care.repair(line.update)
    else:
        with progress("Messages checked:") as line:
            found = store.care.checkup(deep, line.update)
    if any(finding.severity is Severity.DAMAGE for finding in found.findings):
        return found
    return replace(found, findings=(*found.findings, *split_findings(store)))


def _checkup_json(where: str, found: Checkup, opened: bool) -> dict[str, Any]:
    """For programs; of a store that can't be opened nobody knows what it holds."""
    return {
        "store": where,
        "clean": found.clean,
        "findings": [asdict(finding) for finding in found.findings],
        "conversations": found.conversations if opened else None,
        "messages": found.messages if opened else None,
        "artifacts": found.artifacts if opened else None,
        "not_indexed_yet": found.pending if opened else None,
        "sizes": dict(found.sizes),
    }


def _print_checkup(found: Checkup) -> None:
    held = {"conversation": found.conversations, "message": found.messages, "artifact": found.artifacts}
    counts = ", ".join(plural(count, name) for name, count in held.items())
    say(f"{counts}; {plural(found.pending, 'message')} not indexed yet")
    if found.sizes:
        say()
        _print_sizes(found.sizes)
    say()
    if found.clean:
        say(strong("No problems found."))
        return
    rows = [
        (finding.severity.value, finding.check, short(finding.where, 40), words_of(finding.text, 200))
        for finding in found.findings[:_MOST_FINDINGS]
    ]
    print_table(rows, ("kind", "check", "where", "what"))
    if len(found.findings) > _MOST_FINDINGS:
        note(f"and {len(found.findings) - _MOST_FINDINGS:,} more; --json shows all")
    kinds = {finding.severity for finding in found.findings}
    if Severity.INDEX in kinds:
        note("`leporello doctor --repair` rebuilds damaged indexes.")
    if Severity.SPLIT in kinds:
        note("`leporello doctor --repair` joins split logs, where the parts have a message in common.")
    if Severity.DAMAGE in kinds:
        note("Damaged data can't be repaired. Restore a backup, or try to export it with `leporello sessions export`.")
