"""Where the main and the summary model are called, and with which key: never one that belongs to another host."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from leporello.agent.endpoints import choose_model, summary_models
from leporello.config import Home, Settings, load_settings
from leporello.errors import ConfigError, NoModel
from leporello.providers.sdk import SdkProvider

OWN = "http://127.0.0.1:9/v1"
OTHER = "http://127.0.0.2:9/v1"
WORKSHOP = "http://127.0.0.3:9/v1"
KEYS = {
    "OPENAI_API_KEY": "key-of-openai",
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "OPENROUTER_API_KEY": "key-of-openrouter",
    "WORKSHOP_KEY": "key-of-workshop",
}
HOSTS = {
    "key-of-openai": "api.openai.com",
    "key-of-anthropic": "api.anthropic.com",
    "key-of-openrouter": "openrouter.ai",
    "key-of-workshop": "127.0.0.3",
}


def settings_of(folder: Path, **flags: str | None) -> Settings:
    """Flags with `__` for dots and `aux` for `auxiliary.compression`; a None was not given."""
    given = {
        name.replace("__", ".").replace("aux.", "auxiliary.compression."): value
        for name, value in flags.items()
        if value is not None
    }
    workshop = {"providers.workshop.base_url": WORKSHOP, "providers.workshop.key_env": "WORKSHOP_KEY"}
    return load_settings({**workshop, **given}, home=Home(folder / "home"), environ=KEYS)


def called(settings: Settings) -> tuple[tuple[str, str], tuple[str, str]]:
    """Address and key of the main model and of the summary model."""
    main = choose_model(settings)
    found = []
    for provider in (main.provider, summary_models(settings, main)[0].provider):
        assert isinstance(provider, SdkProvider)
        found.append((provider.endpoint.base_url, provider.endpoint.api_key))
    return found[0], found[1]


OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
OPENROUTER = "https://openrouter.ai/api/v1"

CASES = [
    # main provider, main address, summary provider, summary address -> summary address, summary key
    ("auto", OWN, "openrouter", None, OPENROUTER, "key-of-openrouter"),
    ("auto", OWN, "workshop", None, WORKSHOP, "key-of-workshop"),
    ("auto", OWN, "main", None, OWN, "none"),
    ("auto", OWN, "auto", None, OWN, "none"),
    ("auto", OWN, "auto", OTHER, OTHER, "none"),
    ("auto", OWN, "main", OTHER, OTHER, "none"),
    ("auto", OWN, "auto", OPENROUTER, OPENROUTER, "key-of-openrouter"),
    ("auto", None, "auto", None, OPENAI, "key-of-openai"),
    ("auto", None, "main", None, ANTHROPIC, "key-of-anthropic"),
    ("auto", None, "main", OTHER, OTHER, "none"),
    ("auto", None, "workshop", None, WORKSHOP, "key-of-workshop"),
    ("auto", None, "auto", OTHER, OTHER, "none"),
    ("anthropic", None, "auto", None, OPENAI, "key-of-openai"),
    ("anthropic", None, "main", None, ANTHROPIC, "key-of-anthropic"),
    ("workshop", None, "auto", None, WORKSHOP, "key-of-workshop"),
    ("workshop", None, "main", None, WORKSHOP, "key-of-workshop"),
    ("workshop", None, "main", WORKSHOP + "/small", WORKSHOP + "/small", "key-of-workshop"),
    ("workshop", None, "openai", None, OPENAI, "key-of-openai"),
    ("openrouter", OWN, "openrouter", None, OPENROUTER, "key-of-openrouter"),
    ("openrouter", OWN, "main", None, OWN, "key-of-openrouter"),
    ("openrouter", OWN, "main", OTHER, OTHER, "none"),
    ("openrouter", OWN, "openai", OTHER, OTHER, "key-of-openai"),
]


@pytest.mark.parametrize(("provider", "url", "summaries", "summary_url", "address", "key"), CASES)
def test_the_summary_model_is_called_where_the_settings_say(
    tmp_path: Path,
    provider: str,
    url: str | None,
    summaries: str,
    summary_url: str | None,
    address: str,
    key: str,
) -> None:
    """Its own address first, then its provider's; the main model's address only with `main`, or as `auto` beside it."""
    settings = settings_of(
        tmp_path,
        model__default="claude-sonnet-4-5",
        model__provider=provider,
        model__base_url=url,
        aux__model="gpt-4o-mini",
        aux__provider=summaries,
        aux__base_url=summary_url,
    )
    assert called(settings)[1] == (address, key)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "openrouter/qwen/qwen3", "mystery"])
def test_no_combination_sends_a_key_to_a_host_it_does_not_belong_to(tmp_path: Path, model: str) -> None:
    """An address written beside a provider's name in the same section is the only one besides the provider's own."""
    names = ("auto", "openai", "openrouter", "workshop")
    tried = 0
    for provider, url, summaries, summary_url in itertools.product(
        names, (None, OWN, OPENROUTER), (*names, "main"), (None, OTHER, OPENAI)
    ):
        settings = settings_of(
            tmp_path,
            model__default=model,
            model__provider=provider,
            model__base_url=url,
            aux__model="gpt-4o-mini",
            aux__provider=summaries,
            aux__base_url=summary_url,
        )
        try:
            main, summary = called(settings)
        except ConfigError:
            assert model == "mystery"  # Alone it does not say who serves it.
            continue
        tried += 1
        beside = {("key-of-" + provider, url), ("key-of-" + summaries, summary_url)}
        for address, key in (main, summary):
            assert key == "none" or HOSTS[key] == urlsplit(address).hostname or (key, address) in beside
    assert tried >= 100


def test_a_provider_moved_elsewhere_takes_its_key_along(tmp_path: Path) -> None:
    """`providers.openai.base_url` is where its key belongs, also when only the model's name tells the provider."""
    flags = {"model__default": "gpt-4o", "aux__model": "gpt-4o-mini", "providers__openai__base_url": OTHER}
    main, summary = called(settings_of(tmp_path, **flags))
    assert main == summary == (OTHER, "key-of-openai")
    with pytest.raises(NoModel, match="no key for openai"):
        choose_model(settings_of(tmp_path, **flags, model__base_url=OPENAI))
