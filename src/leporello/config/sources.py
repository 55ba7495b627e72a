"""Where values come from: flags, the environment, config.yaml (read, and changed in place); each with its place."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import PROVIDER_FIELDS, SETTINGS, Setting, find_setting, is_section
from leporello.config.home import Home, read_text
from leporello.errors import ConfigError
from leporello.files import open_whole
from leporello.lazy_regex import lazy_regex

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


def write_setting(home: Home, key: str, value: Any) -> None:
    """Set `key` in the home's config.yaml; the file is replaced whole or not at all."""
    setting = find_setting(key)
    if setting is None:
        raise unknown_setting(key)
    checked = check_value(setting, key, value, isinstance(value, str))
    path = home.config_file
    try:
        text = changed(read_text(path) or "", key, checked)
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{path} can't be changed automatically. Set `{key}` there by hand.") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_whole(path, private=not path.exists()) as file:
            file.write(text.encode())
    except OSError as error:
        raise ConfigError(f"{path}: the setting can't be saved: {error.strerror}.") from None


def changed(text: str, key: str, value: Any) -> str:
    """The file's text with one setting changed or added; `ValueError` when that can't be done without harm."""
    parts = key.split(".")
    plain = list(value) if isinstance(value, tuple) else value
    expected = _with(yaml.safe_load(text), parts, plain)
    dumped = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=10**6)
    new = _changed_text(text, parts, dumped.removesuffix("...\n").strip())
    if yaml.safe_load(new) != expected:
        raise ValueError(f"setting {key} would change something else as well")
    return new


def _with(document: Any, parts: list[str], value: Any) -> dict[str, Any]:
    result = dict(document) if isinstance(document, dict) else {}
    result[parts[0]] = value if len(parts) == 1 else _with(result.get(parts[0]), parts[1:], value)
    return result


def _changed_text(text: str, parts: list[str], written: str) -> str:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode) or not node.value:
        return text + ("\n" if text and not text.endswith("\n") else "") + _block(parts, written, 0)
    while isinstance(node, yaml.MappingNode):
        name, child = next((pair for pair in node.value if pair[0].value == parts[0]), (None, None))
        if name is None or child is None:
            return _inserted(text, node, parts, written)
        node, parts = child, parts[1:]
        if not parts:
            return _replaced(text, name, node, written)
    # A section that was begun and left empty: two more columns than the line on which its name stands.
    before, after = text[: node.start_mark.index], text[node.end_mark.index :]
    line = before.rsplit("\n", 1)[-1]
    indent = len(line) - len(line.lstrip(" ")) + 2
    return f"{before}\n{_block(parts, written, indent)}" + after.removeprefix("\n")


def _replaced(text: str, name: yaml.Node, node: yaml.Node, written: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    last = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
        # The parser lets a list or mapping in lines end at the next key, behind the comments before that.
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
        end = last.end_mark.index
    if last is not node:
        colon = text.index(":", name.end_mark.index) + 1
        rest = text[start:end].removesuffix("\n")
        return f"{text[:colon]} {written}{text[colon:start].rstrip()}{text[start + len(rest) :]}"
    space = "" if text[:start].endswith((" ", "\n")) else " "
    ending = "\n" if text[start:end].endswith("\n") else ""
    return text[:start] + space + written + ending + text[end:]


def _inserted(text: str, node: yaml.MappingNode, parts: list[str], written: str) -> str:
    if node.flow_style:
        start = node.start_mark.index + 1
        inner = "".join(f"{{{part}: " for part in parts[1:]) + written + "}" * (len(parts) - 1)
        return f"{text[:start]}{parts[0]}: {inner}{', ' if node.value else ''}{text[start:]}"
    first = node.value[0][0].start_mark
    line_start = first.index - first.column
    return text[:line_start] + _block(parts, written, first.column) + text[line_start:]


def _block(parts: list[str], written: str, indent: int) -> str:
    lines = [f"{' ' * (indent + 2 * depth)}{part}:" for depth, part in enumerate(parts)]
    return "\n".join(lines) + f" {written}\n"


@dataclass(frozen=True, slots=True)
class ProcessState:
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
