"""Changes one setting in config.yaml and leaves the rest of the file, comments included, as it is."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import Setting, find_setting
from leporello.config.home import Home
from leporello.config.load import read_text
from leporello.config.sources import nearest_key
from leporello.errors import ConfigError


def write_setting(home: Home, key: str, value: Any) -> None:
    """Set `key` in the home's config.yaml; the file is replaced whole or not at all."""
    setting = find_setting(key)
    if setting is None:
        hint = nearest_key(key)
        raise ConfigError(f"There is no setting `{key}`." + (f" Did you mean `{hint}`?" if hint else ""))
    checked = _checked(setting, key, value)
    try:
        text = changed(read_text(home.config_file) or "", key, checked)
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{home.config_file} can't be changed automatically. Set `{key}` there by hand.") from None
    _replace(home.config_file, text)


def changed(text: str, key: str, value: Any) -> str:
    """The file's text with one setting changed or added; `ValueError` when that can't be done without harm."""
    parts = key.split(".")
    before = yaml.safe_load(text)
    expected = _with(before if before is not None else {}, parts, value)
    new = _changed_text(text, parts, _as_yaml(value))
    if yaml.safe_load(new) != expected:
        raise ValueError(f"setting {key} would change something else as well")
    return new


def _changed_text(text: str, parts: list[str], written: str) -> str:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None or not isinstance(node, yaml.MappingNode) or not node.value:
        return _ended(text) + _block(parts, written, 0)
    while isinstance(node, yaml.MappingNode):
        child = next((inner for name, inner in node.value if name.value == parts[0]), None)
        if child is None:
            return _inserted(text, node, parts, written)
        node, parts = child, parts[1:]
        if not parts:
            return _replaced(text, node, written)
    # A section that was begun and left empty.
    return text[: node.start_mark.index] + "\n" + _block(parts, written, _indent(text, node)) + _tail(text, node)


def _replaced(text: str, node: yaml.Node, written: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
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


def _indent(text: str, node: yaml.Node) -> int:
    """Two more than the line on which the empty section's name stands."""
    line = text[: node.start_mark.index].rsplit("\n", 1)[-1]
    return len(line) - len(line.lstrip(" ")) + 2


def _tail(text: str, node: yaml.Node) -> str:
    return text[node.end_mark.index :].removeprefix("\n")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _with(document: Any, parts: list[str], value: Any) -> dict[str, Any]:
    result = dict(document) if isinstance(document, dict) else {}
    plain = list(value) if isinstance(value, tuple) else value
    result[parts[0]] = plain if len(parts) == 1 else _with(result.get(parts[0]), parts[1:], value)
    return result


def _as_yaml(value: Any) -> str:
    plain = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()


def _checked(setting: Setting, key: str, value: Any) -> Any:
    raw = setting.kind.from_text(value) if isinstance(value, str) else value
    try:
        return setting.kind.check(raw)
    except ValueError:
        raise ConfigError(f"`{key}` can't be {value!r}: it must be {setting.kind.allowed}.") from None


def _replace(path: Path, text: str) -> None:
    # Many keep their settings elsewhere and link them here: what the link leads to is changed.
    path = Path(os.path.realpath(path))
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".config-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise ConfigError(f"{path}: the setting can't be saved: {error.strerror}.") from None
