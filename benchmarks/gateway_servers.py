"""Servers for the gateway's benchmarks: the model server, and each proxy before it, as processes of their own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import environment

LITELLM = "litellm[proxy]==1.106.2"
HEADROOM = "headroom-ai[proxy]==0.42.0"
KEY = "local-key"
OPEN = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs."""

    port: int
    pid: int


def model_server() -> AbstractContextManager[Served]:
    """The server of models behind every proxy."""
    return _process([sys.executable, HERE / "gateway_upstream.py"])


@contextmanager
def _process(command: list[object], env: dict[str, str] | None = None, path: str = "") -> Iterator[Served]:
    """A server on a free port, the last argument, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    variables = {"PATH": "/usr/bin:/bin", **(env or {})}
    server = subprocess.Popen(
        [*map(str, command), str(port)], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port, path, server)
        yield Served(port, server.pid)
    finally:
        # What is measured is over: nobody waits for a server that still has work to put in order.
        server.kill()
        server.wait()


def _wait(port: int, path: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1_200):
        if server.poll() is not None:
            raise SystemExit(f"a server ended with code {server.returncode} before it served")
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing serves port {port} {path}")


def leporello(upstream: int, folder: Path) -> AbstractContextManager[Served]:
    """Our gateway."""
    program = Path(sys.executable).with_name("leporello")
    command = [
        program, "--home", folder, "--set", "gateway.rate=10000000", "--set", "gateway.streams=1000",
        "serve", "--upstream", f"http://127.0.0.1:{upstream}", "--port",
    ]  # fmt: skip
    return _process(command, {"HOME": str(folder)})


def litellm(upstream: int, folder: Path) -> AbstractContextManager[Served]:
    """LiteLLM with one model."""
    python = environment(LITELLM)
    config = folder / "config.yaml"
    params = {"model": "openai/gpt-4o", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": KEY}
    config.write_text(json.dumps({"model_list": [{"model_name": "gpt-4o", "litellm_params": params}]}))
    command = [python.with_name("litellm"), "--config", config, "--num_workers", "1", "--host", "127.0.0.1", "--port"]
    return _process(command, {"HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", OPEN: "true"})


def headroom(upstream: int, folder: Path) -> AbstractContextManager[Served]:
    """headroom, told to change nothing."""
    python = environment(HEADROOM)
    env = {
        "HOME": str(folder),
        "OPENAI_TARGET_API_URL": f"http://127.0.0.1:{upstream}",
        "HEADROOM_TELEMETRY": "off",
    }
    return _process([python.with_name("headroom"), "proxy", "--no-optimize", "--no-rate-limit", "--port"], env)
