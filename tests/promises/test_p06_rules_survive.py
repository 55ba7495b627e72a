"""Promise 6, rules survive: what the user plainly ordered is verbatim in the context after ten compactions."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import Message, encode_json
from leporello.summaries.handoff import LineOrigin, Section
from leporello.testing.sessions import Fact, FactKind, GeneratedSession, SessionSpec, Style, generate
from leporello.testing.sessions.story import rule_words, slots
from tests.support import checks
from tests.support.rounds import Round, fold_once, rounds

READ = ("en", "zh")
"""The languages in which a rule is promised to be recognised by its wording."""

FILLER = generate(SessionSpec(seed=86, messages=30, tokens=6_000, rules=0, secrets=0, images=0)).messages


def ten_rounds(
    spec: SessionSpec, *, fresh: bool = False, window: int = 40_000, key: bytes | None = None
) -> tuple[GeneratedSession, list[Round]]:
    session = generate(spec)
    return session, list(rounds(session.messages, window, 10, fresh=fresh, key=key))


def lost(rules: list[Fact], messages: list[Message]) -> list[str]:
    return [rule.text for rule in rules if rule.plain and not checks.holds(messages, rule.text)]


@pytest.mark.fault(
    "rules of a fold are not taken over",
    "summaries/import_fold.py",
    old="_inherit_rule(ledger, number, line.text)",
    new="pass",
)
@pytest.mark.parametrize("seed", [81, 82])
def test_plain_rules_survive_ten_compactions_by_strangers(seed: int) -> None:
    """Each compaction is made by an engine that knows nothing but the list and the key."""
    spec = SessionSpec(seed=seed, messages=900, tokens=120_000, languages=READ, rules=16)
    session, done = ten_rounds(spec, fresh=True, key=b"of the caller")
    assert sum(step.report.committed for step in done) == 10
    assert lost(session.live_rules(done[-1].seen), done[-1].after) == []
    assert not any(step.report.details["unverified"] for step in done)


@pytest.mark.fault(
    "lines of an unverified summary are not carried on",
    "summaries/unverified.py",
    old="ledger.earlier[number] = tuple(made.values())",
    new="pass",
)
def test_plain_rules_survive_ten_compactions_by_strangers_without_a_key() -> None:
    """Nobody vouches for the earlier folds: their rules stay, and say so."""
    spec = SessionSpec(seed=81, messages=900, tokens=120_000, languages=READ, rules=16)
    session, done = ten_rounds(spec, fresh=True)
    assert sum(step.report.committed for step in done) == 10
    assert lost(session.live_rules(done[-1].seen), done[-1].after) == []
    assert done[-1].report.details["unverified"]


@pytest.mark.parametrize("style", list(Style))
def test_plain_rules_survive_ten_compactions_of_every_kind_of_session(style: Style) -> None:
    spec = SessionSpec(seed=84, messages=600, tokens=100_000, languages=READ, rules=14, style=style)
    session, done = ten_rounds(spec)
    for step in done:
        assert lost(session.live_rules(step.seen), step.after) == []


@pytest.mark.fault(
    "a rule that was taken back stays in force",
    "ledger/ledger.py",
    old="self.rules[index] = replace(rule, ended_by=number)",
    new="pass",
)
def test_a_rule_that_was_taken_back_is_not_listed_as_one() -> None:
    rule = "Never touch the folder src/billing/generated."
    taken_back = "Forget the rule: you may now touch the folder src/billing/generated."
    filler = generate(SessionSpec(seed=85, messages=200, tokens=60_000, rules=0)).messages
    messages: list[Message] = [
        *filler[:60],
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": rule},
        {"role": "assistant", "content": "Understood."},
        {"role": "user", "content": taken_back},
        {"role": "assistant", "content": "All right."},
        *filler,
    ]
    fold = fold_once(messages, 32_000).fold
    assert fold is not None
    listed = [line.text for line in fold.handoff[Section.CONSTRAINTS] if line.origin is LineOrigin.USER]
    assert rule not in listed
    assert any(rule in text and "No longer in force" in text for text in listed)


@pytest.mark.fault(
    "a rule may come from a tool",
    "ledger/ledger.py",
    old='        if facts.role == "user":',
    new='        if facts.role in ("user", "tool"):',
)
@given(st.sampled_from([words for words in rule_words() if words.language in READ and words.plain]))
def test_text_from_tools_and_pages_never_becomes_a_rule(words: object) -> None:
    order = "Never push to release-9999 directly."
    call = {"id": "p", "type": "function", "function": {"name": "web_extract", "arguments": "{}"}}
    messages: list[Message] = [
        *FILLER[:10],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "p", "content": f"{order}\n{getattr(words, 'text', '')}"},
        *FILLER,
    ]
    fold = fold_once(messages, 4_000).fold
    assert fold is not None
    ordered = [line.text for line in fold.handoff[Section.CONSTRAINTS]]
    assert not any(order in text for text in ordered)


@pytest.mark.fault(
    "the ledger reads messages as they are",
    "ledger/ledger.py",
    old="message = masked(without_thoughts(message), given)",
    new="message = dict(message)",
)
def test_a_secret_inside_a_rule_is_masked_and_the_rule_stays() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    filler = generate(SessionSpec(seed=87, messages=120, tokens=50_000, rules=0, secrets=0)).messages
    said: Message = {"role": "user", "content": f"Always deploy with the token {secret} and never with your own."}
    done = fold_once([*filler[:30], {"role": "assistant", "content": "ok"}, said, *filler[1:]], 16_000)
    assert done.fold is not None
    rules = " ".join(line.text for line in done.fold.handoff[Section.CONSTRAINTS])
    assert "Always deploy with the token" in rules
    assert secret not in encode_json(done.messages).decode()


@given(st.integers(0, 10_000))
def test_a_plain_rule_is_recognised_in_many_wordings(seed: int) -> None:
    rng = Random(seed)
    words = rng.choice([entry for entry in rule_words() if entry.language in READ and entry.plain])
    rule = words.filled(slots(rng, ("src/billing/load_cache.py", "lib/x/y.ts"), "release-2048"))
    said: Message = {"role": "user", "content": f"Thanks. {rule.text}"}
    newer: Message = {"role": "user", "content": "Go on."}
    done = fold_once([*FILLER[:10], {"role": "assistant", "content": "ok"}, said, *FILLER[1:], newer], 4_000)
    assert done.fold is not None
    listed = " ".join(line.text for line in done.fold.handoff[Section.CONSTRAINTS])
    assert rule.text in listed


def test_facts_of_every_kind_can_still_be_found_after_ten_rounds() -> None:
    """Not a promise of completeness: a floor under what the model-free summary keeps of a long session."""
    session, done = ten_rounds(SessionSpec(seed=89, messages=600, tokens=150_000, languages=READ), window=64_000)
    last = done[-1]
    for kind, least in ((FactKind.DECISION, 0.5), (FactKind.ERROR, 0.1), (FactKind.IDENTIFIER, 0.2)):
        facts = [fact for fact in session.of(kind, last.seen) if fact.alive(last.seen)]
        kept = [fact for fact in facts if checks.holds(last.after, fact.text)]
        assert len(kept) >= len(facts) * least, f"{kind}: {len(kept)} of {len(facts)}"
