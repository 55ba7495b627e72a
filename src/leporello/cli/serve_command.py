"""`leporello serve`: the gateway. A proxy for model clients, and agent sessions over HTTP."""

from __future__ import annotations

import click

from leporello.cli.context import CommandContext, pass_context
from leporello.cli.exits import ExitCode
from leporello.errors import InputError
from leporello.present.output import note


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
@click.option("--remove-key", metavar="NAME", help="Remove a key, and end.")
@click.option("--list-keys", is_flag=True, help="Print the names of all keys, and end.")
@pass_context
def command(
    context: CommandContext,
    host: str | None,
    port: int | None,
    url: str | None,
    workers: int,
    upstream: str | None,
    add_key: str | None,
    no_agent: bool,
    operator: bool,
    recall: bool,
    remove_key: str | None,
    list_keys: bool,
) -> ExitCode:
    """Serve the proxy (/v1/...), agent sessions (/api/...) and the dashboard (/) over HTTP.

    Without a key it listens on this machine only. A client sends its key where its library puts the API key.
    """
    # An optional extra: the server's libraries may not be installed.
    try:
        from leporello.gateway.auth import Keys  # noqa: PLC0415
        from leporello.gateway.server import Setup, run  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"The server needs more packages ({error.name}): pip install 'leporello[gateway]'") from None

    home = context.home.path
    if list_keys:
        for key in Keys.load(home).keys:
            click.echo(key.name)
    if remove_key:
        Keys.load(home).remove(remove_key).save(home)
        note(f"Removed the key {remove_key}; a running server accepts it until it is restarted.")
    if add_key:
        made, secret = Keys.load(home).add(add_key, agent=not no_agent, operator=operator, recall=recall)
        note(f"The key of {add_key}; it is not shown again:")
        # Shown before it is saved: a key that nobody saw would be useless and block the name.
        click.echo(secret)
        made.save(home)
    if not (add_key or remove_key or list_keys):
        run(Setup(str(home), {**context.flags, **_flags(host, port, url, upstream)}, workers))
    return ExitCode.OK


def _flags(host: str | None, port: int | None, url: str | None, upstream: str | None) -> dict[str, object]:
    """The settings that the options stand for."""
    upstreams = {"upstream": {"base_url": upstream, "models": "*"}} if upstream else None
    given = {"gateway.host": host, "gateway.port": port, "store.url": url, "gateway.upstreams": upstreams}
    return {key: value for key, value in given.items() if value is not None}
