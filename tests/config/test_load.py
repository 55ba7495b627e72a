"""Settings: who wins, where a value comes from, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from leporello.config import SETTINGS, Home, Settings, load_settings
from leporello.config.sources import variable_for
from leporello.errors import ConfigError


def load(tmp_path: Path, text: str = "", environ: dict[str, str] | None = None, **flags: object) -> Settings:
    """Settings from a file with this text, these variables and these flags (`__` for a dot)."""
    home = Home(tmp_path)
    home.config_file.write_text(text, encoding="utf-8")
    return load_settings({key.replace("__", "."): value for key, value in flags.items()}, environ or {}, home)


def test_specified_defaults(tmp_path: Path) -> None:
    """The defaults that users were promised."""
    settings = load(tmp_path)
    expected = {
        "context.engine": "compressor",
        "compression.enabled": True,
        "compression.threshold": 0.5,
        "compression.target_ratio": 0.2,
        "compression.protect_last_n": 20,
        "compression.deadline": 20.0,
        "model.default": None,
        "model.provider": "auto",
        "model.base_url": None,
        "model.max_output": "auto",
        "model.context_length": "auto",
        "auxiliary.compression.model": None,
        "auxiliary.compression.provider": "auto",
        "auxiliary.compression.base_url": None,
        "auxiliary.compression.context_length": "auto",
        "prompt_caching.cache_ttl": "5m",
        "prompt_caching.layout": "anchored",
        "tools.approval": "ask",
    }
    assert {key: settings.get(key) for key in expected} == expected
    assert all(str(settings.source(key)) == "default" for key in settings)


def test_every_default_passes_its_own_check() -> None:
    """A default that its own setting would refuse could never be written down by a user."""
    for setting in SETTINGS:
        if not setting.is_pattern:
            assert setting.kind.check(setting.default) == setting.default


def test_the_stronger_place_wins(tmp_path: Path) -> None:
    """Flag over environment over file over default, and the source says which it was."""
    text = "compression:\n  threshold: 0.3\n"
    variables = {"LEPORELLO_COMPRESSION__THRESHOLD": "0.4"}
    key = "compression.threshold"
    by_file = load(tmp_path, text)
    by_variable = load(tmp_path, text, variables)
    by_flag = load(tmp_path, text, variables, compression__threshold=0.6)
    assert [by_file.get(key), by_variable.get(key), by_flag.get(key)] == [0.3, 0.4, 0.6]
    assert str(by_file.source(key)) == f"file {tmp_path / 'config.yaml'}, line 2"
    assert str(by_variable.source(key)) == "environment LEPORELLO_COMPRESSION__THRESHOLD"
    assert str(by_flag.source(key)) == "flag"


def test_flags_not_given_change_nothing(tmp_path: Path) -> None:
    """A command hands over all its options; those that are None were not used."""
    settings = load(tmp_path, compression__threshold=None)
    assert str(settings.source("compression.threshold")) == "default"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("compresion:\n  threshold: 0.4\n", ["`compresion`", "line 1", "`compression`"]),
        ("compression:\n  treshold: 0.4\n", ["`compression.treshold`", "line 2", "`compression.threshold`"]),
        ("threshold: 0.4\n", ["`threshold`", "line 1", "`compression.threshold`"]),
        ("model:\n  context-length: 9\n", ["`model.context-length`", "line 2", "`model.context_length`"]),
        ("providers:\n  x:\n    baseurl: http://a\n", ["`providers.x.baseurl`", "line 3", "`providers.x.base_url`"]),
        ("zzz: 1\n", ["`zzz`", "line 1", "leporello config"]),
    ],
)
def test_unknown_key_names_the_right_one(tmp_path: Path, text: str, parts: list[str]) -> None:
    """A mistyped key is an error with key, file, line and the key that was probably meant."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert all(part in str(caught.value) for part in [*parts, "config.yaml"])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("compression:\n  threshold: 1.5\n", ["compression.threshold", "1.5", "line 2", "from 0 to 1"]),
        ("compression:\n  threshold: half\n", ["compression.threshold", "'half'", "from 0 to 1"]),
        ("compression:\n  target_ratio: 0.05\n", ["compression.target_ratio", "from 0.1 to 0.8"]),
        ("compression:\n  protect_last_n: 0\n", ["compression.protect_last_n", "at least 1"]),
        ("compression:\n  protect_last_n: 2.5\n", ["compression.protect_last_n", "whole number"]),
        ("compression:\n  enabled: maybe\n", ["compression.enabled", "true or false"]),
        ("compression:\n  enabled: 1\n", ["compression.enabled", "true or false"]),
        ("compression: 5\n", ["`compression` is a section", "line 1"]),
        ("prompt_caching:\n  cache_ttl: 10m\n", ["prompt_caching.cache_ttl", "5m or 1h"]),
        ("prompt_caching:\n  layout: best\n", ["prompt_caching.layout", "system_and_3 or anchored"]),
        ("model:\n  base_url: ftp://x\n", ["model.base_url", "http://"]),
        ("model:\n  provider: nobody\n", ["model.provider", "nobody", "openai", "providers"]),
        ("auxiliary:\n  compression:\n    provider: nobody\n", ["auxiliary.compression.provider", "main"]),
        ("tools:\n  approval: always\n", ["tools.approval", "ask, auto, deny"]),
        ("tools:\n  allow: git\n", ["tools.allow", "list"]),
        ("models:\n  big: 5\n", ["models", "big is not a mapping"]),
        ("models:\n  big:\n    widow: 5\n", ["models", "'widow'", "window"]),
        ("- a\n- b\n", ["settings by name"]),
        ("compression: [\n", ["not valid YAML", "line"]),
        ("model:\n  default: a\nmodel:\n  default: b\n", ["`model`", "line 3", "line 1"]),
    ],
)
def test_bad_value_says_what_is_allowed(tmp_path: Path, text: str, parts: list[str]) -> None:
    """A bad value is an error with key, place and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert all(part in str(caught.value) for part in [*parts, "config.yaml"])


def test_mistakes_in_variables_and_flags(tmp_path: Path) -> None:
    """The error names the variable, or says that it was a flag."""
    with pytest.raises(ConfigError, match=r"LEPORELLO_COMPRESSION__TRESHOLD.*`compression.threshold`"):
        load(tmp_path, environ={"LEPORELLO_COMPRESSION__TRESHOLD": "0.5"})
    with pytest.raises(ConfigError, match=r"(?s)'2'.*LEPORELLO_COMPRESSION__THRESHOLD.*from 0 to 1"):
        load(tmp_path, environ={"LEPORELLO_COMPRESSION__THRESHOLD": "2"})
    with pytest.raises(ConfigError, match=r"LEPORELLO_COMPRESSION_THRESHOLD .*Use LEPORELLO_COMPRESSION__THRESHOLD"):
        load(tmp_path, environ={"LEPORELLO_COMPRESSION_THRESHOLD": "0.5"})
    with pytest.raises(ConfigError, match=r"flag.*`compression.threshold`"):
        load(tmp_path, compression__treshold=0.5)


def test_other_variables_are_not_settings(tmp_path: Path) -> None:
    """`LEPORELLO_HOME` and variables of other programs are nobody's mistake."""
    load(tmp_path, environ={"LEPORELLO_HOME": "x", "LEPORELLO_DATA": "y", "COMPRESSION__THRESHOLD": "z", "PATH": "/"})


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("compression.enabled", "no", False),
        ("compression.enabled", "TRUE", True),
        ("compression.protect_last_n", "1_000", 1000),
        ("model.context_length", "auto", "auto"),
        ("model.context_length", "32768", 32768),
        ("model.default", "gpt-5", "gpt-5"),
        ("model.default", "null", None),
        ("model.default", "12345", "12345"),
        ("tools.allow", "write_file, git status", ("write_file", "git status")),
        ("tools.allow", "[write_file, 'git status']", ("write_file", "git status")),
        ("plugins.enabled", "[]", ()),
        ("agent.tools", "auto", "auto"),
        ("agent.tools", "read_file,terminal", ("read_file", "terminal")),
        ("prompt_caching.cache_ttl", "1h", "1h"),
    ],
)
def test_text_becomes_its_kind(tmp_path: Path, key: str, text: str, value: Any) -> None:
    """A variable or flag holds text; the setting decides what it means."""
    assert load(tmp_path, environ={variable_for(key): text}).get(key) == value
    assert load(tmp_path, **{key.replace(".", "__"): text}).get(key) == value


def test_sections_of_engines_and_plugins_pass_through(tmp_path: Path) -> None:
    """What belongs to an engine or plugin reaches it as it was written, variables on top."""
    (tmp_path / "plugins" / "context_engine" / "tiny").mkdir(parents=True)
    text = "lcm:\n  depth: 3\n  deep: {a: [1, 2]}\ntiny:\n  x: y\nplugins:\n  enabled: [notes]\n  notes:\n    key: v\n"
    settings = load(tmp_path, text, {"LEPORELLO_LCM__DEPTH": "5", "LEPORELLO_LCM__DEEP__B": "true"})
    assert settings.free_sections["lcm"] == {"depth": 5, "deep": {"a": [1, 2], "b": True}}
    assert settings.free_sections["tiny"] == {"x": "y"}
    assert settings.free_sections["plugins.notes"] == {"key": "v"}
    assert "unheard_of" not in settings.free_sections
    assert settings.plugins.enabled == ("notes",)


def test_an_engine_that_is_not_installed_has_no_section(tmp_path: Path) -> None:
    """Otherwise any mistyped section would pass as somebody's engine."""
    with pytest.raises(ConfigError, match="`tiny`"):
        load(tmp_path, "tiny:\n  x: y\n")
    with pytest.raises(ConfigError, match="`compressor`"):
        load(tmp_path, "compressor:\n  x: y\n")


def test_dotted_keys_in_the_file(tmp_path: Path) -> None:
    """`compression.threshold: 0.4` on one line means the same as two lines."""
    assert load(tmp_path, "compression.threshold: 0.4\n").compression.threshold == 0.4


def test_empty_files_and_sections(tmp_path: Path) -> None:
    """No file, an empty file, only comments, an empty section: all defaults."""
    for text in ("", "# nothing\n", "---\n", "compression:\n", "null\n", "providers:\n", "\ufeffcompression:\n"):
        assert load(tmp_path, text).compression.threshold == 0.5
    assert load_settings(environ={}, home=Home(tmp_path / "missing")).compression.threshold == 0.5


def test_unreadable_files(tmp_path: Path) -> None:
    """Not UTF-8, or a folder where the file should be: one clear error."""
    home = Home(tmp_path)
    home.config_file.write_bytes(b"model:\n  default: \xff\xfe\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(environ={}, home=home)
    home.config_file.unlink()
    home.config_file.mkdir()
    with pytest.raises(ConfigError, match="can't be read"):
        load_settings(environ={}, home=home)


def test_typed_sections(tmp_path: Path) -> None:
    """Components get small typed values; `auto` is None there."""
    text = """
model: {default: big, provider: shop, context_length: 9000}
auxiliary: {compression: {model: small, provider: main}}
providers: {shop: {base_url: "http://127.0.0.1:1/v1/", api_mode: openai_responses, key_env: SHOP_KEY}}
models: {big: {window: 5000}}
tools: {approval: auto, allow: [write_file]}
store: {url: "postgresql://localhost/x"}
"""
    settings = load(tmp_path, text)
    assert (settings.model.default, settings.model.provider, settings.model.context_length) == ("big", "shop", 9000)
    assert settings.model.max_output is None
    assert (settings.summary_model.model, settings.summary_model.provider) == ("small", "main")
    assert settings.provider("shop").base_url == "http://127.0.0.1:1/v1"
    assert settings.provider("shop").api_mode == "openai_responses"
    assert settings.get("models") == {"big": {"window": 5000}}
    assert (settings.tools.approval, settings.tools.allow, settings.tools.names) == ("auto", ("write_file",), None)
    assert settings.store_url == "postgresql://localhost/x"
    assert load(tmp_path).store_url == f"sqlite:///{tmp_path / 'leporello.db'}"


def test_typed_sections_hold_every_value_of_their_section(tmp_path: Path) -> None:
    """The defaults stand in the catalogue and nowhere else; `auto` is None only where the setting knows the word."""
    settings = load(tmp_path, model__default="auto")
    for prefix, section in (
        ("compression", settings.compression),
        ("model", settings.model),
        ("auxiliary.compression", settings.summary_model),
        ("prompt_caching", settings.prompt_caching),
        ("plugins", settings.plugins),
    ):
        raw = {name: settings.get(f"{prefix}.{name}") for name in asdict(section)}
        assert asdict(section) == {name: None if value == "auto" else value for name, value in raw.items()} | (
            {"default": "auto"} if prefix == "model" else {}
        )


def test_unknown_provider_and_key(tmp_path: Path) -> None:
    """Asking for what is not there is told with what is."""
    settings = load(tmp_path)
    with pytest.raises(ConfigError, match="Known: openai, anthropic, openrouter"):
        settings.provider("nobody")
    with pytest.raises(ConfigError, match=r"Did you mean `compression\.threshold`"):
        settings.get("compression.treshold")


_keys = st.sampled_from([setting.name for setting in SETTINGS if not setting.is_pattern])
_yaml_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.lists(st.text())
)


@given(_keys, _yaml_values)
def test_any_value_is_taken_or_refused_kindly(key: str, value: object) -> None:
    """Whatever somebody writes, it is either valid for its setting or a `ConfigError` that names the key."""
    complaint = ""
    try:
        settings = load_settings({key: value}, {}, Home("does-not-exist"))
    except ConfigError as error:
        complaint = str(error)
    if complaint:
        assert f"`{key}`" in complaint
    else:
        kind = next(setting.kind for setting in SETTINGS if setting.name == key)
        assert kind.check(settings.get(key)) == settings.get(key)
