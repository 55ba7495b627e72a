"""What a span of the log is about, told without a model: who spoke, what was asked, which files and tools, what failed.

A reader decides from this whether opening the span is worth its tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.recall.paging import Count, full_text
from leporello.recall.passages import lines_of, passages_of
from leporello.redact.messages import masked

MOST_LISTED = 12
LONGEST_QUOTE = 160
_FILE_KEY = re.compile(r"^(?:\w*path|file|files|filename|notebook\w*): (\S+)$", re.IGNORECASE)
_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_FAILURE = re.compile(r"\b(?:\w*Error|\w*Exception|FAILED|FAIL|fatal|panic|error)\b[:\s]")


class _Digest:
    """What is gathered from the messages of a span."""

    def __init__(self) -> None:
        self.tokens = 0
        self.roles: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.asks: list[tuple[int, str]] = []
        self.failures: list[tuple[int, str]] = []

    def take(self, number: int, message: Message, count: Count) -> None:
        self.tokens += count(full_text(message))
        message = masked(message)
        self.roles[role_of(message)] += 1
        if role_of(message) == "user":
            self._first_line(self.asks, number, lines_of(text_of(message)))
        elif is_result(message):
            self._first_line(
                self.failures, number, (line for line in lines_of(text_of(message)) if _FAILURE.search(line))
            )
        for call in calls_of(message):
            self.tools[call.name] += 1
        for passage in passages_of(message):
            if passage.is_call:
                self.files.update(_files(passage.lines))

    @staticmethod
    def _first_line(kept: list[tuple[int, str]], number: int, lines: Iterator[str]) -> None:
        line = next(lines, "")
        if line:
            kept.append((number, line[:LONGEST_QUOTE]))


def describe(messages: Iterable[tuple[int, Message]], count: Count) -> dict[str, Any]:
    """Sizes, files, tools, requests and failures of a span, and questions that opening it would answer."""
    digest = _Digest()
    for number, message in messages:
        digest.take(number, message, count)
    return {
        "messages": sum(digest.roles.values()),
        "tokens": digest.tokens,
        "roles": dict(digest.roles),
        "tools": dict(digest.tools.most_common(MOST_LISTED)),
        "files": [path for path, _ in digest.files.most_common(MOST_LISTED)],
        "asked": [{"id": f"m{number}", "text": line} for number, line in digest.asks[:MOST_LISTED]],
        "failures": [{"id": f"m{number}", "text": line} for number, line in digest.failures[:MOST_LISTED]],
        "answers": list(_questions(digest))[:MOST_LISTED],
    }


def _files(lines: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for line in lines:
        named = _FILE_KEY.match(line)
        if named:
            found.add(named[1])
        elif line.startswith(("command: ", "cmd: ")):
            found.update(_FILE.findall(line))
    return found


def _questions(digest: _Digest) -> Iterator[str]:
    for number, line in digest.asks[:4]:
        yield f"How was this request of m{number} dealt with: {line}"
    for path, times in digest.files.most_common(4):
        yield f"What was done with {path}" + (f" ({times} calls)?" if times > 1 else "?")
    for number, line in digest.failures[:4]:
        yield f"What led to this in m{number}, and what followed: {line}"
