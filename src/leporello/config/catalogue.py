"""SETTINGS: every setting as data, with its kind of value; loading, checking, `leporello config` and docs follow it."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct


@dataclass(frozen=True, slots=True)
class SettingKind:
    allowed: str
    """The allowed values in words, as an error and the documentation show them."""
    check: Callable[[Any], Any]
    """The value in its final type; `ValueError` when it is not allowed."""
    from_text: Callable[[str], Any] = str
    """The raw value that a variable's or flag's text stands for; still to be checked."""


def _kind(
    allowed: str,
    fits: Callable[[Any], bool],
    final: Callable[[Any], Any] = lambda value: value,
    from_text: Callable[[str], Any] = str,
) -> SettingKind:
    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError
        return final(value)

    return SettingKind(allowed, check, from_text)


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def flag() -> SettingKind:
    said = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    kind = _kind("true or false", lambda value: isinstance(value, bool))
    return replace(kind, from_text=lambda text: said.get(text.strip().lower(), text))


def number(
    least: float | None = None, most: float | None = None, *, whole: bool = False, unit: str = ""
) -> SettingKind:
    """A number within bounds, both included; `whole` ones have no fraction."""
    allowed = ("a whole number" if whole else "a number") + (f" of {unit}" if unit else "")
    if least is not None and most is not None:
        allowed += f" from {least:g} to {most:g}"
    elif least is not None:
        allowed += f", at least {least:g}"
    low, high = -math.inf if least is None else least, math.inf if most is None else most

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return False
        return low <= value <= high and (not whole or value == int(value))

    def from_text(text: str) -> Any:
        cleaned = text.strip().replace("_", "")
        for read in (int, float):
            with contextlib.suppress(ValueError):
                return read(cleaned)
        return text

    return _kind(allowed, fits, int if whole else float, from_text)


def words(allowed: str) -> SettingKind:
    """Text that is not empty."""
    return _kind(allowed, _is_words, str.strip)


def url() -> SettingKind:
    """The base URL of an API."""
    return _kind(
        "a URL that begins with http:// or https://",
        lambda value: isinstance(value, str) and value.strip().lower().startswith(("http://", "https://")),
        lambda value: value.strip().rstrip("/"),
    )


def one_of(*choices: str) -> SettingKind:
    listed = " or ".join(choices) if len(choices) < 3 else "one of " + ", ".join(choices)
    return _kind(listed, lambda value: isinstance(value, str) and value in choices, from_text=str.strip)


def names(allowed: str) -> SettingKind:
    """A list of words; in a variable or flag they are separated by commas, with or without brackets."""
    return _kind(
        allowed,
        lambda value: isinstance(value, list | tuple) and all(map(_is_words, value)),
        lambda value: tuple(map(str.strip, value)),
        _listed,
    )


def _listed(text: str) -> list[str]:
    """`a,b`, and the same as YAML writes it: `[a, "b"]`."""
    bare = text.strip()
    inner = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    words = (item.strip() for item in inner.split(","))
    unquoted = (word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in words)
    return [word for word in unquoted if word]


def either(word: str | None, other: SettingKind) -> SettingKind:
    """A special word (`auto`), or null when `word` is None, or else a value of another kind."""

    def from_text(text: str) -> Any:
        cleaned = text.strip().lower()
        if word is None and cleaned in ("", "null", "none", "~"):
            return None
        return word if cleaned == word else other.from_text(text)

    def check(value: Any) -> Any:
        return value if value == word else other.check(value)

    return SettingKind(f"{word or 'null'} or {other.allowed}", check, from_text)


def named_tables(*fields: str) -> SettingKind:
    """A mapping from names to small mappings with known fields, such as one entry per model.

    What the fields may hold is checked by whoever uses them.
    """

    def check(value: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(value, dict):
            raise ValueError
        for name, entry in value.items():
            if not isinstance(entry, dict):
                raise ValueError(f"{name} is not a mapping")
            unknown = [str(key) for key in entry if key not in fields]
            if unknown:
                raise ValueError(f"{name} has no field {unknown[0]!r}")
        return {str(name): dict(entry) for name, entry in value.items()}

    def from_text(text: str) -> Any:
        with contextlib.suppress(ValueError):
            return json.loads(text)
        return text

    return SettingKind(f"a mapping from names to mappings with some of {', '.join(fields)}", check, from_text)


AUTO = "auto"
API_MODES = ("openai_chat", "openai_responses", "anthropic")
PROVIDER_FIELDS = ("base_url", "api_mode", "key_env")
BUILT_IN_ENGINES = ("compressor", "lcm")


class Setting(Struct, frozen=True):
    """One setting: its dotted name, default, kind and a sentence of help.

    A name with `<name>` in it stands for any word there (`providers.<name>.base_url`); it has no default of its own.
    """

    name: str
    default: Any
    kind: SettingKind
    help: str

    @property
    def is_pattern(self) -> bool:
        """Whether a part of the name is free."""
        return "<" in self.name


_tokens = either(AUTO, number(least=1, whole=True, unit="tokens"))
_count = number(least=1, whole=True)
_seconds = number(least=0.1, unit="seconds")
_model = either(None, words("the name of a model"))
_address = either(None, url())

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "context.engine", "compressor", words("the name of a context engine"), "Which engine folds the conversation."
    ),
    Setting("compression.enabled", True, flag(), "Automatic compression on or off."),
    Setting(
        "compression.threshold",
        0.50,
        number(0.0, 1.0),
        "Compression is due when prompt tokens reach this share of the window.",
    ),
    Setting(
        "compression.target_ratio", 0.20, number(0.10, 0.80), "Share of the threshold that the verbatim tail may take."
    ),
    Setting(
        "compression.protect_last_n",
        20,
        _count,
        "Least number of recent messages kept, while they fit 1.5 times the tail budget. Of a talk without tool"
        " calls, in a small window, two fifths of it.",
    ),
    Setting(
        "compression.policy",
        "balanced",
        one_of("economy", "balanced", "memory"),
        "How much a compaction keeps: economy the least, memory the most. Price decides when.",
    ),
    Setting(
        "compression.deadline",
        20.0,
        number(least=0, unit="seconds"),
        "Longest wait for a model's summary; after it the model-free summary is used.",
    ),
    Setting("model.default", None, _model, "The main model."),
    Setting(
        "model.provider", AUTO, either(AUTO, words("a name under providers")), "Who serves it; `auto` goes by its name."
    ),
    Setting("model.base_url", None, _address, "Address of its API, when it is not the provider's own."),
    Setting("model.context_length", AUTO, _tokens, "The window, when the known one is wrong."),
    Setting(
        "model.max_output",
        AUTO,
        _tokens,
        "Longest answer. The output reserve is the smaller of this and 10% of the window.",
    ),
    Setting(
        "models",
        {},
        named_tables("window", "max_input", "max_output", "prices", "steps"),
        "What you know better than the model table, by model name.",
    ),
    Setting("auxiliary.compression.model", None, _model, "The model that writes summaries; null: the main model."),
    Setting(
        "auxiliary.compression.provider",
        AUTO,
        either(AUTO, words("main or a name under providers")),
        "Who serves the summary model.",
    ),
    Setting("auxiliary.compression.base_url", None, _address, "Address of the summary model's API."),
    Setting("auxiliary.compression.context_length", AUTO, _tokens, "The summary model's window."),
    Setting("prompt_caching.cache_ttl", "5m", one_of("5m", "1h"), "How long the provider keeps a cached prefix."),
    Setting(
        "prompt_caching.layout",
        "anchored",
        one_of("system_and_3", "anchored"),
        "Where cache breakpoints stand in a request.",
    ),
    Setting("agent.tools", AUTO, either(AUTO, names("a list of tools")), "Tools of the agent; `auto` goes by window."),
    Setting(
        "tools.approval",
        "ask",
        one_of("ask", "auto", "deny"),
        "What happens before a command runs or a file is written.",
    ),
    Setting(
        "tools.allow",
        (),
        names("a list of tools or commands"),
        "Tools and command beginnings that run without asking, such as `write_file` or `git status`.",
    ),
    Setting("tools.paths", (), names("a list of folders"), "Folders outside the working directory tools may use."),
    Setting(
        "tools.sandbox",
        AUTO,
        one_of(AUTO, "off"),
        "Whether commands run in the system's sandbox (`bwrap`, `sandbox-exec`) where it has one.",
    ),
    Setting("tools.network", True, flag(), "Whether commands in the sandbox may use the network."),
    Setting(
        "tools.schema_share",
        0.05,
        number(0.0, 1.0),
        "Share of the window that tool schemas may take; beyond it the agent's tools that were never used give way to "
        "`find_tools` at a compaction. 1 keeps them all.",
    ),
    Setting("recall.vectors", False, flag(), "Search by meaning beside words; needs `leporello[vectors]`."),
    Setting(
        "recall.unasked",
        True,
        flag(),
        "In a compacted conversation the agent sees, behind your message, what it may need of the compacted part: at "
        "most 2% of the window, once, never stored.",
    ),
    Setting("plugins.enabled", (), names("a list of plugins"), "General plugins to load."),
    Setting(
        "plugins.allow_unsafe_folders", False, flag(), "Load plugins from folders that other users can write or own."
    ),
    Setting(
        "plugins.isolation",
        "none",
        one_of("none", "process"),
        "Where an engine of a plugin runs: in this program, or for each conversation in a process of its own.",
    ),
    Setting(
        "store.url",
        AUTO,
        either(AUTO, words("sqlite:///PATH or postgresql://...")),
        "Where conversations are kept; `auto` is leporello.db in the home folder.",
    ),
    Setting(
        "store.retention_days",
        0,
        number(0, 100_000, whole=True, unit="days"),
        "The gateway deletes ended conversations without pins after so long without activity; 0 keeps them.",
    ),
    Setting("gateway.host", "127.0.0.1", words("an address of this machine"), "Where `leporello serve` listens."),
    Setting("gateway.port", 8484, number(0, 65535, whole=True), "Its port; 0 takes any that is free."),
    Setting(
        "gateway.upstreams",
        {},
        named_tables("models", "provider", "base_url", "window"),
        "Where the proxy sends requests: by name, each with the `models` it serves (`claude-*`; a list or one).",
    ),
    Setting(
        "gateway.origins",
        (),
        names("a list of origins (scheme://host or scheme://host:port)"),
        "Origins of web pages that may use the gateway, besides its own (`https://llm.example.org` at a proxy).",
    ),
    Setting(
        "gateway.max_body", 32_000_000, number(least=1_000, whole=True, unit="bytes"), "Largest request, unpacked too."
    ),
    Setting("gateway.rate", 600, _count, "Requests a minute that one key may send."),
    Setting(
        "gateway.tokens_per_day", 0, number(least=0, whole=True), "Tokens a day (UTC) of one key; 0 means no limit."
    ),
    Setting(
        "gateway.dollars_per_day",
        0.0,
        number(least=0),
        "Money a day (UTC) of one key, by list prices; 0 means no limit.",
    ),
    Setting("gateway.streams", 128, _count, "Requests of one key at the same time."),
    Setting("gateway.connections", 256, _count, "Connections of one client address at the same time, for each worker."),
    Setting(
        "gateway.proxies",
        (),
        names("a list of addresses or networks"),
        "Trusted proxies: clients are told apart by their `X-Forwarded-For`, and their connections are not bounded.",
    ),
    Setting(
        "gateway.head_timeout",
        30.0,
        _seconds,
        "Longest wait for the head of a request, from the connection or its first byte.",
    ),
    Setting(
        "gateway.body_timeout",
        60.0,
        _seconds,
        "Longest silence of a client that sends a body, and how far it may fall behind 1,000 bytes a second.",
    ),
    Setting("gateway.connect_timeout", 10.0, _seconds, "Longest wait for a connection to an upstream."),
    Setting(
        "gateway.idle_timeout",
        600.0,
        _seconds,
        "Longest silence of an upstream, and of a client that should read its answer.",
    ),
    Setting(
        "gateway.session_idle",
        86_400.0,
        number(least=1, unit="seconds"),
        "An agent session nobody wrote to for so long is ended.",
    ),
    Setting(
        "gateway.recall_unasked",
        False,
        flag(),
        "Add to compacted requests what the user's newest message may need of the compacted part: at most 2% of the "
        "window, behind that message, never stored.",
    ),
    Setting(
        "gateway.find_tools",
        False,
        flag(),
        "In compacted requests a client's tools that were never used give way to `find_tools`, which the gateway "
        "answers, where they take more than `tools.schema_share` of the window.",
    ),
    Setting(
        "gateway.recall",
        False,
        flag(),
        "Offer the recovery tools to models of clients without a key; a key says it for itself (--add-key --recall).",
    ),
    Setting("providers.<name>.base_url", None, url(), "Address of the provider's API."),
    Setting("providers.<name>.api_mode", "openai_chat", one_of(*API_MODES), "Which wire format it speaks."),
    Setting(
        "providers.<name>.key_env",
        None,
        either(None, words("the name of a variable")),
        "Environment variable that holds its key; keys.yaml is looked at next.",
    ),
)

BUILT_IN_PROVIDERS: dict[str, dict[str, str]] = {
    "openai": {"base_url": "https://api.openai.com/v1", "api_mode": "openai_chat", "key_env": "OPENAI_API_KEY"},
    "anthropic": {"base_url": "https://api.anthropic.com", "api_mode": "anthropic", "key_env": "ANTHROPIC_API_KEY"},
    "openrouter": {
        "base_url": "https://openrouter.ai/api/v1",
        "api_mode": "openai_chat",
        "key_env": "OPENROUTER_API_KEY",
    },
}

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def find_setting(key: str) -> Setting | None:
    """The setting that a dotted key names, patterns included."""
    exact = _BY_NAME.get(key)
    if exact is not None and not exact.is_pattern:
        return exact
    parts = key.split(".")
    if len(parts) == 3 and parts[0] == "providers" and all(parts):
        return _BY_NAME.get(f"providers.<name>.{parts[2]}")
    return None


def is_section(key: str) -> bool:
    """Whether settings stand below this key."""
    parts = key.split(".")
    if parts[0] == "providers":
        return len(parts) <= 2 and all(parts)
    return any(name.startswith(key + ".") for name in _BY_NAME)
