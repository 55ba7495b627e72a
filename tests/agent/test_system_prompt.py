"""The system prompt: the same bytes for a session's life, and the only place where memory and project files stand."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from leporello.agent.system_prompt import PromptSources, SystemPrompt, build_system_prompt, project_files, skills

ALL_TOOLS = ("read_file", "terminal", "todo", "memory", "lcm_grep", "lcm_describe", "lcm_expand")


@pytest.fixture
def sources(tmp_path: Path) -> PromptSources:
    for folder in ("repo/.git", "repo/pkg", "memory", "skills"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "repo" / "AGENTS.md").write_text("Use tabs.\n")
    (tmp_path / "repo" / "pkg" / "CLAUDE.md").write_text("In pkg: use spaces.\n")
    (tmp_path / "memory" / "MEMORY.md").write_text("- The build needs Node 22.\n")
    (tmp_path / "memory" / "USER.md").write_text("- Prefers short answers.\n")
    (tmp_path / "skills" / "release.md").write_text("# Making a release\n\nHow versions are tagged.\n\n1. ...\n")
    return PromptSources(
        workdir=tmp_path / "repo" / "pkg",
        memory=tmp_path / "memory",
        today=date(2026, 3, 1),
        tools=ALL_TOOLS,
        skills=(tmp_path / "skills",),
        window=200_000,
    )


def test_it_holds_everything_the_agent_must_know(sources: PromptSources) -> None:
    text = build_system_prompt(sources).text
    assert text.index("Use tabs.") < text.index("In pkg: use spaces.") < text.index("Node 22")
    assert "Prefers short answers." in text
    load = f'read_file(path="{sources.skills[0]}/release.md")'
    assert f"- Making a release: How versions are tagged. Load: {load}" in text
    assert f"Working directory: {sources.workdir}" in text
    assert "2026-03-01" in text


def test_the_same_sources_give_the_same_bytes(sources: PromptSources) -> None:
    assert build_system_prompt(sources) == build_system_prompt(sources)


BUILD = """
import json, sys
from datetime import date
from pathlib import Path
from leporello.agent.system_prompt import PromptSources, build_system_prompt
root = Path(sys.argv[1])
tools, skills = tuple(sys.argv[2:]), (root / "skills",)
given = PromptSources(root / "repo/pkg", root / "memory", date(2026, 3, 1), tools, skills, 200_000)
print(json.dumps(build_system_prompt(given).as_dict()))
"""


def test_another_process_builds_the_same_bytes(sources: PromptSources) -> None:
    """Nothing depends on hash seeds, clocks, or the order in which a folder is listed."""
    root = sources.memory.parent
    for seed in ("1", "2"):
        command = [sys.executable, "-c", BUILD, str(root), *ALL_TOOLS]
        ran = subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        assert SystemPrompt.from_dict(json.loads(ran.stdout)) == build_system_prompt(sources)


def test_before_the_first_compression_there_is_one_plain_text(sources: PromptSources) -> None:
    prompt = build_system_prompt(sources)
    assert prompt.message() == {"role": "system", "content": prompt.text}


def test_the_note_is_a_block_behind_the_unchanged_part(sources: PromptSources) -> None:
    before = build_system_prompt(sources)
    after = before.after_compression(sources)
    cached, note = after.message()["content"]
    assert cached == {"type": "text", "text": before.text}
    assert "compacted into a handoff" in note["text"]
    assert "authoritative" in note["text"]
    assert after.after_compression(sources) == after


def test_only_changed_memory_rebuilds_and_only_at_a_compression(sources: PromptSources) -> None:
    first = build_system_prompt(sources)
    (sources.workdir / "CLAUDE.md").write_text("changed")
    later = replace(sources, today=date(2026, 3, 2))
    assert first.after_compression(later).text == first.text
    (sources.memory / "MEMORY.md").write_text("- The build needs Node 24.\n")
    rebuilt = first.after_compression(later)
    assert "Node 24" in rebuilt.text
    assert "Node 22" not in rebuilt.text
    assert "2026-03-02" in rebuilt.text
    assert rebuilt.note


@pytest.mark.parametrize("name", ["MEMORY.md", "USER.md"])
@pytest.mark.parametrize("change", ["new", "gone", "appended"])
def test_every_change_of_a_memory_file_is_noticed(sources: PromptSources, name: str, change: str) -> None:
    first = build_system_prompt(sources)
    path = sources.memory / name
    if change == "gone":
        path.unlink()
    else:
        path.write_text("other" if change == "new" else path.read_text() + "- more\n")
    assert first.after_compression(sources).text != first.text


def test_a_resumed_session_has_the_same_prompt_whatever_changed_on_disk(sources: PromptSources) -> None:
    prompt = build_system_prompt(sources).after_compression(sources)
    (sources.memory / "MEMORY.md").write_text("other")
    assert SystemPrompt.from_dict(json.loads(json.dumps(prompt.as_dict()))) == prompt


def test_sections_stand_only_where_their_tools_can_be_called(sources: PromptSources) -> None:
    text = build_system_prompt(replace(sources, tools=())).text
    for word in ("`todo`", "lcm_grep", "`memory`", "Making a release"):
        assert word not in text
    assert "cat " in build_system_prompt(replace(sources, tools=("terminal",))).text


def test_a_small_window_gets_a_small_prompt(sources: PromptSources) -> None:
    (sources.workdir / "CLAUDE.md").write_text("x" * 100_000)
    (sources.memory / "MEMORY.md").write_text("- " + "y" * 100_000)
    assert len(build_system_prompt(replace(sources, window=2_048)).text) < 3_000
    assert len(build_system_prompt(replace(sources, window=8_000)).text) < 7_000
    whole = build_system_prompt(sources).text
    assert len(whole) < 70_000
    assert "the file goes on; read the rest in" in whole


def test_nothing_at_all_still_gives_a_prompt(tmp_path: Path) -> None:
    nothing = PromptSources(tmp_path, tmp_path / "none", date(2026, 1, 1))
    text = build_system_prompt(replace(nothing, tools=("read_file",))).text
    assert "# How to work" in text
    assert "Memory" not in text
    assert "Project instructions" not in text


@pytest.mark.parametrize("window", [8_000, 200_000])
def test_without_tools_it_does_not_speak_of_tools(sources: PromptSources, window: int) -> None:
    """A model that can call nothing would only pretend to."""
    text = build_system_prompt(replace(sources, tools=(), window=window)).text
    text = text.replace(str(sources.memory.parent), "")
    assert text.startswith("You are a helpful assistant.")
    assert "tool" not in text
    assert "lcm_" not in text


def test_host_instructions_are_taken_as_they_are(sources: PromptSources) -> None:
    assert "Speak like a pirate." in build_system_prompt(replace(sources, instructions="Speak like a pirate.\n")).text


def test_no_prompt_warns_of_a_full_context(sources: PromptSources) -> None:
    """Such warnings make models give up early."""
    text = build_system_prompt(sources).after_compression(sources).message()["content"]
    for word in ("context window", "running out", "getting full", "token"):
        assert word not in json.dumps(text)


def test_linked_and_repeated_project_files_count_once(sources: PromptSources) -> None:
    root = sources.workdir.parent
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / ".cursorrules").write_text("Use tabs.\n")
    found = project_files(sources.workdir, 40_000)
    assert [file.path.name for file in found] == ["AGENTS.md", "CLAUDE.md"]
    assert [file.text for file in found] == ["Use tabs.", "In pkg: use spaces."]


def test_a_project_can_not_pull_in_files_from_outside(sources: PromptSources, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("canary-private")
    (sources.workdir / "AGENTS.md").symlink_to(tmp_path / "private")
    assert "canary-private" not in build_system_prompt(sources).text


def test_deeper_files_are_the_last_to_be_left_out(sources: PromptSources) -> None:
    root = sources.workdir.parent
    (root / "AGENTS.md").write_text("top " * 100)
    (root / "CLAUDE.md").write_text("mid " * 100)
    (sources.workdir / "CLAUDE.md").write_text("low " * 100)
    found = project_files(sources.workdir, 900)
    assert ["left out" in file.text for file in found] == [True, False, False]


def test_titles_of_skills(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: Deploying\ndescription: To the staging server.\n---\n# Other\n")
    (tmp_path / "b.md").write_text("just text\nand more")
    (tmp_path / "c.md").write_text("---\nbroken: [\n---\n# C\n")
    (tmp_path / "d.md").write_text("")
    (tmp_path / "e.txt").write_text("# no skill")
    found = [(skill.title, skill.summary) for skill in skills([tmp_path, tmp_path / "none"])]
    assert found == [("Deploying", "To the staging server."), ("b", "just text"), ("C", "")]
