"""Real coding clients through the gateway: how often their prompt cache breaks, and whether they wait.

Each client runs one task without a person: a model server that refuses what the vendors refuse plays a model that reads
one file after the other. What reaches it is billed by the vendor's cache rules. Clients that are not installed are
left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.gateway_servers import leporello
from benchmarks.table import table
from leporello.billing import CacheSim, PromptReader
from leporello.caching import without_marks
from leporello.config import Home
from leporello.models import model_facts
from leporello.store import open_store
from leporello.testing.stub_server import Say, Seen
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage
from tests.support.strict_server import strict_server

ROOT = Path(__file__).resolve().parent.parent
STEPS = 150
LINES = 80
TASK = "Read the sources in this folder one after the other and tell at the end what is in them."
SECONDS_PER_CALL = 10.0
MOST_SECONDS = 1_500
BESIDE = ("threshold", "late summary")
"""Triggers of compactions that no request waits for."""


@dataclass(frozen=True, slots=True)
class Client:
    """How a client is told where the gateway is, and what it is asked to do."""

    program: str
    model: str
    tool: str
    """By which it runs a command."""
    command: Sequence[str]
    configure: Callable[[Path, str], None]
    """Writes its settings into a home, for an address."""
    argument: str = "command"


def _codex(home: Path, address: str) -> None:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model_provider = "gate"\nmodel = "gpt-5-codex"\napproval_policy = "never"\n'
        'sandbox_mode = "danger-full-access"\n'
        f'[model_providers.gate]\nname = "Gate"\nbase_url = "{address}/v1"\nenv_key = "OPENAI_API_KEY"\n'
        'wire_api = "responses"\n'
    )


def _pi(home: Path, address: str) -> None:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    models = [{"id": "claude-sonnet-4-5", "contextWindow": 200_000, "maxTokens": 32_000}]
    gate = {"baseUrl": address, "api": "anthropic-messages", "apiKey": "ANTHROPIC_API_KEY", "models": models}
    (folder / "models.json").write_text(json.dumps({"providers": {"gate": gate}}))


def _opencode(home: Path, address: str) -> None:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    gate = {
        "npm": "@ai-sdk/anthropic",
        "options": {"baseURL": f"{address}/v1", "apiKey": "local-key"},
        "models": {"claude-sonnet-4-5": {"limit": {"context": 200_000, "output": 32_000}}},
    }
    permission = {"*": "allow"}
    (folder / "opencode.json").write_text(json.dumps({"provider": {"gate": gate}, "permission": permission}))


CLAUDE = "claude-sonnet-4-5"
CLIENTS: dict[str, Client] = {
    "Claude Code": Client(
        "claude", CLAUDE, "Bash", ("-p", TASK, "--model", CLAUDE, "--allowedTools", "Bash"), lambda home, address: None
    ),
    "Codex": Client("codex", "gpt-5-codex", "exec_command", ("exec", "--skip-git-repo-check", TASK), _codex, "cmd"),
    "pi": Client("pi", CLAUDE, "bash", ("-p", "--provider", "gate", "--model", CLAUDE, TASK), _pi),
    "opencode": Client("opencode", CLAUDE, "bash", ("run", "-m", f"gate/{CLAUDE}", TASK), _opencode),
}


class ReadingModel:
    """Answers as a model would that reads one piece of a source after the other."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._pieces = _pieces(folder)
        self._done = 0

    def __call__(self, seen: Seen) -> Say:
        body: Mapping[str, Any] = seen.body
        usage = CanonicalUsage(input_tokens=len(seen.raw) // 4, output_tokens=60)
        if not offers(body, self._client.tool):
            return Say("Reading sources", usage=usage)
        if self._done >= STEPS:
            return Say("These are the sources of a context runtime.", usage=usage)
        name, first = self._pieces[self._done % len(self._pieces)]
        self._done += 1
        told = f"Next comes {name}, from line {first}."
        command = f"sed -n '{first},{first + LINES - 1}p' {name}"
        arguments = {self._client.argument: command}
        if self._client.tool in ("Bash", "bash"):
            arguments["description"] = told
        return Say(told, ((self._client.tool, json.dumps(arguments)),), usage=usage)


def offers(body: Mapping[str, Any], tool: str) -> bool:
    """Whether a request is one of the conversation itself, and none that asks for a title."""
    return any(tool in (one.get("name"), one.get("function", {}).get("name")) for one in body.get("tools", ()))


def _pieces(folder: Path) -> list[tuple[str, int]]:
    files = sorted(folder.rglob("*.py"))
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    return [(str(path.relative_to(folder)), at) for path in files for at in range(1, sizes[path] + 1, LINES)]


def run(names: Sequence[str] = tuple(CLIENTS)) -> str:
    """One row for each client that is installed."""
    rows = [_row(name, CLIENTS[name]) for name in names if shutil.which(CLIENTS[name].program)]
    header = [
        "client",
        "requests",
        "refused",
        "mean prompt",
        "compactions",
        "waits",
        "cache breaks",
        "fewest requests between two",
    ]
    return f"{STEPS} tool calls each, `balanced`:\n\n" + table(header, rows)


def _row(name: str, client: Client) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="leporello-client-") as made:
        folder = Path(made)
        work, home, gate = folder / "work", folder / "home", folder / "gate"
        shutil.copytree(ROOT / "src" / "leporello", work, ignore=shutil.ignore_patterns("__pycache__"))
        home.mkdir()
        gate.mkdir()
        model = ReadingModel(client, work)
        with strict_server(iter(lambda: model, None)) as server:
            port = int(server.url.rpartition(":")[2])
            with leporello(port, gate) as served:
                address = f"http://127.0.0.1:{served.port}"
                client.configure(home, address)
                _run(client, work, home, address)
            requests = list(server.requests)
        return [name, *_figures(client, requests, gate)]


def _run(client: Client, work: Path, home: Path, address: str) -> None:
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "local-key",
        "OPENAI_API_KEY": "local-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    program = shutil.which(client.program)
    done = subprocess.run(
        [str(program), *client.command],
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{client.program} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")


def _figures(client: Client, requests: Sequence[Seen], gate: Path) -> list[str]:
    facts = model_facts(client.model)
    cache, reader = CacheSim(facts.cache), PromptReader(TokenCounter.for_model(client.model))
    sizes: list[int] = []
    breaks: list[int] = []
    cached = 0
    for seen in requests:
        if seen.dialect is None or seen.violations or not offers(seen.body, client.tool):
            continue
        decoded = seen.dialect.decode_request(seen.body, "")
        prompt = reader.read(without_marks(decoded.messages), decoded.tools, decoded.messages)
        bill = cache.bill(prompt, len(sizes) * SECONDS_PER_CALL)
        if bill.read < cached:
            breaks.append(len(sizes))
        cached = bill.read + bill.write
        sizes.append(bill.prompt)
    triggers = _triggers(gate)
    apart = [later - earlier for earlier, later in pairwise(breaks)]
    return [
        f"{len(sizes)}",
        f"{sum(bool(seen.violations) for seen in requests)}",
        f"{sum(sizes) / max(1, len(sizes)) / 1000:.1f}K",
        f"{triggers.total()}",
        f"{sum(count for trigger, count in triggers.items() if trigger not in BESIDE)}",
        f"{len(breaks)}",
        f"{min(apart, default=0)}",
    ]


def _triggers(gate: Path) -> Counter[str]:
    """Compactions that were committed, by what caused them."""
    with open_store(Home(gate).store_url) as store:
        return Counter(
            attempt.report.trigger
            for record in store.conversations.page().conversations
            for attempt in store.views.attempts(record.id, 1_000)
            if attempt.report.committed
        )
