"""`leporello plugins`: what is there and why not, choosing an engine, examining one, installing ours elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pexpect
import pytest
import yaml

from tests.conftest import RunCli
from tests.plugins.conftest import House
from tests.plugins.spec_sample import TINY


@pytest.fixture
def plugins(house: House, run_cli: RunCli):
    def run(*arguments: object):
        return run_cli("--home", house.home.path, "plugins", *arguments)

    return run


def test_the_list_shows_states_and_reasons(house: House, plugins) -> None:
    house.sample("steady")
    house.sample("notes")
    house.write("broken", "import nothing_of_that_name")
    house.home.config_file.write_text("context:\n  engine: broken\n")
    ran = plugins("list", "--json")
    lines = {line["name"]: line for line in json.loads(ran.out)}
    assert lines["compressor"]["kind"] == "built in"
    assert (lines["steady"]["version"], lines["steady"]["status"]) == ("1.2.0", "available")
    assert lines["notes"]["why"] == "plugins.enabled does not name it"
    assert lines["broken"]["status"] == "broken"
    assert "nothing_of_that_name" in lines["broken"]["why"]
    shown = plugins("list")
    assert "Keeps the newest messages" in shown.out
    assert "nothing_of_that_name" in shown.out


def test_use_loads_the_engine_before_it_is_written_down(house: House, plugins) -> None:
    house.write("tiny", TINY)
    house.write("broken", "1 / 0")
    assert plugins("use", "tiny").code == 0
    assert yaml.safe_load(house.home.config_file.read_text()) == {"context": {"engine": "tiny"}}
    for name, why in (("broken", "ZeroDivisionError"), ("absent", "There is no engine 'absent'")):
        ran = plugins("use", name)
        assert ran.code != 0
        assert why in ran.err
        assert yaml.safe_load(house.home.config_file.read_text()) == {"context": {"engine": "tiny"}}
    assert plugins("use", "lcm").code == 0
    assert plugins("use", "compressor").code == 0


def test_enable_loads_the_plugin_before_it_is_written_down_and_disable_takes_it_back(house: House, plugins) -> None:
    house.write("notes", "def register(ctx): pass", kind="")
    house.write("bad", "1 / 0", kind="")
    house.write("tiny", TINY)
    assert plugins("enable", "notes").code == 0
    assert yaml.safe_load(house.home.config_file.read_text()) == {"plugins": {"enabled": ["notes"]}}
    refused = (("bad", "ZeroDivisionError"), ("absent", "There is no plugin 'absent'"), ("tiny", "plugins use tiny"))
    for name, why in refused:
        ran = plugins("enable", name)
        assert ran.code != 0
        assert why in ran.err
        assert yaml.safe_load(house.home.config_file.read_text()) == {"plugins": {"enabled": ["notes"]}}
    assert "plugins enable notes" in plugins("use", "notes").err
    assert plugins("disable", "notes").code == 0
    assert yaml.safe_load(house.home.config_file.read_text()) == {"plugins": {"enabled": []}}
    assert plugins("disable", "notes").code == 3


def test_doctor_names_the_promises_that_are_broken(house: House, plugins) -> None:
    house.write("tiny", TINY)
    ran = plugins("doctor", "tiny", "--json")
    found = json.loads(ran.out)
    broken = {line["promise"]: line["why"] for line in found["promises"] if not line["kept"]}
    assert ran.code == 4
    assert found["broken"] == len(broken) < len(found["promises"])
    assert "a provider would refuse it" in broken["the result is a list that providers accept"]
    assert "usage lands in the counters" in broken, "the sample keeps only one of the three counters"


def test_doctor_copes_with_engines_that_exit_or_can_not_be_loaded(house: House, plugins) -> None:
    leaves = TINY.replace('"tiny"', '"gone"').replace("self.compression_count += 1", "__import__('os')._exit(5)")
    house.write("gone", leaves)
    ran = plugins("doctor", "gone")
    assert (ran.code, "the plugin ended the program" in ran.out) == (4, True)
    house.write("bad", "1 / 0")
    ran = plugins("doctor", "bad")
    assert (ran.code, "ZeroDivisionError" in ran.err) == (2, True)


def test_the_picker_asks_on_a_terminal(house: House) -> None:
    house.write("tiny", TINY)
    program = str(Path(sys.executable).with_name("leporello"))
    child = pexpect.spawn(program, ["--home", str(house.home.path), "plugins"], encoding="utf-8", timeout=60)
    child.expect("3  tiny")
    child.expect("Which engine")
    child.sendline("3")
    child.expect("context.engine is tiny now")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()
    assert yaml.safe_load(house.home.config_file.read_text()) == {"context": {"engine": "tiny"}}


@pytest.mark.parametrize("key", ["q", "\x1b"])
def test_the_picker_can_be_left(house: House, key: str) -> None:
    program = str(Path(sys.executable).with_name("leporello"))
    child = pexpect.spawn(program, ["--home", str(house.home.path), "plugins"], encoding="utf-8", timeout=60)
    child.expect("q leaves")
    child.sendline(key)
    child.expect("Nothing was changed")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()
    assert child.exitstatus == 0
    assert not house.home.config_file.exists()


def test_install_writes_a_folder_and_never_over_a_strangers(tmp_path: Path, run_cli: RunCli) -> None:
    home = tmp_path / "hermes"
    for _ in range(2):
        ran = run_cli("plugins", "install", "--host", "hermes", "--home", home)
        assert ran.code == 0
        assert "engine: leporello" in ran.out
    folder = home / "plugins" / "leporello"
    assert sorted(path.name for path in folder.iterdir()) == ["__init__.py", "plugin.yaml"]
    (folder / "__init__.py").write_text("# mine")
    ran = run_cli("plugins", "install", "--host", "hermes", "--home", home)
    assert ran.code == 2
    assert (folder / "__init__.py").read_text() == "# mine"
