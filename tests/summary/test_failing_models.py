"""Summary models that go wrong in the ways models do: the fold is made all the same, and nothing false is in it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from leporello.events import Outcome
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import GeneratedSession, SessionSpec, generate
from leporello.tokens import TokenCounter
from leporello.turns import validate
from tests.support import checks
from tests.support.rounds import fold_once

COUNTER = TokenCounter.for_model(None)
WINDOW = 8_000
INVENTED = "/srv/nowhere/zz_invented_9931.py"


def _garbage(_: ModelRequest) -> str:
    rng = Random(7)
    return "".join(chr(rng.randrange(33, 0x2FFF)) for _ in range(4_000))


ANSWERS: dict[str, Callable[[ModelRequest], str]] = {
    "garbage": _garbage,
    "empty": lambda _: "",
    "only headings": lambda _: "## Goal\n\n## Key Decisions\n\n## Remaining Work\n",
    "the answer of the conversation": lambda _: "Sure, I've changed the retry logic as you asked. Anything else?",
    "an answer under a heading": lambda _: f"## Completed Actions\n- I have now rewritten {INVENTED} as you asked\n",
    "another language": lambda _: f"## Ziel\n- Die Datei {INVENTED} wurde gelöscht\n\n## Offen\n- Nichts mehr zu tun\n",
    "another language, right headings": lambda _: (
        f"## Goal\n- 已删除 {INVENTED}，端口改为 64999\n\n## Active State\n- 一切正常\n"
    ),
    "ten times too long": lambda _: "## Critical Context\n" + f"- {INVENTED} holds the answer, part 1\n" * 8_000,
}


@pytest.fixture(scope="module")
def session() -> GeneratedSession:
    return generate(SessionSpec(seed=61, messages=120, tokens=30_000))


@pytest.mark.parametrize("answer", list(ANSWERS))
def test_the_fold_is_made_and_holds_the_rules_and_no_invention(session: GeneratedSession, answer: str) -> None:
    provider = ScriptedProvider(ANSWERS[answer], window=8_192, sleep=lambda _: None)
    summariser = ModelSummariser([SummaryModel(provider, "small-model", 8_192)], COUNTER)
    done = fold_once(session.messages, WINDOW, summariser=summariser)
    assert done.report.outcome is Outcome.COMMITTED, done.report.reason
    assert validate(done.messages) == []
    assert COUNTER.messages(done.messages) < WINDOW
    text = checks.context_text(done.messages)
    assert INVENTED not in text
    assert "64999" not in text
    for rule in session.live_rules():
        assert checks.holds(done.messages, rule.text), rule.text
    assert done.report.verification.lines_dropped or done.report.warnings or done.report.summariser == "model-free"
