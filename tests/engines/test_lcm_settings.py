"""The section `lcm` of config.yaml: the built-in engine reads it, and what it does not know is never silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello import Conversation
from leporello.config import Home, load_settings
from leporello.engines.lcm import LcmSettings, read_settings
from leporello.summaries.fold import SummaryTree, read_fold
from leporello.testing.sessions import generate
from tests.conftest import RunCli

SESSION = generate(seed=5, messages=200, tokens=40_000, huge_outputs=0).messages


def talk(folder: Path, section: dict[str, Any]) -> Conversation:
    home = Home(folder)
    folder.mkdir(exist_ok=True)
    home.config_file.write_text(json.dumps({"context": {"engine": "lcm"}, "lcm": section}))
    settings = load_settings({}, {}, home)
    return Conversation.open("a", window=24_000, store=f"sqlite:///{folder}/talk.db", settings=settings)


def tree_of(folder: Path, section: dict[str, Any]) -> SummaryTree:
    with talk(folder, section) as conversation:
        assert conversation.runtime.plugins.troubles == []
        conversation.append(*SESSION)
        conversation.compact()
        (tree,) = [
            fold
            for line in conversation.runtime.log.view.lines
            if isinstance(fold := read_fold(line.message), SummaryTree)
        ]
        return tree


def test_a_leaf_stands_for_about_as_many_tokens_as_asked(tmp_path: Path) -> None:
    for asked in (2_000, 4_000, 10_000):
        leaf = tree_of(tmp_path / str(asked), {"leaf_tokens": asked}).nodes[-1]
        assert leaf.level == 1
        assert asked / 2 < leaf.source < asked * 2


def test_no_more_nodes_than_allowed(tmp_path: Path) -> None:
    many, few = {"leaf_tokens": 2_000}, {"leaf_tokens": 2_000, "max_nodes": 3}
    assert len(tree_of(tmp_path / "many", many).nodes) > 3
    assert len(tree_of(tmp_path / "few", few).nodes) <= 3


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"leaf_token": 4_000}, "There is no setting `lcm.leaf_token`; it is ignored. Did you mean `lcm.leaf_tokens`?"),
        ({"fan_in": 4}, "There is no setting `lcm.fan_in`; it is ignored. The engine knows `lcm.leaf_tokens`"),
        (
            {"max_nodes": "many"},
            "`lcm.max_nodes` can't be 'many'; it is ignored: it must be a whole number from 2 to 12",
        ),
        (
            {"leaf_tokens": 3},
            "`lcm.leaf_tokens` can't be 3; it is ignored: it must be a whole number of tokens, at least",
        ),
    ],
)
def test_what_does_not_count_is_warned_about_and_changes_nothing(
    tmp_path: Path, section: dict[str, Any], said: str
) -> None:
    assert read_settings(section)[0] == LcmSettings()
    with talk(tmp_path, section) as conversation:
        (trouble,) = conversation.runtime.plugins.troubles
        assert trouble.startswith(said)


def test_other_engines_do_not_mind_the_section(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.write_text("lcm:\n  nonsense: 1\n")
    url = f"sqlite:///{tmp_path}/talk.db"
    with Conversation.open("a", window=24_000, store=url, settings=load_settings({}, {}, home)) as conversation:
        assert conversation.runtime.plugins.troubles == []


def test_the_compress_command_reads_it_too(tmp_path: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPORELLO_HOME", str(tmp_path))
    (tmp_path / "session.json").write_text(json.dumps(SESSION))
    arguments = ("compress", tmp_path / "session.json", "--window", "24000", "--engine", "lcm")
    plain = run_cli(*arguments)
    (tmp_path / "config.yaml").write_text("lcm:\n  leaf_tokens: 2000\n  deep: 3\n")
    finer = run_cli(*arguments)
    assert (plain.code, finer.code) == (0, 0)
    assert plain.out != finer.out
    assert "no setting `lcm.deep`" in finer.err
    assert "no setting" not in plain.err
