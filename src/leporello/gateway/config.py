"""What the gateway goes by, read from the settings once: addresses, limits, and who serves which model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import ip_network

from leporello.config import Settings
from leporello.config.catalogue import url
from leporello.dialects import DIALECTS, Dialect
from leporello.errors import ConfigError
from leporello.gateway.auth import Origin
from leporello.gateway.limits import Network
from leporello.providers.scripted import DEMO_WINDOW, SCRIPTED, SCRIPTED_PREFIX

SCRIPTED_URL = "http://scripted.invalid"
"""Stands for a server inside the gateway, which has no address before it is first asked."""
_PLAIN = (
    "host port max_body rate tokens_per_day dollars_per_day streams connections "
    "head_timeout body_timeout connect_timeout idle_timeout session_idle"
).split()
"""Settings under `gateway.` that are taken as they are."""


@dataclass(frozen=True, slots=True)
class Upstream:
    name: str
    base_url: str
    models: tuple[str, ...] = ("*",)
    window: int | None = None
    key: str = field(default="", repr=False)
    """Used when the client sends none of its own."""

    def serves(self, model: str) -> bool:
        """Whether a model's name fits one of the patterns."""
        name = model.lower()
        return any(fnmatchcase(name, pattern.lower()) for pattern in self.models)


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    host: str = "127.0.0.1"
    port: int = 8484
    upstreams: tuple[Upstream, ...] = ()
    origins: tuple[Origin, ...] = ()
    max_body: int = 32_000_000
    rate: int = 600
    tokens_per_day: int = 0
    dollars_per_day: float = 0.0
    streams: int = 128
    connections: int = 256
    proxies: tuple[Network, ...] = ()
    head_timeout: float = 30.0
    body_timeout: float = 60.0
    connect_timeout: float = 10.0
    idle_timeout: float = 600.0
    session_idle: float = 86_400.0

    @classmethod
    def read(cls, settings: Settings) -> GatewayConfig:
        """From the settings; an upstream that can't work is an error that names it."""
        return cls(
            upstreams=(*_configured(settings), *_built_in(settings)),
            origins=_origins(settings),
            proxies=_proxies(settings),
            **{name: settings.get(f"gateway.{name}") for name in _PLAIN},
        )


def upstream_of(upstreams: Sequence[Upstream], model: str, dialect: Dialect) -> Upstream | None:
    """Who serves a model; the first whose patterns fit. The vendors' own come last, by dialect."""
    others = {known.api.vendor for known in DIALECTS.values()} - {dialect.api.vendor}
    for upstream in upstreams:
        if upstream.serves(model) and not (upstream.name in others and upstream.models == ("*",)):
            return upstream
    return None


def served_models(upstreams: Sequence[Upstream]) -> str:
    """The patterns of what is served, for people."""
    return ", ".join(dict.fromkeys(pattern for upstream in upstreams for pattern in upstream.models)) or "none"


def window_of(upstreams: Sequence[Upstream], model: str) -> int | None:
    """The window that the server of a model was said to have; None where nobody said."""
    return next((upstream.window for upstream in upstreams if upstream.serves(model)), None)


def _origins(settings: Settings) -> tuple[Origin, ...]:
    found = []
    for text in settings.get("gateway.origins"):
        origin = Origin.parse(text.rstrip("/"))
        if origin is None:
            raise ConfigError(f"gateway.origins has {text!r}; an origin looks like https://llm.example.org.")
        found.append(origin)
    return tuple(found)


def _proxies(settings: Settings) -> tuple[Network, ...]:
    found = []
    for text in settings.get("gateway.proxies"):
        try:
            found.append(ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(
                f"gateway.proxies has {text!r}; it takes addresses such as 10.0.0.5 or 10.0.0.0/8."
            ) from None
    return tuple(found)


def _configured(settings: Settings) -> list[Upstream]:
    found = []
    for name, entry in settings.get("gateway.upstreams").items():
        where = f"gateway.upstreams.{name}"
        provider = entry.get("provider")
        if provider is not None and provider not in settings.provider_names:
            raise ConfigError(f"{where}.provider is {provider!r}, which is no name under providers.")
        base_url = entry.get("base_url") or (settings.provider(provider).base_url if provider else None)
        try:
            address = url().check(base_url)
        except ValueError:
            raise ConfigError(f"{where}.base_url must be {url().allowed}.") from None
        window = entry.get("window")
        if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window < 1):
            raise ConfigError(f"{where}.window is {window!r}; it must be a number of tokens.")
        key = (settings.api_key(provider) or "") if provider else ""
        found.append(Upstream(str(name), address, _patterns(entry.get("models", "*"), where), window, key))
    return found


def _patterns(value: object, where: str) -> tuple[str, ...]:
    listed: Sequence[object] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    patterns = tuple(str(item).strip() for item in listed if isinstance(item, str) and item.strip())
    if not patterns:
        raise ConfigError(f"{where}.models must be a pattern such as `claude-*`, or a list of them.")
    return patterns


def _built_in(settings: Settings) -> list[Upstream]:
    """The demo's, and the vendors' own servers for whoever sends a key of their own or has one in the settings."""
    demo = Upstream(SCRIPTED, SCRIPTED_URL, (f"{SCRIPTED_PREFIX}*",), DEMO_WINDOW)
    addresses = {name: settings.provider(name).base_url for name in ("anthropic", "openai")}
    vendors = [Upstream(name, url, key=settings.api_key(name) or "") for name, url in addresses.items() if url]
    return [demo, *vendors]
