"""`leporello sessions`: what is in the store. The list comes at once; all else is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from leporello.cli.context import CommandContext
from leporello.cli.store_access import nothing_found, open_for_listing, pass_store_options
from leporello.present.output import conversation_json, dim, note, print_json, print_list
from leporello.store.records import ConversationFilter, ConversationKind

_ACTIONS = ("delete", "export", "prune", "rename", "search", "show")
"""Commands of `sessions_actions`, by the names of their functions."""


class SessionsGroup(click.Group):
    """Loads the code of the command that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *_ACTIONS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ACTIONS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module("leporello.cli.sessions_actions"), cmd_name)
        return command


@click.group("sessions", cls=SessionsGroup, invoke_without_command=True)
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
@click.option("--wide", is_flag=True, help="Whole ids and every column, also on a narrow terminal.")
@pass_store_options
def list_(
    context: CommandContext,
    platform: str | None,
    owner: str | None,
    kind: str | None,
    limit: int,
    cursor: str | None,
    wide: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """List conversations, newest activity first. Imported ones count by their recorded times.

    On a terminal long ids are cut in the middle (as shown they can be given to other commands), on a narrow one
    titles too, and platform and model are left out; --wide shows all of it.
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
        print_list(page.conversations, wide=wide)
    if page.cursor and not as_json:
        note(dim(f"There are more: --next {page.cursor}"))
