"""`load_settings`: flag > environment > file > default, each value checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import yaml

from leporello.config.catalogue import (
    AUTO,
    BUILT_IN_ENGINES,
    BUILT_IN_PROVIDERS,
    PROVIDER_FIELDS,
    SETTINGS,
    find_setting,
    is_section,
)
from leporello.config.home import Home, load_keys
from leporello.config.settings import ProviderSettings, Resolved, Settings
from leporello.config.sources import (
    RawValue,
    SettingSource,
    SourceKind,
    check_value,
    in_environment,
    read_environment,
    read_file,
    unknown_setting,
)
from leporello.errors import ConfigError

ENGINE_ENTRY_POINTS = "leporello.context_engines"
_DEFAULT = SettingSource(SourceKind.DEFAULT)
_FLAG = SettingSource(SourceKind.FLAG)


def load_settings(
    flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None, home: Home | None = None
) -> Settings:
    """Everything that holds for this run. `flags` are dotted keys; those that are None were not given."""
    variables = os.environ if environ is None else environ
    place = home or Home.from_environment(variables)
    given = [
        *read_file(place.config_file, lambda key: _is_free(key, place)),
        *read_environment(variables),
        *(
            RawValue(key, value, _FLAG, isinstance(value, str))
            for key, value in (flags or {}).items()
            if value is not None
        ),
    ]
    values = _defaults()
    free: dict[str, dict[str, Any]] = {}
    for item in given:  # the weakest first, so that a stronger one replaces it
        setting = find_setting(item.key)
        if setting is not None:
            values[item.key] = Resolved(
                check_value(setting, item.key, item.value, item.is_text, item.source), item.source
            )
        elif _is_free(item.key, place):
            _put_free(free, item)
        else:
            raise unknown_setting(item.key, item.source)
    providers = list(dict.fromkeys(key.split(".")[1] for key in values if key.startswith("providers.")))
    _complete_providers(values, providers)
    _check_provider_names(values, providers)
    return Settings(place, values, free, _key_lookup(place, variables))


def _defaults() -> dict[str, Resolved]:
    values = {setting.name: Resolved(setting.default, _DEFAULT) for setting in SETTINGS if not setting.is_pattern}
    for name, fields in BUILT_IN_PROVIDERS.items():
        values.update({f"providers.{name}.{key}": Resolved(value, _DEFAULT) for key, value in fields.items()})
    return values


def _is_free(key: str, home: Home) -> bool:
    """Whether a key lies in a section that belongs to an engine or a plugin."""
    first, *rest = key.split(".")
    if first == "plugins":
        return bool(rest) and find_setting(key) is None
    return not is_section(first) and _is_engine(first, home)


def _is_engine(name: str, home: Home) -> bool:
    """Whether a name is that of a built-in engine, of one in the plugin folder, or of an installed distribution."""
    if name in BUILT_IN_ENGINES:
        return name != "compressor"  # the built-in compressor's own section is `compression`, and is checked
    if not name.replace("-", "_").isidentifier():
        return False
    if (home.plugins_dir / "context_engine" / name).is_dir():
        return True
    return any(point.name == name for point in entry_points(group=ENGINE_ENTRY_POINTS))


def _put_free(free: dict[str, dict[str, Any]], item: RawValue) -> None:
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


def _free_value(item: RawValue) -> Any:
    if not item.is_text:
        return item.value
    try:
        return yaml.safe_load(item.value)
    except yaml.YAMLError:
        return item.value


def _complete_providers(values: dict[str, Resolved], names: list[str]) -> None:
    for name in names:
        for field in PROVIDER_FIELDS:
            pattern = find_setting(f"providers.{name}.{field}")
            if pattern is not None:
                values.setdefault(f"providers.{name}.{field}", Resolved(pattern.default, _DEFAULT))


def _check_provider_names(values: Mapping[str, Resolved], names: list[str]) -> None:
    for key, extra in (("model.provider", []), ("auxiliary.compression.provider", ["main"])):
        value, source = values[key].value, values[key].source
        allowed = [AUTO, *extra, *names]
        if value not in allowed:
            raise ConfigError(
                f"`{key}` can't be {value!r} ({source}): it must be one of {', '.join(allowed)}, "
                "or a name added under `providers`."
            )


def _key_lookup(
    home: Home, environ: Mapping[str, str]
) -> Callable[[ProviderSettings], tuple[str, SettingSource] | None]:
    def lookup(provider: ProviderSettings) -> tuple[str, SettingSource] | None:
        key = environ.get(provider.key_env, "").strip() if provider.key_env else ""
        if key and provider.key_env:
            return key, in_environment(provider.key_env)
        saved = load_keys(home).get(provider.name)
        return (saved, SettingSource(SourceKind.FILE, str(home.keys_file))) if saved else None

    return lookup
