"""What tools print: test runs, stack traces, git, builds, logs, searches, web pages, and screenshots."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from random import Random

from leporello.testing.sessions.vocabulary import (
    ADJECTIVES,
    DOMAINS,
    ERRORS,
    FIELDS,
    NAMES,
    REGIONS,
    THINGS,
    VERBS,
    digits,
    hexes,
    name,
    stamp,
    type_name,
    version,
)

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


_LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARN", "ERROR")


def trace(rng: Random, paths: Sequence[str], error: str) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for _ in range(rng.randrange(3, 8)):
        lines.append(f'  File "{rng.choice(paths)}", line {rng.randrange(8, 700)}, in {name(rng)}')
        lines.append(f"    {rng.choice(DOMAINS)} = {rng.choice(THINGS)}.{rng.choice(VERBS)}({rng.choice(FIELDS)})")
    lines.append(error)
    return lines


def error_line(rng: Random) -> str:
    """One line that names what went wrong, distinct enough to be asked for later."""
    return (
        f"{rng.choice(ERRORS)}: {rng.choice(ADJECTIVES)} {rng.choice(DOMAINS)} {rng.choice(FIELDS)}="
        f"{digits(rng, 4)} in {rng.choice(THINGS)} {hexes(rng, 6)}"
    )


def test_run(rng: Random, paths: Sequence[str], lines: int, failing: Sequence[tuple[str, str]]) -> list[str]:
    """The log of a test run: passing tests, then the given (test, error) failures with traces, then the tally."""
    text = [
        "============================= test session starts ==============================",
        f"platform linux -- Python 3.12.{rng.randrange(10)}, pytest-9.{rng.randrange(4)}.0, pluggy-1.6.0",
        f"rootdir: /srv/{rng.choice(DOMAINS)}",
        f"collected {lines + len(failing)} items",
        "",
    ]
    for number in range(lines):
        share = number * 100 // max(1, lines)
        text.append(f"tests/{rng.choice(DOMAINS)}/test_{rng.choice(THINGS)}.py::test_{name(rng)} PASSED [{share:3}%]")
    for test, error in failing:
        text.append(f"{test} FAILED")
        text.extend(trace(rng, paths, error))
    seconds = f"{rng.randrange(1, 90)}.{rng.randrange(100):02}s"
    tally = f"{len(failing)} failed, {lines} passed in {seconds}" if failing else f"{lines} passed in {seconds}"
    text.append(f"=========== {tally} ===========")
    return text


def git_log(rng: Random, commits: Sequence[tuple[str, str]]) -> list[str]:
    """`git log` of the given (hash, subject) pairs."""
    lines = []
    for commit, subject in commits:
        author = rng.choice(NAMES)
        lines += [
            f"commit {commit}",
            f"Author: {author} <{author.lower()}@example.org>",
            f"Date:   {stamp(rng)}",
            "",
            f"    {subject}",
            "",
        ]
    return lines


def git_commit(rng: Random, branch: str, commit: str, subject: str) -> list[str]:
    added, removed = rng.randrange(3, 300), rng.randrange(90)
    return [
        f"[{branch} {commit[:9]}] {subject}",
        f" {rng.randrange(1, 9)} files changed, {added} insertions(+), {removed} deletions(-)",
    ]


def diff(rng: Random, path: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    start = rng.randrange(10, 400)
    return [
        f"diff --git a/{path} b/{path}",
        f"index {hexes(rng, 9)}..{hexes(rng, 9)} 100644",
        f"--- a/{path}",
        f"+++ b/{path}",
        f"@@ -{start},{len(before)} +{start},{len(after)} @@",
        *(f"-{line}" for line in before),
        *(f"+{line}" for line in after),
    ]


def service_log(rng: Random, lines: int) -> list[str]:
    return [
        f"{stamp(rng)} {rng.choice(_LEVELS):5} {rng.choice(THINGS)}.{rng.choice(VERBS)} "
        f"{rng.choice(FIELDS)}={rng.randrange(100_000)} {rng.choice(DOMAINS)}={hexes(rng, 8)} "
        f"region={rng.choice(REGIONS)} took={rng.randrange(1, 4000)}ms"
        for _ in range(lines)
    ]


def build_log(rng: Random, lines: int) -> list[str]:
    """A package build: downloads, compiles, a size table."""
    return [
        f"  Compiling {rng.choice(DOMAINS)}-{rng.choice(THINGS)} v{version(rng)} ({rng.randrange(1, 900)} modules)"
        for _ in range(lines)
    ] + [f"    Finished release in {rng.randrange(4, 400)}.{rng.randrange(10)}s"]


def search_hits(rng: Random, paths: Sequence[str], pattern: str, lines: int) -> list[str]:
    return [
        f"{rng.choice(paths)}:{rng.randrange(1, 900)}:    {rng.choice(FIELDS)} = {pattern}({type_name(rng)}, "
        f"{rng.choice(FIELDS)}={rng.randrange(999)})"
        for _ in range(lines)
    ]


def web_page(rng: Random, lines: int) -> list[str]:
    title = f"{type_name(rng)} {version(rng)}"
    text = [f"# {title}", f"Source: https://docs.{rng.choice(DOMAINS)}.example.org/{rng.choice(THINGS)}", ""]
    for _ in range(lines):
        text.append(
            f"The {rng.choice(ADJECTIVES)} {rng.choice(THINGS)} will {rng.choice(VERBS)} each {rng.choice(DOMAINS)} "
            f"before the {rng.choice(THINGS)} does; set `{rng.choice(FIELDS)}` to {rng.randrange(1, 5000)} when the "
            f"{rng.choice(DOMAINS)} is {rng.choice(ADJECTIVES)}."
        )
    return text


def processes(rng: Random, port: str) -> list[str]:
    """`docker ps`-like lines; one of them listens on the given port."""
    rows = [
        f"{hexes(rng, 12)}  {rng.choice(DOMAINS)}-{rng.choice(THINGS)}  Up {rng.randrange(2, 50)} hours" for _ in "abc"
    ]
    rows.append(f"{hexes(rng, 12)}  {rng.choice(DOMAINS)}-api  Up 3 minutes  0.0.0.0:{port}->{port}/tcp")
    return ["CONTAINER ID  NAME  STATUS", *rows]
