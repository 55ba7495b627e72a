"""`leporello doctor`: is everything in the store as it should be?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from leporello.cli.exits import ExitCode
from leporello.cli.frame import Frame, pass_frame
from leporello.cli.output import json_option, note, print_json, print_table, progress, say, strong
from leporello.cli.store_access import open_existing, store_option
from leporello.cli.store_text import plural, short, size, words_of
from leporello.errors import StoreCorrupt
from leporello.store import Store
from leporello.store.records import Checkup, Finding, Severity

_MOST_SHOWN = 50


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Make the search indexes anew. Nothing else is ever changed.")
@click.option("--quick", is_flag=True, help="Leave out what reads every message: hashes and pages.")
@store_option
@json_option
@pass_frame
def command(frame: Frame, repair: bool, quick: bool, url: str | None, as_json: bool) -> ExitCode:
    """Check the store: every message and artifact against its hash, chains, views, indexes, sizes.

    Exit codes: 0 all is well, 1 something was found.
    """
    where = "the store"
    try:
        with open_existing(frame, url) as store:
            where = store.url
            found = _examine(store, repair, deep=not quick)
    except StoreCorrupt as error:
        # So damaged that it can't be opened: a finding like any other.
        found = Checkup((Finding("open", Severity.DAMAGE, where, str(error)),), 0, 0, 0, 0, {})
    if as_json:
        print_json(_as_dict(where, found))
    else:
        _print(found)
    return ExitCode.OK if found.clean else ExitCode.FAILED


def _examine(store: Store, repair: bool, deep: bool) -> Checkup:
    if repair:
        with progress("Indexing and checking, messages:") as line:
            return store.care.repair(line.update)
    with progress("Messages checked:") as line:
        return store.care.checkup(deep, line.update)


def _as_dict(where: str, found: Checkup) -> dict[str, Any]:
    return {
        "store": where,
        "clean": found.clean,
        "findings": [asdict(finding) for finding in found.findings],
        "conversations": found.conversations,
        "messages": found.messages,
        "artifacts": found.artifacts,
        "not_indexed_yet": found.pending,
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
        say(strong("All is well."))
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
        note("Faults of an index are mended by `leporello doctor --repair`.")
    if Severity.DAMAGE in kinds:
        note("Damage can't be mended. Restore a backup, or export what still reads with `leporello sessions export`.")


def print_sizes(sizes: Mapping[str, int], most: int = 12) -> None:
    """The largest tables and indexes."""
    parts = {name: count for name, count in sizes.items() if name != "file"}
    largest = sorted(parts.items(), key=lambda item: -item[1])
    rows = [(short(name, 40), size(count)) for name, count in largest[:most]]
    rest = sum(count for _, count in largest[most:])
    if rest:
        rows.append((f"{len(largest) - most} more", size(rest)))
    rows.append(("all together", size(sizes.get("file", sum(parts.values())))))
    print_table(rows, ("table or index", "size"), numbers=(1,))
