"""Laws of the bill that hold for any conversation: bounds, marks, order, and that the wire says the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.billing import READ_RATE, SHORT, WRITE_RATE, CacheBlock, CacheSim, Prompt, PromptReader
from leporello.caching import LAYOUTS, MARK
from leporello.compaction.assemble import repair
from leporello.compaction.view import Item
from leporello.dialects import ANTHROPIC, Target
from leporello.messages import Message, encode_json
from leporello.models.facts import CacheRules, model_facts
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter

ANTHROPIC_RULES = CacheRules(1_024, lookback=20, breakpoints=4, ttl_seconds=300, long_ttl_seconds=3_600)
EXACT = CacheRules(1_024, breakpoints=4, ttl_seconds=1_800)
AUTOMATIC = CacheRules(1_024, ttl_seconds=300)
ALL_RULES = pytest.mark.parametrize(
    "rules", [ANTHROPIC_RULES, EXACT, AUTOMATIC], ids=["anthropic", "exact", "automatic"]
)
CLAUDE = "claude-sonnet-4-5"
COUNTER = TokenCounter.for_model(CLAUDE)


@st.composite
def growing(draw: st.DrawFn) -> list[tuple[list[CacheBlock], float]]:
    """Requests of one conversation with their times: each repeats the one before, or begins anew from somewhere."""
    blocks: list[CacheBlock] = []
    now = 0.0
    found = []
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from([1.0, 30.0, 400.0, 4_000.0]))
        if blocks and draw(st.integers(0, 5)) == 0:
            blocks = blocks[: draw(st.integers(0, len(blocks)))]
        added = draw(st.lists(st.integers(1, 3_000), min_size=1, max_size=30))
        blocks = [*blocks, *(CacheBlock(f"{number}.{place}".encode(), size) for place, size in enumerate(added))]
        found.append((blocks, now))
    return found


def marked(blocks: list[CacheBlock], places: set[int], life: str = "5m") -> Prompt:
    kept = {place for place in places if place < len(blocks)}
    return Prompt.of([CacheBlock(b.data, b.tokens, life if place in kept else None) for place, b in enumerate(blocks)])


@ALL_RULES
@given(requests=growing())
def test_no_bill_is_below_the_bound_or_above_writing_everything(
    rules: CacheRules, requests: list[tuple[list[CacheBlock], float]]
) -> None:
    """At best all that earlier requests began with is read; at worst everything is written."""
    sim = CacheSim(rules)
    seen: list[list[CacheBlock]] = []
    for blocks, now in requests:
        bill = sim.bill(marked(blocks, {0, len(blocks) - 1}), now)
        total = sum(block.tokens for block in blocks)
        shared = max((_shared(blocks, other) for other in seen), default=0)
        assert READ_RATE * shared + (total - shared) <= bill.units + 1e-6
        assert bill.units <= WRITE_RATE * total + 1e-6
        assert bill.prompt == total
        seen.append(blocks)


def _shared(one: list[CacheBlock], other: list[CacheBlock]) -> int:
    tokens = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        tokens += first.tokens
    return tokens


@given(requests=growing(), places=st.sets(st.integers(0, 60), max_size=2))
def test_more_marks_never_cost_reads(requests: list[tuple[list[CacheBlock], float]], places: set[int]) -> None:
    few, many = CacheSim(ANTHROPIC_RULES), CacheSim(ANTHROPIC_RULES)
    for blocks, now in requests:
        end = len(blocks) - 1
        fewer = few.bill(marked(blocks, {end}), now)
        more = many.bill(marked(blocks, {end} | places), now)
        assert more.read >= fewer.read
        assert more.uncached <= fewer.uncached


@ALL_RULES
@given(requests=growing())
def test_a_longer_life_never_costs_reads(rules: CacheRules, requests: list[tuple[list[CacheBlock], float]]) -> None:
    short, long = CacheSim(rules), CacheSim(rules)
    for blocks, now in requests:
        ends = {len(blocks) - 1}
        assert long.bill(marked(blocks, ends, "1h"), now).read >= short.bill(marked(blocks, ends), now).read


@ALL_RULES
def test_the_order_of_conversations_does_not_matter(rules: CacheRules) -> None:
    """Conversations that share nothing cost the same in any order, alone or interleaved."""
    rows = {name: [CacheBlock(f"{name}{place}".encode(), 700) for place in range(9)] for name in "abc"}

    def total(order: tuple[str, ...]) -> float:
        sim = CacheSim(rules)
        sent = [marked(rows[name][:size], {size - 1}) for name in order for size in (3, 6, 9)]
        return round(sum(sim.bill(prompt, 1.0).units for prompt in sent), 3)

    costs = {total(order) for order in permutations("abc")}
    assert len(costs) == 1
    sim = CacheSim(rules)
    mixed = sum(sim.bill(marked(rows[name][:size], {size - 1}), 1.0).units for size in (3, 6, 9) for name in "abc")
    assert costs == {round(mixed, 3)}


def test_the_order_in_which_marks_are_given_does_not_matter() -> None:
    row = [CacheBlock(f"{place}".encode(), 700) for place in range(9)]
    prompt = marked(row, {1, 4, 8})
    for order in permutations(prompt.marks.items()):
        again = Prompt(prompt.blocks, prompt.prefixes, prompt.totals, dict(order))
        one, other = CacheSim(ANTHROPIC_RULES), CacheSim(ANTHROPIC_RULES)
        assert [one.bill(prompt, now) for now in (0, 1)] == [other.bill(again, now) for now in (0, 1)]


def test_a_cache_key_separates() -> None:
    """Two keys share nothing, one key does."""
    messages: list[Message] = [{"role": "user", "content": "word " * 3_000}]
    sim = CacheSim(AUTOMATIC)
    assert sim.bill(PromptReader(COUNTER, "one").read(messages), 0).read == 0
    assert sim.bill(PromptReader(COUNTER, "two").read(messages), 1).read == 0
    assert sim.bill(PromptReader(COUNTER, "one").read(messages), 2).read > 2_000


def test_a_price_step_holds_for_the_whole_request() -> None:
    facts = model_facts("claude-sonnet-4-5")
    if not facts.steps:
        facts = model_facts("gemini-2.5-pro")
    step = facts.steps[0]
    sim = CacheSim(facts.cache)
    below = sim.bill([CacheBlock(b"a", step.above)], 0).cost(facts, 100)
    above = CacheSim(facts.cache).bill([CacheBlock(b"a", step.above + 1)], 0).cost(facts, 100)
    assert below is not None
    assert above is not None
    assert facts.prices is not None
    assert below == pytest.approx((step.above * facts.prices.input + 100 * facts.prices.output) / 1e6)
    assert above == pytest.approx(((step.above + 1) * step.prices.input + 100 * step.prices.output) / 1e6)


def _wire(messages: Sequence[Message]) -> list[tuple[bytes, str | None]]:
    """The blocks as Anthropic's API gets them, each with the life its mark asks for."""
    body = ANTHROPIC.encode_request(messages, target=Target("anthropic", CLAUDE, cache_marks=True, native=True))
    parts: list[Any] = [*(body.get("system") or []), *(part for turn in body["messages"] for part in turn["content"])]
    return [
        (encode_json({**part, MARK: None}), (part[MARK].get("ttl") or SHORT) if MARK in part else None)
        for part in parts
    ]


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_what_is_billed_is_what_is_sent(layout: str) -> None:
    """As many blocks as on the wire, marks at the same places, and what two requests share is the same."""
    session = generate(seed=5, messages=60, tokens=30_000, images=0).messages
    reader = PromptReader(COUNTER)
    before: tuple[list[bytes], Sequence[bytes]] = ([], [])
    for size in range(2, len(session) + 1):
        if session[size - 1]["role"] == "assistant":
            continue
        sent = [*session[: size // 3], {"role": "user", "content": "A fold"}, *session[size // 2 : size]]
        messages = session[:size] if size % 7 else repaired(sent)
        laid = LAYOUTS[layout](messages)
        prompt, wire = reader.read(messages, (), laid), _wire(laid)
        assert len(prompt.blocks) == len(wire)
        assert dict(prompt.marks) == {place: life for place, (_, life) in enumerate(wire) if life}
        data = [block for block, _ in wire]
        assert _common(data, before[0]) == _common(prompt.prefixes, before[1])
        before = data, prompt.prefixes


def repaired(messages: list[Message]) -> list[Message]:
    """The list with every call answered, as a compaction leaves it."""
    return [item.message for item in repair([Item(place, message) for place, message in enumerate(messages)])]


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many blocks two requests begin with alike; hashes of beginnings and blocks say the same."""
    shared = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        shared += 1
    return shared
