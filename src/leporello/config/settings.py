"""`Settings`: every value with its source, by dotted key or through typed sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from leporello.config.catalogue import AUTO, find_setting
from leporello.config.home import Home
from leporello.config.sources import SettingSource, unknown_setting
from leporello.errors import ConfigError

S = TypeVar("S", "CompressionSettings", "ModelSettings", "SummaryModelSettings", "CachingSettings", "PluginSettings")


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """`compression.*`: when and how much the built-in compressor folds."""

    enabled: bool
    threshold: float
    target_ratio: float
    protect_last_n: int
    deadline: float


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`model.*`: the main model."""

    default: str | None
    provider: str | None
    base_url: str | None
    context_length: int | None
    max_output: int | None


@dataclass(frozen=True, slots=True)
class SummaryModelSettings:
    """`auxiliary.compression.*`: the model that writes summaries."""

    model: str | None
    provider: str | None
    base_url: str | None
    context_length: int | None


@dataclass(frozen=True, slots=True)
class CachingSettings:
    """`prompt_caching.*`."""

    cache_ttl: str
    layout: str


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """`agent.tools` and `tools.*`."""

    names: tuple[str, ...] | None
    approval: str
    allow: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """`plugins.*`: general plugins, and whether folders that other users can write are fine."""

    enabled: tuple[str, ...]
    allow_unsafe_folders: bool


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """`providers.<name>.*`: one API to talk to."""

    name: str
    base_url: str | None
    api_mode: str
    key_env: str | None


@dataclass(frozen=True, slots=True)
class Resolved:
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
        """The built-in compressor's own settings."""
        return self._typed(CompressionSettings, "compression")

    @property
    def model(self) -> ModelSettings:
        """The main model."""
        return self._typed(ModelSettings, "model")

    @property
    def summary_model(self) -> SummaryModelSettings:
        """The model that writes summaries (`auxiliary.compression`)."""
        return self._typed(SummaryModelSettings, "auxiliary.compression")

    @property
    def prompt_caching(self) -> CachingSettings:
        """Cache life and layout."""
        return self._typed(CachingSettings, "prompt_caching")

    @property
    def tools(self) -> ToolSettings:
        """The agent's tools and what they may do unasked."""
        return ToolSettings(
            names=self._unless_auto("agent.tools"),
            approval=self.get("tools.approval"),
            allow=self.get("tools.allow"),
            paths=self.get("tools.paths"),
        )

    @property
    def plugins(self) -> PluginSettings:
        """General plugins to load, and from where."""
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
        """One provider by name."""
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
        return section(**{item.name: self._unless_auto(f"{prefix}.{item.name}") for item in fields(section)})

    def _unless_auto(self, key: str) -> Any:
        """The value, or None for the word `auto` where the setting knows it (a model may be called so)."""
        value = self.get(key)
        setting = find_setting(key)
        return None if value == AUTO and setting is not None and setting.default == AUTO else value
