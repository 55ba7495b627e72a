"""Other projects' own compaction code as engines of a replay, each in the interpreter of its own environment."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import HEADROOM, HERMES, environment
from leporello.engines.base import ContextEngine
from leporello.messages import Message


class PeerEngine(ContextEngine):
    """Asks a server beside it, one line of JSON at a time."""

    requirement = ""
    server = ""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._home = tempfile.TemporaryDirectory(prefix="peer-")
        command = [environment(self.requirement), Path(__file__).with_name(self.server), str(window), self._home.name]
        # A bare environment: no key, no settings and no path of the person who runs this.
        bare = {"PATH": "/usr/bin:/bin", "HOME": self._home.name}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8", env=bare)

    def ask(self, **order: Any) -> dict[str, Any]:
        """One order, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """The server ends with its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=10)
        self._home.cleanup()


class HermesEngine(PeerEngine):
    """hermes-agent's context compressor."""

    name = "hermes"
    requirement, server = HERMES, "hermes_server.py"
    summary_text = ""
    """What the last compaction's summary call would have sent."""

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Passed on."""
        self.ask(usage=usage)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Its own judgement."""
        return bool(self.ask(tokens=prompt_tokens)["due"])

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """Its own list."""
        answer = self.ask(messages=messages, tokens=current_tokens)
        self.summary_text = answer["summary"]
        return list(answer["messages"])


class HeadroomEngine(PeerEngine):
    """headroom's compression, at every request, as a client behind it would see it."""

    name = "headroom"
    requirement, server = HEADROOM, "headroom_server.py"

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._shown: list[Message] = []

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """It does not ask."""

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Always."""
        return True

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """What did not change stays the same object, so that an untouched list is no compaction."""
        before = messages[: len(self._shown)]
        new = messages[len(before) :]
        made = self.ask(new=new)["messages"]
        known = [*before, *new]
        self._shown = [old if old == one else one for old, one in zip(known, made, strict=False)] + made[len(known) :]
        return list(self._shown)
