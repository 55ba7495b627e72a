"""`leporello setup`: what is chosen is tried first, then kept; the key apart, readable by its owner only."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest
import yaml

from leporello.config import Home, load_settings
from leporello.testing.stub_server import Fail, Say
from tests.chat.terminal import Terminal, environment
from tests.conftest import RunCli
from tests.support.strict_server import strict_server

KEY = "entered-by-hand"
BAD_KEY = Fail(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def type_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{KEY}\n".encode())))


def test_a_server_of_your_own(home: Home, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags and a piped key: tried, kept, and `run` works with nothing else."""
    type_key(monkeypatch)
    with strict_server([Say("ready"), Say("Hello.")]) as server:
        url = f"{server.url}/v1"
        ran = run_cli("--home", home.path, "setup", "--base-url", url, "--model", "tiny", "--key-stdin")
        assert ran.code == 0, ran.err
        assert "leporello chat" in ran.out
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert run_cli("--home", home.path, "run", "hello").out.strip() == "Hello."
    written = yaml.safe_load(home.config_file.read_text())
    assert written["model"] == {"default": "tiny", "provider": "server", "base_url": None}
    assert written["providers"]["server"] == {"base_url": url, "api_mode": "openai_chat"}
    assert KEY not in home.config_file.read_text()
    assert yaml.safe_load(home.keys_file.read_text()) == {"server": KEY}
    assert stat.S_IMODE(home.keys_file.stat().st_mode) == 0o600


def test_what_does_not_work_is_not_kept(home: Home, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused key leaves no file behind, and the answer says what to do."""
    type_key(monkeypatch)
    with strict_server([BAD_KEY]) as server:
        arguments = ("setup", "--base-url", f"{server.url}/v1", "--model", "tiny", "--key-stdin")
        ran = run_cli("--home", home.path, *arguments)
    assert ran.code == 1
    assert "refused the key" in ran.err
    assert not home.config_file.exists()
    assert not home.keys_file.exists()


def test_a_known_provider_needs_a_key(home: Home, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one nothing is tried; with one, `--no-test` keeps it unseen."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    ran = run_cli("--home", home.path, "setup", "--provider", "anthropic", "--model", "claude-sonnet-4-5")
    assert ran.code == 2
    assert "--key-stdin" in ran.err
    type_key(monkeypatch)
    arguments = ("--provider", "anthropic", "--model", "claude-sonnet-4-5", "--key-stdin", "--no-test")
    assert run_cli("--home", home.path, "setup", *arguments).code == 0
    settings = load_settings(home=home)
    assert settings.api_key("anthropic") == KEY
    assert settings.model.default == "claude-sonnet-4-5"
    assert settings.model.provider == "anthropic"


def test_half_an_order_is_refused(home: Home, run_cli: RunCli) -> None:
    """A model without a provider, and a provider without a model, say what is missing."""
    assert "--provider" in run_cli("--home", home.path, "setup", "--model", "x").err
    assert "--model" in run_cli("--home", home.path, "setup", "--provider", "openai").err


def test_setting_up_again_replaces_the_model_and_keeps_the_rest(
    home: Home, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment and another setting in config.yaml stay."""
    home.path.mkdir()
    home.config_file.write_text("# mine\ncompression:\n  threshold: 0.6\nmodel:\n  default: old\n")
    type_key(monkeypatch)
    arguments = ("--provider", "openai", "--model", "gpt-4o", "--key-stdin", "--no-test")
    assert run_cli("--home", home.path, "setup", *arguments).code == 0
    text = home.config_file.read_text()
    assert "# mine" in text
    assert load_settings(home=home).compression.threshold == 0.6
    assert load_settings(home=home).model.default == "gpt-4o"


def test_asking_on_a_terminal(tmp_path: Path) -> None:
    """The questions on a real terminal: the key is not echoed, a wrong one can be entered again, models are listed."""
    home = tmp_path / "home"
    home.mkdir()
    models = {"data": [{"id": "small-1"}, {"id": "large-1"}]}
    with strict_server([BAD_KEY, Say("ready")], answers={"/v1/models": models}) as server:
        seen = Terminal(["setup"], env=environment(home), cwd=tmp_path)
        try:
            seen.wait("Which provider should answer?", "Number")
            seen.key("4\n")
            seen.wait("Address")
            seen.key(f"{server.url}/v1\n")
            seen.wait("Its API")
            seen.key("\n")
            seen.wait("Key (not shown; Enter for none)")
            seen.key("wrong-one\n")
            seen.wait("small-1", "large-1", "Model")
            seen.key("small-1\n")
            seen.wait("refused the key")
            seen.wait_count("Key (not shown", 2)
            seen.key(f"{KEY}\n")
            seen.wait_count("Model:", 2)
            seen.key("small-1\n")
            seen.wait("It is ready: leporello chat")
            assert seen.ended() == 0
            assert KEY not in seen.raw
            assert "wrong-one" not in seen.raw
        finally:
            seen.close()
    assert yaml.safe_load((home / "keys.yaml").read_text()) == {"server": KEY}
    assert yaml.safe_load((home / "config.yaml").read_text())["model"]["default"] == "small-1"


def test_nobody_there_to_ask_is_no_success(home: Home, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal and without flags nothing is set up: the ways are told, and the exit code says so."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    ran = run_cli("--home", home.path, "setup")
    assert (ran.code, ran.out) == (2, "")
    assert "Nothing was set up" in ran.err
    assert "--base-url" in ran.err


def test_a_server_that_is_not_there(home: Home, run_cli: RunCli) -> None:
    """The error is about the address, not about a message nobody sent."""
    with strict_server([]) as server:
        gone = f"{server.url}/v1"
    ran = run_cli("--home", home.path, "setup", "--base-url", gone, "--model", "tiny")
    assert ran.code == 1
    assert gone in ran.err
    assert "go on" not in ran.err
    assert "message" not in ran.err
    assert not home.config_file.exists()
