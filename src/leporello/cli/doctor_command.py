"""`leporello doctor`: is everything in the store as it should be?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from leporello.cli.context import CommandContext, pass_context
from leporello.cli.exits import ExitCode
from leporello.cli.store_access import file_of, open_existing, store_option
from leporello.errors import StoreCorrupt
from leporello.present.numbers import plural, size
from leporello.present.output import json_option, note, print_json, print_table, progress, say, strong
from leporello.present.text import safe, short, words_of
from leporello.store import Store
from leporello.store.records import Checkup, Finding, Severity

_MOST_SHOWN = 50
_ADVICE = re.compile(r"\s{0,8}Run `leporello doctor`[^.]{0,400}\.")


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Rebuild the search indexes. Nothing else is ever changed.")
@click.option("--quick", is_flag=True, help="Skip the checks that read every message: hashes and pages.")
@store_option
@json_option
@pass_context
def command(context: CommandContext, repair: bool, quick: bool, url: str | None, as_json: bool) -> ExitCode:
    """Check the store: every message and artifact against its hash, chains, views, indexes, sizes.

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
        print_json(_as_dict(where, found, opened))
    elif opened:
        _print(found)
    else:
        say(safe(found.findings[0].text))
        note("It could not be opened, so nothing in it was checked or changed. Restore a backup.")
    return ExitCode.OK if found.clean else ExitCode.FAILED


def _examine(store: Store, repair: bool, deep: bool) -> Checkup:
    if repair:
        with progress("Indexing and checking, messages:") as line:
            return store.care.repair(line.update)
    with progress("Messages checked:") as line:
        return store.care.checkup(deep, line.update)


def _as_dict(where: str, found: Checkup, opened: bool) -> dict[str, Any]:
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


def _print(found: Checkup) -> None:
    counts = (
        plural(found.conversations, "conversation"),
        plural(found.messages, "message"),
        plural(found.artifacts, "artifact"),
    )
    say(f"{', '.join(counts)}; {plural(found.pending, 'message')} not indexed yet")
    if found.sizes:
        say()
        print_sizes(found.sizes)
    say()
    if found.clean:
        say(strong("No problems found."))
        return
    rows = [
        (finding.severity.value, finding.check, short(finding.where, 40), words_of(finding.text, 200))
        for finding in found.findings[:_MOST_SHOWN]
    ]
    print_table(rows, ("kind", "check", "where", "what"))
    if len(found.findings) > _MOST_SHOWN:
        note(f"and {len(found.findings) - _MOST_SHOWN:,} more; --json shows all")
    kinds = {finding.severity for finding in found.findings}
    if Severity.INDEX in kinds:
        note("`leporello doctor --repair` rebuilds damaged indexes.")
    if Severity.DAMAGE in kinds:
        note("Damaged data can't be repaired. Restore a backup, or try to export it with `leporello sessions export`.")


def print_sizes(sizes: Mapping[str, int], most: int = 12) -> None:
    parts = {name: count for name, count in sizes.items() if name != "file"}
    largest = sorted(parts.items(), key=lambda item: -item[1])
    rows = [(short(name, 40), size(count)) for name, count in largest[:most]]
    rest = sum(count for _, count in largest[most:])
    if rest:
        rows.append((f"{len(largest) - most} more", size(rest)))
    rows.append(("all together", size(sizes.get("file", sum(parts.values())))))
    print_table(rows, ("table or index", "size"), numbers=(1,))
