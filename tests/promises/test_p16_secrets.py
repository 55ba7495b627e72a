"""Promise 16, secrets stay out of summaries and of what a summary model reads; live messages are never altered."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import Message, encode_json, text_of
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.fold import is_fold
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import FactKind, SessionSpec, generate
from leporello.testing.sessions.world import hexes, letters
from leporello.tokens import TokenCounter
from tests.support import checks
from tests.support.rounds import fold_once, rounds

FILLER = generate(SessionSpec(seed=161, messages=30, tokens=6_000, secrets=0, images=0)).messages

CANARIES: dict[str, Callable[[Random], tuple[str, str]]] = {
    "cloud key": lambda rng: _line(
        "AWS_ACCESS_KEY_ID={}", "AKIA" + "".join(rng.choices("ABCDEFGHIJKLMNOP234567", k=16))
    ),
    "code host token": lambda rng: _line("remote: https://x:{}@git.example.org/a.git", "ghp_" + letters(rng, 36)),
    "model key": lambda rng: _line("export ANTHROPIC_API_KEY='{}'", "sk-ant-api03-" + letters(rng, 93) + "AA"),
    "bearer": lambda rng: _line("Authorization: Bearer {}", letters(rng, 40)),
    "jwt": lambda rng: _line("token {}", f"eyJhbGciOiJIUzI1NiJ9.{letters(rng, 40)}.{letters(rng, 43)}"),
    "database address": lambda rng: _line("postgres://app:{}@db.internal:5432/main", letters(rng, 18)),
    "password": lambda rng: _line("DB_PASSWORD={}", letters(rng, 16)),
    "yaml secret": lambda rng: _line("client_secret: {}", hexes(rng, 32)),
}


def _line(form: str, secret: str) -> tuple[str, str]:
    return form.format(secret), secret


def leaking(kind: str, where: str, seed: int) -> tuple[list[Message], str]:
    """A list in which a secret was shown once, some time ago."""
    line, secret = CANARIES[kind](Random(seed))
    call = {"id": "leak", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "env"}'}}
    if where == "call":
        call["function"] = {"name": "terminal", "arguments": encode_json({"command": f"{line} make deploy"}).decode()}
    result = f"HOME=/srv\n{line}\nERROR: deploy failed with that setting" if where == "result" else "ok"
    said = {"user": f"Never lose this setting: {line}", "assistant": "Looking.", "result": "Look.", "call": "Run it."}
    return [
        *FILLER[:8],
        {"role": "assistant", "content": f"I must remember {line}" if where == "assistant" else "Done."},
        {"role": "user", "content": said[where]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "leak", "content": result},
        *FILLER[1:],
        {"role": "user", "content": "Go on."},
    ], secret


@pytest.mark.fault(
    "the ledger reads messages as they are",
    "ledger/ledger.py",
    old="message = masked(without_thoughts(message), given)",
    new="message = dict(message)",
)
@given(st.sampled_from(sorted(CANARIES)), st.sampled_from(("user", "assistant", "result", "call")), st.integers(0, 999))
def test_no_secret_gets_into_a_summary(kind: str, where: str, seed: int) -> None:
    messages, secret = leaking(kind, where, seed)
    done = fold_once(messages, 4_000)
    assert done.report.committed, done.report.reason
    for message in done.messages:
        if is_fold(message):
            assert secret not in text_of(message)


@pytest.mark.fault(
    "a summary task takes messages as they are",
    "summaries/base.py",
    old='(number, masked(message, Given(self.given.get(number, "")))) for',
    new="(number, message) for",
)
@given(st.sampled_from(sorted(CANARIES)), st.sampled_from(("user", "assistant", "result", "call")), st.integers(0, 999))
def test_no_secret_is_sent_to_a_summary_model_or_comes_back_from_it(kind: str, where: str, seed: int) -> None:
    messages, secret = leaking(kind, where, seed)
    line, _ = CANARIES[kind](Random(seed))
    provider = ScriptedProvider(lambda _: f"## Goal\n- Deploy\n\n## Critical Context\n- The setting is {line}\n")
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    done = fold_once(messages, 4_000, summariser=summariser)
    assert provider.requests
    assert secret not in encode_json([list(request.messages) for request in provider.requests]).decode()
    assert not any(secret in text_of(message) for message in done.messages if is_fold(message))


@pytest.mark.fault(
    "kept messages are redacted too",
    "compaction/assemble.py",
    old="        message = item.message\n        if index in plan.open_calls",
    new='        message = {**item.message, "content": "[REDACTED]"}\n        if index in plan.open_calls',
)
@given(st.sampled_from(sorted(CANARIES)), st.integers(0, 999))
def test_live_messages_keep_their_bytes(kind: str, seed: int) -> None:
    line, _ = CANARIES[kind](Random(seed))
    call = {
        "id": "x",
        "type": "function",
        "function": {"name": "terminal", "arguments": encode_json({"command": line}).decode()},
    }
    live: list[Message] = [
        {"role": "user", "content": f"Use {line}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x", "content": line},
        {"role": "assistant", "content": f"Done with {line}"},
    ]
    done = fold_once([*FILLER, {"role": "assistant", "content": "ok"}, *live], 4_000)
    assert done.report.committed
    assert encode_json(done.messages[-4:]) == encode_json(live)


def test_secrets_of_a_long_session_never_reach_a_fold() -> None:
    session = generate(SessionSpec(seed=162, messages=300, tokens=60_000, secrets=30))
    secrets = [fact.text for fact in session.of(FactKind.SECRET)]
    assert len(secrets) == 30
    for done in rounds(session.messages, 24_000, 6):
        folds = "\n".join(text_of(message) for message in done.after if is_fold(message))
        assert [secret for secret in secrets if secret in folds] == []
        assert checks.fold_in(done.after) is not None
