"""Where prompt-cache breakpoints stand, and when they are used. Pure functions; messages are copied, not changed.

A mark here is in the internal form: on the last content part, or on the message itself where there is no part to carry
it. The codecs move each mark to the block the wire wants. Two layouts:

- `system_and_3`: the system prompt and the last three messages.
- `anchored`: the end of the system prompt (kept for an hour), the end of the last summary, the place where the previous
  request's last breakpoint stood, and the end. Anthropic looks only 20 blocks back from a breakpoint; one that stands
  exactly where an entry was written needs no looking back, however many calls a turn made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from leporello.errors import ConfigError
from leporello.messages import Message, Messages, is_instruction, is_result, role_of, text_of
from leporello.models.facts import provider_name, routes, vendor_of

MARK = "cache_control"
TTLS = ("5m", "1h")
TAIL_MARKS = 3
_KEY_LENGTH = 64


def marker(ttl: str = "5m") -> dict[str, str]:
    """The mark of a breakpoint. Five minutes is the provider's default and is not written."""
    if ttl not in TTLS:
        raise ConfigError(f"prompt_caching.cache_ttl is {ttl!r}. It must be one of {', '.join(TTLS)}.")
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def system_and_3(messages: Messages, ttl: str = "5m", *, native: bool = True) -> list[Message]:
    """Marks on the system prompt and on the last three other messages, whatever they are.

    `native` is Anthropic's own API; elsewhere results carry no mark.
    """
    backwards = range(len(messages) - 1, -1, -1)
    newest = islice((index for index in backwards if not is_instruction(messages[index])), TAIL_MARKS)
    places = [*_system_end(messages), *newest]
    return _marked(messages, {index: marker(ttl) for index in places}, native)


def anchored(
    messages: Messages,
    ttl: str = "5m",
    *,
    native: bool = True,
    summary: int | None = None,
    previous: int | None = None,
    stable: int | None = None,
) -> list[Message]:
    """Marks where entries were written or will be read again; none of them depends on looking back.

    `summary` is the index of the last compaction's summary. `previous` is the index of the last message of the previous
    request that was answered; by default the one before the newest answer, which is the same thing between compactions.
    `stable` counts the messages that the next request will repeat; what stands behind them (recalled material) gets no
    mark.
    """
    end = len(messages) if stable is None else min(stable, len(messages))
    system = _system_end(messages)
    first = system[-1] + 1 if system else 0
    if previous is None:
        # The last message of the request whose answer is the newest one in the list.
        answers = (index for index in range(end - 1, 0, -1) if role_of(messages[index]) == "assistant")
        previous = next((index - 1 for index in answers), None)
    wanted = [index for index in (summary, previous, end - 1) if index is not None and first <= index < end]
    marks = {index: marker("1h") for index in system}
    # An hour's entry must stand before every five minutes' one; the system prompt always does.
    marks.update({index: marker(ttl) for index in wanted})
    return _marked(messages, marks, native)


def _system_end(messages: Messages) -> list[int]:
    """The index of the last leading instruction that says anything, as a list of none or one.

    An empty one is not sent, and its mark would be lost with it.
    """
    end = next((index for index, message in enumerate(messages) if not is_instruction(message)), len(messages))
    said = (index for index in range(end - 1, -1, -1) if text_of(messages[index]).strip())
    return list(islice(said, 1))


def _marked(messages: Messages, marks: dict[int, dict[str, str]], native: bool) -> list[Message]:
    marked = list(messages)
    for index, mark in marks.items():
        marked[index] = _with_mark(marked[index], mark, native)
    return marked


def _with_mark(message: Message, mark: dict[str, str], native: bool) -> Message:
    content = message.get("content")
    if is_result(message):
        return {**message, MARK: mark} if native else message
    if not content:
        return {**message, MARK: mark}
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, MARK: mark}]}
    if isinstance(content, list) and isinstance(content[-1], dict):
        return {**message, "content": [*content[:-1], {**content[-1], MARK: mark}]}
    return {**message, MARK: mark}


LAYOUTS: dict[str, Callable[..., list[Message]]] = {"system_and_3": system_and_3, "anchored": anchored}


def without_marks(messages: Iterable[Message]) -> list[Message]:
    """The messages without any mark, for comparing what two requests say."""
    return [_unmarked(message) for message in messages]


def _unmarked(message: Message) -> Message:
    plain = {**message}
    plain.pop(MARK, None)
    content = plain.get("content")
    if isinstance(content, list):
        plain["content"] = [
            {key: value for key, value in part.items() if key != MARK} if isinstance(part, dict) else part
            for part in content
        ]
    return plain


class CacheUse(Struct, frozen=True):
    """How a model's prompt cache is used: `marks` (Anthropic's own), `chat_marks` (through a router), `key`, `none`."""

    style: str

    @property
    def marks(self) -> bool:
        """Whether a layout is applied."""
        return self.style in ("marks", "chat_marks")

    @property
    def native(self) -> bool:
        """Whether marks go to Anthropic's own API."""
        return self.style == "marks"


def cache_use(model: str, provider: str = "", base_url: str = "", dialect: str = "") -> CacheUse:
    """Chosen by model and provider: Claude at Anthropic or through OpenRouter gets marks, OpenAI gets a key."""
    host = (urlsplit(base_url).hostname or "").lower() if base_url else ""
    name, vendor = provider_name(provider), vendor_of(model)
    through_router = name == "openrouter" or host.endswith("openrouter.ai") or "openrouter" in routes(model)
    if vendor == "anthropic" and dialect == "anthropic":
        return CacheUse("marks")
    if vendor == "anthropic" and through_router:
        return CacheUse("chat_marks")
    if vendor == "anthropic" and name in ("anthropic", "") and dialect == "" and host in ("", "api.anthropic.com"):
        return CacheUse("marks")
    own = host == "api.openai.com" or (not host and name in ("openai", ""))
    if vendor == "openai" and own and not through_router:
        return CacheUse("key")
    return CacheUse("none")


def cache_options(use: CacheUse, conversation: str) -> dict[str, Any]:
    """Extra request fields: OpenAI routes requests with one key to one cache, so a conversation keeps its own."""
    if use.style != "key" or not conversation:
        return {}
    if len(conversation) > _KEY_LENGTH:
        conversation = hashlib.blake2b(conversation.encode("utf-8", "replace"), digest_size=32).hexdigest()
    return {"prompt_cache_key": conversation}
