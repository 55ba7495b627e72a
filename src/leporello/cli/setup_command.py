"""Settings: `leporello setup` chooses a model and tests it, `config` shows and sets all, `explain` tells the limits."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import click

from leporello.agent.endpoints import own_window
from leporello.cli import ExitCode
from leporello.cli.context import WAYS, CommandContext, pass_context
from leporello.config import Home, Settings, SettingSource, save_key
from leporello.config.catalogue import API_MODES
from leporello.config.config_file import write_setting
from leporello.errors import ConfigError, InputError, LeporelloError
from leporello.files import decode_text
from leporello.local import NAME, SMOLLM2, LocalProvider, client_dialect, install, local_provider
from leporello.messages import text_of
from leporello.models import model_facts
from leporello.models.limits import limits_of
from leporello.policy.decision import depth_of
from leporello.policy.prices import PriceTable, price_table
from leporello.present.output import (
    Progress,
    dim,
    json_option,
    note,
    print_json,
    print_table,
    say,
    say_paragraph,
    strong,
    warn,
)
from leporello.present.records import error_hint
from leporello.providers.base import ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.errors import ClientMissing
from leporello.providers.sdk import SdkProvider
from leporello.providers.windows import ask_models
from leporello.redact.messages import masked_value

OWN = "server"  # the name under `providers` for a server of the user's own
LIST_SECONDS = 10.0
TRY_SECONDS = 60.0
TRY_TOKENS = 256


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Who serves which model, and the key when it is to be kept."""

    provider: str
    base_url: str
    api_mode: str
    model: str = ""
    key: str = field(default="", repr=False)
    new_key: bool = False
    """Whether the key was entered now; one from the environment stays there."""


class SetupFailed(LeporelloError):
    """The chosen model did not answer; the text says why and what to do."""


def known_choice(settings: Settings, provider: str) -> ModelChoice:
    """A provider of the catalogue or of the user's settings, with the key that is already there."""
    known = settings.provider(provider)
    return ModelChoice(provider, known.base_url or "", known.api_mode, key=settings.api_key(provider) or "")


def try_model(choice: ModelChoice) -> tuple[str, float]:
    """One small question: the answer and the seconds it took; `SetupFailed` says what is wrong."""
    wanted = ProviderChoice(
        choice.model, choice.provider, choice.base_url, choice.api_mode, choice.key or "none", timeout=TRY_SECONDS
    )
    provider = make_provider(wanted)
    asked = [{"role": "user", "content": "Reply with the one word: ready"}]
    try:
        return _answer(provider, ModelRequest(choice.model, asked, max_tokens=TRY_TOKENS))
    except ClientMissing:
        raise
    except LeporelloError as error:
        address = choice.base_url if choice.provider == OWN else ""
        raise SetupFailed(error_hint(error, choice.model, choice.provider, address, in_chat=False)) from error


def _answer(provider: SdkProvider | LocalProvider, request: ModelRequest) -> tuple[str, float]:
    started = time.monotonic()
    try:
        reply = provider.complete(request)
    finally:
        provider.close()
    return text_of(reply.message).strip(), time.monotonic() - started


def keep(home: Home, choice: ModelChoice) -> None:
    """Write the key to keys.yaml (readable by its owner only) and the rest to config.yaml."""
    if choice.new_key and choice.key:
        save_key(home, choice.provider, choice.key)
    if choice.provider == OWN:
        write_setting(home, f"providers.{OWN}.base_url", choice.base_url)
        write_setting(home, f"providers.{OWN}.api_mode", choice.api_mode)
    write_setting(home, "model.base_url", None)
    write_setting(home, "model.provider", choice.provider)
    write_setting(home, "model.default", choice.model)


QUESTION = "What is the capital of France?"
PROVIDERS = {"1": "anthropic", "2": "openai", "3": "openrouter", "4": OWN, "5": NAME}
MENU = """\
Which provider should answer?

  1  Anthropic
  2  OpenAI
  3  OpenRouter
  4  your own server (llama.cpp, Ollama, vLLM, ...)
  5  a small model on this machine, without a key (about 130 MB)
"""
SHOWN_MODELS = 30
TRIES = 3


@click.command("setup")
@click.option("--local", "local", is_flag=True, help="Fetch a small model for this machine and try it.")
@click.option("--provider", metavar="NAME", help="anthropic, openai, openrouter, or one of your own under `providers`.")
@click.option("--base-url", metavar="URL", help="Address of your own server.")
@click.option("--api", type=click.Choice(API_MODES), default=API_MODES[0], help="Which API that server offers.")
@click.option("--model", metavar="NAME", help="The model's name.")
@click.option("--key-stdin", is_flag=True, help="Read the key from stdin; it is never given as an argument.")
@click.option("--no-test", is_flag=True, help="Save it without testing it.")
@json_option
@pass_context
def command(
    context: CommandContext, /, local: bool, key_stdin: bool, no_test: bool, as_json: bool, **given: Any
) -> ExitCode:
    """Choose provider, model and key. They are tested with one small question before anything is saved.

    On a terminal it asks; in a script give --provider (or --base-url) and --model. The key goes to keys.yaml, which
    only you can read, the rest to config.yaml. With --local, fetch a small model that needs no key.
    """
    if local:
        _local(context, as_json)
        return ExitCode.OK
    if not any(given[name] for name in ("provider", "base_url", "model")):
        if sys.stdin.isatty():
            return _ask(context)
        note(f"Nothing was set up: this is not a terminal, and no option names a model.\n\n{WAYS}")
        return ExitCode.BAD_INPUT
    choice = _from_options(context.settings, **given)
    if key_stdin:
        typed = decode_text(sys.stdin.buffer.readline(), "standard input").text.strip()
        choice = replace(choice, key=typed, new_key=True)
    if not choice.key and choice.provider != OWN:
        raise InputError(f"There is no key for {choice.provider} yet. Pipe it in with --key-stdin.")
    answer, seconds = ("", 0.0) if no_test else try_model(choice)
    keep(context.home, choice)
    if as_json:
        print_json({"provider": choice.provider, "model": choice.model, "answer": answer, "seconds": seconds})
    else:
        _done(context, choice, seconds)
    return ExitCode.OK


def _from_options(
    settings: Settings, provider: str | None, base_url: str | None, api: str, model: str | None
) -> ModelChoice:
    if not model:
        raise InputError("Name the model too: --model NAME.")
    if base_url:
        known = settings.api_key(OWN) if OWN in settings.provider_names else None
        return ModelChoice(OWN, base_url, api, model, key=known or "")
    if not provider:
        raise InputError("Name the provider: --provider NAME, or --base-url URL for your own server.")
    return replace(known_choice(settings, provider), model=model)


# -- asking


def _ask(context: CommandContext) -> ExitCode:
    settings = context.settings
    say(MENU)
    picked = click.prompt("Number", type=click.Choice(list(PROVIDERS)), show_choices=False)
    provider = PROVIDERS[picked]
    if provider == NAME:
        _local(context, as_json=False)
        return ExitCode.OK
    if provider == OWN:
        address = click.prompt("Address", default="http://127.0.0.1:8080/v1")
        choice = ModelChoice(OWN, address, click.prompt("Its API", type=click.Choice(API_MODES), default=API_MODES[0]))
    else:
        choice = known_choice(settings, provider)
    for _ in range(TRIES):
        choice = _with_key(settings, choice)
        choice = replace(choice, model=_ask_model(choice))
        try:
            _, seconds = try_model(choice)
        except SetupFailed as error:
            note(str(error))
            choice = replace(choice, key="", new_key=False)
            continue
        keep(context.home, choice)
        _done(context, choice, seconds)
        return ExitCode.OK
    note("Nothing was saved.")
    return ExitCode.FAILED


def _with_key(settings: Settings, choice: ModelChoice) -> ModelChoice:
    if choice.key:
        source = settings.api_key_source(choice.provider) if choice.provider in settings.provider_names else None
        note(f"A key is already set ({source})." if source else "A key is already set.")
        return choice
    optional = choice.provider == OWN
    key = click.prompt(
        "Key (not shown; Enter for none)" if optional else "Key (not shown)",
        hide_input=True,
        default="" if optional else None,
        show_default=False,
    )
    return replace(choice, key=str(key).strip(), new_key=bool(key))


def _ask_model(choice: ModelChoice) -> str:
    names = ask_models(choice.base_url, choice.api_mode, api_key=choice.key or "none", seconds=LIST_SECONDS)
    if names:
        say(f"{len(names)} models:")
        for name in names[:SHOWN_MODELS]:
            say(f"  {name}")
        if len(names) > SHOWN_MODELS:
            say(dim(f"  … and {len(names) - SHOWN_MODELS} more"))
    default = names[0] if len(names) == 1 else None
    return str(click.prompt("Model", default=default)).strip()


def _done(context: CommandContext, choice: ModelChoice, seconds: float) -> None:
    took = f" It answered in {seconds:.1f} s." if seconds else ""
    where = f" The key is in {context.home.keys_file}, readable by you only." if choice.new_key and choice.key else ""
    note(f"{choice.model} is set in {context.home.config_file}.{took}{where}")
    say("It is ready: leporello chat")


# -- the model on this machine


def _local(context: CommandContext, as_json: bool) -> None:
    client_dialect()  # without a client the download would be for nothing
    folder = context.home.models_dir
    shown = _Shown()
    try:
        fetched = install(folder, shown)
    finally:
        shown.close()
    note(f"{SMOLLM2.title} is in {folder}." if fetched else f"{SMOLLM2.title} was already in {folder}.")
    asked = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": QUESTION}]
    request = ModelRequest(NAME, asked, max_tokens=40, options={"temperature": 0})
    answer, seconds = _answer(local_provider(folder), request)
    if as_json:
        print_json({"model": NAME, "folder": folder, "fetched": fetched, "answer": answer, "seconds": seconds})
        return
    say(f"{QUESTION}\n{strong(answer)}  {dim(f'({seconds:.1f} s, its start included)')}\n")
    say(f"It is ready: leporello chat --model {NAME}")


class _Shown:
    """Progress on stderr: a line for each step, rewritten in place on a terminal."""

    def __init__(self) -> None:
        self._step = ""
        self._line: Progress | None = None

    def __call__(self, step: str, done: int = 0, total: int | None = None, /) -> None:
        if step != self._step:
            self.close()
            note(f"Fetching {step}" if not total else f"Checking {step}")
            self._step, self._line = step, Progress("  bytes:")
        if self._line is not None and total:
            self._line.update(done, total)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()


# -- showing

_MOST_NEAR = 5
_EXPLAINED = (
    "context.engine",
    "compression.enabled",
    "compression.threshold",
    "compression.target_ratio",
    "compression.protect_last_n",
    "compression.policy",
    "model.context_length",
    "model.max_output",
)


@click.command("config", short_help="Show every setting and where it comes from, or set one for good.")
@click.argument("keys", nargs=-1, metavar="[KEY]... | set KEY VALUE")
@json_option
@pass_context
def config(context: CommandContext, keys: tuple[str, ...], as_json: bool) -> None:
    """Show every setting with its value and where it comes from, or only the KEYs named.

    `set` writes a setting to config.yaml and leaves the rest of that file as it is. API keys are never shown, only
    where they are; `leporello setup` stores them.
    """
    if keys[:1] == ("set",):
        _set(context, *keys[1:])
        keys = keys[1:2]
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


def _set(context: CommandContext, key: str = "", value: str | None = None, *more: str) -> None:
    if value is None or more:
        raise InputError("`config set` needs a KEY and one VALUE, as in: leporello config set model.default gpt-5")
    write_setting(context.home, key, value)
    note(f"{context.home.config_file} is changed.")


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
    resolved = limits_of(settings, model, served_window=own_window(name))
    policy = settings.compression.policy
    kept = ("depth_tokens", depth_of(resolved, 0, policy), f"what a compaction keeps: compression.policy {policy}")
    limits = [*resolved.explain(), kept]
    prices = price_table(model_facts(name, overrides=settings.get("models")), settings.prompt_caching.cache_ttl)
    if as_json:
        print_json(
            {
                "model": name,
                "limits": {what: {"value": value, "source": why} for what, value, why in limits},
                "prices": asdict(prices),
                "settings": {
                    key: {"value": settings.get(key), "source": str(settings.source(key))} for key in _EXPLAINED
                },
            }
        )
        return
    say(f"model: {name or 'none configured'}")
    print_table((what, f"{value:>9,}", dim(why)) for what, value, why in limits)
    say()
    say_paragraph(_by_price(prices))
    say()
    print_table((key, str(settings.get(key)), dim(str(settings.source(key)))) for key in _EXPLAINED)
    if not settings.compression.enabled:
        warn("automatic compression is off (compression.enabled); only a manual one happens")


def _by_price(prices: PriceTable) -> str:
    """When a compaction is made below the threshold, in one sentence."""
    base = prices.base
    unit = "of a plain input token" + (f" (${prices.dollars:g} a million)" if prices.dollars else "")
    warm = f"{prices.warm_seconds:,.0f} s" if prices.warm_seconds else "as long as the server runs"
    return (
        f"Below the threshold price decides: a cached token costs {base.read:g}, a written one {base.write:g} {unit}; "
        f"the cache is warm for {warm}. A compaction is made when carrying what it would take away has cost as much "
        "as making it, and before a request that finds the cache cold. The threshold is the latest moment; where "
        "instructions, tools and what is kept stand above it, it is met once, and then price decides up to hard_tokens."
    )
