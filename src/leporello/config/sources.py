"""Where values come from: flags and the environment, each value with its place; config.yaml has a module of its own."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from leporello.config.catalogue import PROVIDER_FIELDS, SETTINGS, Setting, is_section
from leporello.errors import ConfigError
from leporello.lazy_regex import lazy_regex

PREFIX = "LEPORELLO_"


class SourceKind(StrEnum):
    """The four places, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class SettingSource(Struct, frozen=True):
    """One place: a flag, a variable, a line of config.yaml, or the built-in default."""

    origin: SourceKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.where}" if self.where else str(self.origin)


class RawValue(Struct, frozen=True):
    """A raw value that somebody set, before it is checked."""

    key: str
    value: Any
    source: SettingSource
    is_text: bool = False
    """True when the value is the text of a variable or flag and still has to be read as its kind."""


# -- checking


def check_value(setting: Setting, key: str, value: Any, is_text: bool, source: SettingSource | None = None) -> Any:
    try:
        return setting.kind.check(setting.kind.from_text(value) if is_text else value)
    except ValueError as error:
        where = f" ({source})" if source else ""
        detail = f" ({error})" if str(error) else ""
        raise ConfigError(f"`{key}` can't be {value!r}{where}: it must be {setting.kind.allowed}{detail}.") from None


def unknown_setting(key: str, source: SettingSource | None = None) -> ConfigError:
    """The error for a key that no setting has, with the key that was probably meant."""
    hint = nearest_key(key)
    where = f" ({source})" if source else ""
    advice = f"Did you mean `{hint}`?" if hint else "`leporello config` lists all of them."
    return ConfigError(f"There is no setting `{key}`{where}. {advice}")


def nearest_key(key: str) -> str | None:
    """The known key or section closest to a mistyped one; None when nothing is close."""
    parts = key.split(".")
    if parts[0] == "providers" and len(parts) == 3:
        field = closest_word(parts[2], list(PROVIDER_FIELDS))
        return f"providers.{parts[1]}.{field}" if field else None
    names = [setting.name for setting in SETTINGS if not setting.is_pattern]
    sections = sorted({name.rsplit(".", 1)[0] for name in names if "." in name} | {"auxiliary", "providers"})
    whole = closest_word(key, [*names, *sections])
    if whole is not None:
        return whole
    # The last word may be right (or nearly so) under another section, or with none at all.
    endings = {name.rsplit(".", 1)[-1]: name for name in reversed(names)}
    ending = closest_word(parts[-1], list(endings))
    return endings[ending] if ending else None


def closest_word(word: str, candidates: list[str]) -> str | None:
    """The candidate that a mistyped word most resembles; None when nothing is close."""
    lowered = word.lower().replace("-", "_")
    if lowered in candidates and (lowered != word or not is_section(word)):
        return lowered
    found = difflib.get_close_matches(lowered, candidates, n=1, cutoff=0.72)
    return found[0] if found else None


# -- the environment


def in_environment(variable: str) -> SettingSource:
    return SettingSource(SourceKind.ENVIRONMENT, variable)


def variable_for(key: str) -> str:
    """The variable that sets a key: two underscores for a dot."""
    return PREFIX + key.upper().replace(".", "__")


def read_environment(environ: Mapping[str, str]) -> Iterator[RawValue]:
    """Every variable that sets something. Variables with our prefix and no double underscore are not settings."""
    run_together = {setting.name.upper().replace(".", "_"): setting.name for setting in SETTINGS if "." in setting.name}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        rest = variable.removeprefix(PREFIX)
        if "__" in rest:
            yield RawValue(rest.lower().replace("__", "."), environ[variable], in_environment(variable), is_text=True)
        elif rest in run_together:
            right = variable_for(run_together[rest])
            raise ConfigError(f"{variable} sets nothing: a dot is written as two underscores. Use {right}.")


_MODEL_KEY = lazy_regex(
    r"(?:OPENAI|ANTHROPIC|CLAUDE_CODE_OAUTH|AZURE_(?:OPENAI|AI)|GEMINI|GOOGLE(?:_GENERATIVE_AI)?|OPENROUTER|DEEPSEEK|GROQ"
    r"|MISTRAL|CODESTRAL|XAI|COHERE|CO|TOGETHER(?:AI|_AI)?|FIREWORKS(?:_AI)?|PERPLEXITY|CEREBRAS|SAMBANOVA|DEEPINFRA|NEBIUS"
    r"|NOVITA|HYPERBOLIC|REPLICATE|HF|NVIDIA|MOONSHOT|KIMI|ZAI|ZHIPU(?:AI)?|DASHSCOPE|QWEN|MINIMAX|ARK|HUNYUAN|QIANFAN"
    r"|STEPFUN|SILICONFLOW|AI21|WATSONX|LITELLM|OLLAMA)_(?:API_?KEY|(?:AUTH_|API_)?TOKEN|MASTER_KEY)(?:_\d{1,3})?"
)
"""Keys of providers, whether they are set up here or not."""


def command_environment(hidden: Iterable[str]) -> dict[str, str]:
    """The environment for commands an agent runs: the program's own, without keys of providers and its own settings."""
    left_out = set(hidden)
    return {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and not _MODEL_KEY.fullmatch(name) and not (name.startswith(PREFIX) and "__" in name)
    }


def colours_wanted() -> bool:
    """False when `NO_COLOR` is set or the terminal is dumb; whether there is a terminal is for the caller to ask."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_redraw() -> bool:
    """False for a terminal that only prints lines; whether there is a terminal is for the caller to ask."""
    return os.environ.get("TERM", "") not in ("dumb", "unknown")


class ProcessState(Struct, frozen=True):
    """The working directory and the environment at one moment."""

    folder: str
    variables: dict[str, str]

    @classmethod
    def now(cls) -> ProcessState:
        return cls(_folder(), dict(os.environ))

    def restore(self) -> Iterator[str]:
        """Put back what is not as it was; yields what that was."""
        if self.folder and _folder() != self.folder:
            with suppress(OSError):
                os.chdir(self.folder)
            yield "the working directory"
        if dict(os.environ) != self.variables:
            # One by one: other threads read it meanwhile.
            for name in set(os.environ) - set(self.variables):
                del os.environ[name]
            os.environ.update(self.variables)
            yield "the environment"


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def scratch_environment(folder: Path) -> dict[str, str]:
    """The environment for a trial: every home is the given folder, so that nothing is left in the user's."""
    homes = ("HOME", "HERMES_HOME", "LEPORELLO_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    return {**os.environ, **dict.fromkeys(homes, str(folder))}
