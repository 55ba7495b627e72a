"""Which tools stand in the requests: never one in use is hidden, and nothing changes while the cache is warm."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from leporello.conversation.tool_schemas import ToolSet, ToolUse, brought_back, chosen_anew, matching
from leporello.models import Limits, model_facts
from leporello.policy.decision import CompactionState, Occasion, Situation
from leporello.policy.prices import price_table
from leporello.policy.state import COLD, cache_broken

NAMES = st.sampled_from([f"tool_{letter}" for letter in "abcdefgh"])
SIZES = st.dictionaries(NAMES, st.integers(1, 2_000))


@given(SIZES, st.sets(NAMES), st.integers(0, 5_000), st.integers(0, 20), st.lists(NAMES, unique=True))
def test_no_tool_in_use_or_looked_for_is_hidden(
    sizes: dict[str, int], used: set[str], room: int, calls: int, found: list[str]
) -> None:
    kept = ToolSet(1, found=tuple(found))
    made = chosen_anew(kept, 2, ToolUse(sizes, room, calls, used))
    assert not {*made.hidden} & (used | {*found})
    assert list(made.hidden) == [name for name in sizes if name in made.hidden]
    if made.hidden:
        assert sum(sizes.values()) > room
        assert chosen_anew(made, 2, ToolUse(sizes, room, calls, used)) == made
    assert ToolSet.from_dict(made.as_dict()) == made


@given(st.lists(NAMES, unique=True), st.sets(NAMES), st.booleans())
def test_what_is_needed_comes_back_and_is_counted_once(hidden: list[str], needed: set[str], found: bool) -> None:
    kept = ToolSet(3, tuple(hidden))
    made = brought_back(kept, needed, found=found)
    assert not {*made.hidden} & needed
    assert made.breaks == (1 if needed & {*hidden} else 0)
    assert brought_back(made, needed, found=found) == made
    assert {*made.hidden} | (needed & {*hidden}) == {*hidden}


def test_before_ten_calls_or_within_the_share_all_stay() -> None:
    use = ToolUse({"read": 500, "never": 900}, room=1_000, calls=10, used={"read"})
    assert chosen_anew(ToolSet(0), 1, use).hidden == ("never",)
    for other in (
        structs.replace(use, calls=9),
        structs.replace(use, room=1_400),
        structs.replace(use, sizes={"read": 5_000, "never": 400}),
    ):
        assert chosen_anew(ToolSet(0), 1, other).hidden == ()


def test_a_tool_is_found_by_its_name_or_by_what_it_does() -> None:
    tools = {"send_mail": "Send an e-mail to somebody", "read_mail": "Read the inbox", "plot": "Draw a chart"}
    assert matching("plot, send_mail", tools, 5) == ["send_mail", "plot"]
    assert matching("draw me a chart", tools, 5)[0] == "plot"
    assert matching("mail", tools, 1) == ["send_mail"]
    assert matching("weather", tools, 5) == []


def test_a_broken_cache_is_paid_for_and_the_next_request_is_cold() -> None:
    prices = price_table(model_facts("claude-sonnet-4-5"), "5m")
    state = CompactionState(sent_at=1_000.0, saved=5.0)
    warm = Situation(Occasion.PREFLIGHT, Limits.for_window(200_000), 10_000, state=state, prices=prices, now=1_001.0)
    made = cache_broken(warm)
    assert made.sent_at == COLD
    assert round(made.saved) == 5 - round(1.15 * 10_000)
    assert cache_broken(replace(warm, state=made)) == made
