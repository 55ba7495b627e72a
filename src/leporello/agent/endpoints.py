"""Which model answers, at which address and with which key, and which models write the summaries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec import Struct

from leporello.config import Settings
from leporello.errors import ConfigError, NoModel
from leporello.local import NAME as LOCAL
from leporello.local import SMOLLM2, local_provider
from leporello.models import LearnedLimits, model_facts
from leporello.models.limits import limits_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import Provider
from leporello.providers.clients import ADDRESSES, AUTO, ProviderChoice, choose_dialect, choose_provider, make_provider
from leporello.providers.scripted import DEMO_WINDOW, SCRIPTED, SCRIPTED_PREFIX, demo_provider
from leporello.summaries.base import Summariser
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter

MAIN = "main"
NO_KEY = "none"  # servers of one's own rarely want a key, but the clients do
_PORTS = {"http": 80, "https": 443}


_TOOL_SEARCH_APIS = (("anthropic", "anthropic"), ("openai", "openai_responses"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The model of a conversation: who serves it, and the window its endpoint states (None: the model table's)."""

    model: str
    provider: Provider
    provider_name: str
    base_url: str = ""
    served_window: int | None = None
    dialect: str = ""
    """The wire format, where the provider's name does not tell it."""
    small: bool = False
    """Too small a model to call tools or to write summaries: it is offered none and asked for none."""

    vendor_searches: bool = True
    """False: its provider refused to search tools whose loading is put off."""

    @property
    def tool_search(self) -> Mapping[str, str] | None:
        """The vendor's own search for tools whose loading is put off, where the vendor itself serves the model."""
        if not self.vendor_searches:
            return None
        own = (self.provider_name, self.dialect) in _TOOL_SEARCH_APIS
        at_home = self.base_url in ("", ADDRESSES.get(self.provider_name))
        return model_facts(self.model).tool_search if own and at_home else None


def choose_model(settings: Settings, model: str | None = None) -> Chosen:
    name = model or settings.model.default
    if not name:
        raise NoModel(
            "No model is set. Set model.default in config.yaml or give --model NAME; for a server of your own also "
            "model.base_url. Without a key: leporello setup --local, then --model local."
        )
    if name == LOCAL:
        own = local_provider(settings.home.models_dir)
        return Chosen(LOCAL, own, LOCAL, served_window=own_window(name), small=True)
    if name.startswith(SCRIPTED_PREFIX):
        return Chosen(name, demo_provider(name), SCRIPTED, served_window=own_window(name))
    wanted = endpoint(settings, name, main_place(settings))
    provider = make_provider(wanted)
    who = choose_provider(wanted)
    book = LearnedLimits.load(settings.home.limits_file, now=time.time())
    window = _stated_window(book, wanted, who)
    searches = not book.refused_search(name, who, wanted.base_url)
    return Chosen(
        name, provider, who, wanted.base_url, window, choose_dialect(wanted, who).name, vendor_searches=searches
    )


def offered_models(settings: Settings, model: str) -> list[str]:
    """What the endpoint of a model says it serves; empty where it is not asked or does not tell."""
    if model == LOCAL or model.startswith(SCRIPTED_PREFIX):
        return []
    wanted = endpoint(settings, model, main_place(settings))
    who = choose_provider(wanted)
    if not wanted.api_key and who in ADDRESSES:
        return []
    # Loads an HTTP client, as below; most runs ask nobody.
    from leporello.providers.windows import ask_models  # noqa: PLC0415

    return ask_models(wanted.base_url, choose_dialect(wanted, who).name, api_key=wanted.api_key)


def _stated_window(book: LearnedLimits, wanted: ProviderChoice, who: str) -> int | None:
    """The smallest window the endpoint itself stated: in an earlier error, or now that it is asked.

    Only endpoints of the user's own are asked; the known vendors are in the model table.
    """
    stated = [book.window(wanted.model, who, wanted.base_url, now=time.time())]
    if wanted.base_url and who not in ADDRESSES:
        from leporello.providers.windows import ask_window  # noqa: PLC0415

        answer = ask_window(wanted.base_url, wanted.model, api_key=wanted.api_key)
        stated.append(answer.tokens if answer is not None else None)
    return min((tokens for tokens in stated if tokens), default=None)


def summariser_for(
    settings: Settings, main: Chosen, counter: TokenCounter, plugins: PluginHost | None = None
) -> Summariser | None:
    """Who writes summaries: a plugin's summariser first, then the models, then nobody (no model is needed)."""
    if main.provider_name == SCRIPTED:
        # It needs no key and no network, so neither do its summaries.
        return None
    models = summary_models(settings, main)
    if plugins is not None:
        plugins.use_summary_models(models)
        models = [*(summariser.as_model() for summariser in plugins.extras.summarisers), *models]
    return ModelSummariser(models, counter, settings.compression.deadline) if models else None


def summary_models(settings: Settings, main: Chosen) -> list[SummaryModel]:
    """The models that can write summaries: the configured one first, then the main one."""
    ladder: list[SummaryModel] = []
    auxiliary = settings.summary_model
    if auxiliary.model:
        place = summary_place(settings, auxiliary.model, _place_of(settings, main))
        wanted = endpoint(settings, auxiliary.model, place)
        window = auxiliary.context_length or limits_of(settings, auxiliary.model).window
        ladder.append(SummaryModel(make_provider(wanted), auxiliary.model, window))
    if not main.small:
        window = limits_of(settings, main.model, served_window=main.served_window).window
        ladder.append(SummaryModel(main.provider, main.model, window))
    return ladder


def _place_of(settings: Settings, main: Chosen) -> ModelAddress:
    """Where the main model is; a name that told its provider does not tell the summary model's."""
    place = main_place(settings)
    told_by_name = place == ModelAddress() and main.provider_name in settings.provider_names
    return ModelAddress(main.provider_name) if told_by_name else place


def remember_window(settings: Settings, chosen: Chosen, window: int) -> None:
    """Keep a window that the model's endpoint stated for later conversations."""
    book = LearnedLimits.load(settings.home.limits_file, now=time.time())
    if book.learn(window, chosen.model, chosen.provider_name, chosen.base_url, now=time.time()):
        book.save(settings.home.limits_file)


def remember_refused_search(settings: Settings, chosen: Chosen) -> None:
    """Keep that a provider refused to search tools, so that later conversations don't ask it to."""
    book = LearnedLimits.load(settings.home.limits_file, now=time.time())
    book.learn_refused_search(chosen.model, chosen.provider_name, chosen.base_url, now=time.time())
    book.save(settings.home.limits_file)


def own_window(model: str | None) -> int | None:
    """The window of a model of our own; None for all others."""
    if not model:
        return None
    if model == LOCAL:
        return SMOLLM2.window
    return DEMO_WINDOW if model.startswith(SCRIPTED_PREFIX) else None


class ModelAddress(Struct, frozen=True):
    """Who serves a model (`auto`: its address or its name tells) and where (empty: at the provider's own address)."""

    provider: str = AUTO
    base_url: str = ""


def main_place(settings: Settings) -> ModelAddress:
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
    address = _address(settings, main)
    is_own = bool(address) and not any(_same_origin(address, known) for known in ADDRESSES.values())
    if wanted.provider == MAIN or is_own:
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


def _same_origin(one: str, other: str) -> bool:
    return bool(one) and bool(other) and _origin(one) == _origin(other)


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme)
