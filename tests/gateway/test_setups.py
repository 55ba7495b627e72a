"""The set-ups of docs/guides/gateway.md: environment variables alone send an unchanged client through the gateway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from leporello.store import open_store
from leporello.testing.stub_server import Say
from tests.support.strict_server import strict_server

from .house import opened

PROGRAM = Path(sys.executable).with_name("leporello")
PROGRAMS = {
    "claude": (
        {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "any"},
        "import anthropic; said = [{'role': 'user', 'content': 'Hello'}]; client = anthropic.Anthropic(); "
        "print(client.messages.create(model='claude-sonnet-5', max_tokens=9, messages=said).content[0].text)",
    ),
    "codex": (
        {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "any"},
        "import openai; print(openai.OpenAI().responses.create(model='gpt-5', input='Hello', store=False).output_text)",
    ),
    "openai": (
        {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "any"},
        "import openai; said = [{'role': 'user', 'content': 'Hello'}]; "
        "print(openai.OpenAI().chat.completions.create(model='gpt-4o', messages=said).choices[0].message.content)",
    ),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_environment_is_enough(tmp_path: Path, kind: str) -> None:
    """A program that knows nothing of the gateway gets its answer through it."""
    variables, code = PROGRAMS[kind]
    with opened(tmp_path, [Say("Through the gateway.")]) as house:
        env = {**os.environ, **{name: value.format(url=house.url) for name, value in variables.items()}}
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == "Through the gateway."
        assert house.gateway.metrics.registry.get_sample_value(
            "leporello_request_seconds_count", {"route": house.model_calls[0].path}
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_the_program_itself(tmp_path: Path, workers: int) -> None:
    """`leporello serve` as a process: it starts, serves, and ends on a signal with what it knew written down."""
    with strict_server([Say("One."), Say("Two.")]) as stub:
        command = [
            PROGRAM,
            "--home",
            tmp_path,
            "serve",
            "--port",
            "0",
            "--upstream",
            stub.url,
        ]
        server = subprocess.Popen(
            [*map(str, command), "--workers", str(workers)], stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        assert server.stderr is not None
        try:
            opening = server.stderr.readline()
            assert opening.startswith("Leporello listens on "), opening + server.stderr.read()
            url = opening.split()[-1]
            said = [{"role": "user", "content": "Hello"}]
            for text in ("One.", "Two."):
                body = {"model": "gpt-4o", "messages": said}
                reply = httpx2.post(url + "/v1/chat/completions", json=body, timeout=60)
                assert reply.json()["choices"][0]["message"]["content"] == text
                said += [{"role": "assistant", "content": text}, {"role": "user", "content": "More"}]
        finally:
            server.send_signal(signal.SIGTERM)
            log = server.communicate(timeout=60)[0] or ""
        assert server.returncode in (0, -signal.SIGTERM), log
    with open_store(f"sqlite:///{tmp_path}/leporello.db") as store:
        (record,) = store.conversations.page().conversations
        assert record.messages == 3
        assert store.usage.totals(record.id).calls == 2
