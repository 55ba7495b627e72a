"""Which address serves a model, which key goes there, and the models that come with the program."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from leporello.agent.demo import PREFIX
from leporello.agent.demo import WINDOW as DEMO_WINDOW
from leporello.config import Settings
from leporello.errors import ConfigError, NoModel
from leporello.local.install import SMOLLM2
from leporello.local.provider import NAME as LOCAL
from leporello.providers.clients import ADDRESSES, AUTO, ProviderChoice, choose_provider


def own_window(model: str | None) -> int | None:
    """The window of a model of our own; None for all others."""
    if not model:
        return None
    if model == LOCAL:
        return SMOLLM2.window
    return DEMO_WINDOW if model.startswith(PREFIX) else None


MAIN = "main"
NO_KEY = "none"
"""Servers of one's own rarely want a key, but the clients do."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """Who serves a model (`auto`: its address or its name tells) and where (empty: at the provider's own address)."""

    provider: str = AUTO
    base_url: str = ""


def main_place(settings: Settings) -> ModelAddress:
    """Where the settings say the main model is."""
    return ModelAddress(settings.model.provider or AUTO, settings.model.base_url or "")


def summary_place(settings: Settings, model: str, main: ModelAddress) -> ModelAddress:
    """Where the summary model is. `main` is where the main model was found to be."""
    wanted = settings.summary_model
    named = wanted.provider if wanted.provider not in (None, MAIN) else None
    if wanted.base_url:
        beside_main = wanted.provider == MAIN and _same_origin(wanted.base_url, _address(settings, main))
        return ModelAddress(named or (main.provider if beside_main else AUTO), wanted.base_url)
    if named is not None:
        has_address = bool(settings.provider(named).base_url)
        return main if named == main.provider and not has_address else ModelAddress(named)
    # A server of the user's own may have been chosen so that nothing leaves it: `auto` never goes past it.
    if wanted.provider == MAIN or _is_own(_address(settings, main)):
        return main
    return ModelAddress() if _can_serve(settings, model) else main


def endpoint(settings: Settings, model: str, place: ModelAddress) -> ProviderChoice:
    """Address, dialect and key for a model at a place."""
    who = choose_provider(ProviderChoice(model, place.provider, place.base_url))
    name = place.provider if place.provider in settings.provider_names else who
    known = settings.provider(name) if name in settings.provider_names else None
    own = (known.base_url if known else None) or ADDRESSES.get(who, "")
    address = place.base_url or own
    if not address:
        raise ConfigError(
            f"No address is known for the provider {who!r} of model {model!r}. Set providers.{who}.base_url, or use "
            f"one of {', '.join(sorted(ADDRESSES))}."
        )
    is_named = place.provider != AUTO
    belongs = is_named or _same_origin(address, own)
    key = (settings.api_key(name) if known and belongs else None) or ""
    if not key and who in ADDRESSES and _same_origin(address, ADDRESSES[who]):
        raise NoModel(
            f"There is no key for {who}, which serves {model}. Set its environment variable or put it into "
            f"{settings.home.keys_file}; `leporello config` shows where each key is looked for."
        )
    dialect = known.api_mode if known and (is_named or not place.base_url) else AUTO
    # An address that follows from the model's name alone is left out: learned limits are kept without it.
    is_plain = place == ModelAddress() and address == ADDRESSES.get(who)
    return ProviderChoice(model, place.provider, "" if is_plain else address, dialect, key or NO_KEY)


def _address(settings: Settings, place: ModelAddress) -> str:
    if place.base_url or place.provider not in settings.provider_names:
        return place.base_url
    return settings.provider(place.provider).base_url or ""


def _can_serve(settings: Settings, model: str) -> bool:
    """Whether the model's name says who serves it, and there is a key for them."""
    try:
        who = choose_provider(ProviderChoice(model))
    except ConfigError:
        return False
    return who in settings.provider_names and settings.api_key(who) is not None


def _is_own(address: str) -> bool:
    return bool(address) and not any(_same_origin(address, known) for known in ADDRESSES.values())


def _same_origin(one: str, other: str) -> bool:
    return bool(one) and bool(other) and _origin(one) == _origin(other)


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme)
