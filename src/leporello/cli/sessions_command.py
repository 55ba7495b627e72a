"""`leporello sessions`: what is in the store, shown, searched, exported, renamed and removed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, pass_context
from leporello.cli.store_access import (
    bring_index_up_to_date,
    find,
    nothing_found,
    open_existing,
    open_for_listing,
    store_option,
)
from leporello.errors import InputError
from leporello.files import must_be_new, open_atomically
from leporello.messages import ROLES
from leporello.present.conversation import details_json, json_lines, markdown, print_details, read_details
from leporello.present.output import (
    dim,
    json_option,
    note,
    print_json,
    print_table,
    progress,
    say,
    strong,
    terminal_width,
)
from leporello.present.records import conversation_json, hit_json
from leporello.present.text import moment, parse_age, parse_moment, plural, safe, short
from leporello.store.records import (
    ConversationFilter,
    ConversationKind,
    ConversationRecord,
    Hit,
    SearchMode,
    SearchQuery,
)
from leporello.store.sql.search import LEAST_FRAGMENT

_ID = 60
_TITLE = 80
_WIDE = 110
"""A terminal of so many columns has room for platform and model in the list."""


@click.group("sessions", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, search, export, rename and remove conversations.

    Wherever an ID is wanted, any id of the conversation's chain will do, or the beginning of one (at least four
    letters) that no other has.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("list")
@click.option("--platform", metavar="NAME", help="Only of this platform.")
@click.option("--owner", metavar="NAME", help="Only of this owner.")
@click.option("--kind", type=click.Choice([kind.value for kind in ConversationKind]), help="Only of this kind.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many on a page.")
@click.option("--next", "cursor", metavar="CURSOR", help="Continue where the previous page ended.")
@store_option
@json_option
@pass_context
def list_(
    context: CommandContext,
    platform: str | None,
    owner: str | None,
    kind: str | None,
    limit: int,
    cursor: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """List conversations, newest activity first. Imported ones count by their recorded times.

    On a narrow terminal long ids and titles are cut, and platform and model are left out.
    """
    where = ConversationFilter(platform=platform, owner=owner, kind=ConversationKind(kind) if kind else None)
    with open_for_listing(context, url) as store:
        page = store.conversations.page(where, limit, cursor)
        nothing = "" if page.conversations else nothing_found(store, "No conversations match.")
    if as_json:
        print_json({"conversations": [conversation_json(record) for record in page.conversations], "next": page.cursor})
    elif nothing:
        note(nothing)
    else:
        _print_list(page.conversations)
    if page.cursor and not as_json:
        note(dim(f"There are more: --next {page.cursor}"))


def _print_list(records: tuple[ConversationRecord, ...]) -> None:
    width = terminal_width()
    whole = width is None or width >= _WIDE
    rows = [_list_row(record, whole) for record in records]
    about = ("platform", "model") if whole else ()
    headings = ("id", "active", "messages", "folds", "state", *about, "title")
    title = len(headings) - 1
    print_table(rows, headings, numbers=(2, 3), shrinking=(title, 6, 5, 0) if whole else (title, 0))


def _list_row(record: ConversationRecord, whole: bool) -> tuple[str, ...]:
    metadata = record.metadata
    about = (short(metadata.platform, 16), short(metadata.model, 28)) if whole else ()
    return (
        short(record.id, _ID),
        moment(record.updated_at),
        f"{record.messages:,}",
        f"{record.tip.ordinal - 1:,}",
        "open" if record.open else "ended",
        *about,
        short(metadata.title, _TITLE),
    )


@command.command("show")
@click.argument("id")
@click.option("--last", type=click.IntRange(0, 10_000), default=6, show_default=True, help="How many newest messages.")
@store_option
@json_option
@pass_context
def show(context: CommandContext, id: str, last: int, url: str | None, as_json: bool) -> None:
    """Show one conversation: its chain, metadata, usage, folds and newest messages."""
    with open_existing(context, url) as store:
        details = read_details(store, find(store, id), last)
    if as_json:
        print_json(details_json(details))
    else:
        print_details(details)


@command.command("search")
@click.argument("query")
@click.option("--conversation", metavar="ID", help="Only in this conversation.")
@click.option(
    "--role",
    "roles",
    type=click.Choice(ROLES),
    multiple=True,
    metavar="ROLE",
    help="Only messages of this role. May be repeated.",
)
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Only this tool's calls and results.")
@click.option("--since", metavar="TIME", help="Only messages since a date (2026-01-31) or an age (7d).")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many hits.")
@click.option("--exact", is_flag=True, help="Find QUERY letter by letter, inside words too; at least 3 letters.")
@store_option
@json_option
@pass_context
def search(
    context: CommandContext,
    /,
    query: str,
    conversation: str | None,
    since: str | None,
    exact: bool,
    url: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Find messages by words, folded parts included, best first. Secrets are masked."""
    if not query.strip():
        raise click.UsageError("QUERY is empty: give the words to look for.")
    if exact and len(query.strip()) < LEAST_FRAGMENT:
        raise click.UsageError(
            f"--exact needs at least {LEAST_FRAGMENT} letters, and {query.strip()!r} is shorter. "
            "Give more of it, or leave --exact out to look for whole words."
        )
    with open_for_listing(context, url) as store:
        asked = SearchQuery(
            text=query,
            conversation=None if conversation is None else find(store, conversation).id,
            since=None if since is None else parse_moment(since),
            **filters,
            mode=SearchMode.FRAGMENT if exact else SearchMode.HYBRID,
        )
        bring_index_up_to_date(store)
        hits = store.index.search(asked)
        nothing = "" if hits else nothing_found(store, "Nothing found.")
    if as_json:
        print_json({"query": query, "hits": [hit_json(hit) for hit in hits]})
    elif nothing:
        note(nothing)
    else:
        _print_hits(hits)


def _print_hits(hits: list[Hit]) -> None:
    for hit in hits:
        who = " ".join(filter(None, (short(hit.role, 20), short(hit.tool, 40))))
        say(f"{strong(f'{short(hit.conversation, _ID)} {hit.id}')} {dim(f'{who}, {moment(hit.created_at)}')}")
        say(f"    {safe(hit.snippet)}")


@command.command("export")
@click.argument("id")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "md"]), default="jsonl", show_default=True, help="What to write."
)
@click.option("--view", is_flag=True, help="Only what the model sees now, folded.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write here, not to stdout."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@store_option
@pass_context
def export(
    context: CommandContext, id: str, form: str, view: bool, out: Path | None, force: bool, url: str | None
) -> None:
    """Write a conversation out: every message with its id and time, as JSON lines or as Markdown.

    A file is written whole or not at all, can be read only by you, and replaces another only with --force.
    """
    if out is not None and not force:
        must_be_new(out, "--force replaces it.")
    with open_existing(context, url) as store:
        record = find(store, id)
        pieces = json_lines(store, record, view) if form == "jsonl" else markdown(store, record, view)
        if out is None:
            for piece in pieces:
                click.echo(piece, nl=False)
            return
        with open_atomically(out, private=True) as file, progress("Pieces written:") as line:
            for number, piece in enumerate(pieces, 1):
                file.write(piece.encode())
                line.update(number)
    note(f"Written to {safe(str(out))}.")


@command.command("rename")
@click.argument("id")
@click.argument("title")
@store_option
@pass_context
def rename(context: CommandContext, id: str, title: str, url: str | None) -> None:
    """Give a conversation another title."""
    with open_existing(context, url) as store:
        record = store.conversations.update(find(store, id).id, title=title)
    note(f'{short(record.id, _ID)} is now called "{short(record.metadata.title, _TITLE)}".')


@command.command("delete")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@pass_context
def delete(context: CommandContext, id: str, yes: bool, url: str | None) -> ExitCode:
    """Remove a conversation with all it has: messages, folds, artifacts, counters. It can't be undone."""
    with open_existing(context, url) as store:
        record = find(store, id)
        what = (
            f"{short(record.id, _ID)} ({plural(record.messages, 'message')}, {short(record.metadata.title, _TITLE)!r})"
        )
        if not yes:
            if not _on_terminal():
                raise InputError("To delete without a terminal, add --yes.")
            if not click.confirm(f"Delete {what} for good?", err=True):
                note("Nothing was deleted.")
                return ExitCode.NOTHING_DONE
        store.conversations.delete(record.id)
    note(f"Deleted {what}.")
    return ExitCode.OK


@command.command("prune")
@click.option("--older-than", "age", required=True, metavar="AGE", help="No activity for so long: 90d, 12w, 1y.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@store_option
@json_option
@pass_context
def prune(context: CommandContext, age: str, yes: bool, url: str | None, as_json: bool) -> None:
    """Delete old conversations. Open ones and those with a pin stay.

    First shows what would go, then asks. Without a terminal nothing is deleted unless --yes is given.
    """
    before = time.time() - parse_age(age)
    with open_for_listing(context, url) as store:
        old = [store.conversations.resolve(id) for id in store.conversations.prune(before, dry_run=True)]
        if old and not as_json:
            _print_list(tuple(old))
        these = "this conversation" if len(old) == 1 else f"these {len(old):,} conversations"
        agreed = yes or (bool(old) and _on_terminal() and click.confirm(f"Delete {these}?", err=True))
        gone = store.conversations.prune(before) if old and agreed else []
    if as_json:
        print_json({"old": [conversation_json(record) for record in old], "deleted": gone})
    elif gone:
        note(f"Deleted {plural(len(gone), 'conversation')}.")
    else:
        note("Nothing was deleted." + (" Add --yes to delete these." if old else " No ended conversation is that old."))


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
