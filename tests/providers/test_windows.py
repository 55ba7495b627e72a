"""The window that an endpoint serves, as each kind of server tells it."""

from __future__ import annotations

from typing import Any

import pytest

from leporello.providers.windows import WindowAnswer, ask_window
from tests.support.strict_server import strict_server

CASES: list[tuple[str, dict[str, Any], str, int | None, bool]] = [
    ("llama.cpp", {"/props": {"default_generation_settings": {"n_ctx": 2048}}}, "/props n_ctx", 2048, True),
    (
        "vllm",
        {"/v1/models": {"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 32768}]}},
        "/v1/models max_model_len",
        32768,
        True,
    ),
    (
        "openrouter",
        {"/v1/models": {"data": [{"id": "m", "context_length": 200000, "top_provider": {"context_length": 131072}}]}},
        "/v1/models top_provider.context_length",
        131072,
        True,
    ),
    (
        "trained is not served",
        {"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 40960}}]}},
        "/v1/models meta.n_ctx_train",
        40960,
        False,
    ),
    (
        "ollama loaded",
        {
            "/api/ps": {"models": [{"name": "m", "context_length": 4096}]},
            "/api/show": {"model_info": {"llama.context_length": 131072}},
        },
        "/api/ps context_length",
        4096,
        True,
    ),
    (
        "ollama with num_ctx",
        {"/api/show": {"parameters": "stop x\nnum_ctx   8192\n", "model_info": {"qwen2.context_length": 131072}}},
        "/api/show num_ctx",
        8192,
        True,
    ),
    (
        "ollama maximum",
        {"/api/show": {"model_info": {"general.name": "x", "qwen2.context_length": 131072}}},
        "/api/show qwen2.context_length",
        131072,
        False,
    ),
    (
        "lm studio",
        {"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 4096, "max_context_length": 32768}]}},
        "/api/v0/models loaded_context_length",
        4096,
        True,
    ),
    ("nothing told", {"/v1/models": {"data": [{"id": "m"}]}}, "", None, True),
    (
        "nonsense",
        {"/v1/models": [1], "/props": "text", "/api/show": {"model_info": 3}, "/api/ps": None},
        "",
        None,
        True,
    ),
]


@pytest.mark.parametrize(("name", "answers", "source", "tokens", "served"), CASES, ids=[case[0] for case in CASES])
def test_servers(name: str, answers: dict[str, Any], source: str, tokens: int | None, served: bool) -> None:
    """Each server is understood; what is served wins over what the model could do."""
    with strict_server(answers=answers) as server:
        answer = ask_window(server.url + "/v1", "m", api_key="k")
    assert answer == (WindowAnswer(tokens, source, served) if tokens else None)


def test_anthropic() -> None:
    """Anthropic tells the largest input of a model."""
    with strict_server(answers={"/v1/models/claude-x": {"id": "claude-x", "max_input_tokens": 200000}}) as server:
        answer = ask_window(server.url, "claude-x", "anthropic", api_key="k")
        assert server.requests[0].headers["x-api-key"] == "k"
    assert answer == WindowAnswer(200000, "/v1/models max_input_tokens")


def test_nobody_answers() -> None:
    """An endpoint that is not there tells nothing, and nothing fails."""
    with strict_server() as server:
        url = server.url
    assert ask_window(url + "/v1", "m") is None
    assert ask_window("file:///etc", "m") is None
