"""The ledger: what it takes from messages, at what cost, and how it survives as bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.ledger import ledger as snapshot
from leporello.ledger.importance import (
    Later,
    RankedUnit,
    Ranking,
    explain,
    later_features,
    later_score,
    text_features,
    weigh,
)
from leporello.ledger.ledger import Ledger
from leporello.ledger.line_features import CUT_MARK, clip, lines_of, sentences_of
from leporello.testing.sessions import generate


def ranked(ledger: Ledger) -> list[RankedUnit]:
    return list(Ranking(ledger, ledger.facts).others())


@settings(max_examples=20)
@given(st.integers(0, 1_000), st.integers(1, 39))
def test_the_lazy_order_is_the_order_of_worth(seed: int, first: int) -> None:
    """What a unit can be worth at most is never below what it is worth, whatever comes later."""
    ledger = Ledger()
    for number, message in enumerate(generate(seed=seed, messages=40).messages, 1):
        ledger.add(number, message)
    found = list(Ranking(ledger, range(first, ledger.last + 1)).others())
    assert [c.worth for c in found] == sorted((c.worth for c in found), reverse=True)
    assert len(found) == sum(
        len(facts.units) for number, facts in ledger.facts.items() if number >= first and facts.role not in ("", "user")
    )


def test_actions_files_and_outcomes_come_from_calls_and_results() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": '{"path": "src/a.py"}'}}
    test = {"id": "d", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "pytest -q"}'}}
    ledger = Ledger()
    for number, message in enumerate(
        [
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "", "tool_calls": [call, test]},
            {"role": "tool", "tool_call_id": "d", "content": "exit_code: 1\nFAILED tests/test_a.py::test_x"},
            {"role": "tool", "tool_call_id": "c", "content": "patched"},
        ],
        1,
    ):
        ledger.add(number, message)
    assert [(a.call.work, a.failed) for a in ledger.actions] == [("check", True), ("edit", False)]
    assert ledger.files["src/a.py"].edits == 1
    lines = [c.text for c in Ranking(ledger, [3]).others()]
    assert "FAILED tests/test_a.py::test_x" in lines


@settings(max_examples=10)
@given(st.integers(0, 1_000))
def test_a_ledger_read_back_from_bytes_is_the_same(seed: int) -> None:
    ledger = Ledger()
    for number, message in enumerate(generate(seed=seed, messages=40).messages, 1):
        ledger.add(number, message)
    back = snapshot.load(snapshot.save(ledger))
    assert back.facts == ledger.facts
    assert back.rules == ledger.rules
    assert ranked(back) == ranked(ledger)


def test_lone_surrogates_do_not_stop_a_snapshot() -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": "never write \ud800 here"})
    assert snapshot.load(snapshot.save(ledger)).rules[0].text == "never write ? here"


def test_adding_a_message_twice_changes_nothing() -> None:
    messages = generate(seed=3, messages=60).messages
    ledger = Ledger()
    for _ in range(2):
        for number, message in enumerate(messages, 1):
            ledger.add(number, message)
    once = Ledger()
    for number, message in enumerate(messages, 1):
        once.add(number, message)
    assert ledger.rules == once.rules
    assert ledger.actions == once.actions
    assert ledger.occurrences.frequency == once.occurrences.frequency


@given(st.text(max_size=600), st.integers(60, 200))
def test_a_clipped_text_is_its_beginning_and_end_around_a_mark(text: str, limit: int) -> None:
    shown = clip(text, limit)
    if len(text) <= limit:
        assert shown == text
    else:
        front, mark, back = shown.partition(CUT_MARK)
        assert mark
        assert text.startswith(front)
        assert text.endswith(back)


@given(st.text(max_size=400))
def test_units_are_verbatim_pieces(text: str) -> None:
    for line, _, _ in lines_of(text):
        assert line in text
    for sentence in sentences_of(text):
        assert sentence in text


def test_the_score_of_a_line_can_be_explained() -> None:
    features = text_features("FAILED tests/test_a.py::test_x - assert 1 == 2", "tool", 40, 60, "check")
    shares = explain(features)
    assert abs(sum(share for _, share in shares) - weigh(features)) < 1e-9
    assert len(shares) > 3


@given(st.sampled_from(["user", "assistant", "tool"]), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_the_quick_score_of_later_events_is_the_weighted_sum(role: str, ids: int, cited: int, repeats: int) -> None:
    later = Later(cited=cited, reused=cited // 2, rarity=1 / repeats, repeats=repeats)
    assert abs(later_score(role, ids, later) - weigh(later_features(role, ids, later))) < 1e-9


def test_an_error_line_outweighs_a_plain_one() -> None:
    error = weigh(text_features("E   AttributeError: 'Port' object has no attribute 'bind'", "tool", 40, 60, "check"))
    plain = weigh(text_features("    def helper(self):", "tool", 40, 60, "check"))
    assert error > plain
