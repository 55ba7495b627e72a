"""`load_settings`: flag > environment > file > default, each value checked once; keys of providers and of folds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from leporello.config.catalogue import (
    AUTO,
    BUILT_IN_PROVIDERS,
    PROVIDER_FIELDS,
    SETTINGS,
    Setting,
    find_setting,
    is_section,
)
from leporello.config.engines import is_engine_section
from leporello.config.environment import read_environment
from leporello.config.file import read_file
from leporello.config.home import Home
from leporello.config.keys import load_keys
from leporello.config.nearest import nearest_key
from leporello.config.sections import ProviderSettings
from leporello.config.settings import Resolved, Settings
from leporello.config.sources import DEFAULT, FLAG, Given, Origin, Source, in_environment
from leporello.errors import ConfigError


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    home: Home | None = None,
) -> Settings:
    """Everything that holds for this run. `flags` are dotted keys; those that are None were not given."""
    variables = os.environ if environ is None else environ
    place = home or Home.from_environment(variables)
    given = [
        *read_file(place.config_file, lambda key: _is_free(key, place)),
        *read_environment(variables),
        *(Given(key, value, FLAG, isinstance(value, str)) for key, value in (flags or {}).items() if value is not None),
    ]
    values = _defaults()
    free: dict[str, dict[str, Any]] = {}
    for item in given:  # the weakest first, so that a stronger one replaces it
        setting = find_setting(item.key)
        if setting is not None:
            values[item.key] = Resolved(_checked(setting, item), item.source)
        elif _is_free(item.key, place):
            _put_free(free, item)
        else:
            raise _unknown(item)
    _complete_providers(values)
    _check_provider_names(values)
    return Settings(place, values, free, _key_lookup(place, variables))


def _defaults() -> dict[str, Resolved]:
    values = {setting.name: Resolved(setting.default, DEFAULT) for setting in SETTINGS if not setting.is_pattern}
    for name, fields in BUILT_IN_PROVIDERS.items():
        values.update({f"providers.{name}.{key}": Resolved(value, DEFAULT) for key, value in fields.items()})
    return values


def _checked(setting: Setting, item: Given) -> Any:
    raw = setting.kind.from_text(item.value) if item.is_text else item.value
    try:
        return setting.kind.check(raw)
    except ValueError as error:
        detail = f" ({error})" if str(error) else ""
        raise ConfigError(
            f"`{item.key}` can't be {item.value!r} ({item.source}): it must be {setting.kind.allowed}{detail}."
        ) from None


def _unknown(item: Given) -> ConfigError:
    hint = nearest_key(item.key)
    advice = f" Did you mean `{hint}`?" if hint else " `leporello config` lists all of them."
    return ConfigError(f"There is no setting `{item.key}` ({item.source}).{advice}")


def _is_free(key: str, home: Home) -> bool:
    """Whether a key lies in a section that belongs to an engine or a plugin."""
    first, *rest = key.split(".")
    if first == "plugins":
        return bool(rest) and find_setting(key) is None
    return not is_section(first) and is_engine_section(first, home)


def _put_free(free: dict[str, dict[str, Any]], item: Given) -> None:
    parts = item.key.split(".")
    depth = 2 if parts[0] == "plugins" else 1
    name, path = ".".join(parts[:depth]), parts[depth:]
    value = _free_value(item)
    if not path:
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"`{item.key}` is a section ({item.source}); put its settings on lines below it.")
        free.setdefault(name, {}).update(value or {})
        return
    place = free.setdefault(name, {})
    for part in path[:-1]:
        inner = place.get(part)
        place[part] = dict(inner) if isinstance(inner, dict) else {}
        place = place[part]
    place[path[-1]] = value


def _free_value(item: Given) -> Any:
    if not item.is_text:
        return item.value
    try:
        return yaml.safe_load(item.value)
    except yaml.YAMLError:
        return item.value


def _complete_providers(values: dict[str, Resolved]) -> None:
    names = dict.fromkeys(key.split(".")[1] for key in values if key.startswith("providers."))
    for name in names:
        for field in PROVIDER_FIELDS:
            pattern = find_setting(f"providers.{name}.{field}")
            if pattern is not None:
                values.setdefault(f"providers.{name}.{field}", Resolved(pattern.default, DEFAULT))


def _check_provider_names(values: Mapping[str, Resolved]) -> None:
    known = list(dict.fromkeys(key.split(".")[1] for key in values if key.startswith("providers.")))
    for key, extra in (("model.provider", []), ("auxiliary.compression.provider", ["main"])):
        value, source = values[key].value, values[key].source
        allowed = [AUTO, *extra, *known]
        if value not in allowed:
            raise ConfigError(
                f"`{key}` can't be {value!r} ({source}): it must be one of {', '.join(allowed)}, "
                "or a name added under `providers`."
            )


def _key_lookup(home: Home, environ: Mapping[str, str]) -> Callable[[ProviderSettings], tuple[str, Source] | None]:
    def lookup(provider: ProviderSettings) -> tuple[str, Source] | None:
        key = environ.get(provider.key_env, "").strip() if provider.key_env else ""
        if key and provider.key_env:
            return key, in_environment(provider.key_env)
        saved = load_keys(home).get(provider.name)
        return (saved, Source(Origin.FILE, str(home.keys_file))) if saved else None

    return lookup
