"""`Settings`: every value with its source, by key or typed section; loaded flag > environment > file > default."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

from msgspec import Struct

from leporello.config.catalogue import (
    AUTO,
    BUILT_IN_ENGINES,
    BUILT_IN_PROVIDERS,
    PROVIDER_FIELDS,
    SETTINGS,
    find_setting,
    is_section,
)
from leporello.config.home import Home, load_keys, read_text
from leporello.config.sources import (
    RawValue,
    SettingSource,
    SourceKind,
    check_value,
    in_environment,
    read_environment,
    unknown_setting,
)
from leporello.errors import ConfigError

S = TypeVar("S", "CompressionSettings", "ModelSettings", "SummaryModelSettings", "CachingSettings", "PluginSettings")


class CompressionSettings(Struct, frozen=True):
    """`compression.*`: when and how much the built-in compressor folds."""

    enabled: bool
    threshold: float
    target_ratio: float
    protect_last_n: int
    policy: str
    deadline: float


class ModelSettings(Struct, frozen=True):
    """`model.*`: the main model."""

    default: str | None
    provider: str | None
    base_url: str | None
    context_length: int | None
    max_output: int | None


class SummaryModelSettings(Struct, frozen=True):
    """`auxiliary.compression.*`: the model that writes summaries."""

    model: str | None
    provider: str | None
    base_url: str | None
    context_length: int | None


class CachingSettings(Struct, frozen=True):
    """`prompt_caching.*`."""

    cache_ttl: str
    layout: str


class ToolSettings(Struct, frozen=True):
    """`agent.tools` and `tools.*`."""

    names: tuple[str, ...] | None
    approval: str
    allow: tuple[str, ...]
    paths: tuple[str, ...]
    sandbox: str
    network: bool


class PluginSettings(Struct, frozen=True):
    """`plugins.*`: general plugins, whether folders that other users can write are fine, and where engines run."""

    enabled: tuple[str, ...]
    allow_unsafe_folders: bool
    isolation: str


class ProviderSettings(Struct, frozen=True):
    """`providers.<name>.*`: one API to talk to."""

    name: str
    base_url: str | None
    api_mode: str
    key_env: str | None


class Resolved(Struct, frozen=True):
    """A checked value and where it came from."""

    value: Any
    source: SettingSource


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for this run. Made by `load_settings`."""

    home: Home
    _values: Mapping[str, Resolved]
    free_sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Sections of engines and plugins (`lcm`, `plugins.<name>`), as they were written."""
    _key_lookup: Callable[[ProviderSettings], tuple[str, SettingSource] | None] = field(
        default=lambda _: None, repr=False
    )

    def get(self, key: str) -> Any:
        """The value of a key; a key that does not exist is an error in the caller, and says so."""
        return self._resolved(key).value

    def source(self, key: str) -> SettingSource:
        """Where the value came from."""
        return self._resolved(key).source

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    @property
    def compression(self) -> CompressionSettings:
        return self._typed(CompressionSettings, "compression")

    @property
    def model(self) -> ModelSettings:
        return self._typed(ModelSettings, "model")

    @property
    def summary_model(self) -> SummaryModelSettings:
        return self._typed(SummaryModelSettings, "auxiliary.compression")

    @property
    def prompt_caching(self) -> CachingSettings:
        return self._typed(CachingSettings, "prompt_caching")

    @property
    def tools(self) -> ToolSettings:
        return ToolSettings(
            names=self._unless_auto("agent.tools"),
            approval=self.get("tools.approval"),
            allow=self.get("tools.allow"),
            paths=self.get("tools.paths"),
            sandbox=self.get("tools.sandbox"),
            network=self.get("tools.network"),
        )

    @property
    def plugins(self) -> PluginSettings:
        return self._typed(PluginSettings, "plugins")

    @property
    def store_url(self) -> str:
        """Where conversations are kept."""
        url: str | None = self._unless_auto("store.url")
        return url or self.home.store_url

    @property
    def provider_names(self) -> tuple[str, ...]:
        """Every provider that is built in or configured."""
        return tuple(dict.fromkeys(key.split(".")[1] for key in self._values if key.startswith("providers.")))

    def provider(self, name: str) -> ProviderSettings:
        if name not in self.provider_names:
            known = ", ".join(self.provider_names)
            raise ConfigError(f"There is no provider {name!r}. Known: {known}. Add one under `providers:`.")
        return ProviderSettings(
            name,
            base_url=self.get(f"providers.{name}.base_url"),
            api_mode=self.get(f"providers.{name}.api_mode"),
            key_env=self.get(f"providers.{name}.key_env"),
        )

    def api_key(self, provider: str) -> str | None:
        """The provider's key, from its variable or else from keys.yaml; None when there is none."""
        found = self._key_lookup(self.provider(provider))
        return found[0] if found else None

    def api_key_source(self, provider: str) -> SettingSource | None:
        """Where the provider's key is, without the key."""
        found = self._key_lookup(self.provider(provider))
        return found[1] if found else None

    def _resolved(self, key: str) -> Resolved:
        if key not in self._values:
            raise unknown_setting(key)
        return self._values[key]

    def _typed(self, section: type[S], prefix: str) -> S:
        """A section whose fields are called as its settings are."""
        return section(**{name: self._unless_auto(f"{prefix}.{name}") for name in section.__struct_fields__})

    def _unless_auto(self, key: str) -> Any:
        """The value, or None for the word `auto` where the setting knows it (a model may be called so)."""
        value = self.get(key)
        setting = find_setting(key)
        return None if value == AUTO and setting is not None and setting.default == AUTO else value


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
        *_in_file(place),
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
    for key in (f"providers.{name}.{item}" for name in providers for item in PROVIDER_FIELDS):
        pattern = find_setting(key)
        if pattern is not None:
            values.setdefault(key, Resolved(pattern.default, _DEFAULT))
    _check_provider_names(values, providers)
    return Settings(place, values, free, _key_lookup(place, variables))


def _in_file(home: Home) -> Iterator[RawValue]:
    """The values of config.yaml; nothing when there is no such file."""
    text = read_text(home.config_file)
    if text is None:
        return
    # With it the YAML parser is loaded, which takes longer than all other settings together.
    from leporello.config.config_file import values_in  # noqa: PLC0415

    yield from values_in(text, home.config_file, lambda key: _is_free(key, home))


def _defaults() -> dict[str, Resolved]:
    values = {setting.name: Resolved(setting.default, _DEFAULT) for setting in SETTINGS if not setting.is_pattern}
    for name, known in BUILT_IN_PROVIDERS.items():
        values.update({f"providers.{name}.{key}": Resolved(value, _DEFAULT) for key, value in known.items()})
    return values


def _is_free(key: str, home: Home) -> bool:
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
    # Few settings name an engine that is not there, and this loads half of the standard library.
    points = import_module("importlib.metadata").entry_points(group=ENGINE_ENTRY_POINTS)
    return any(point.name == name for point in points)


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
    # A flag or a variable for a plugin is rare.
    import yaml  # noqa: PLC0415

    try:
        return yaml.safe_load(item.value)
    except yaml.YAMLError:
        return item.value


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
