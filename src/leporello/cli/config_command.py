"""`leporello config` and `leporello explain`: every setting and every limit of a model, and where each comes from."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from leporello.agent.endpoints import own_window
from leporello.cli.context import CommandContext, pass_context
from leporello.config import Settings, SettingSource
from leporello.errors import ConfigError
from leporello.models.limits import limits_of
from leporello.present.output import dim, json_option, print_json, print_table, say, warn
from leporello.redact.messages import masked_value

_MOST_NEAR = 5
_EXPLAINED = (
    "context.engine",
    "compression.enabled",
    "compression.threshold",
    "compression.target_ratio",
    "compression.protect_last_n",
    "model.context_length",
    "model.max_output",
)


@click.command("config", short_help="Show every setting with its value and where it comes from.")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@json_option
@pass_context
def command(context: CommandContext, keys: tuple[str, ...], as_json: bool) -> None:
    """Show every setting with its value and where it comes from, or only the KEYs named.

    API keys are never shown, only where they are.
    """
    settings = context.settings
    names = [name for key in keys for name in _named(settings, key)] if keys else list(settings)
    shown = {name: masked_value(name, settings.get(name)) for name in names}
    free = {
        name: masked_value(name, dict(section))
        for name, section in settings.free_sections.items()
        if not keys or any(_is_below(name, key) for key in keys)
    }
    if as_json:
        print_json(_document(settings, shown, free, whole=not keys))
        return
    print_table((key, _plain(value), dim(str(settings.source(key)))) for key, value in shown.items())
    for name, section in free.items():
        say(f"{name}: {_plain(section)}")
    if keys:
        return
    say()
    for name in settings.provider_names:
        source = settings.api_key_source(name)
        say(f"key of {name}: {source if source else 'not set'}")
    say(dim(f"home: {settings.home.path}"))


def _named(settings: Settings, key: str) -> list[str]:
    """The settings that a key or the name of a section stands for; none when the section is a plugin's own."""
    below = [name for name in settings if _is_below(name, key)]
    if not below and not any(_is_below(name, key) for name in settings.free_sections):
        near = _nearest(settings, key)
        hint = f"Near it: {', '.join(near)}. " if near else ""
        raise ConfigError(f"There is no setting `{key}`. {hint}`leporello config` shows them all.")
    return below


def _nearest(settings: Settings, key: str) -> list[str]:
    """Settings and sections whose name, or a part of it, is like the key."""
    sections = dict.fromkeys(name.rpartition(".")[0] for name in settings)
    known = [*settings, *filter(None, sections)]
    wanted = key.casefold()
    parts = list(dict.fromkeys(part for name in known for part in name.split(".")))
    alike = [part for part in parts if part == wanted] + get_close_matches(wanted, parts)
    found = [name for part in alike for name in known if part in name.split(".")]
    return list(dict.fromkeys([*get_close_matches(wanted, known), *found]))[:_MOST_NEAR]


def _is_below(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")


def _document(settings: Settings, shown: dict[str, Any], free: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    values = {key: {"value": value, "source": _place(settings.source(key))} for key, value in shown.items()}
    if not whole:
        return {"settings": values, **({"sections": free} if free else {})}
    return {
        "home": str(settings.home.path),
        "settings": values,
        "sections": free,
        "keys": {name: _place(settings.api_key_source(name)) for name in settings.provider_names},
    }


def _place(source: SettingSource | None) -> dict[str, str] | None:
    return {"origin": source.origin.value, "where": source.where} if source else None


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return str(value)


@click.command("explain")
@click.option("--model", metavar="NAME", help="The model to explain; the configured one when left out.")
@json_option
@pass_context
def explain(context: CommandContext, model: str | None, as_json: bool) -> None:
    """Show window, reserve, threshold and caps, and where each comes from."""
    settings = context.settings
    name = model or settings.model.default
    limits = limits_of(settings, model, served_window=own_window(name)).explain()
    if as_json:
        print_json(
            {
                "model": name,
                "limits": {what: {"value": value, "source": why} for what, value, why in limits},
                "settings": {
                    key: {"value": settings.get(key), "source": str(settings.source(key))} for key in _EXPLAINED
                },
            }
        )
        return
    say(f"model: {name or 'none configured'}")
    print_table((what, f"{value:>9,}", dim(why)) for what, value, why in limits)
    say()
    print_table((key, str(settings.get(key)), dim(str(settings.source(key)))) for key in _EXPLAINED)
    if not settings.compression.enabled:
        warn("automatic compression is off (compression.enabled); only a manual one happens")
