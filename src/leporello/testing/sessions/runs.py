"""Tool runs of a coding agent, their schemas, and what the tools print."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from leporello.testing.sessions.spec import FactKind, ToolRun, Writer
from leporello.testing.sessions.world import WORDS, World, fill, letters, stamp

_SIZES = ((640, 400), (1280, 800), (1568, 980))


def screenshot(rng: Random) -> str:
    """A data URL of a grey-scale PNG with some noise in it, so that its base64 is as long as that of a real one."""
    width, height = rng.choice(_SIZES)
    noisy = 12 + rng.randrange(30)
    rows = [b"\0" + (rng.randbytes(width) if row < noisy else bytes(width)) for row in range(height)]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
            _chunk(b"IDAT", zlib.compress(b"".join(rows), 1)),
            _chunk(b"IEND", b""),
        )
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


_SOURCE = "Source: https://docs.<domain>.example.org/<thing>"
_ADVICE = (
    "The <adjective> <thing> will <verb> each <domain> before the <thing> does; set `<field>` to <1-5000> when the "
    "<domain> is <adjective>."
)
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
                    "properties": {
                        key: {"type": kind, **({"items": {"type": "string"}} if kind == "array" else {})}
                        for key, kind in fields.items()
                    },
                    "required": list(fields)[:1],
                },
            },
        }
        for name, (description, fields) in _TOOLS.items()
    )


def system_prompt(project: str) -> str:
    return (
        f"You are a careful software engineer working on the repository `{project}`. Use the tools to read before you "
        "write, keep changes small, run the tests, and report plainly what you did and what is still open."
    )


def trace(rng: Random, paths: Sequence[str], error: str) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for _ in range(rng.randrange(3, 8)):
        lines.append(fill(rng, '  File "<path>", line <8-700>, in <function>', path=rng.choice(paths)))
        lines.append(fill(rng, "    <domain> = <thing>.<verb>(<field>)"))
    return [*lines, error]


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
        pattern = fill(self.rng, "<function>")
        hits = [
            f"{self.rng.choice(self.world.paths)}:"
            + fill(self.rng, "<1-900>:    <field> = <pattern>(<type>, <field>=<0-999>)", pattern=pattern)
            for _ in range(self.writer.lines(3, 25))
        ]
        return ToolRun("search_files", {"pattern": pattern, "path": "src"}, "\n".join(hits))

    def patch(self, path: str | None = None) -> ToolRun:
        path = path or self.rng.choice(self.world.paths)
        old, new = self.world.edit(path)
        before, after = old.splitlines(), new.splitlines()
        start = self.rng.randrange(10, 400)
        shown = [
            f"diff --git a/{path} b/{path}",
            fill(self.rng, "index <hex:9>..<hex:9> 100644"),
            f"--- a/{path}",
            f"+++ b/{path}",
            f"@@ -{start},{len(before)} +{start},{len(after)} @@",
            *(f"-{line}" for line in before),
            *(f"+{line}" for line in after),
        ]
        arguments = {"path": path, "old_string": old, "new_string": new}
        return ToolRun("patch", arguments, self._document(path, "\n".join(shown)))

    def _write_file(self) -> ToolRun:
        path, text = self.world.create(self.writer.lines(15, 70))
        answer = json.dumps({"path": path, "bytes_written": len(text.encode()), "created": True})
        return ToolRun("write_file", {"path": path, "content": text}, answer)

    def tests(self) -> ToolRun:
        failing = tuple(self.world.failing)
        lines = self.writer.lines(5, 45)
        log = [
            "============================= test session starts ==============================",
            fill(self.rng, "platform linux -- Python 3.12.<0-10>, pytest-9.<0-4>.0, pluggy-1.6.0"),
            fill(self.rng, "rootdir: /srv/<domain>"),
            f"collected {lines + len(failing)} items",
            "",
        ]
        for number in range(lines):
            passed = f"PASSED [{number * 100 // max(1, lines):3}%]"
            log.append(fill(self.rng, f"tests/<domain>/test_<thing>.py::test_<function> {passed}"))
        for test, error in failing:
            log += [f"{test} FAILED", *trace(self.rng, self.world.paths, error)]
        failed = f"{len(failing)} failed, " if failing else ""
        seconds = f"{self.rng.randrange(1, 90)}.{self.rng.randrange(100):02}s"
        log.append(f"=========== {failed}{lines} passed in {seconds} ===========")
        facts = tuple(
            (FactKind.ERROR, error, f"What error did {test.rsplit('::', 1)[1]} raise?") for test, error in failing
        )
        return self._terminal("python -m pytest -q", log, 1 if failing else 0, facts)

    def commit(self, subject: str) -> ToolRun:
        commit = self.world.commit(subject)
        changed = fill(self.rng, "<3-300> insertions(+), <0-90> deletions(-)")
        lines = [
            f"[{self.world.branch} {commit[:9]}] {subject}",
            f" {self.rng.randrange(1, 9)} files changed, {changed}",
        ]
        fact = (FactKind.IDENTIFIER, commit[:9], f"Which commit is '{subject}'?")
        return self._terminal(f"git commit -am '{subject}'", lines, 0, (fact,))

    def _log(self) -> ToolRun:
        if not self.world.commits:
            self.world.commit("Initial import")
        lines = []
        for commit, subject in self.world.commits[-5:]:
            author = fill(self.rng, "<person>")
            lines += [f"commit {commit}", f"Author: {author} <{author.lower()}@example.org>"]
            lines += [f"Date:   {stamp(self.rng)}", "", f"    {subject}", ""]
        return self._terminal("git log -5", lines, 0)

    def _pull_request(self) -> ToolRun:
        """Open a pull request; its number is worth remembering."""
        number = fill(self.rng, "<digits:5>")
        topic = fill(self.rng, "<verb> <domain> <thing>")
        link = f"https://git.example.org/{self.world.project}/pull/{number}"
        fact = (FactKind.IDENTIFIER, f"pull/{number}", f"Which pull request is '{topic}'?")
        return self._terminal(f"gh pr create --title '{topic}'", ["Creating pull request...", link], 0, (fact,))

    def _services(self) -> ToolRun:
        """List containers; the port of the api is worth remembering."""
        port = str(self.rng.randrange(20_000, 65_000))
        fact = (FactKind.IDENTIFIER, port, "On which port does the api container listen?")
        rows = [fill(self.rng, "<hex:12>  <domain>-<thing>  Up <2-50> hours") for _ in range(3)]
        rows.append(fill(self.rng, f"<hex:12>  <domain>-api  Up 3 minutes  0.0.0.0:{port}->{port}/tcp"))
        return self._terminal("docker ps", ["CONTAINER ID  NAME  STATUS", *rows], 0, (fact,))

    def _deploy(self) -> ToolRun:
        """Deploy a version; release and ticket are worth remembering."""
        release, ticket = fill(self.rng, "<release>-rc<digits:3>"), fill(self.rng, "OPS-<digits:5>")
        region = fill(self.rng, "<region>")
        compiling = "  Compiling <domain>-<thing> v<release> (<1-900> modules)"
        lines = [fill(self.rng, compiling) for _ in range(self.writer.lines(3, 12))]
        lines.append(fill(self.rng, "    Finished release in <4-400>.<0-10>s"))
        lines.append(f"deployed {release} to {region}, ticket {ticket}")
        facts = (
            (FactKind.IDENTIFIER, release, "Which release candidate was deployed?"),
            (FactKind.IDENTIFIER, ticket, f"Which ticket tracks the {region} deployment?"),
        )
        return self._terminal(f"./deploy.sh {region}", lines, 0, facts)

    def _failure(self) -> ToolRun:
        error = fill(self.rng, "<error_line>")
        command = fill(self.rng, f"python -m {self.world.project}.<thing> --<field> <digits:3>")
        fact = (FactKind.ERROR, error, f"How did `{command}` fail?")
        return self._terminal(command, trace(self.rng, self.world.paths, error), 1, (fact,))

    def service_log(self, huge: bool = False) -> ToolRun:
        """Read a service's log; a huge one is far beyond what anybody reads."""
        count = self.rng.randrange(600, 1_500) if huge else self.writer.lines(8, 60)
        command = fill(self.rng, f"journalctl -u <domain>-<thing> -n {count}")
        line = "<thing>.<verb> <field>=<0-100000> <domain>=<hex:8> region=<region> took=<1-4000>ms"
        lines = (f"{stamp(self.rng)} {self.rng.choice(WORDS['level']):5} " + fill(self.rng, line) for _ in range(count))
        return self._terminal(command, list(lines), 0)

    def leak(self) -> ToolRun:
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
            line = fill(self.rng, f"<FIELD>_API_KEY={secret}")
        fact = (FactKind.SECRET, secret, "Which credential is configured?")
        lines = [fill(self.rng, "<FIELD>=<0-90>") for _ in range(8)] + [line]
        return self._terminal("cat .env", lines, 0, (fact,))

    def _web_search(self) -> ToolRun:
        query = fill(self.rng, "<thing> <verb> <field> best practice")
        hits = [
            {
                "title": fill(self.rng, "<Domain> <thing> guide"),
                "url": fill(self.rng, "https://<domain>.example.org/<hex:5>"),
                "snippet": fill(self.rng, "How <person> would <verb> a <thing>."),
            }
            for _ in range(self.rng.randrange(3, 8))
        ]
        return ToolRun("web_search", {"query": query}, json.dumps({"results": hits}, ensure_ascii=False))

    def _web_page(self) -> ToolRun:
        count = self.writer.lines(5, 25)
        lines = [fill(self.rng, "# <type> <release>"), fill(self.rng, _SOURCE), ""]
        lines += [fill(self.rng, _ADVICE) for _ in range(count)]
        return ToolRun("web_extract", {"urls": [lines[1].removeprefix("Source: ")]}, "\n".join(lines))

    def _unknown(self) -> ToolRun:
        """A tool nobody here knows, with nested arguments and a structured answer."""
        arguments = {"issue": {"key": fill(self.rng, "TRK-<digits:4>"), "expand": ["comments", "links"]}, "depth": 2}
        answer = {
            "fields": {field: self.rng.randrange(999) for field in self.rng.sample(WORDS["field"], 6)},
            "links": [],
        }
        return ToolRun("mcp_tracker_get", arguments, json.dumps(answer))

    def any(self) -> ToolRun:
        makers = (
            (self.read_file, 30), (self.search, 14), (self.patch, 18), (self.tests, 10), (self.service_log, 8),
            (self._failure, 5), (self._write_file, 4), (self._log, 3), (self._web_search, 2), (self._web_page, 2),
            (self._unknown, 2), (self._services, 1), (self._deploy, 1), (self._pull_request, 1),
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
