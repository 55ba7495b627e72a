"""`leporello serve` (the gateway) and `leporello mcp` (stored conversations for MCP clients): the servers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leporello.cli.context import CommandContext, pass_context
from leporello.errors import InputError, how_to_install
from leporello.present.output import note
from leporello.store import open_store

if TYPE_CHECKING:  # of the extra
    from leporello.gateway.auth import Keys


@dataclass(frozen=True, slots=True)
class _KeyChange:
    """What to do with the keys of clients, instead of serving."""

    add_key: str | None
    no_agent: bool
    operator: bool
    recall: bool
    tokens_per_day: int | None
    dollars_per_day: float | None
    remove_key: str | None
    list_keys: bool


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Where to listen, instead of gateway.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port, instead of gateway.port; 0 takes a free one.")
@click.option("--store", "url", metavar="URL", help="The store, instead of the configured one.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that serve.")
@click.option("--upstream", metavar="URL", help="Send every model's requests to this server.")
@click.option("--add-key", metavar="NAME", help="Make a key for a client, print it once, and end.")
@click.option("--no-agent", is_flag=True, help="With --add-key: it may use the proxy only.")
@click.option("--recall", is_flag=True, help="With --add-key: offer its models the recovery tools once it is folded.")
@click.option("--operator", is_flag=True, help="With --add-key: it sees everybody's conversations in the dashboard.")
@click.option("--tokens-per-day", type=click.IntRange(0), help="With --add-key: how much it may use; 0 is any number.")
@click.option("--dollars-per-day", type=click.FloatRange(0), help="With --add-key: the same in money.")
@click.option("--remove-key", metavar="NAME", help="Remove a key, and end.")
@click.option("--list-keys", is_flag=True, help="Print the names of all keys, and end.")
@pass_context
def command(
    context: CommandContext,
    /,
    host: str | None,
    port: int | None,
    url: str | None,
    workers: int,
    upstream: str | None,
    **keys: Any,
) -> None:
    """Serve the proxy (/v1/...), agent sessions (/api/...) and the dashboard (/) over HTTP.

    Without a key it listens on this machine only. A client sends its key where its library puts the API key.
    """
    # An optional extra: the server's libraries may not be installed.
    try:
        from leporello.gateway.auth import Keys  # noqa: PLC0415
        from leporello.gateway.server import Setup, run  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"The server needs more packages ({error.name}): {how_to_install('gateway')}") from None

    change = _KeyChange(**keys)
    if change.add_key is not None or change.remove_key is not None or change.list_keys:
        _change_keys(Keys, context.home.path, change)
        return
    upstreams = {"upstream": {"base_url": upstream, "models": "*"}} if upstream else None
    given = {"gateway.host": host, "gateway.port": port, "store.url": url, "gateway.upstreams": upstreams}
    flags = {key: value for key, value in given.items() if value is not None}
    run(Setup(str(context.home.path), {**context.flags, **flags}, workers))


def _change_keys(kept: type[Keys], home: Path, change: _KeyChange) -> None:
    if change.list_keys:
        for key in kept.load(home).keys:
            click.echo(key.name)
    if change.remove_key is not None:
        kept.load(home).remove(change.remove_key).save(home)
        note(f"Removed the key {change.remove_key}.")
    if change.add_key is not None:
        rights = {
            "agent": not change.no_agent,
            "operator": change.operator,
            "recall": change.recall,
            "tokens_per_day": change.tokens_per_day,
            "dollars_per_day": change.dollars_per_day,
        }
        made, secret = kept.load(home).add(change.add_key, **rights)
        note(f"The key of {change.add_key}; it is not shown again:")
        # Shown before it is saved: a key that nobody saw would be useless and block the name.
        click.echo(secret)
        made.save(home)


@click.command("mcp")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for --http; this machine only.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, help="Port for --http.")
@click.option("--store", "url", metavar="URL", help="The store, instead of the configured one.")
@click.option("--read-only", is_flag=True, help="Offer no tools that add to the store or fold.")
@pass_context
def mcp(context: CommandContext, http: bool, host: str, port: int, url: str | None, read_only: bool) -> None:
    """Let an MCP client search, open, import and fold stored conversations.

    In a client's settings: command `leporello`, arguments `mcp`. With --http the address is http://HOST:PORT/mcp.
    """
    if http and not _is_local(host):
        raise InputError("Whoever reaches this server can read all conversations: it serves this machine only.", host)
    try:
        # An optional extra, and heavy: only this command pays for it.
        from leporello.mcp import RecallService, browser_checks, make_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed. Install it with: {how_to_install('mcp')}") from None
    with open_store(url or context.settings.store_url) as store:
        server = make_server(RecallService(store, context.settings), read_only=read_only)
        if http:
            note(f"Serving http://{host}:{port}/mcp (Ctrl-C ends it)")
            checks = browser_checks(host, port)
            server.run("streamable-http", host=host, port=port, transport_security=checks)
        else:
            with _plain_errors():
                server.run("stdio")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Unwraps an OSError of our streams from the exception groups of the server's tasks."""
    try:
        yield
    except BaseExceptionGroup as group:
        failed: BaseException | None = group.subgroup(OSError)
        while isinstance(failed, BaseExceptionGroup):
            failed = failed.exceptions[0]
        if failed is None:
            raise
        raise failed from None


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
