"""`Home`: where Leporello keeps its files. One folder, fixed names inside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "LEPORELLO_HOME"


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
    def limits_file(self) -> Path:
        """Context windows that providers stated in an error, remembered."""
        return self.path / "limits.json"

    @property
    def store_url(self) -> str:
        """The default store as a URL."""
        return f"sqlite:///{self.database}"
