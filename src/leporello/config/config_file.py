"""config.yaml: its values, each with its line, and one of them changed in place.

Apart from other settings because of the parser: whoever has no such file need not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import find_setting, is_section
from leporello.config.home import Home, read_text
from leporello.config.sources import RawValue, SettingSource, SourceKind, check_value, unknown_setting
from leporello.errors import ConfigError
from leporello.files import open_whole


def values_in(text: str, path: Path, is_free: Callable[[str], bool]) -> Iterator[RawValue]:
    """Every value of the file's text. Keys that nobody knows are passed on as they are.

    `is_free` tells whether a section belongs to an engine or plugin and is passed through unchecked.
    """
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
