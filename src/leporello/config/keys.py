"""API keys: `keys.yaml`, which only its owner may read. A key is never part of a setting and never printed."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import yaml

from leporello.config.file import read_text
from leporello.config.home import Home
from leporello.errors import ConfigError


def load_keys(home: Home) -> dict[str, str]:
    """Keys by provider name; empty when there is no file. A file that others can read is refused."""
    path = home.keys_file
    text = read_text(path) if is_private(path) else None
    if text is None:
        return {}
    try:
        keys = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own text quotes the file, and the file holds keys.
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path}{where}: this is not valid YAML. Write one line `provider: key` for each.") from None
    if keys is None:
        return {}
    if not isinstance(keys, dict) or not all(isinstance(value, str) for value in keys.values()):
        raise ConfigError(f"{path}: write one line `provider: key` for each provider, and nothing else.")
    return {str(name): value.strip() for name, value in keys.items() if value.strip()}


def save_key(home: Home, provider: str, key: str) -> None:
    """Add or replace one key; the file is written whole or not at all, with mode 0600 from the first byte."""
    keys = {**load_keys(home), provider: key}
    name = ""
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=home.path, prefix=".keys-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(keys, file, allow_unicode=True, sort_keys=True)
        os.replace(name, home.keys_file)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise ConfigError(f"{home.keys_file}: the key can't be saved: {error.strerror}.") from None


def is_private(path: Path) -> bool:
    """Whether there is such a file; one that others can read is refused."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None
    # Windows has no group and others to protect from.
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path}: others can read this file, and it holds keys. Run: chmod 600 {path}")
    return True
