"""Changing one setting in config.yaml leaves everything else in the file as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leporello.config import Home, load_settings
from leporello.config.config_file import changed, write_setting
from leporello.errors import ConfigError

FILE = """\
# my settings
compression:
  threshold: 0.4   # early
  # keep many
  protect_last_n: 30

model: {default: big}
plugins:
  enabled:
    - one
    - two
"""


def test_a_value_is_replaced_in_place() -> None:
    """The comment behind it and every other line stay."""
    assert changed(FILE, "compression.threshold", 0.7) == FILE.replace("0.4", "0.7")


def test_a_value_is_added_to_its_section() -> None:
    """No line that was there is lost or changed."""
    for key, value in (("compression.deadline", 5.0), ("context.engine", "lcm"), ("model.provider", "openai")):
        new = changed(FILE, key, value)
        assert [line for line in FILE.splitlines() if "model:" not in line and line not in new.splitlines()] == []
        assert "# keep many" in new


def test_a_list_in_lines_is_replaced_and_nothing_else() -> None:
    """The parser counts the comments behind such a list as part of it; they belong to what comes next."""
    before = "tools:\n  allow:  # mine\n  - git status\n  - ls\n\n  # outside\n  paths: [/srv]\n# the end\n"
    after = "tools:\n  allow: [pwd]  # mine\n\n  # outside\n  paths: [/srv]\n# the end\n"
    assert changed(before, "tools.allow", ("pwd",)) == after
    texts = "models:\n  a:\n    note: |\n      two\n      lines\n# the end\n"
    assert changed(texts, "models", {}) == "models: {}\n# the end\n"


def test_lists_and_new_files(tmp_path: Path) -> None:
    """Lists are replaced whole; a file that is not there is made."""
    assert yaml.safe_load(changed(FILE, "plugins.enabled", ("three",)))["plugins"] == {"enabled": ["three"]}
    home = Home(tmp_path / "new")
    write_setting(home, "context.engine", "lcm")
    write_setting(home, "compression.enabled", "no")
    settings = load_settings(environ={}, home=home)
    assert (settings.get("context.engine"), settings.compression.enabled) == ("lcm", False)
    assert [path.name for path in home.path.iterdir()] == ["config.yaml"]


def test_a_bad_change_changes_nothing(tmp_path: Path) -> None:
    """Unknown key, bad value, or a file that can't be edited: an error, and the file as it was."""
    home = Home(tmp_path)
    home.config_file.write_text(FILE)
    for key, value in (("compression.treshold", 0.5), ("compression.threshold", 7)):
        with pytest.raises(ConfigError):
            write_setting(home, key, value)
    assert home.config_file.read_text() == FILE
    broken = "compression: [\n"
    home.config_file.write_text(broken)
    with pytest.raises(ConfigError, match="by hand"):
        write_setting(home, "context.engine", "lcm")
    assert home.config_file.read_text() == broken


_documents = st.sampled_from(
    [
        FILE,
        "",
        "# only a comment",
        "compression:\n",
        "compression:\nmodel:\n  default: a\n",
        "compression: {}\n",
        "compression: {threshold: 0.2, enabled: true}\n",
        "compression:\n    threshold: 0.2\n    enabled: true\n",
        "auxiliary:\n  compression:\n    model: x",
        "auxiliary:\n  compression:\n",
        "model:\n  default: |\n    folded\n    text\ncompression:\n  threshold: 0.1\n",
        "model:\n  default: 'quoted # text'\n",
        "tools:\n  allow:\n  - a\n  # of tools\n  paths: []\nmodels:\n  a:\n    window: 1\n",
        "---\nmodel:\n  default: x\n",
    ]
)
_changes = st.sampled_from(
    [
        ("compression.threshold", 0.9),
        ("compression.enabled", False),
        ("context.engine", "a: b #c"),
        ("model.default", None),
        ("model.default", '日本 "x"'),
        ("auxiliary.compression.model", "m"),
        ("tools.allow", ("a", "b c")),
        ("providers.mine.base_url", "http://h"),
        ("models", {"a": {"window": 5}}),
    ]
)


@given(_documents, st.lists(_changes, min_size=1, max_size=6))
def test_changes_add_up(text: str, changes: list[tuple[str, object]]) -> None:
    """After any changes to any file, exactly the named keys differ: `changed` itself refuses anything else."""
    expected = yaml.safe_load(text) or {}
    for key, value in changes:
        text = changed(text, key, value)
        place = expected
        *path, last = key.split(".")
        for part in path:
            place[part] = place.get(part) or {}
            place = place[part]
        place[last] = list(value) if isinstance(value, tuple) else value
    assert yaml.safe_load(text) == expected
