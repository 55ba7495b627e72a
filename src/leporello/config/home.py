"""`Home`: where Leporello keeps its files, fixed names in one folder; and reading and saving the keys in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leporello.errors import ConfigError
from leporello.files import open_whole

HOME_VARIABLE = "LEPORELLO_HOME"
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Home:
    """The folder with settings, keys, store, memory and plugins. Nothing is created until it is needed."""

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path).expanduser())

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Home:
        """`LEPORELLO_HOME` when it is set and not empty, else `~/.leporello`."""
        return cls.named(environ) or cls("~/.leporello")

    @classmethod
    def named(cls, environ: Mapping[str, str] | None = None) -> Home | None:
        """The folder that `LEPORELLO_HOME` names; None when it is not set or empty."""
        variables = os.environ if environ is None else environ
        path = variables.get(HOME_VARIABLE)
        return cls(path) if path else None

    @property
    def config_file(self) -> Path:
        """Settings a person edits."""
        return self.path / "config.yaml"

    @property
    def keys_file(self) -> Path:
        """API keys by provider; readable by the owner only."""
        return self.path / "keys.yaml"

    @property
    def fold_key_file(self) -> Path:
        """What folds in plain message lists are signed with; readable by the owner only."""
        return self.path / "fold.key"

    @property
    def database(self) -> Path:
        """The default store."""
        return self.path / "leporello.db"

    @property
    def memory_dir(self) -> Path:
        """Holds MEMORY.md and USER.md, which go into the system prompt."""
        return self.path / "memory"

    @property
    def skills_dir(self) -> Path:
        """Skill files, listed by title in the system prompt."""
        return self.path / "skills"

    @property
    def plugins_dir(self) -> Path:
        """General plugins, and context engines under `context_engine/`."""
        return self.path / "plugins"

    @property
    def outputs_dir(self) -> Path:
        """Tool outputs that were too large for a message, one folder per conversation."""
        return self.path / "outputs"

    @property
    def models_dir(self) -> Path:
        """Files of local models."""
        return self.path / "models"

    @property
    def history_file(self) -> Path:
        """What was typed into the chat, newest last; readable by the owner only."""
        return self.path / "history"

    @property
    def limits_file(self) -> Path:
        """Context windows that providers stated in an error, remembered."""
        return self.path / "limits.json"

    @property
    def store_url(self) -> str:
        """The default store as a URL."""
        return f"sqlite:///{self.database}"


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


def load_keys(home: Home) -> dict[str, str]:
    """Keys by provider name; empty when there is no file. A file that others can read is refused."""
    path = home.keys_file
    text = read_text(path) if _is_private(path) else None
    if text is None:
        return {}
    # Loaded when there is something to parse.
    import yaml  # noqa: PLC0415

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
    import yaml  # noqa: PLC0415  # see `load_keys`

    keys = {**load_keys(home), provider: key}
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        with open_whole(home.keys_file, private=True) as file:
            yaml.safe_dump(keys, file, allow_unicode=True, sort_keys=True, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{home.keys_file}: the key can't be saved: {error.strerror}.") from None


def _is_private(path: Path) -> bool:
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


def fold_key(home: Home) -> bytes | None:
    """The key of this home; None where there is none and none can be kept, because the folder can't be written."""
    path = home.fold_key_file
    if not _is_private(path) and not _make_fold_key(home):
        return None
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{path}: this is not a key. Delete the file: a new one is made when it is needed.")
    return key


def _make_fold_key(home: Home) -> bool:
    """Write a new key, whole or not at all, with mode 0600 from the first byte; of two at a time the first stays."""
    # Once in the life of a home folder.
    import secrets  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    try:
        home.path.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=home.path, prefix=".fold-")
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
        os.link(name, home.fold_key_file)
    except FileExistsError:
        return True
    except OSError:
        return False
    finally:
        Path(name).unlink(missing_ok=True)
    return True
