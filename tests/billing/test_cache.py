"""The cache simulator bills by the vendors' published rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.billing import CacheBill, CacheBlock, CacheMarksRefused, CacheSim
from leporello.models.facts import CacheRules

ANTHROPIC = CacheRules(1_024, lookback=20, breakpoints=4, ttl_seconds=300, long_ttl_seconds=3_600)
EXACT = CacheRules(1_024, breakpoints=4, ttl_seconds=1_800)
AUTOMATIC = CacheRules(1_024, ttl_seconds=300)


def row(*names: str, tokens: int = 500) -> list[CacheBlock]:
    """Blocks of one name each; a trailing `*` marks one for 5 minutes, `!` for an hour."""
    marks = {"*": "5m", "!": "1h"}
    return [CacheBlock(name.rstrip("*!").encode(), tokens, marks.get(name[-1])) for name in names]


class TestAnthropic:
    def test_without_marks_nothing_is_cached(self) -> None:
        sim = CacheSim(ANTHROPIC)
        assert sim.bill(row("a", "b", "c"), 0) == CacheBill(0, 0, 1_500)
        assert sim.bill(row("a", "b", "c"), 1) == CacheBill(0, 0, 1_500)

    def test_the_prefix_up_to_the_last_mark_is_written_then_read(self) -> None:
        sim = CacheSim(ANTHROPIC)
        assert sim.bill(row("a", "b", "c*", "d"), 0) == CacheBill(read=0, write=1_500, uncached=500)
        assert sim.bill(row("a", "b", "c", "d", "e*"), 1) == CacheBill(read=1_500, write=1_000, uncached=0)

    def test_a_change_early_in_the_prompt_loses_everything(self) -> None:
        sim = CacheSim(ANTHROPIC)
        sim.bill(row("a", "b", "c*"), 0)
        assert sim.bill(row("x", "b", "c*"), 1).read == 0

    def test_below_the_minimum_nothing_is_cached(self) -> None:
        sim = CacheSim(ANTHROPIC)
        assert sim.bill(row("a", "b*"), 0) == CacheBill(0, 0, 1_000)
        assert sim.bill(row("a", "b*"), 1) == CacheBill(0, 0, 1_000)

    def test_a_read_is_found_up_to_twenty_blocks_back_and_not_further(self) -> None:
        first = ["s", "t", "u*"]
        near = ["s", "t", "u", *(f"n{i}" for i in range(18)), "last*"]
        far = ["s", "t", "u", *(f"n{i}" for i in range(19)), "last*"]
        sim = CacheSim(ANTHROPIC)
        sim.bill(row(*first), 0)
        assert sim.bill(row(*near), 1).read == 1_500
        sim = CacheSim(ANTHROPIC)
        sim.bill(row(*first), 0)
        assert sim.bill(row(*far), 1).read == 0

    def test_an_earlier_mark_helps_where_the_last_one_looks_too_short(self) -> None:
        sim = CacheSim(ANTHROPIC)
        sim.bill(row("s", "t", "u*"), 0)
        many = ["s", "t", "u*", *(f"n{i}" for i in range(40)), "last*"]
        assert sim.bill(row(*many), 1).read == 1_500

    def test_an_entry_dies_after_its_time_and_a_read_renews_it(self) -> None:
        sim = CacheSim(ANTHROPIC)
        sim.bill(row("a", "b", "c*"), 0)
        assert sim.bill(row("a", "b", "c*"), 299).read == 1_500
        assert sim.bill(row("a", "b", "c*"), 598).read == 1_500
        assert sim.bill(row("a", "b", "c*"), 598 + 300) == CacheBill(0, 1_500, 0)

    def test_an_hour_long_mark_lives_an_hour_and_is_billed_apart(self) -> None:
        sim = CacheSim(ANTHROPIC)
        assert sim.bill(row("a", "b", "c!", "d*"), 0) == CacheBill(0, 2_000, 0, long_write=1_500)
        assert sim.bill(row("a", "b", "c!", "d*"), 1_800) == CacheBill(1_500, 500, 0)

    def test_five_marks_or_a_long_one_behind_a_short_one_are_refused(self) -> None:
        with pytest.raises(CacheMarksRefused, match="at most 4"):
            CacheSim(ANTHROPIC).bill(row("a*", "b*", "c*", "d*", "e*"), 0)
        with pytest.raises(CacheMarksRefused, match="behind"):
            CacheSim(ANTHROPIC).bill(row("a", "b*", "c!"), 0)


class TestExactMarks:
    def test_the_end_of_every_request_is_written_without_asking(self) -> None:
        sim = CacheSim(EXACT)
        assert sim.bill(row("a", "b", "c"), 0) == CacheBill(0, 1_500, 0)
        assert sim.bill(row("a", "b", "c", "d"), 1) == CacheBill(1_500, 500, 0)

    def test_there_is_no_lookback_limit_but_no_shorter_match_either(self) -> None:
        sim = CacheSim(EXACT)
        sim.bill(row("a", "b", "c"), 0)
        assert sim.bill(row("a", "b", "c", *(f"n{i}" for i in range(60))), 1).read == 1_500
        assert sim.bill(row("a", "b", "x"), 2).read == 0


class TestAutomatic:
    def test_the_longest_common_prefix_is_read_in_steps_of_128(self) -> None:
        sim = CacheSim(AUTOMATIC)
        assert sim.bill(row("a", "b", "c"), 0) == CacheBill(0, 0, 1_500)
        assert sim.bill(row("a", "b", "c", "d"), 1) == CacheBill(1_408, 0, 592)

    def test_a_changed_block_counts_up_to_the_change(self) -> None:
        sim = CacheSim(AUTOMATIC)
        sim.bill([CacheBlock(b"x" * 4_000, 2_000), CacheBlock(b"y" * 4_000, 2_000)], 0)
        changed = [CacheBlock(b"x" * 4_000, 2_000), CacheBlock(b"y" * 2_000 + b"z" * 2_000, 2_000)]
        assert sim.bill(changed, 1).read == 3_000 // 128 * 128

    def test_nothing_below_1024_tokens(self) -> None:
        sim = CacheSim(AUTOMATIC)
        sim.bill(row("a", "b"), 0)
        assert sim.bill(row("a", "b"), 1) == CacheBill(0, 0, 1_000)


@pytest.mark.parametrize("rules", [ANTHROPIC, EXACT, AUTOMATIC], ids=["anthropic", "exact", "automatic"])
@given(
    requests=st.lists(
        st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 900)), min_size=1, max_size=30), max_size=6
    ),
    gaps=st.lists(st.integers(0, 400), min_size=6, max_size=6),
)
def test_every_token_is_billed_exactly_once(
    rules: CacheRules, requests: list[list[tuple[str, int]]], gaps: list[int]
) -> None:
    sim = CacheSim(rules)
    now = 0.0
    for request, gap in zip(requests, gaps, strict=False):
        now += gap
        blocks = [
            CacheBlock(f"{name}{size}".encode(), size, "5m" if i % 9 == 8 else None)
            for i, (name, size) in enumerate(request)
        ]
        bill = sim.bill(blocks, now)
        assert bill.read + bill.write + bill.uncached == sum(block.tokens for block in blocks)
        assert min(bill.read, bill.write, bill.uncached, bill.long_write) >= 0
