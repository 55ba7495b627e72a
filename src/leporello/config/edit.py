"""Changes one setting in config.yaml and leaves the rest of the file, comments included, as it is."""

from __future__ import annotations

from typing import Any

import yaml

from leporello.config.catalogue import find_setting
from leporello.config.home import Home, read_text
from leporello.config.sources import check_value, unknown_setting
from leporello.errors import ConfigError
from leporello.files import open_whole


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
    while _in_lines(last):
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


def _in_lines(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style and bool(node.value)


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
