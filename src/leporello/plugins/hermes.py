"""Hermes, another host: stand-ins for the modules its plugins import here, and a plugin that brings our engines there.

Only a plugin sees the stand-ins:

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
from importlib.metadata import version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from leporello.engines.base import ContextEngine
from leporello.errors import InputError, PluginError
from leporello.messages import Message
from leporello.providers.base import ModelReply, ModelRequest
from leporello.redact import redact
from leporello.summaries.model import SummaryModel

MEMORY_CONTEXT_MAX_CHARS = 6_000
DEFAULT_SECONDS = 120.0
CODE = '''\
"""Leporello's context engines. Written by `leporello plugins install`; it may be overwritten."""


def register(ctx):
    from leporello.adapters.hermes import register as register_engine

    register_engine(ctx)
'''
MANIFEST = """\
name: leporello
version: {version}
description: "Context engines leporello and leporello-lcm: fold a conversation, lose nothing."
"""
NEXT = """\
Install Leporello where Hermes runs:     python -m pip install leporello
Then, in {config}:

plugins:
  enabled: [leporello]
context:
  engine: leporello        # or leporello-lcm
"""
HOSTS = ("hermes",)


@dataclass(slots=True)
class HostFacts:
    """What the stand-ins tell a plugin about its host. The summary models come when the host knows them."""

    home: Path
    config: dict[str, Any]
    summary_models: Sequence[SummaryModel] = ()


def stand_ins(facts: HostFacts) -> dict[str, ModuleType]:
    """The modules by name, packages included."""
    contents: dict[str, dict[str, Any]] = {
        "agent.context_engine": {
            "ContextEngine": ContextEngine,
            "MEMORY_CONTEXT_MAX_CHARS": MEMORY_CONTEXT_MAX_CHARS,
            "sanitize_memory_context": _sanitised,
        },
        "agent.auxiliary_client": _auxiliary_client(facts),
        "agent.redact": {"redact_sensitive_text": lambda text, **_: redact(str(text))},
        "hermes_cli.config": {"get_hermes_home": lambda: facts.home, "load_config": lambda: dict(facts.config)},
        "hermes_constants": {"get_hermes_home": lambda: facts.home},
    }
    made: dict[str, ModuleType] = {}
    for name, names in contents.items():
        made[name] = _module(name, **names)
        top, _, inner = name.partition(".")
        if inner:
            package = made.setdefault(top, _module(top, __path__=[]))
            setattr(package, inner, made[name])
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


def _auxiliary_client(facts: HostFacts) -> dict[str, Callable[..., Any]]:
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
        return await asyncio.to_thread(call_llm, task, **kwargs)

    return {"call_llm": call_llm, "async_call_llm": async_call_llm}


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


@dataclass(frozen=True, slots=True)
class Installed:
    folder: Path
    next: str


def install(host: str, home: Path) -> Installed:
    """Write the plugin folder into the home of another host; doing it again brings it up to date."""
    if host not in HOSTS:
        raise InputError(f"Leporello can be installed into {', '.join(HOSTS)}, not into {host!r}.")
    folder = home.expanduser() / "plugins" / "leporello"
    known = folder / "__init__.py"
    if known.exists() and "leporello" not in known.read_text(encoding="utf-8", errors="replace").lower():
        raise InputError("There is a plugin of that name which is not ours; nothing was written.", str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plugin.yaml").write_text(MANIFEST.format(version=version("leporello")), encoding="utf-8")
        known.write_text(CODE, encoding="utf-8")
    except OSError as error:
        raise InputError(f"The plugin can't be written: {error.strerror}.", str(folder)) from None
    return Installed(folder, NEXT.format(config=home.expanduser() / "config.yaml"))
