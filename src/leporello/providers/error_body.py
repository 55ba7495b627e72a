"""What an error body says, wherever it says it: codes, types, words and numbers, the innermost first.

Bodies arrive as objects, lists, plain text or HTML, and routers put the upstream's body inside a text inside their own.
Nothing here judges; it only collects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 8
MAX_TEXT = 20_000
"""An error page can be long; what matters stands at its beginning."""

_CODE_KEYS = ("code", "type", "status", "reason", "error_code", "omlx_code", "name", "errorType", "__type")
_TEXT_KEYS = ("message", "msg", "errorMessage", "status_msg", "detail", "details", "raw", "param")
_NUMBER_KEYS = ("n_ctx", "n_prompt_tokens", "retry_after")
# Words that every refusal of that API carries: they say nothing about the cause.
_EMPTY_CODES = frozenset(("", "none", "null", "error", "invalid_request_error", "badrequest", "badrequesterror"))


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Everything a body states, in one place."""

    codes: frozenset[str]
    """Machine-readable codes and types, lower case, without the ones that say nothing."""
    text: str
    """All readable text, innermost first, joined by newlines; original case."""
    numbers: Mapping[str, float]
    retry_delay: str
    """Google's `retryDelay`, such as `34s`."""
    message: str
    """The most specific sentence, for people."""


def read_body(body: Any) -> ErrorFacts:
    """Collect the facts of a body of any shape."""
    found = _Found()
    _visit(_decoded(body), found, 0)
    # Later is deeper: a router's own words come first in its body and say least.
    texts = list(dict.fromkeys(reversed(found.texts)))
    return ErrorFacts(
        codes=frozenset(code for code in found.codes if code not in _EMPTY_CODES),
        text="\n".join(texts)[:MAX_TEXT],
        numbers=found.numbers,
        retry_delay=found.retry_delay,
        message=_message(texts),
    )


class _Found:
    __slots__ = ("codes", "numbers", "retry_delay", "texts")

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.texts: list[str] = []
        self.numbers: dict[str, float] = {}
        self.retry_delay = ""


def _decoded(body: Any) -> Any:
    if isinstance(body, bytes | bytearray):
        body = bytes(body[:MAX_TEXT]).decode("utf-8", "replace")
    return body


def _visit(value: Any, found: _Found, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        _visit_text(value, found, depth)
    elif isinstance(value, list):
        for item in value[:20]:
            _visit(item, found, depth + 1)
    elif isinstance(value, Mapping):
        _visit_object(value, found, depth)


def _visit_object(value: Mapping[str, Any], found: _Found, depth: int) -> None:
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, str | int) and not isinstance(code, bool):
            found.codes.append(str(code).strip().lower())
    for key in _NUMBER_KEYS:
        number = value.get(key)
        if isinstance(number, int | float) and not isinstance(number, bool):
            found.numbers[key] = number
    delay = value.get("retryDelay")
    if isinstance(delay, str):
        found.retry_delay = delay
    for key in _TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str) and (key != "param" or " " in text):
            _visit_text(text, found, depth)
    for key, inner in value.items():
        if isinstance(inner, list | Mapping) or (isinstance(inner, str) and key == "error"):
            _visit(inner, found, depth + 1)


def _visit_text(text: str, found: _Found, depth: int) -> None:
    text = text[:MAX_TEXT]
    if text.strip():
        found.texts.append(text.strip())
    for inner in _bodies_inside(text):
        _visit(inner, found, depth + 1)


_TITLE = re.compile(r"<title>(.{0,2000}?)</title>", re.IGNORECASE | re.DOTALL)
_FIRST_BRACE = re.compile(r"[{\[]")


def _bodies_inside(text: str) -> Iterator[Any]:
    """A JSON body within a text: `... - b'{"error": ...}'` and `{"type": ...}. Received Model Group=...`."""
    start = _FIRST_BRACE.search(text)
    if start is None or '"' not in text:
        return
    candidate = text[start.start() :].replace("\\n", "\n")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(candidate)
    except (ValueError, RecursionError):
        return
    if isinstance(value, list | dict) and value:
        yield value


def _message(texts: list[str]) -> str:
    """The first text that a person can read: not JSON, not a page."""
    for text in texts:
        if not text.startswith(("{", "[", "<")):
            return text
    for text in texts:
        title = _TITLE.search(text)
        if title:
            return title[1].strip()
    return texts[0] if texts else ""
