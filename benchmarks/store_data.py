"""The messages and queries of the store benchmark: generated sessions, and what somebody would look for in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leporello.messages import Message, calls_of, text_of
from leporello.testing.sessions import Fact, FactKind, GeneratedSession, generate

SESSION = 1_000
"""Messages of one session."""

_PER_KIND = 20
_CJK = re.compile("[\u3041-\u30ff\u4e00-\u9fff]{4,}")
_NAME = re.compile(r"[a-z]+_[a-z]+_[a-z]+")
_WORD = re.compile(r"[A-Za-z_]{4,}")
_COMMON = (
    "run the tests",
    "fix the failing test",
    "add an option",
    "import error",
    "return None",
    "cache",
    "schema migration",
    "why does it fail",
    "git diff",
    "session token",
)

Place = tuple[str, int]
"""A session and the index of a message in it."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is typed, and how to tell whether a message answers it; None where nobody could say."""

    kind: str
    text: str
    answers: Callable[[str], bool] | None


def sessions(messages: int) -> Iterator[tuple[str, GeneratedSession]]:
    """As many sessions as give so many messages."""
    for seed in range(1, -(-messages // SESSION) + 1):
        yield f"session-{seed}", generate(seed=seed, messages=SESSION)


def write_messages(file: Path, messages: int) -> None:
    """All messages, one `[session, message]` a line, sessions taking turns as they do in real use."""
    several = [[(name, message) for message in session.messages] for name, session in sessions(messages)]
    left = messages
    with file.open("w", encoding="utf-8") as lines:
        for start in range(0, SESSION * 2, 10):
            for some in several:
                for name, message in some[start : start + 10][:left]:
                    lines.write(json.dumps([name, message]) + "\n")
                    left -= 1


def read_texts(file: Path) -> dict[Place, str]:
    """What can be read of every message, by its place."""
    texts: dict[Place, str] = {}
    counts: dict[str, int] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            session, message = json.loads(line)
            index = counts.get(session, 0)
            counts[session] = index + 1
            texts[session, index] = readable(message)
    return texts


def readable(message: Message) -> str:
    """Text and tool calls, in lower case."""
    calls = (f"{call.name} {call.arguments}" for call in calls_of(message))
    return "\n".join((text_of(message), *calls)).lower()


def queries(messages: int) -> list[Query]:
    """The fixed set: so many of each kind, taken from sessions far apart."""
    found: dict[str, list[Query]] = {}
    for _, session in sessions(messages):
        kinds: set[str] = set()
        for fact in session.facts:
            for query in _of_fact(fact):
                # One of each kind from a session, so that the whole store is asked about.
                if query.kind not in kinds and len(found.setdefault(query.kind, [])) < _PER_KIND:
                    kinds.add(query.kind)
                    found[query.kind].append(query)
    chosen = [query for kind in sorted(found) for query in found[kind]]
    return chosen + [Query("common words", text, None) for text in _COMMON]


def _of_fact(fact: Fact) -> Iterator[Query]:
    if fact.kind is FactKind.IDENTIFIER:
        yield Query("identifier", fact.text, _holds(fact.text))
    elif fact.kind is FactKind.ERROR:
        yield Query("error line", fact.text, _holds(fact.text))
        if "did test_" in fact.question:
            yield Query("question", fact.question, _holds(fact.text))
    elif fact.kind is FactKind.ASK and fact.language == "en":
        name = _NAME.search(fact.text)
        if name:
            yield Query("name in words", name.group().replace("_", " "), _holds(name.group()))
        words = sorted(set(_WORD.findall(fact.text)), key=lambda word: (-len(word), word))[:3]
        yield Query("three words", " ".join(words), _holds(*words))
    elif fact.kind in (FactKind.ASK, FactKind.RULE) and fact.language in ("zh", "ja"):
        run = _CJK.search(fact.text)
        if run:
            yield Query("Chinese, Japanese: four letters", run.group()[:4], _holds(run.group()[:4]))
            yield Query("Chinese, Japanese: two letters", run.group()[:2], _holds(run.group()[:2]))


def _holds(*texts: str) -> Callable[[str], bool]:
    wanted = [text.lower() for text in texts]
    return lambda text: all(part in text for part in wanted)
