"""The server process and the provider on it: private, restarted when it dies, gone when its program is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.agent.endpoints import choose_model
from leporello.config import Home, load_settings
from leporello.local import (
    SMOLLM2,
    LocalModelError,
    LocalProvider,
    LocalServer,
    ServerJob,
    find_runtime,
    local_provider,
)
from leporello.providers.base import ModelRequest
from tests.conftest import RunCli

START_AND_WAIT = """
import sys, time
from pathlib import Path
from leporello.local import LocalServer, ServerJob
server = LocalServer.start(ServerJob(Path(sys.argv[1]), 512, sys.argv[2]))
print(server.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether the process still runs; one that has ended and was not fetched yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def status(url: str, key: str = "") -> int:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.fixture
def home(models: Path, tmp_path: Path) -> Home:
    """A home whose models are those in build/."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models)
    return Home(tmp_path / "home")


@pytest.fixture
def provider(home: Home) -> Iterator[LocalProvider]:
    made = local_provider(home.models_dir)
    yield made
    made.close()


def test_it_listens_for_its_owner_only(server: LocalServer) -> None:
    """On loopback, behind a key, without the page that shows conversations; Ctrl-C does not reach it."""
    assert server.url.startswith("http://127.0.0.1:")
    assert status(f"{server.url}/props", server.key) == 200
    assert status(f"{server.url}/props") == 401
    assert status(f"{server.url}/slots", server.key) != 200
    arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert server.key.encode() not in arguments
    assert os.getpgid(server.pid) != os.getpgid(0)


def test_it_dies_with_its_program(models: Path) -> None:
    """Even when that is killed and can clean up nothing."""
    command = [sys.executable, "-c", START_AND_WAIT, str(models / SMOLLM2.name), find_runtime(models) or ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        assert alive(pid)
        program.kill()
        program.wait()
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(pid)


def test_a_file_that_is_no_model_says_so(models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(LocalModelError, match="did not start"):
        LocalServer.start(ServerJob(broken, 512, find_runtime(models) or ""))


def test_a_dead_server_is_started_again(provider: LocalProvider) -> None:
    """The first call starts it, the next one uses it, and a crash costs a new start, not the program."""
    request = ModelRequest("local", [{"role": "user", "content": "Say yes."}], max_tokens=2)
    assert provider.server is None
    provider.complete(request)
    first = provider.server
    assert first is not None
    provider.complete(request)
    assert provider.server is first
    os.kill(first.pid, signal.SIGKILL)
    while first.running:
        time.sleep(0.02)
    assert provider.complete(request).usage.output_tokens > 0
    second = provider.server
    assert second is not None
    assert second.pid != first.pid
    provider.close()
    assert not second.running


def test_without_the_setup_the_way_to_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="leporello setup --local"):
        choose_model(load_settings(home=Home(tmp_path)), "local")


def test_setup_shows_the_ways_to_a_model(run_cli: RunCli) -> None:
    ran = run_cli("setup")
    assert ran.code == 2  # nothing was set up
    for way in ("ANTHROPIC_API_KEY", "model.base_url", "setup --local"):
        assert way in ran.err


def test_setup_tries_what_it_fetched(home: Home, run_cli: RunCli) -> None:
    ran = run_cli("--home", home.path, "setup", "--local", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert not told["fetched"]
    assert "Paris" in told["answer"]


def test_run_and_resume_with_nothing_else(home: Home, run_cli: RunCli) -> None:
    """No key, no address, no tools offered; the second run goes on where the first one ended."""
    brief = ("--home", home.path, "--set", "model.max_output=8", "run", "--model", "local", "--json")
    first = run_cli(*brief, "Say yes.")
    assert first.code in (0, 1), first.err  # an answer cut at eight tokens ends with 1
    again = run_cli(*brief, "--continue", "Say no.")
    calls = [event for event in map(json.loads, again.out.splitlines()) if event["event"] == "call"]
    assert len(calls) == 1
    usage = run_cli("--home", home.path, "run", "--model", "local", "--continue", "/usage")
    assert usage.out.startswith("2 calls")
    context = run_cli("--home", home.path, "run", "--model", "local", "--continue", "/context --explain")
    assert "8,192" in context.out
