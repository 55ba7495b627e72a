"""The steps of `leporello setup`: what was chosen, trying it, keeping it. Nothing is kept before it was tried."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass, field

from leporello.chat.status import error_hint
from leporello.config import Home, Settings, save_key, write_setting
from leporello.dialects import Dialect
from leporello.errors import LeporelloError
from leporello.messages import text_of
from leporello.providers.base import ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider

OWN = "server"
"""The name under `providers` for a server of the user's own."""
ANTHROPIC_VERSION = "2023-06-01"
LIST_SECONDS = 10.0
TRY_SECONDS = 60.0
TRY_TOKENS = 256
QUESTION = "Reply with the one word: ready"


@dataclass(frozen=True, slots=True)
class Choice:
    """Who serves which model, and the key when it is to be kept."""

    provider: str
    base_url: str
    api_mode: str
    model: str = ""
    key: str = field(default="", repr=False)
    new_key: bool = False
    """Whether the key was entered now; one from the environment stays there."""


class Refused(LeporelloError):
    """The chosen model did not answer; the text says why and what to do."""


def known_choice(settings: Settings, provider: str) -> Choice:
    """A provider of the catalogue or of the user's settings, with the key that is already there."""
    known = settings.provider(provider)
    return Choice(provider, known.base_url or "", known.api_mode, key=settings.api_key(provider) or "")


def list_models(choice: Choice) -> list[str]:
    """The names the endpoint offers, as it orders them; empty when it does not say."""
    root = choice.base_url.rstrip("/")
    if choice.api_mode == Dialect.ANTHROPIC.value:
        url = f"{root.removesuffix('/v1')}/v1/models?limit=100"
        headers = {"x-api-key": choice.key, "anthropic-version": ANTHROPIC_VERSION}
    else:
        url = f"{root}/models"
        headers = {"authorization": f"Bearer {choice.key or 'none'}"}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=LIST_SECONDS) as answer:
            body = json.loads(answer.read())
    except (OSError, ValueError):
        return []
    rows = body.get("data") if isinstance(body, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []


def try_model(choice: Choice) -> tuple[str, float]:
    """One small question: the answer and the seconds it took. `Refused` says what is wrong."""
    wanted = ProviderChoice(
        choice.model, choice.provider, choice.base_url, choice.api_mode, choice.key or "none", timeout=TRY_SECONDS
    )
    provider = make_provider(wanted)
    started = time.monotonic()
    try:
        asked = [{"role": "user", "content": QUESTION}]
        reply = provider.complete(ModelRequest(choice.model, asked, max_tokens=TRY_TOKENS))
    except LeporelloError as error:
        address = choice.base_url if choice.provider == OWN else ""
        raise Refused(error_hint(error, choice.model, choice.provider, address, in_chat=False)) from error
    finally:
        provider.close()
    return text_of(reply.message).strip(), time.monotonic() - started


def keep(home: Home, choice: Choice) -> None:
    """Write the key to keys.yaml (readable by its owner only) and the rest to config.yaml."""
    if choice.new_key and choice.key:
        save_key(home, choice.provider, choice.key)
    if choice.provider == OWN:
        write_setting(home, f"providers.{OWN}.base_url", choice.base_url)
        write_setting(home, f"providers.{OWN}.api_mode", choice.api_mode)
    write_setting(home, "model.base_url", None)
    write_setting(home, "model.provider", choice.provider)
    write_setting(home, "model.default", choice.model)
