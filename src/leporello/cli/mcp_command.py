"""`leporello mcp`: the stored conversations for MCP clients, over standard input and output or HTTP on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager

import click

from leporello.cli.context import CommandContext, pass_context
from leporello.cli.exits import ExitCode
from leporello.errors import InputError
from leporello.present.output import note
from leporello.store import open_store

PORT = 8765


@click.command("mcp")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for --http; this machine only.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="Port for --http.")
@click.option("--store", "url", metavar="URL", help="The store, instead of the configured one.")
@click.option("--read-only", is_flag=True, help="Offer no tools that add to the store or fold.")
@pass_context
def command(context: CommandContext, http: bool, host: str, port: int, url: str | None, read_only: bool) -> ExitCode:
    """Let an MCP client search, open, import and fold stored conversations.

    In a client's settings: command `leporello`, arguments `mcp`. With --http the address is http://HOST:PORT/mcp.
    """
    if http and not _is_local(host):
        raise InputError("Whoever reaches this server can read all conversations: it serves this machine only.", host)
    try:
        # An optional extra, and heavy: only this command pays for it.
        from leporello.mcp.server import make_server  # noqa: PLC0415
        from leporello.mcp.service import RecallService  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed. Install it with: pip install 'leporello[mcp]'") from None
    with open_store(url or context.settings.store_url) as store:
        server = make_server(RecallService(store, context.settings), read_only=read_only)
        if http:
            note(f"Serving http://{host}:{port}/mcp (Ctrl-C ends it)")
            server.run("streamable-http", host=host, port=port)
        else:
            with _plain_errors():
                server.run("stdio")
    return ExitCode.OK


@contextmanager
def _plain_errors() -> Iterator[None]:
    """The server's tasks wrap what happened to our streams in groups; the program's end knows the plain error."""
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
