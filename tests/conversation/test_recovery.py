"""What follows from a refusal: the steps, their limits, and that they end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from leporello.conversation.recovery import Facts, OutputCap, Recovery, Remedy, next_step
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict

FACTS = Facts(window=100_000, enabled=True, output=OutputCap(8_000))
OVERFLOW = ErrorVerdict(ErrorKind.INPUT_OVERFLOW)
CAP = ErrorVerdict(ErrorKind.OUTPUT_CAP, allowed_output=512)
THINKING = ErrorVerdict(ErrorKind.MALFORMED, cause="stale_thinking")


def test_an_overflow_is_compacted_three_times() -> None:
    recovery = Recovery()
    for number in (1, 2, 3):
        step = next_step(recovery, OVERFLOW, FACTS)
        assert (step.remedy, step.trigger, step.stated_window) == (Remedy.COMPACT, f"overflow {number}", None)
        recovery = step.after
    assert next_step(recovery, OVERFLOW, FACTS).remedy is Remedy.EXHAUSTED


@pytest.mark.parametrize(("stated", "learned"), [(24_000, 24_000), (100_000, None), (200_000, None), (None, None)])
def test_only_a_smaller_stated_limit_is_learned(stated: int | None, learned: int | None) -> None:
    step = next_step(Recovery(), replace(OVERFLOW, stated_limit=stated), FACTS)
    assert (step.remedy, step.stated_window) == (Remedy.COMPACT, learned)


def test_switched_off_compression_is_never_overridden() -> None:
    step = next_step(Recovery(), replace(OVERFLOW, stated_limit=1_000), structs.replace(FACTS, enabled=False))
    assert (step.remedy, step.reason) == (Remedy.EXHAUSTED, "compression.enabled is false")
    assert step.stated_window is None


@pytest.mark.parametrize(
    ("output", "verdict", "cap"),
    [
        (OutputCap(8_000), CAP, 512),
        (OutputCap(None, 4_000), CAP, 512),
        (OutputCap(8_000), replace(CAP, allowed_output=9_000), 4_000),
        (OutputCap(8_000), replace(CAP, allowed_output=None), 4_000),
        (OutputCap(None, 4_000), replace(CAP, allowed_output=None), 2_000),
        (OutputCap(8_000, room=700), replace(CAP, allowed_output=None), 700),
        (OutputCap(8_000, room=-5), replace(CAP, allowed_output=None), 4_000),
        (OutputCap(8_000, least=6_001), CAP, None),
        (OutputCap(100), replace(CAP, allowed_output=None), None),
        (OutputCap(8_000, fixed=True), CAP, None),
        (OutputCap(8_000, fixed=True), replace(CAP, stated_limit=9_000), 512),
        (OutputCap(0), CAP, None),
        (OutputCap(8_000), replace(CAP, allowed_output=8_000), 4_000),
        (OutputCap(8_000), replace(CAP, allowed_output=7_999), 7_999),
        (OutputCap(8_000, room=700), CAP, 512),
        (OutputCap(8_000, room=8_000), replace(CAP, allowed_output=None), 4_000),
        (OutputCap(8_000), replace(CAP, allowed_output=64), 64),
        (OutputCap(8_000), replace(CAP, allowed_output=63), 4_000),
        (OutputCap(128), replace(CAP, allowed_output=None), 64),
        (OutputCap(127), replace(CAP, allowed_output=None), None),
        (OutputCap(8_000, least=1), replace(CAP, allowed_output=None), 4_000),
        (OutputCap(), replace(CAP, allowed_output=None), None),
        (OutputCap(8_000, fixed=True), replace(CAP, allowed_output=None), 4_000),
    ],
)
def test_a_lower_cap(output: OutputCap, verdict: ErrorVerdict, cap: int | None) -> None:
    """What is allowed, or half; a cap above what the model ever writes is the client's to correct."""
    step = next_step(Recovery(), verdict, structs.replace(FACTS, output=output))
    assert (step.remedy, step.cap) == ((Remedy.LOWER_CAP, cap) if cap else (Remedy.NONE, 0))


def test_thinking_is_left_out_three_times() -> None:
    able, recovery = structs.replace(FACTS, can_drop_thinking=True), Recovery()
    for _ in range(3):
        step = next_step(recovery, THINKING, able)
        assert (step.remedy, step.after) == (Remedy.DROP_THINKING, replace(recovery, other=recovery.other + 1))
        recovery = step.after
    assert next_step(recovery, THINKING, able).remedy is Remedy.NONE


def test_only_what_thinking_caused_is_cured_by_leaving_it_out() -> None:
    able = structs.replace(FACTS, can_drop_thinking=True)
    for cause, remedy in (("stale_thinking", Remedy.DROP_THINKING), ("missing_thinking", Remedy.DROP_THINKING)):
        assert next_step(Recovery(), replace(THINKING, cause=cause), able).remedy is remedy
    assert next_step(Recovery(), replace(THINKING, cause="other"), able).remedy is Remedy.NONE
    assert next_step(Recovery(), OVERFLOW, able).remedy is Remedy.COMPACT


@pytest.mark.parametrize(
    ("done", "trigger"),
    [
        (Recovery(compactions=1), "overflow 2"),
        (Recovery(lowered=2, other=1), "overflow 1"),
        (Recovery(lowered=1, shared=True), "overflow 2"),
        (Recovery(compactions=1, other=1, shared=True), "overflow 3"),
    ],
)
def test_a_compaction_is_numbered_among_what_counts(done: Recovery, trigger: str) -> None:
    step = next_step(done, OVERFLOW, FACTS)
    assert (step.trigger, step.after) == (trigger, replace(done, compactions=done.compactions + 1))


@pytest.mark.parametrize("done", [Recovery(1, 1, 1, True), Recovery(0, 3, 0, True), Recovery(0, 0, 3, True)])
def test_where_a_client_waits_three_remedies_are_all(done: Recovery) -> None:
    able = structs.replace(FACTS, can_drop_thinking=True)
    assert next_step(done, OVERFLOW, able).remedy is Remedy.EXHAUSTED
    assert next_step(done, CAP, able).remedy is Remedy.NONE
    assert next_step(done, THINKING, able).remedy is Remedy.NONE


def test_thinking_is_left_out_where_it_can_be() -> None:
    able = structs.replace(FACTS, can_drop_thinking=True)
    assert next_step(Recovery(), THINKING, able).remedy is Remedy.DROP_THINKING
    assert next_step(Recovery(), THINKING, FACTS).remedy is Remedy.NONE


@pytest.mark.parametrize("kind", [kind for kind in ErrorKind if kind is not ErrorKind.OUTPUT_CAP])
def test_everything_else_stands(kind: ErrorKind) -> None:
    verdict = ErrorVerdict(kind)
    step = next_step(Recovery(), verdict, FACTS)
    assert (step.remedy is Remedy.COMPACT) is verdict.foldable
    assert step.remedy in (Remedy.COMPACT, Remedy.NONE)


def test_counts_are_apart_or_shared() -> None:
    """An agent tries each remedy three times; where a client waits, all together are tried three times."""
    for shared, remedy in ((False, Remedy.COMPACT), (True, Remedy.EXHAUSTED)):
        recovery = Recovery(shared=shared)
        for _ in range(3):
            recovery = next_step(recovery, CAP, FACTS).after
        assert next_step(recovery, CAP, FACTS).remedy is Remedy.NONE
        assert next_step(recovery, OVERFLOW, FACTS).remedy is remedy


@given(st.lists(st.sampled_from((OVERFLOW, CAP, THINKING)), max_size=20), st.booleans(), st.integers(0, 10**5))
def test_it_ends(refusals: list[ErrorVerdict], shared: bool, cap: int) -> None:
    """Whatever is refused however often: at most three tries, of each remedy or of all."""
    facts = structs.replace(FACTS, can_drop_thinking=True)
    recovery, tries = Recovery(shared=shared), 0
    for verdict in refusals:
        step = next_step(recovery, verdict, structs.replace(facts, output=OutputCap(cap)))
        if step.remedy in (Remedy.NONE, Remedy.EXHAUSTED):
            assert step.after == recovery
            continue
        tries += 1
        if step.remedy is Remedy.LOWER_CAP:
            assert 64 <= step.cap < cap
            cap = step.cap
        recovery = step.after
    assert tries <= 3 * (1 if shared else 3)
