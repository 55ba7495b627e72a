"""The real program on a pseudo-terminal, against the stub server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leporello.testing.stub_server import Step, StubServer
from tests.chat.terminal import KEY, Terminal, environment
from tests.support.strict_server import strict_server


@dataclass
class Desk:
    """A home, a working directory, and a server for as many programs as a test starts."""

    folder: Path
    terminals: list[Terminal] = field(default_factory=list)
    servers: list[StubServer] = field(default_factory=list)
    holds: list[threading.Event] = field(default_factory=list)
    url: str = ""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def serve(self, *script: Step) -> StubServer:
        """Start a server with a script; programs started from now on use it."""
        server = strict_server(script)
        server.__enter__()
        self.servers.append(server)
        self.url = f"{server.url}/v1"
        return server

    def hold(self) -> threading.Event:
        """An event for `Hold`; released at the end at the latest."""
        event = threading.Event()
        self.holds.append(event)
        return event

    def variables(self, **more: str) -> dict[str, str]:
        given = {"LEPORELLO_MODEL__DEFAULT": "gpt-4o", "OPENAI_API_KEY": KEY}
        if self.url:
            given["LEPORELLO_MODEL__BASE_URL"] = self.url
        return environment(self.home, **given | more)

    def chat(self, *arguments: str, env: dict[str, str] | None = None, **options: Any) -> Terminal:
        """`leporello chat` with some arguments."""
        return self.start("chat", *arguments, env=env, **options)

    def start(self, *arguments: str, env: dict[str, str] | None = None, **options: Any) -> Terminal:
        """The program with any arguments."""
        variables = self.variables(**(env or {}))
        terminal = Terminal(list(arguments), env=variables, cwd=self.work, **options)
        self.terminals.append(terminal)
        return terminal

    def close(self) -> None:
        for event in self.holds:
            event.set()
        for terminal in self.terminals:
            terminal.close()
        for server in self.servers:
            server.__exit__(None, None, None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.home.mkdir()
    made.work.mkdir()
    yield made
    made.close()
