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
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT
from leporello.messages import encode_json, parse_json

ASK_SECONDS = 3.0
MAX_ANSWER = 8_000_000
_VERSION_PATH = re.compile(r"/(?:api/)?v\d+$")
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
"""OpenRouter's list of models is large; anything larger is not an answer to this question."""


@dataclass(frozen=True, slots=True)
class WindowAnswer:
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


def _answers(base_url: str, model: str, dialect: str, ask: Ask) -> Iterator[WindowAnswer]:
    root = _VERSION_PATH.sub("", base_url)
    if dialect == ANTHROPIC.name:
        yield from _anthropic(ask(f"{root}/v1/models/{quote(model, safe='')}", None))
    yield from _llama_cpp(ask(f"{root}/props", None))
    yield from _models(ask(f"{base_url if base_url != root else root + '/v1'}/models", None), model)
    yield from _lm_studio(ask(f"{root}/api/v0/models", None), model)
    yield from _ollama(root, model, ask)


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _first(source: str, values: Mapping[str, Any], served: bool = True) -> Iterator[WindowAnswer]:
    for name, value in values.items():
        tokens = _tokens(value)
        if tokens:
            yield WindowAnswer(tokens, f"{source} {name}", served)
            return


def _anthropic(answer: Any) -> Iterator[WindowAnswer]:
    if isinstance(answer, Mapping):
        yield from _first("/v1/models", {"max_input_tokens": answer.get("max_input_tokens")})


def _llama_cpp(answer: Any) -> Iterator[WindowAnswer]:
    settings = answer.get("default_generation_settings") if isinstance(answer, Mapping) else None
    if isinstance(settings, Mapping):
        yield from _first("/props", {"n_ctx": settings.get("n_ctx")})


def _entry(answer: Any, model: str) -> Mapping[str, Any]:
    """The model's line in a list; the only line when there is just one."""
    data = answer.get("data") or answer.get("models") if isinstance(answer, Mapping) else None
    lines = [line for line in data if isinstance(line, Mapping)] if isinstance(data, list) else []
    for line in lines:
        if model in (line.get("id"), line.get("name"), line.get("model")):
            return line
    return lines[0] if len(lines) == 1 else {}


def _models(answer: Any, model: str) -> Iterator[WindowAnswer]:
    line = _entry(answer, model)
    top = line.get("top_provider")
    routed = top.get("context_length") if isinstance(top, Mapping) else None
    yield from _first(
        "/v1/models",
        {
            "max_model_len": line.get("max_model_len"),
            "top_provider.context_length": routed,
            "context_length": line.get("context_length"),
            "context_window": line.get("context_window"),
            "max_context_length": line.get("max_context_length"),
        },
    )
    meta = line.get("meta")
    if isinstance(meta, Mapping):
        yield from _first("/v1/models", {"meta.n_ctx": meta.get("n_ctx")})
        yield from _first("/v1/models", {"meta.n_ctx_train": meta.get("n_ctx_train")}, served=False)


def _lm_studio(answer: Any, model: str) -> Iterator[WindowAnswer]:
    line = _entry(answer, model)
    yield from _first("/api/v0/models", {"loaded_context_length": line.get("loaded_context_length")})
    yield from _first("/api/v0/models", {"max_context_length": line.get("max_context_length")}, served=False)


def _ollama(root: str, model: str, ask: Ask) -> Iterator[WindowAnswer]:
    yield from _first("/api/ps", {"context_length": _entry(ask(f"{root}/api/ps", None), model).get("context_length")})
    shown = ask(f"{root}/api/show", {"model": model})
    if not isinstance(shown, Mapping):
        return
    found = _NUM_CTX.search(str(shown.get("parameters") or ""))
    if found:
        yield WindowAnswer(int(found[1]), "/api/show num_ctx")
    info = shown.get("model_info")
    for key, value in info.items() if isinstance(info, Mapping) else ():
        if str(key).endswith(".context_length") and _tokens(value):
            yield WindowAnswer(value, f"/api/show {key}", served=False)


class _Http:
    """Questions over HTTP. No redirects to other hosts: a key goes to its own endpoint only."""

    def __init__(self, api_key: str, dialect: str) -> None:
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
            with self._opener.open(request, timeout=ASK_SECONDS) as answer:
                text = answer.read(MAX_ANSWER + 1)
        except (OSError, HTTPException, ValueError):
            return None
        return parse_json(text.decode("utf-8", "replace")) if len(text) <= MAX_ANSWER else None


class _SameHost(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            raise urllib.error.HTTPError(newurl, code, "redirect to another host", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
