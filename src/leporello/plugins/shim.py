"""Stand-ins for the modules that plugins written for Hermes import. Only such a plugin sees them.

agent.context_engine        ContextEngine, sanitize_memory_context
agent.auxiliary_client      call_llm, async_call_llm: asks our summary model
agent.redact                redact_sensitive_text
hermes_cli.config           get_hermes_home, load_config
hermes_constants            get_hermes_home
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from leporello.engines.base import ContextEngine
from leporello.errors import PluginError
from leporello.messages import Message
from leporello.providers.base import ModelReply, ModelRequest
from leporello.redact import redact
from leporello.summaries.model import SummaryModel

MEMORY_CONTEXT_MAX_CHARS = 6_000
DEFAULT_SECONDS = 120.0


@dataclass(slots=True)
class HostFacts:
    """What the stand-ins tell a plugin about its host. The summary models come when the host knows them."""

    home: Path
    config: dict[str, Any]
    summary_models: Sequence[SummaryModel] = ()


def stand_ins(facts: HostFacts) -> dict[str, ModuleType]:
    """The modules by name, packages included."""
    made = {
        "agent.context_engine": _module(
            "agent.context_engine",
            ContextEngine=ContextEngine,
            MEMORY_CONTEXT_MAX_CHARS=MEMORY_CONTEXT_MAX_CHARS,
            sanitize_memory_context=_sanitised,
        ),
        "agent.auxiliary_client": _auxiliary_client(facts),
        "agent.redact": _module("agent.redact", redact_sensitive_text=lambda text, **_: redact(str(text))),
        "hermes_cli.config": _module(
            "hermes_cli.config", get_hermes_home=lambda: facts.home, load_config=lambda: dict(facts.config)
        ),
        "hermes_constants": _module("hermes_constants", get_hermes_home=lambda: facts.home),
    }
    for name, module in list(made.items()):
        top, _, inner = name.partition(".")
        if inner:
            package = made.setdefault(top, _module(top))
            package.__path__ = []
            setattr(package, inner, module)
    return made


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name, "Stands in for a module of another host.")
    module.__dict__.update(names)
    return module


def _sanitised(memory_context: str) -> str:
    """Memory text without secrets, its middle left out when it is long."""
    text = redact(memory_context.strip())
    if len(text) <= MEMORY_CONTEXT_MAX_CHARS:
        return text
    half = MEMORY_CONTEXT_MAX_CHARS // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"


def _auxiliary_client(facts: HostFacts) -> ModuleType:
    def call_llm(
        task: str | None = None,
        *,
        messages: list[Message],
        max_tokens: int | None = None,
        timeout: float | None = None,
        temperature: float | None = None,
        tools: Sequence[dict[str, Any]] | None = None,
        **_: Any,
    ) -> Any:
        """One answer of the summary model. Which provider serves it is the host's affair."""
        if not facts.summary_models:
            raise PluginError(
                "call_llm: there is no model. Set model.default or auxiliary.compression.model in config.yaml."
            )
        chosen = facts.summary_models[0]
        options = {} if temperature is None else {"temperature": temperature}
        request = ModelRequest(
            chosen.model, messages, tuple(tools or ()), max_tokens, timeout or DEFAULT_SECONDS, options
        )
        return _answer(chosen.provider.complete(request), chosen.model)

    async def async_call_llm(task: str | None = None, **kwargs: Any) -> Any:
        call: Callable[..., Any] = call_llm
        return await asyncio.to_thread(call, task, **kwargs)

    return _module("agent.auxiliary_client", call_llm=call_llm, async_call_llm=async_call_llm)


def _answer(reply: ModelReply, model: str) -> SimpleNamespace:
    calls = [
        SimpleNamespace(id=call.get("id"), type="function", function=SimpleNamespace(**call.get("function", {})))
        for call in reply.message.get("tool_calls") or ()
    ]
    message = SimpleNamespace(role="assistant", content=reply.message.get("content"), tool_calls=calls or None)
    choice = SimpleNamespace(index=0, message=message, finish_reason=reply.finish_reason)
    return SimpleNamespace(
        choices=[choice], model=reply.model or model, usage=SimpleNamespace(**reply.usage.as_engine_dict())
    )
