"""Reads config.yaml into dotted keys, each with the line it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import find_setting, is_section
from leporello.config.sources import Given, in_file
from leporello.errors import ConfigError

IsFree = Callable[[str], bool]
"""Tells whether a section belongs to an engine or plugin and is passed through unchecked."""


def read_file(path: Path, is_free: IsFree) -> Iterator[Given]:
    """Every value of the file; nothing when there is no file. Keys that nobody knows are passed on as they are."""
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
        raise ConfigError(f"{path}{_position(error)}: this is not valid YAML: {_problem(error)}.") from None
    finally:
        loader.dispose()


def read_text(path: Path) -> str | None:
    """The text of a file in the home folder, or None when it is not there."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text.") from None
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None


def _walk(loader: Any, node: yaml.MappingNode, prefix: str, path: Path, is_free: IsFree) -> Iterator[Given]:
    loader.flatten_mapping(node)
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = prefix + str(loader.construct_object(key_node, deep=True))
        if key in seen:
            raise ConfigError(f"{path}, line {line}: `{key}` was already set on line {seen[key]}; keep one of them.")
        seen[key] = line
        if find_setting(key) is None and is_section(key) and not is_free(key):
            if isinstance(value_node, yaml.MappingNode):
                yield from _walk(loader, value_node, key + ".", path, is_free)
                continue
            if loader.construct_object(value_node, deep=True) is not None:
                raise ConfigError(f"{path}, line {line}: `{key}` is a section; put its settings on lines below it.")
            continue
        yield Given(key, loader.construct_object(value_node, deep=True), in_file(path, line))


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or "it can't be parsed").rstrip(".")
