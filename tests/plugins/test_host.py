"""Discovery, selection, one engine for each conversation, trust: exactly what the settings name, and never silently."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import pytest

from leporello.engines.plugin_engine import PluginEngine
from leporello.errors import PluginError
from leporello.events import Outcome
from leporello.plugins.host import PluginStatus
from leporello.testing.sessions import generate
from leporello.turns import validate
from tests.plugins.conftest import House, play
from tests.plugins.spec_sample import TINY

SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages
CHAT = [
    {"role": "user" if number % 2 else "assistant", "content": f"Line {number} of a talk about many things. " * 12}
    for number in range(1, 80)
]


def plugin_engine(talk) -> object:
    assert isinstance(talk.runtime.plugins.engine, PluginEngine)
    return talk.runtime.plugins.engine.hosted.engine


def test_the_sample_of_the_interface_works_as_it_was_typed(house: House) -> None:
    house.write("tiny", TINY)
    conversation = house.talk(context__engine="tiny")
    assert conversation.runtime.plugins.troubles == []
    play(conversation, CHAT)
    report = conversation.compact()
    assert (report.engine, report.outcome, report.warnings) == ("tiny", Outcome.COMMITTED, ())
    assert conversation.messages[:2] == CHAT[:2]
    assert conversation.messages[-10:] == CHAT[-10:]
    assert [schema["name"] for schema in conversation.runtime.plugins.engine.get_tool_schemas()] == ["tiny_grep"]
    assert conversation.runtime.plugins.engine.handle_tool_call("tiny_grep", {"query": "x"}) == '{"results": []}'


def test_what_a_foreign_engine_folded_can_be_opened_undone_and_resumed(house: House) -> None:
    house.write("tiny", TINY)
    with house.talk(context__engine="tiny") as conversation:
        conversation.append(*CHAT)
        before = conversation.messages
        report = conversation.compact()
        assert str(report.covered) == f"m3-m{len(CHAT) - 10}"
        opened = conversation.expand(report.fold, max_tokens=100_000 // 25)
        assert opened["messages"][0]["id"] == "m3"
        folded = conversation.messages
    with house.talk(context__engine="tiny") as again:
        assert again.messages == folded
        again.undo()
        assert again.messages == before


def test_a_class_in_a_folder_is_enough_and_relative_imports_work(house: House) -> None:
    house.sample("steady")
    conversation = house.talk(context__engine="steady", window=8_000)
    play(conversation, SESSION)
    assert conversation.runtime.plugins.troubles == []
    assert conversation.runtime.log.compactions >= 1
    reports = [attempt.report for attempt in conversation.runtime.log.store.views.attempts("a")]
    assert any(report.engine == "steady" and report.committed for report in reports)
    assert validate(conversation.messages) == []


def test_nothing_is_active_unless_the_settings_name_it(house: House) -> None:
    for name in ("steady", "notes"):
        house.sample(name)
    house.write("bad", "raise RuntimeError('loaded although nobody asked')")
    conversation = house.talk()
    assert conversation.runtime.plugins.engine.name == "compressor"
    assert conversation.runtime.plugins.troubles == []
    assert conversation.runtime.plugins.extras.tools == ()
    assert {line.status for line in conversation.runtime.plugins.host.listing() if line.kind != "built in"} == {
        PluginStatus.AVAILABLE
    }


def test_compressor_always_means_the_built_in_one(house: House) -> None:
    house.write("compressor", TINY.replace('"tiny"', '"compressor"'))
    conversation = house.talk(context__engine="compressor")
    assert not isinstance(conversation.runtime.plugins.engine, PluginEngine)
    assert conversation.runtime.plugins.troubles == []


def test_a_folder_comes_before_a_general_plugin_and_both_before_a_built_in(house: House) -> None:
    code = TINY.replace('"tiny"', '"lcm"')
    house.write("general", code, kind="")
    conversation = house.talk("a", context__engine="lcm", plugins__enabled=["general"])
    assert "general" in type(plugin_engine(conversation)).__module__
    house.write("lcm", code)
    conversation = house.talk("b", context__engine="lcm", plugins__enabled=["general"])
    assert "general" not in type(plugin_engine(conversation)).__module__
    assert house.talk("c", context__engine="lcm").runtime.plugins.troubles == []


def test_a_plugin_named_lcm_gets_its_section_unchecked(house: House) -> None:
    made = "    engine = TinyEngine(context_length=200000)\n    engine.section = ctx.config\n"
    code = TINY.replace('"tiny"', '"lcm"').replace("TinyEngine(context_length=200000))", "engine)")
    house.write("lcm", code.replace("def register(ctx):\n", f"def register(ctx):\n{made}"))
    house.home.config_file.write_text("lcm:\n  depth: 3\n  leaf_tokens: many\n", encoding="utf-8")
    conversation = house.talk(context__engine="lcm")
    assert conversation.runtime.plugins.troubles == []
    assert plugin_engine(conversation).section == {"depth": 3, "leaf_tokens": "many"}


BROKEN = {
    "missing": (None, "there is no such engine"),
    "no __init__.py": ("", "has neither a register(ctx)"),
    "a syntax error": ("def", "SyntaxError"),
    "raises when loaded": ("raise OSError('no disk')", "OSError: no disk"),
    "exits when loaded": ("import sys; sys.exit(1)", "SystemExit"),
    "another name": (TINY.replace('"tiny"', '"huge"'), "calls itself 'huge', but the folder says 'broken'"),
    "an abstract engine": (
        "from agent.context_engine import ContextEngine\nclass A(ContextEngine):\n    name = 'broken'\n",
        "has neither a register(ctx)",
    ),
    "registers something else": ("def register(ctx):\n    ctx.register_context_engine(3)\n", "neither a register(ctx)"),
    "a module the host does not have": ("from agent.nothing_here import x", "ModuleNotFoundError"),
}


@pytest.mark.parametrize(("code", "why"), BROKEN.values(), ids=BROKEN)
def test_a_broken_or_missing_engine_is_never_silent(house: House, code: str | None, why: str) -> None:
    if code is not None:
        house.write("broken", code)
    conversation = house.talk(context__engine="broken")
    assert conversation.runtime.plugins.engine.name == "compressor"
    said = [text for text in conversation.runtime.plugins.troubles if why in text]
    assert len(said) == 1
    assert "broken" in said[0]
    assert said[0].endswith("The built-in compressor is used instead.")
    conversation.append(*SESSION)
    assert conversation.compact().outcome is Outcome.COMMITTED
    assert said[0] in conversation.runtime.plugins.troubles, "it is shown until it is mended"
    line = next(line for line in conversation.runtime.plugins.host.listing() if line.name == "broken")
    assert line.status in (PluginStatus.BROKEN, PluginStatus.MISSING)
    assert line.why


def test_a_broken_folder_named_lcm_falls_back_to_the_built_in_lcm(house: House) -> None:
    house.write("lcm", "raise RuntimeError('no')")
    conversation = house.talk(context__engine="lcm")
    assert conversation.runtime.plugins.engine.name == "lcm"
    assert "The built-in lcm is used instead." in conversation.runtime.plugins.troubles[0]


def test_two_conversations_never_share_engine_state(house: House) -> None:
    house.write("tiny", TINY)
    host = house.host(context__engine="tiny")
    one, two = (host.make_engine("tiny") for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.hosted.engine is not two.hosted.engine
    one.hosted.call("update_from_response", {"prompt_tokens": 7})
    assert two.hosted.read("last_prompt_tokens") == 0


def test_an_engine_made_once_for_all_is_made_again_for_each_conversation(house: House) -> None:
    code = TINY.replace("def register", "ENGINE = TinyEngine()\ndef register").replace(
        "ctx.register_context_engine(TinyEngine(context_length=200000))", "ctx.register_context_engine(ENGINE)"
    )
    house.write("tiny", code)
    host = house.host(context__engine="tiny")
    engines = [hosted.hosted.engine for _ in range(3) if (hosted := host.make_engine("tiny"))]
    assert len(engines) == 3
    assert len({id(engine) for engine in engines}) == 3


def test_an_engine_that_is_the_same_object_whatever_one_does_is_refused(house: House) -> None:
    code = TINY.replace(
        "ctx.register", "import json\n    if not hasattr(json, 'odd'): json.odd = TinyEngine()\n    ctx.register"
    )
    house.write("tiny", code.replace("TinyEngine(context_length=200000)", "json.odd"))
    host = house.host(context__engine="tiny")
    try:
        first = host.make_engine("tiny")
        with pytest.raises(PluginError, match="the same engine object"):
            host.make_engine("tiny")
        assert first is not None
    finally:
        del __import__("json").odd


def test_a_second_engine_is_refused_with_a_warning(house: House) -> None:
    house.sample("notes")
    house.write("more", TINY, kind="")
    host = house.host(context__engine="notes", plugins__enabled=["notes", "more"])
    assert any("engine 'tiny' is refused: there is one already ('notes')" in text for text in host.troubles)
    assert host.make_engine("tiny") is None
    hosted = host.make_engine("notes")
    assert hosted is not None
    assert hosted.hosted.engine.name == "notes"


def test_an_enabled_plugin_that_is_not_there_or_fails_is_named(house: House) -> None:
    house.write("bad", "def register(ctx):\n    1 / 0\n", kind="")
    conversation = house.talk(plugins__enabled=["absent", "bad"])
    assert any("'absent'" in text for text in conversation.runtime.plugins.troubles)
    assert any(
        "plugin bad is not loaded" in text and "ZeroDivisionError" in text
        for text in conversation.runtime.plugins.troubles
    )
    states = {line.name: line.status for line in conversation.runtime.plugins.host.listing()}
    assert (states["absent"], states["bad"]) == (PluginStatus.MISSING, PluginStatus.BROKEN)


def test_the_stand_ins_are_seen_by_the_plugin_only(house: House) -> None:
    house.sample("steady")
    house.talk(context__engine="steady")
    assert not [name for name in sys.modules if name.split(".")[0] in ("hermes_cli", "hermes_constants")]
    with pytest.raises(ImportError):
        __import__("agent.context_engine")


def test_imports_inside_functions_find_the_stand_ins_too(house: House) -> None:
    code = TINY.replace(
        "self.compression_count += 1",
        "import agent.context_engine as late; from hermes_constants import get_hermes_home\n"
        "        assert late.ContextEngine is ContextEngine and get_hermes_home().is_dir()",
    )
    house.write("tiny", code)
    conversation = house.talk(context__engine="tiny")
    conversation.append(*CHAT)
    assert conversation.compact().warnings == ()


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
@pytest.mark.parametrize("where", ["__init__.py", ".", "..", "../.."])
def test_a_world_writable_place_is_not_trusted_without_the_flag(house: House, where: str) -> None:
    folder = house.write("tiny", TINY)
    (folder / where).resolve().chmod(0o777)
    conversation = house.talk("a", context__engine="tiny")
    assert conversation.runtime.plugins.engine.name == "compressor"
    assert "can be written by anybody" in conversation.runtime.plugins.troubles[0]
    assert "plugins.allow_unsafe_folders" in conversation.runtime.plugins.troubles[0]
    trusted = house.talk("b", context__engine="tiny", plugins__allow_unsafe_folders=True)
    assert trusted.runtime.plugins.engine.name == "tiny"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_not_trusted(house: House) -> None:
    folder = house.write("tiny", TINY)
    os.chown(folder / "__init__.py", 12345, 12345)
    conversation = house.talk("a", context__engine="tiny")
    assert "belongs to another user" in conversation.runtime.plugins.troubles[0]


def test_no_compiled_files_are_left_in_plugin_folders(house: House) -> None:
    folder = house.sample("steady")
    house.talk(context__engine="steady")
    assert not list(folder.rglob("*.pyc"))


def test_threads_of_closed_conversations_end(house: House) -> None:
    before = set(threading.enumerate())
    house.write("tiny", TINY)
    for number in range(3):
        house.talk(f"c{number}", context__engine="tiny").close()
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


def test_an_installed_distribution_brings_an_engine(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found through its entry point, loaded only when the settings name it."""
    site = tmp_path / "site"
    about = site / "leporello_far-2.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: leporello-far\nVersion: 2.0\nSummary: From afar\n")
    (about / "entry_points.txt").write_text("[leporello.context_engines]\nfar = leporello_far:FarEngine\n")
    code = TINY.replace("agent.context_engine", "leporello.engines.base").replace("TinyEngine", "FarEngine")
    (site / "leporello_far.py").write_text(code.replace('"tiny"', '"far"'))
    monkeypatch.syspath_prepend(str(site))
    line = next(line for line in house.host().listing() if line.name == "far")
    assert (line.version, line.description, line.where) == ("2.0", "From afar", "package leporello-far")
    assert "leporello_far" not in sys.modules
    conversation = house.talk(context__engine="far")
    assert (conversation.runtime.plugins.engine.name, conversation.runtime.plugins.troubles) == ("far", [])


def test_a_plugin_gets_its_own_section_of_the_settings(house: House) -> None:
    code = TINY.replace("ctx.register", "assert ctx.config == {'depth': 3}, ctx.config\n    ctx.register")
    house.write("tiny", code)
    house.write("other", code, kind="")
    house.home.config_file.write_text(
        "tiny:\n  depth: 3\nplugins:\n  enabled: [other]\n  other:\n    depth: 3\ncontext:\n  engine: tiny\n"
    )
    conversation = house.talk()
    assert (conversation.runtime.plugins.engine.name, conversation.runtime.plugins.troubles) == ("tiny", [])
