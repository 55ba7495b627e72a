"""The set-ups of docs/guides/gateway.md: environment variables alone send an unchanged client through the gateway."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from leporello.store import open_store
from leporello.testing.stub_server import Say
from tests.support.strict_server import strict_server

from .house import opened

README = Path(__file__).resolve().parents[2] / "README.md"
DOCS = README.with_name("docs")
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


@contextmanager
def serving(home: Path, arguments: list[str]) -> Iterator[str]:
    """The program as a process, and its address; it ends on a signal."""
    command = [str(PROGRAM), "--home", str(home), *arguments, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert server.stderr is not None
    try:
        opening = server.stderr.readline()
        assert opening.startswith("Leporello listens on "), opening + server.stderr.read()
        yield opening.split()[-1]
    finally:
        server.send_signal(signal.SIGTERM)
        log = server.communicate(timeout=60)[1] or ""
    assert server.returncode in (0, -signal.SIGTERM), log


def test_the_lines_of_the_front_page(tmp_path: Path) -> None:
    """What README.md says about the proxy, word for word: only port and upstream are ours, for want of a key."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program, *exports = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert program[0] == "leporello"
    told = dict(words[1].split("=") for words in exports)
    with (
        strict_server([Say("One."), Say("Two.")]) as stub,
        serving(tmp_path, [*program[1:], "--upstream", stub.url]) as url,
    ):
        ours = {name: url + urlsplit(address).path for name, address in told.items()}
        for kind, text in (("openai", "One."), ("claude", "Two.")):
            variables, code = PROGRAMS[kind]
            env = {**os.environ, **variables, **ours}
            ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
            assert ran.stdout.strip() == text


@pytest.mark.parametrize("workers", [1, 2])
def test_the_program_itself(tmp_path: Path, workers: int) -> None:
    """`leporello serve` as a process: it starts, serves, and ends on a signal with what it knew written down."""
    with (
        strict_server([Say("One."), Say("Two.")]) as stub,
        serving(tmp_path, ["serve", "--upstream", stub.url, "--workers", str(workers)]) as url,
    ):
        said = [{"role": "user", "content": "Hello"}]
        for text in ("One.", "Two."):
            body = {"model": "gpt-4o", "messages": said}
            reply = httpx2.post(url + "/v1/chat/completions", json=body, timeout=60)
            assert reply.json()["choices"][0]["message"]["content"] == text
            said += [{"role": "assistant", "content": text}, {"role": "user", "content": "More"}]
    with open_store(f"sqlite:///{tmp_path}/leporello.db") as store:
        (record,) = store.conversations.page().conversations
        assert record.messages == 3
        assert store.usage.totals(record.id).calls == 2


def _curl(page: str) -> list[str]:
    (line,) = re.findall(r"^ *curl .*$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize("page", ["guides/gateway.md", "tutorial/first-steps.md"])
def test_the_demo_model_needs_no_key(tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests that the documents send with curl: only the port is ours."""
    monkeypatch.chdir(tmp_path)
    if page.startswith("tutorial"):
        for code in re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL):
            exec(code, {})
    _, _, address, _, header, _, data = _curl(page)
    body = (tmp_path / data[1:]).read_text("utf-8") if data.startswith("@") else data
    with serving(tmp_path, ["serve"]) as url:
        sent = dict([header.split(": ")])
        reply = httpx2.post(url + urlsplit(address).path, content=body, headers=sent, timeout=60)
    assert reply.status_code == 200, reply.text
    assert "scripted model" in reply.json()["choices"][0]["message"]["content"]
    assert reply.headers["x-leporello"] == ("folded" if page.startswith("tutorial") else "passed")
