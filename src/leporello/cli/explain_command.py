"""`leporello explain`: every limit of a model in numbers, and where each number comes from."""

from __future__ import annotations

from typing import Any

import click

from leporello.agent.endpoints import own_window
from leporello.cli.context import CommandContext, pass_context
from leporello.config import Settings
from leporello.models import Limits
from leporello.models.limits import limits_of
from leporello.present.output import dim, json_option, print_json, print_table, say, warn

_USED = (
    "context.engine",
    "compression.enabled",
    "compression.threshold",
    "compression.target_ratio",
    "compression.protect_last_n",
    "model.context_length",
    "model.max_output",
)


@click.command("explain")
@click.option("--model", metavar="NAME", help="The model to explain; the configured one when left out.")
@json_option
@pass_context
def command(context: CommandContext, model: str | None, as_json: bool) -> None:
    """Show window, reserve, threshold and caps, and where each comes from."""
    settings = context.settings
    name = model or settings.model.default
    limits = limits_of(settings, model, served_window=own_window(name))
    if as_json:
        print_json(_document(settings, limits, name))
        return
    say(f"model: {name or 'none configured'}")
    print_table((what, f"{value:>9,}", dim(why)) for what, value, why in limits.explain())
    say()
    print_table((key, str(settings.get(key)), dim(str(settings.source(key)))) for key in _USED)
    if not settings.compression.enabled:
        warn("automatic compression is off (compression.enabled); only a manual one happens")


def _document(settings: Settings, limits: Limits, name: str | None) -> dict[str, Any]:
    return {
        "model": name,
        "limits": {what: {"value": value, "source": why} for what, value, why in limits.explain()},
        "settings": {key: {"value": settings.get(key), "source": str(settings.source(key))} for key in _USED},
    }
