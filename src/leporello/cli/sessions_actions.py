"""`leporello sessions show, search, export, rename, delete, prune`: loaded when one of them is run."""

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
    pass_store_options,
    store_option,
)
from leporello.conversation.artifacts import delete_conversation, prune_conversations
from leporello.conversation.log import stated_values
from leporello.errors import InputError
from leporello.files import must_be_new, open_atomically
from leporello.messages import ROLES
from leporello.present.conversation import (
    details_json,
    json_lines,
    markdown,
    print_details,
    print_state,
    read_details,
    state_json,
)
from leporello.present.output import (
    ID_WIDTH,
    TITLE_WIDTH,
    conversation_json,
    dim,
    note,
    print_json,
    print_list,
    progress,
    say,
    strong,
)
from leporello.present.records import hit_json
from leporello.present.text import moment, parse_age, parse_moment, plural, safe, short
from leporello.store.records import SearchMode, SearchQuery
from leporello.store.sql.search import LEAST_FRAGMENT


@click.command("show", short_help="Show one conversation: chain, usage, folds, messages.")
@click.argument("id")
@click.option("--last", type=click.IntRange(0, 10_000), default=6, show_default=True, help="How many newest messages.")
@click.option("--state", is_flag=True, help="Also what it says about things: each value, since when, what replaced it.")
@pass_store_options
def show(context: CommandContext, id: str, last: int, state: bool, url: str | None, as_json: bool) -> None:
    """Show one conversation: its chain, metadata, usage, folds and newest messages."""
    with open_existing(context, url) as store:
        record = find(store, id)
        details = read_details(store, record, last)
        values = stated_values(store, record.id) if state else []
    if as_json:
        print_json(details_json(details) | ({"values": state_json(values)} if state else {}))
        return
    print_details(details)
    if state:
        print_state(values)


@click.command("search")
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
@pass_store_options
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
    """Find messages by words, folded parts included, best first. Secrets are masked.

    The exit code is 0 also when nothing is found: the search itself was done.
    """
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
        for hit in hits:
            who = " ".join(filter(None, (short(hit.role, 20), short(hit.tool, 40))))
            say(f"{strong(f'{short(hit.conversation, ID_WIDTH)} {hit.id}')} {dim(f'{who}, {moment(hit.created_at)}')}")
            say(f"    {safe(hit.snippet)}")


@click.command("export", short_help="Write a conversation out as JSON lines or Markdown.")
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


@click.command("rename")
@click.argument("id")
@click.argument("title")
@store_option
@pass_context
def rename(context: CommandContext, id: str, title: str, url: str | None) -> None:
    """Give a conversation another title."""
    with open_existing(context, url) as store:
        record = store.conversations.update(find(store, id).id, title=title)
    note(f'{short(record.id, ID_WIDTH)} is now called "{short(record.metadata.title, TITLE_WIDTH)}".')


@click.command("delete", short_help="Remove a conversation with all it has, for good.")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@pass_context
def delete(context: CommandContext, id: str, yes: bool, url: str | None) -> ExitCode:
    """Remove a conversation with all it has: messages, folds, artifacts, counters, saved outputs. It can't be undone.

    What was typed in it leaves the chat's history, too (a chat that is open keeps its own until it ends).

    The store is then written anew without it, so that none of its text is left in the file; with a large store that
    takes a while. Backups are other files: they keep what they have.
    """
    with open_existing(context, url) as store:
        record = find(store, id)
        title = short(record.metadata.title, TITLE_WIDTH)
        what = f"{short(record.id, ID_WIDTH)} ({plural(record.messages, 'message')}, {title!r})"
        if not yes:
            if not _on_terminal():
                raise InputError("To delete without a terminal, add --yes.")
            if not click.confirm(f"Delete {what} for good?", err=True):
                note("Nothing was deleted.")
                return ExitCode.NOTHING_DONE
        delete_conversation(store, context.home, record.id)
        store.care.vacuum()
    note(f"Deleted {what}.")
    return ExitCode.OK


def _prune_age(context: CommandContext, age: str | None) -> float:
    if age is not None:
        return parse_age(age)
    days = context.settings.get("store.retention_days")
    if not days:
        raise InputError("Say how old with --older-than, or set store.retention_days.")
    return parse_age(f"{days}d")


@click.command("prune")
@click.option(
    "--older-than", "age", metavar="AGE", help="No activity for so long: 90d, 12w, 1y. Else: store.retention_days."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@pass_store_options
def prune(context: CommandContext, age: str | None, yes: bool, url: str | None, as_json: bool) -> None:
    """Delete old conversations. Open ones and those with a pin stay.

    First shows what would go, then asks. Without a terminal nothing is deleted unless --yes is given.
    """
    before = time.time() - _prune_age(context, age)
    with open_for_listing(context, url) as store:
        old = [store.conversations.resolve(id) for id in store.conversations.prune(before, dry_run=True)]
        if old and not as_json:
            print_list(tuple(old))
        these = "this conversation" if len(old) == 1 else f"these {len(old):,} conversations"
        agreed = yes or (bool(old) and _on_terminal() and click.confirm(f"Delete {these}?", err=True))
        gone = prune_conversations(store, context.home, before) if old and agreed else []
    if as_json:
        print_json({"old": [conversation_json(record) for record in old], "deleted": gone})
    elif gone:
        note(f"Deleted {plural(len(gone), 'conversation')}.")
    else:
        note("Nothing was deleted." + (" Add --yes to delete these." if old else " No ended conversation is that old."))


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
