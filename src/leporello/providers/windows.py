"""The window an endpoint really serves, asked of the endpoint itself.

A model's name says what it could do; a local server was started with less. Each kind of server tells it elsewhere:

    llama.cpp    GET  /props            default_generation_settings.n_ctx
    Ollama       GET  /api/ps           context_length of the loaded model; POST /api/show: num_ctx, then the maximum
    LM Studio    GET  /api/v0/models    loaded_context_length
    vLLM, SGLang GET  /v1/models        max_model_len
    OpenRouter   GET  /v1/models        context_length, top_provider.context_length
    Anthropic    GET  /v1/models/<id>   max_input_tokens

Every question goes to the endpoint's own host, is short, and may fail: then the next one is asked.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT
from leporello.dialects.base import at, objects
from leporello.lazy_regex import lazy_regex
from leporello.messages import encode_json, parse_json

ASK_SECONDS = 3.0
MAX_ANSWER = 8_000_000  # OpenRouter's list of models is large; anything larger is not an answer to this question
_VERSION_PATH = lazy_regex(r"/(?:api/)?v\d+$")
_NUM_CTX = lazy_regex(r"^num_ctx\s+(\d+)", re.MULTILINE)
_LISTED = ("max_model_len", "top_provider.context_length", "context_length", "context_window", "max_context_length")


class WindowAnswer(Struct, frozen=True):
    """A window in tokens and who said so. `served` is false for a maximum that the server may run below."""

    tokens: int
    source: str
    served: bool = True


Ask = Callable[[str, Mapping[str, Any] | None], Any]
"""Asks an address (with a body: by POST) and gives the JSON answer, or None."""


def ask_window(
    base_url: str, model: str, dialect: str = OPENAI_CHAT.name, *, api_key: str = "", ask: Ask | None = None
) -> WindowAnswer | None:
    """The window of a model at an endpoint, or None when the endpoint tells nothing."""
    questions = ask or _Http(api_key, dialect)
    best: WindowAnswer | None = None
    for answer in _answers(base_url.rstrip("/"), model, dialect, questions):
        if answer.served:
            return answer
        best = best or answer
    return best


def ask_models(
    base_url: str, dialect: str = OPENAI_CHAT.name, *, api_key: str = "", seconds: float = ASK_SECONDS
) -> list[str]:
    """The names of the models an endpoint serves, in its order; empty when it does not tell within so many seconds."""
    root = _VERSION_PATH.sub("", base_url.rstrip("/"))
    address = base_url.rstrip("/") if base_url.rstrip("/") != root else f"{root}/v1"
    models = DIALECTS.get(dialect, OPENAI_CHAT).api.models_path
    answer = _Http(api_key, dialect, seconds)(address + models.removeprefix("/v1"), None)
    lines = objects(at(answer, "data") or at(answer, "models"))
    return [str(line.get("id") or line.get("name") or line.get("model")) for line in lines]


def _answers(base_url: str, model: str, dialect: str, ask: Ask) -> Iterator[WindowAnswer]:
    root = _VERSION_PATH.sub("", base_url)
    if dialect == ANTHROPIC.name:
        yield from _first("/v1/models", ask(f"{root}/v1/models/{quote(model, safe='')}", None), "max_input_tokens")
    yield from _first("/props", at(ask(f"{root}/props", None), "default_generation_settings"), "n_ctx")
    line = _line(ask(f"{base_url if base_url != root else root + '/v1'}/models", None), model)
    yield from _first("/v1/models", line, *_LISTED)
    yield from _first("/v1/models", line, "meta.n_ctx")
    yield from _first("/v1/models", line, "meta.n_ctx_train", served=False)
    line = _line(ask(f"{root}/api/v0/models", None), model)
    yield from _first("/api/v0/models", line, "loaded_context_length")
    yield from _first("/api/v0/models", line, "max_context_length", served=False)
    yield from _first("/api/ps", _line(ask(f"{root}/api/ps", None), model), "context_length")
    yield from _ollama(ask(f"{root}/api/show", {"model": model}))


def _first(source: str, answer: Any, *names: str, served: bool = True) -> Iterator[WindowAnswer]:
    for name in names:
        tokens = _tokens(at(answer, *name.split(".")))
        if tokens:
            yield WindowAnswer(tokens, f"{source} {name}", served)
            return


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _line(answer: Any, model: str) -> Mapping[str, Any]:
    """The model's line in a list; the only line when there is just one."""
    lines = objects(at(answer, "data") or at(answer, "models"))
    for line in lines:
        if model in (line.get("id"), line.get("name"), line.get("model")):
            return line
    return lines[0] if len(lines) == 1 else {}


def _ollama(shown: Any) -> Iterator[WindowAnswer]:
    found = _NUM_CTX.search(str(at(shown, "parameters") or ""))
    if found:
        yield WindowAnswer(int(found[1]), "/api/show num_ctx")
    info = at(shown, "model_info")
    for key, value in info.items() if isinstance(info, Mapping) else ():
        if str(key).endswith(".context_length") and _tokens(value):
            yield WindowAnswer(value, f"/api/show {key}", served=False)


class _Http:
    """Questions over HTTP. No redirects to other hosts: a key goes to its own endpoint only."""

    def __init__(self, api_key: str, dialect: str, seconds: float = ASK_SECONDS) -> None:
        self._seconds = seconds
        api = DIALECTS.get(dialect, OPENAI_CHAT).api
        self._headers = {"accept": "application/json", **(api.key_headers(api_key) if api_key else {})}
        self._opener = urllib.request.build_opener(_SameHost)

    def __call__(self, url: str, body: Mapping[str, Any] | None) -> Any:
        if urlsplit(url).scheme not in ("http", "https"):
            return None
        data = encode_json(dict(body)) if body is not None else None
        headers = {**self._headers, **({"content-type": "application/json"} if data is not None else {})}
        request = urllib.request.Request(url, data, headers)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                text = answer.read(MAX_ANSWER + 1)
        except (OSError, HTTPException, ValueError):
            return None
        return parse_json(text.decode("utf-8", "replace")) if len(text) <= MAX_ANSWER else None


class _SameHost(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            raise urllib.error.HTTPError(newurl, code, "redirect to another host", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
