"""`leporello setup`: the ways to a model, and the one that needs no key: a small model on this machine."""

from __future__ import annotations

import time

import click

from leporello.cli.frame import Frame, pass_frame
from leporello.cli.output import Progress, dim, json_option, note, print_json, say, strong
from leporello.local.install import install
from leporello.local.model_file import SMOLLM2
from leporello.local.provider import NAME, client_dialect, local_provider
from leporello.messages import text_of
from leporello.providers.base import ModelRequest

WAYS = """\
Three ways to a model:

  a key          set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY,
                 then: leporello run --model NAME "..."
  your server    anything that speaks OpenAI's or Anthropic's API (llama.cpp, Ollama, vLLM):
                 leporello --set model.base_url=http://127.0.0.1:8080/v1 run --model NAME "..."
  no key at all  a small model on this machine, fetched once (about 130 MB):
                 leporello setup --local, then: leporello run --model local "..."
"""
QUESTION = "What is the capital of France?"


@click.command("setup")
@click.option("--local", "local", is_flag=True, help="Fetch a small model for this machine and try it.")
@json_option
@pass_frame
def command(frame: Frame, local: bool, as_json: bool) -> None:
    """Show the ways to a model. With --local, fetch a small one that runs on this machine without a key."""
    if not local:
        say(WAYS)
        return
    client_dialect()  # without a client the download would be for nothing
    folder = frame.home.models_dir
    shown = _Shown()
    try:
        fetched = install(folder, shown)
    finally:
        shown.close()
    note(f"{SMOLLM2.title} is in {folder}." if fetched else f"{SMOLLM2.title} was already in {folder}.")
    answer, seconds = _try(frame)
    if as_json:
        print_json({"model": NAME, "folder": folder, "fetched": fetched, "answer": answer, "seconds": seconds})
        return
    say(f"{QUESTION}\n{strong(answer)}  {dim(f'({seconds:.1f} s, its start included)')}\n")
    say(f'It is ready: leporello run --model {NAME} "Hello"')


def _try(frame: Frame) -> tuple[str, float]:
    """One question to the model: what was fetched really works."""
    provider = local_provider(frame.home.models_dir)
    asked = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": QUESTION}]
    started = time.monotonic()
    try:
        reply = provider.complete(ModelRequest(NAME, asked, max_tokens=40, options={"temperature": 0}))
    finally:
        provider.close()
    return text_of(reply.message).strip(), time.monotonic() - started


class _Shown:
    """Progress on stderr: a line for each step, rewritten in place on a terminal."""

    def __init__(self) -> None:
        self._step = ""
        self._line: Progress | None = None

    def __call__(self, step: str, done: int = 0, total: int | None = None, /) -> None:
        if step != self._step:
            self.close()
            note(f"Fetching {step}" if not total else f"Checking {step}")
            self._step, self._line = step, Progress("  bytes:")
        if self._line is not None and total:
            self._line.update(done, total)

    def close(self) -> None:
        """Take the line away."""
        if self._line is not None:
            self._line.close()
