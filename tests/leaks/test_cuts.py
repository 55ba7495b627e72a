"""Promise 16: wherever a text is clipped, split or joined, no piece of a secret comes through. Masking comes first."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from leporello.compaction.prune import clipped, pointer, shorten_arguments
from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.ledger.calls import describe
from leporello.ledger.ledger import Ledger
from leporello.ledger.user_text import title_of
from leporello.messages import Message, calls_of, encode_json, text_of
from leporello.recall.memory import MemoryRecall
from leporello.recall.paging import describe as about
from leporello.store.sql.chunks import searchable_chunks
from leporello.summaries.base import SummaryTask
from leporello.summaries.fold import is_fold
from leporello.summaries.model import chunks
from leporello.summaries.verify.evidence import Evidence
from tests.leaks.planted import Traces, key_block, ran
from tests.redact import secrets

BORDERS = (72, 80, 90, 110, 160, 200, 240, 300, 420, 600, 1_200, 1_600, 2_000, 4_000, 6_000)
"""The limits in use: headings, titles, outcomes, units, asks, lines of an index, chunks, what a summary model reads."""
LONG = 7_000


def prose(length: int, rng: Random, gap: str) -> str:
    """So many characters of harmless words."""
    words = [
        rng.choice(("the", "build", "went", "well", "on", "node", "nine", "today.")) for _ in range(length // 4 + 1)
    ]
    return gap.join(" ".join(words[k : k + 9]) for k in range(0, len(words), 9))[:length]


def block(form: str, seed: int) -> tuple[str, str]:
    """A secret as a text holds it, and its body."""
    if form == "token":
        token = "sk-" + "ant-api03-" + secrets.rand(93, seed=seed) + "AA"
        return f"export ANTHROPIC_API_KEY={token}", token
    text, body = key_block(seed, "    " if form == "yaml" else "")
    return (text.replace("\n", "\\n"), body) if form == "one line" else (text, body)


def texts(form: str) -> Iterator[tuple[str, str]]:
    """The secret at every kind of cut: so far from the beginning, and so far from the end. 340 places and more."""
    seed = 0
    for border in BORDERS:
        for back in range(0, 600, 50):
            for near in (border, border * 2 // 3):
                seed += 1
                rng = Random(seed)
                text, body = block(form, seed)
                gap = rng.choice(("\n", " "))
                lead, trail = prose(max(0, near - back), rng, gap), prose(min(LONG, border * 2 + 600), rng, gap)
                yield f"{lead}\n{text}\n{trail}" if seed % 2 else f"{trail}\n{text}\n{lead}", body


def said(form: str, where: str) -> tuple[list[Message], Traces]:
    """A conversation with the secret at every place."""
    messages: list[Message] = []
    bodies = []
    for place, (text, body) in enumerate(texts(form)):
        bodies.append(body)
        if where == "user":
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}]
        elif where == "arguments":
            messages += ran(f"c{place}", {"command": text}, "1 failed")
        elif where == "raw arguments":
            call = {"id": f"c{place}", "type": "function", "function": {"name": "patch", "arguments": text}}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{place}", "content": "ok"},
            ]
        elif where == "json result":
            messages += ran(f"c{place}", {"command": "cat"}, encode_json({"output": text, "exit_code": 0}).decode())
        else:
            messages += ran(f"c{place}", {"command": "cat"}, text)
    return messages, Traces(bodies)


CASES = (
    ("plain", "user"),
    ("yaml", "arguments"),
    ("one line", "raw arguments"),
    ("yaml", "result"),
    ("plain", "json result"),
    ("token", "arguments"),
)


@pytest.mark.parametrize(("form", "where"), CASES)
def test_no_cut_lets_a_piece_of_a_secret_through(form: str, where: str) -> None:
    messages, traces = said(form, where)
    assert len(messages) >= 2 * 340
    numbered = list(enumerate(messages, 1))
    task = SummaryTask(numbered, None, 2_000)
    found: dict[str, set[str]] = {
        "the summary model": traces.of("\n".join(chunks(task.messages, 4_000, lambda text: len(text) // 4))),
        "evidence": traces.of("\n".join(segment.text for segment in Evidence(task.messages, None).segments)),
        "describe": traces.of(encode_json(about(numbered, len)).decode()),
    }
    ledger = Ledger()
    for number, message in numbered:
        ledger.add(number, message)
        calls = calls_of(message)
        made = {
            "index": "\n".join(chunk.text for chunk in searchable_chunks(message)),
            "title": title_of(text_of(message)),
            "clipped": text_of(clipped(message, 900)),
            "shortened arguments": encode_json(shorten_arguments(message).get("tool_calls")).decode(),
            "one line": "\n".join(text_of(pointer(message, call, number)) + describe(call).heading for call in calls),
        }
        for place, text in made.items():
            if place != "shortened arguments" or any(len(call.arguments) > 1_200 for call in calls):
                found.setdefault(place, set()).update(traces.of(text))
    found["ledger"] = traces.of(repr((ledger.facts, ledger.asks, ledger.rules, ledger.actions, ledger.waiting)))
    found["ledger's names"] = traces.of(" ".join((*ledger.vocabulary.frequency, *ledger.files)))
    found["recall"] = traces.of("\n".join(MemoryRecall(messages[:400])._collection.lines))
    assert {place: sorted(pieces)[:3] for place, pieces in found.items() if pieces} == {}


@pytest.mark.parametrize("engine", [ContextCompressor, LcmEngine])
@pytest.mark.parametrize(("form", "where"), [("yaml", "result"), ("plain", "user")])
def test_no_piece_gets_into_a_fold(engine: type[ContextCompressor], form: str, where: str) -> None:
    messages, traces = said(form, where)
    folder = engine(64_000)
    for _ in range(2):
        messages = folder.compress([*messages, {"role": "user", "content": "Go on."}], force=True)
    folds = [encode_json(message).decode() for message in messages if is_fold(message)]
    assert folds
    assert traces.of("\n".join(folds)) == set()
