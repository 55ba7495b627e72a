"""Tool runs of a coding agent, their schemas, and what the tools print."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from leporello.testing.sessions import output
from leporello.testing.sessions.spec import FactKind, ToolRun, Writer
from leporello.testing.sessions.vocabulary import (
    DOMAINS,
    FIELDS,
    NAMES,
    REGIONS,
    THINGS,
    VERBS,
    digits,
    hexes,
    letters,
    name,
    version,
)
from leporello.testing.sessions.world import World

_TOOLS = {
    "terminal": ("Run a shell command and return its output and exit code.", {"command": "string"}),
    "read_file": ("Read lines of a text file.", {"path": "string", "offset": "integer", "limit": "integer"}),
    "write_file": ("Write a whole file.", {"path": "string", "content": "string"}),
    "patch": ("Replace one passage of a file.", {"path": "string", "old_string": "string", "new_string": "string"}),
    "search_files": ("Search file contents by regular expression.", {"pattern": "string", "path": "string"}),
    "web_search": ("Search the web.", {"query": "string"}),
    "web_extract": ("Read the text of web pages.", {"urls": "array"}),
    "mcp_tracker_get": ("Fetch an issue of the tracker.", {"issue": "object", "depth": "integer"}),
}


def tool_schemas() -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": {key: _property(kind) for key, kind in fields.items()},
                    "required": list(fields)[:1],
                },
            },
        }
        for name, (description, fields) in _TOOLS.items()
    )


def _property(kind: str) -> dict[str, Any]:
    return {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind}


def system_prompt(project: str) -> str:
    return (
        f"You are a careful software engineer working on the repository `{project}`. Use the tools to read before you "
        "write, keep changes small, run the tests, and report plainly what you did and what is still open."
    )


@dataclass(slots=True)
class ToolRuns:
    world: World
    writer: Writer
    dialect: str
    readings: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def rng(self) -> Random:
        return self.world.rng

    def read_file(self, path: str | None = None) -> ToolRun:
        path = path or self.rng.choice(self.world.paths)
        reading = (path, self.rng.choice((0, 0, 0, 40, 100)), self.writer.lines(10, 60))
        self.readings.append(reading)
        return self._read(*reading)

    def read_again(self) -> ToolRun:
        """Repeat an earlier reading, as agents do; the same text unless the file was changed since."""
        return self._read(*self.rng.choice(self.readings[-30:])) if self.readings else self.read_file()

    def _read(self, path: str, start: int, count: int) -> ToolRun:
        arguments = {"path": path, "offset": start + 1, "limit": count}
        return ToolRun("read_file", arguments, self._document(path, self.world.numbered(path, start, count)))

    def search(self) -> ToolRun:
        pattern = name(self.rng)
        hits = output.search_hits(self.rng, self.world.paths, pattern, self.writer.lines(3, 25))
        return ToolRun("search_files", {"pattern": pattern, "path": "src"}, "\n".join(hits))

    def patch(self, path: str | None = None) -> ToolRun:
        path = path or self.rng.choice(self.world.paths)
        old, new = self.world.edit(path)
        shown = output.diff(self.rng, path, old.splitlines(), new.splitlines())
        arguments = {"path": path, "old_string": old, "new_string": new}
        return ToolRun("patch", arguments, self._document(path, "\n".join(shown)))

    def write_file(self) -> ToolRun:
        path, text = self.world.create(self.writer.lines(15, 70))
        answer = json.dumps({"path": path, "bytes_written": len(text.encode()), "created": True})
        return ToolRun("write_file", {"path": path, "content": text}, answer)

    def tests(self) -> ToolRun:
        """Run the tests; what is broken in the world fails."""
        failing = tuple(self.world.failing)
        log = output.test_run(self.rng, self.world.paths, self.writer.lines(5, 45), failing)
        facts = tuple(
            (FactKind.ERROR, error, f"What error did {test.rsplit('::', 1)[1]} raise?") for test, error in failing
        )
        return self._terminal("python -m pytest -q", log, 1 if failing else 0, facts)

    def commit(self, subject: str) -> ToolRun:
        """Commit; the hash is worth remembering."""
        commit = self.world.commit(subject)
        lines = output.git_commit(self.rng, self.world.branch, commit, subject)
        fact = (FactKind.IDENTIFIER, commit[:9], f"Which commit is '{subject}'?")
        return self._terminal(f"git commit -am '{subject}'", lines, 0, (fact,))

    def log(self) -> ToolRun:
        if not self.world.commits:
            self.world.commit("Initial import")
        return self._terminal("git log -5", output.git_log(self.rng, self.world.commits[-5:]), 0)

    def pull_request(self) -> ToolRun:
        """Open a pull request; its number is worth remembering."""
        number = digits(self.rng, 5)
        topic = f"{self.rng.choice(VERBS)} {self.rng.choice(DOMAINS)} {self.rng.choice(THINGS)}"
        link = f"https://git.example.org/{self.world.project}/pull/{number}"
        fact = (FactKind.IDENTIFIER, f"pull/{number}", f"Which pull request is '{topic}'?")
        return self._terminal(f"gh pr create --title '{topic}'", ["Creating pull request...", link], 0, (fact,))

    def services(self) -> ToolRun:
        """List containers; the port of the api is worth remembering."""
        port = str(self.rng.randrange(20_000, 65_000))
        fact = (FactKind.IDENTIFIER, port, "On which port does the api container listen?")
        return self._terminal("docker ps", output.processes(self.rng, port), 0, (fact,))

    def deploy(self) -> ToolRun:
        """Deploy a version; release and ticket are worth remembering."""
        release, ticket = f"{version(self.rng)}-rc{digits(self.rng, 3)}", f"OPS-{digits(self.rng, 5)}"
        region = self.rng.choice(REGIONS)
        lines = [
            *output.build_log(self.rng, self.writer.lines(3, 12)),
            f"deployed {release} to {region}, ticket {ticket}",
        ]
        facts = (
            (FactKind.IDENTIFIER, release, "Which release candidate was deployed?"),
            (FactKind.IDENTIFIER, ticket, f"Which ticket tracks the {region} deployment?"),
        )
        return self._terminal(f"./deploy.sh {region}", lines, 0, facts)

    def failure(self) -> ToolRun:
        error = output.error_line(self.rng)
        module = f"{self.world.project}.{self.rng.choice(THINGS)}"
        command = f"python -m {module} --{self.rng.choice(FIELDS)} {digits(self.rng, 3)}"
        fact = (FactKind.ERROR, error, f"How did `{command}` fail?")
        return self._terminal(command, output.trace(self.rng, self.world.paths, error), 1, (fact,))

    def service_log(self, huge: bool = False) -> ToolRun:
        """Read a service's log; a huge one is far beyond what anybody reads."""
        count = self.rng.randrange(600, 1_500) if huge else self.writer.lines(8, 60)
        unit = f"{self.rng.choice(DOMAINS)}-{self.rng.choice(THINGS)}"
        return self._terminal(f"journalctl -u {unit} -n {count}", output.service_log(self.rng, count), 0)

    def leak(self) -> tuple[ToolRun, str]:
        """Print a configuration with a secret in it; the secret."""
        secret = self.rng.choice(
            (
                "AKIA" + "".join(self.rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
                "ghp_" + letters(self.rng, 36),
                "sk-ant-api03-" + letters(self.rng, 93) + "AA",
                letters(self.rng, 24),
            )
        )
        if len(secret) == 24:
            line = f"DATABASE_URL=postgres://app:{secret}@db.internal:5432/{self.world.project}"
        else:
            line = f"{self.rng.choice(FIELDS).upper()}_API_KEY={secret}"
        fact = (FactKind.SECRET, secret, "Which credential is configured?")
        lines = [f"{self.rng.choice(FIELDS).upper()}={self.rng.randrange(90)}" for _ in range(8)] + [line]
        return self._terminal("cat .env", lines, 0, (fact,)), secret

    def web_search(self) -> ToolRun:
        query = f"{self.rng.choice(THINGS)} {self.rng.choice(VERBS)} {self.rng.choice(FIELDS)} best practice"
        hits = [
            {
                "title": f"{self.rng.choice(DOMAINS).title()} {self.rng.choice(THINGS)} guide",
                "url": f"https://{self.rng.choice(DOMAINS)}.example.org/{hexes(self.rng, 5)}",
                "snippet": f"How {self.rng.choice(NAMES)} would {self.rng.choice(VERBS)} a {self.rng.choice(THINGS)}.",
            }
            for _ in range(self.rng.randrange(3, 8))
        ]
        return ToolRun("web_search", {"query": query}, json.dumps({"results": hits}, ensure_ascii=False))

    def web_page(self) -> ToolRun:
        lines = output.web_page(self.rng, self.writer.lines(5, 25))
        return ToolRun("web_extract", {"urls": [lines[1].removeprefix("Source: ")]}, "\n".join(lines))

    def unknown(self) -> ToolRun:
        """A tool nobody here knows, with nested arguments and a structured answer."""
        arguments = {"issue": {"key": f"TRK-{digits(self.rng, 4)}", "expand": ["comments", "links"]}, "depth": 2}
        answer = {"fields": {field: self.rng.randrange(999) for field in self.rng.sample(FIELDS, 6)}, "links": []}
        return ToolRun("mcp_tracker_get", arguments, json.dumps(answer))

    def any(self) -> ToolRun:
        """One of the usual steps."""
        makers = (
            (self.read_file, 30), (self.search, 14), (self.patch, 18), (self.tests, 10), (self.service_log, 8),
            (self.failure, 5), (self.write_file, 4), (self.log, 3), (self.web_search, 2), (self.web_page, 2),
            (self.unknown, 2), (self.services, 1), (self.deploy, 1), (self.pull_request, 1),
        )  # fmt: skip
        chosen = self.rng.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]
        return chosen()

    def _terminal(
        self, command: str, lines: list[str], code: int, facts: tuple[tuple[FactKind, str, str], ...] = ()
    ) -> ToolRun:
        text = "\n".join(lines)
        if self.dialect == "json":
            result = json.dumps({"output": text, "exit_code": code, "error": None}, ensure_ascii=False)
        else:
            result = f"{text}\n[exit code: {code}]"
        return ToolRun("terminal", {"command": command}, result, facts)

    def _document(self, path: str, text: str) -> str:
        if self.dialect == "json":
            return json.dumps({"path": path, "content": text, "total_lines": len(self.world.files[path])})
        return text
