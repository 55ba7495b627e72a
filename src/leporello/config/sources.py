"""Where values come from: flags, environment variables, lines of config.yaml; each with a place a person can act on."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import PROVIDER_FIELDS, SETTINGS, Setting, find_setting, is_section
from leporello.config.home import read_text
from leporello.errors import ConfigError

PREFIX = "LEPORELLO_"


class SourceKind(StrEnum):
    """The four places, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingSource:
    """One place: a flag, a variable, a line of config.yaml, or the built-in default."""

    origin: SourceKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.where}" if self.where else str(self.origin)


@dataclass(frozen=True, slots=True)
class RawValue:
    """A raw value that somebody set, before it is checked."""

    key: str
    value: Any
    source: SettingSource
    is_text: bool = False
    """True when the value is the text of a variable or flag and still has to be read as its kind."""


# -- checking


def check_value(setting: Setting, key: str, value: Any, is_text: bool, source: SettingSource | None = None) -> Any:
    """The value in its final type; an error says what is allowed."""
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


def command_environment(hidden: Iterable[str]) -> dict[str, str]:
    """The environment for commands an agent runs: the program's own, without the variables that hold keys."""
    left_out = set(hidden)
    return {name: value for name, value in os.environ.items() if name not in left_out}


def colours_wanted() -> bool:
    """False when `NO_COLOR` is set or the terminal is dumb; whether there is a terminal is for the caller to ask."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_redraw() -> bool:
    """False for a terminal that only prints lines; whether there is a terminal is for the caller to ask."""
    return os.environ.get("TERM", "") not in ("dumb", "unknown")


# -- the file


def read_file(path: Path, is_free: Callable[[str], bool]) -> Iterator[RawValue]:
    """Every value of the file; nothing when there is no file. Keys that nobody knows are passed on as they are.

    `is_free` tells whether a section belongs to an engine or plugin and is passed through unchecked.
    """
    text = read_text(path)
    if text is None:
        return
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None or (isinstance(root, yaml.ScalarNode) and loader.construct_object(root) is None):
            return
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(
                f"{path}: the file must hold settings by name, such as `compression:` with lines below it."
            )
        yield from _walk(loader, root, "", path, is_free)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = str(getattr(error, "problem", None) or "it can't be parsed").rstrip(".")
        raise ConfigError(f"{path}{where}: this is not valid YAML: {problem}.") from None
    finally:
        loader.dispose()


def _walk(
    loader: Any, node: yaml.MappingNode, prefix: str, path: Path, is_free: Callable[[str], bool]
) -> Iterator[RawValue]:
    loader.flatten_mapping(node)
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = prefix + str(loader.construct_object(key_node, deep=True))
        if key in seen:
            raise ConfigError(f"{path}, line {line}: `{key}` was already set on line {seen[key]}; keep one of them.")
        seen[key] = line
        is_settings = find_setting(key) is None and is_section(key) and not is_free(key)
        if is_settings and isinstance(value_node, yaml.MappingNode):
            yield from _walk(loader, value_node, key + ".", path, is_free)
            continue
        value = loader.construct_object(value_node, deep=True)
        if not is_settings:
            yield RawValue(key, value, SettingSource(SourceKind.FILE, f"{path}, line {line}"))
        elif value is not None:
            raise ConfigError(f"{path}, line {line}: `{key}` is a section; put its settings on lines below it.")
