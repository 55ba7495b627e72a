"""The home folder, and keys that nobody else may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leporello.config import Home, load_keys, load_settings, save_key
from leporello.config.sources import command_environment
from leporello.errors import ConfigError

KEY = "not" + "-a-real-key-" + "1234567890"


def test_home_comes_from_the_environment() -> None:
    """`LEPORELLO_HOME` wins; unset or empty means `~/.leporello`."""
    assert Home.from_environment({"LEPORELLO_HOME": "/x/y"}).path == Path("/x/y")
    assert Home.from_environment({"LEPORELLO_HOME": "~/z"}).path == Path("~/z").expanduser()
    for environ in ({}, {"LEPORELLO_HOME": ""}):
        assert Home.from_environment(environ).path == Path("~/.leporello").expanduser()


def test_names_inside_the_home(tmp_path: Path) -> None:
    """The names that users and other programs rely on."""
    home = Home(tmp_path)
    names = {
        home.config_file: "config.yaml",
        home.keys_file: "keys.yaml",
        home.database: "leporello.db",
        home.memory_dir: "memory",
        home.memory_dir: "memory",
        home.plugins_dir: "plugins",
        home.outputs_dir: "outputs",
        home.models_dir: "models",
        home.limits_file: "limits.json",
    }
    assert {path.relative_to(tmp_path).as_posix(): name for path, name in names.items()} == {
        name: name for name in names.values()
    }
    assert list(tmp_path.iterdir()) == []


def test_saved_key_is_private_and_found(tmp_path: Path) -> None:
    """A saved key has mode 0600, keeps its neighbours, and serves its provider."""
    home = Home(tmp_path / "new")
    save_key(home, "openai", KEY)
    save_key(home, "anthropic", KEY + "2")
    assert home.keys_file.stat().st_mode & 0o777 == 0o600
    assert load_keys(home) == {"openai": KEY, "anthropic": KEY + "2"}
    settings = load_settings(environ={}, home=home)
    assert settings.api_key("openai") == KEY
    assert settings.api_key("openrouter") is None
    assert [path.name for path in home.path.iterdir()] == ["keys.yaml"]


def test_variable_wins_over_the_file(tmp_path: Path) -> None:
    """The variable that `key_env` names is looked at first."""
    home = Home(tmp_path)
    save_key(home, "openai", KEY)
    settings = load_settings(environ={"OPENAI_API_KEY": "from-variable"}, home=home)
    assert settings.api_key("openai") == "from-variable"
    assert str(settings.api_key_source("openai")) == "environment OPENAI_API_KEY"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The error says how to mend it and does not show the key."""
    home = Home(tmp_path)
    save_key(home, "openai", KEY)
    os.chmod(home.keys_file, mode)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        load_settings(environ={}, home=home).api_key("openai")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", ["openai: [", "- a", "openai: {a: b}", "openai: 5", f"{KEY}: [unclosed", f"'{KEY}"])
def test_broken_key_file_is_told_without_its_content(tmp_path: Path, text: str) -> None:
    """The usual text of a parser quotes the file; ours must not."""
    home = Home(tmp_path)
    home.keys_file.write_text(text)
    home.keys_file.chmod(0o600)
    with pytest.raises(ConfigError, match="provider: key") as caught:
        load_keys(home)
    assert KEY not in str(caught.value)


def test_settings_do_not_show_keys(tmp_path: Path) -> None:
    """A settings object may land in a log."""
    home = Home(tmp_path)
    save_key(home, "openai", KEY)
    settings = load_settings(environ={"ANTHROPIC_API_KEY": KEY + "x"}, home=home)
    settings.api_key("openai")
    assert KEY not in repr(settings)


def test_commands_get_no_keys_of_models_and_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider need not be set up here for its key to be one; a setting may hold the password of the store."""
    kept = {"GITHUB_TOKEN": "a", "EDITOR": "vi", "LEPORELLO_HOME": "/x", "KEY_OF_MINE": "b"}
    gone = {name: "secret" for name in ("GEMINI_API_KEY", "GROQ_API_KEY", "HF_TOKEN", "ANTHROPIC_AUTH_TOKEN", "MINE")}
    gone["LEPORELLO_STORE__URL"] = "postgresql://me:secret@db/x"
    for name, value in {**kept, **gone}.items():
        monkeypatch.setenv(name, value)
    passed = command_environment(["MINE"])
    assert kept.items() <= passed.items()
    assert not gone.keys() & passed.keys()
