"""The session generator: same seed same session, always valid, and every planted fact stands where it says."""

from __future__ import annotations

import json

import pytest

from leporello.messages import PartKind, parts_of, text_of
from leporello.testing.sessions import FactKind, GeneratedSession, SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate

SPECS = [
    SessionSpec(seed=1, messages=1_200),
    SessionSpec(seed=2, messages=400, tokens=60_000),
    SessionSpec(seed=3, messages=300, style=Style.CHAT),
    SessionSpec(seed=4, messages=300, style=Style.ONE_ASK),
    SessionSpec(seed=5, messages=300, style=Style.ALL_TOOL, open_calls=True, reuse_call_ids=True),
    SessionSpec(seed=6, messages=1, rules=0, secrets=0),
]


@pytest.fixture(params=SPECS, ids=lambda spec: f"{spec.style}-{spec.messages}")
def session(request: pytest.FixtureRequest) -> GeneratedSession:
    return generate(request.param)


def test_the_same_spec_gives_the_same_session(session: GeneratedSession) -> None:
    again = generate(session.spec)
    assert again.messages == session.messages
    assert again.facts == session.facts


def test_another_seed_gives_another_session() -> None:
    assert generate(seed=1, messages=50).messages != generate(seed=2, messages=50).messages


def test_a_session_is_valid_and_long_enough(session: GeneratedSession) -> None:
    assert validate(session.messages) == []
    assert session.spec.messages <= len(session.messages) < session.spec.messages + 30
    assert (open_group(session.messages) is not None) == session.spec.open_calls


def test_every_fact_stands_in_its_message(session: GeneratedSession) -> None:
    for fact in session.facts:
        raw = json.dumps(session.messages[fact.index], ensure_ascii=False)
        assert json.dumps(fact.text, ensure_ascii=False)[1:-1] in raw, fact


def test_a_long_session_holds_what_real_ones_hold() -> None:
    session = generate(seed=1, messages=1_200)
    assert any(len(message.get("tool_calls", ())) > 3 for message in session.messages)
    assert any(part.kind is PartKind.IMAGE for message in session.messages for part in parts_of(message))
    assert any(len(text_of(message)) > 60_000 for message in session.messages)
    results = [text_of(message) for message in session.messages if message["role"] == "tool"]
    assert len(set(results)) < len(results), "no result occurs twice: nothing to de-duplicate"
    rules = list(session.of(FactKind.RULE))
    assert {"en", "zh"} <= {rule.language for rule in rules}
    assert any(rule.ended_at for rule in rules), "no rule was ever revoked"
    assert any(fact.replaced_by for fact in session.of(FactKind.DECISION)), "no decision was ever changed"
    for kind in FactKind:
        assert any(session.of(kind)), f"nothing of kind {kind} was planted"


def test_a_revoked_rule_is_not_alive_after_its_revocation() -> None:
    session = generate(seed=1, messages=1_200)
    rule = next(fact for fact in session.of(FactKind.RULE) if fact.ended_at)
    assert rule in session.live_rules(rule.ended_at)
    assert rule.ended_at is not None
    assert rule not in session.live_rules(rule.ended_at + 1)


@pytest.mark.parametrize("tokens", [60_000, 150_000, 400_000])
def test_a_token_target_is_met_within_a_third(tokens: int) -> None:
    session = generate(seed=9, messages=400, tokens=tokens)
    assert tokens * 2 / 3 < TokenCounter.for_model(None).messages(session.messages) < tokens * 4 / 3
