"""Hermes, another host: stand-ins for the modules its plugins import here, and a plugin that brings our engines there.

Only a plugin sees the stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from msgspec import Struct

from leporello.compaction.assemble import repair
from leporello.compaction.plan import can_be_pointer
from leporello.compaction.prune import pointer
from leporello.compaction.view import Item
from leporello.config import Home, fold_key
from leporello.engines.base import ContextEngine
from leporello.engines.compressor import ContextCompressor
from leporello.errors import InputError, PluginError, ProviderError
from leporello.messages import Message, Messages, calls_of, is_result, result_id, role_of
from leporello.models import Limits, resolve_limits
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.redact import redact
from leporello.summaries.fold import read_fold
from leporello.summaries.model import ModelSummariser, SummaryModel, turn_text
from leporello.tokens import TokenCounter
from leporello.turns import groups
from leporello.usage import CanonicalUsage

SUMMARY_PREFIX = "[CONTEXT COMPACTION]"
SUMMARY_MARK = "_compressed_summary"
SUMMARY_SECONDS = 120.0
DEFAULT_WINDOW = 128_000
OPTIONS: dict[str, Any] = {
    "quiet_mode": False,
    "base_url": "",
    "api_key": "",
    "provider": "",
    "api_mode": "",
    "abort_on_summary_failure": False,
    "max_tokens": None,
}
"""Arguments that become attributes of the same name and mean nothing here."""

SUMMARISE = (
    "Summarise these turns for whoever continues the conversation. Keep decisions, rules, paths, values and errors "
    "word for word, and leave out what led nowhere."
)

AskModel = Callable[..., Any]  # `call_llm` of the host


def estimate_messages_tokens_rough(messages: Messages) -> int:
    return TokenCounter.for_model(None).messages(messages)


class HostedCompressor(ContextCompressor):
    """The built-in compressor as Hermes' class of that name."""

    _home: Path
    _call_llm: AskModel

    def __init__(
        self,
        model: str = "",
        threshold_percent: float | None = None,
        protect_first_n: int = 3,
        protect_last_n: int = 20,
        summary_target_ratio: float = 0.20,
        config_context_length: int | None = None,
        **options: Any,
    ) -> None:
        window = config_context_length or DEFAULT_WINDOW
        self.threshold_percent = threshold_percent or self.threshold_percent
        limits = Limits.for_window(window, self.threshold_percent, summary_target_ratio, protect_last_n=protect_last_n)
        super().__init__(window, limits=limits, key=fold_key(Home(self._home)))
        self.protect_first_n = protect_first_n
        self.summary_target_ratio = summary_target_ratio
        self.__dict__ |= {name: options.get(name, default) for name, default in OPTIONS.items()}
        self.summary_model = options.get("summary_model_override") or ""
        self._previous_summary: str | None = None
        self._last_summary_error: str | None = None
        self._last_summary_fallback_used = self._last_compress_aborted = False
        self._last_compression_made_progress = False
        self._request: ModelRequest | None = None
        self.update_model(model, window)

    @property
    def tail_token_budget(self) -> int:
        return self.limits.tail_tokens

    @property
    def max_summary_tokens(self) -> int:
        return self.limits.summary_ceiling

    def update_model(self, model: str, context_length: int, *args: Any, **kwargs: Any) -> None:
        super().update_model(model, context_length, *args, **kwargs)
        self.model = model
        ladder = [SummaryModel(_OwnSummary(self), f"engine:{self.name}", context_length)]
        self.summariser = ModelSummariser(ladder, self.counter, SUMMARY_SECONDS)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return self.should_compress_info(prompt_tokens)[0]

    def should_compress_info(self, prompt_tokens: int | None = None) -> tuple[bool, str | None]:
        return super().should_compress(prompt_tokens), None

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        return False

    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        shown = super().compress(messages, *args, **kwargs)
        self._last_compression_made_progress = bool(self.last_report and self.last_report.committed)
        return shown

    def summary_of(self, request: ModelRequest) -> str | None:
        """What the engine writes about the span of a request, in its own way where it has one."""
        self._request = request
        try:
            return self._generate_summary(list(request.messages))
        finally:
            self._request = None

    def _generate_summary(
        self, turns_to_summarize: list[Message], focus_topic: str | None = None, **_: Any
    ) -> str | None:
        """What the host's model writes about some turns; None when there is none."""
        asked = list(self._request.messages) if self._request else _question(turns_to_summarize, focus_topic or "")
        try:
            text: str | None = self._call_llm(task="compression", messages=asked).choices[0].message.content
        except (PluginError, ProviderError):
            return None
        return text

    # Steps of Hermes' compression that derived classes put together in their own way.

    def _prune_old_tool_results(
        self, messages: list[Message], protect_tail_count: int, protect_tail_tokens: int | None = None
    ) -> tuple[list[Message], int]:
        """Results before the newest messages as one line each, and how many that are."""
        end = max(0, len(messages) - protect_tail_count)
        old = {index for index, message in enumerate(messages[:end]) if can_be_pointer(message)}
        calls = {call.id: call for message in messages for call in calls_of(message)}
        shown = [
            pointer(message, calls.get(result_id(message)), index + 1) if index in old else dict(message)
            for index, message in enumerate(messages)
        ]
        return shown, len(old)

    def _align_boundary_forward(self, messages: list[Message], idx: int) -> int:
        return next((k for k in range(idx, len(messages)) if not is_result(messages[k])), len(messages))

    def _find_tail_cut_by_tokens(self, messages: list[Message], head_end: int, token_budget: int | None = None) -> int:
        """Where the tail begins: whole turns that fit the budget, the newest message of the user among them."""
        left = self.tail_token_budget if token_budget is None else token_budget
        cut = max((k for k, message in enumerate(messages) if role_of(message) == "user"), default=len(messages))
        for group in reversed(groups(messages)):
            left -= self.counter.messages(messages[group.start : group.stop])
            if left < 0 or group.start <= head_end:
                break
            cut = min(cut, group.start)
        return max(cut, head_end)

    def _sanitize_tool_pairs(self, messages: list[Message]) -> list[Message]:
        return [item.message for item in repair([Item(0, message) for message in messages])]

    @classmethod
    def _with_summary_prefix(cls, summary: str) -> str:
        return summary

    @staticmethod
    def _is_context_summary_content(content: Any) -> bool:
        return read_fold({"role": "assistant", "content": content}) is not None


class _OwnSummary:
    """The engine as the one who writes summaries."""

    name = "engine"

    def __init__(self, engine: HostedCompressor) -> None:
        self._engine = engine

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        try:
            text = self._engine.summary_of(request)
        except PluginError as error:
            raise ProviderError(str(error)) from None
        if not text:
            raise ProviderError("no summary was written")
        return ModelReply({"role": "assistant", "content": text}, CanonicalUsage(), has_usage=False)


def _question(turns: Messages, focus: str) -> list[Message]:
    wanted = f" Above all, what concerns {focus}." if focus else ""
    told = "\n".join(turn_text(number, message) for number, message in enumerate(turns, 1))
    return [{"role": "user", "content": f"{SUMMARISE}{wanted}\n\n{told}"}]


def compressor_for(home: Path, call_llm: AskModel) -> type[HostedCompressor]:
    """The class as one plugin sees it: its summaries are asked of the host's model, its folds signed for the home."""
    return type("ContextCompressor", (HostedCompressor,), {"_home": home, "_call_llm": staticmethod(call_llm)})


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


class HostFacts(Struct):
    """What the stand-ins tell a plugin about its host. The summary models come when the host knows them."""

    home: Path
    config: dict[str, Any]
    summary_models: Sequence[SummaryModel] = ()


def stand_ins(facts: HostFacts) -> dict[str, ModuleType]:
    """The modules by name, packages included."""
    client = _auxiliary_client(facts)
    contents: dict[str, dict[str, Any]] = {
        "agent.context_engine": {
            "ContextEngine": ContextEngine,
            "MEMORY_CONTEXT_MAX_CHARS": MEMORY_CONTEXT_MAX_CHARS,
            "sanitize_memory_context": _sanitised,
        },
        "agent.context_compressor": {
            "ContextCompressor": compressor_for(facts.home, client["call_llm"]),
            "SUMMARY_PREFIX": SUMMARY_PREFIX,
            "COMPRESSED_SUMMARY_METADATA_KEY": SUMMARY_MARK,
            "estimate_messages_tokens_rough": estimate_messages_tokens_rough,
        },
        "agent.model_metadata": {
            "estimate_tokens_rough": lambda text: TokenCounter.for_model(None).text(str(text or "")),
            "estimate_messages_tokens_rough": estimate_messages_tokens_rough,
            "get_model_context_length": lambda model, *_, config_context_length=None, **__: (
                resolve_limits(str(model), declared_window=config_context_length).window
            ),
        },
        "agent.auxiliary_client": client,
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
        # Whoever awaits this has it loaded.
        import asyncio  # noqa: PLC0415

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
    # It loads half of the standard library, and this is done once.
    from importlib.metadata import version  # noqa: PLC0415

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
