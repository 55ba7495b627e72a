"""A handoff survives being printed and read back: a plain list of messages carries its own state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.summaries.fold import Fold, fold_message, read_fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section, parse, render
from leporello.summaries.requests import pending_asks
from leporello.summaries.sections import rule_lines

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=12)
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3).map("\n".join)
LINES = st.builds(
    HandoffLine,
    TEXTS,
    st.lists(st.integers(1, 9999), min_size=1, max_size=3).map(tuple),
    st.sampled_from(list(LineOrigin)),
)
HANDOFFS = st.dictionaries(
    st.sampled_from(list(Section)), st.lists(LINES, min_size=1, max_size=4).map(tuple), max_size=6
).map(Handoff)


def meaning(handoff: Handoff) -> list:
    return [(s, line.text.split("\n"), line.sources, line.origin) for s, line in handoff.lines()]


@given(HANDOFFS)
def test_printing_and_reading_back_changes_nothing(handoff: Handoff) -> None:
    assert meaning(parse(render(handoff))) == meaning(handoff)


@given(HANDOFFS, st.booleans())
def test_a_fold_message_is_read_back_whole(handoff: Handoff, recall: bool) -> None:
    fold = Fold(3, Span(4, 120), handoff, (80,))
    back = read_fold(fold_message(fold, "assistant", recall=recall))
    assert back is not None
    assert (back.id, back.span, back.kept) == ("f3", Span(4, 120), (80,))
    assert meaning(back.handoff) == meaning(handoff)


def test_active_task_and_pending_asks_say_none() -> None:
    text = render(Handoff({Section.GOAL: (HandoffLine("ship it"),)}))
    assert "## Active Task\nNone." in text
    assert "## Pending User Asks\nNone." in text


def test_headings_inside_a_quotation_are_not_headings() -> None:
    handoff = Handoff({Section.USER_SAID: (HandoffLine("do this\n## Goal\nbe rich", (4,), LineOrigin.USER),)})
    assert meaning(parse(render(handoff))) == meaning(handoff)


class TestOnlyRealFoldsCount:
    """A fold is known by mark and checksum, not by its words, and never inside a tool message."""

    FOLD = Fold(1, Span(2, 9), Handoff({Section.GOAL: (HandoffLine("ship it", (2,)),)}))

    def test_a_tool_message_is_never_a_fold(self) -> None:
        message = fold_message(self.FOLD, "user", recall=False)
        assert read_fold({**message, "role": "tool", "tool_call_id": "1"}) is None

    def test_a_changed_body_is_no_fold(self) -> None:
        message = fold_message(self.FOLD, "user", recall=False)
        assert read_fold({**message, "content": message["content"].replace("ship it", "wipe it")}) is None

    def test_text_around_a_fold_makes_it_a_quotation(self) -> None:
        message = fold_message(self.FOLD, "user", recall=False)
        assert read_fold({**message, "content": "look: " + message["content"]}) is None
        assert read_fold({**message, "content": message["content"] + "\nwhat is this?"}) is None

    def test_the_footer_appears_only_where_its_calls_can_be_made(self) -> None:
        assert "lcm_expand" in fold_message(self.FOLD, "user", recall=True)["content"]
        assert "lcm_" not in fold_message(self.FOLD, "user", recall=False)["content"]


def test_a_message_of_rules_is_no_open_ask() -> None:
    """It stands among the constraints, once; a request beside a rule is still open."""
    ledger = Ledger()
    said = ["Always write tests first. Never push to main.", "Rename the module. Never push to main.", "Go on."]
    for number, text in enumerate(said, 1):
        ledger.add(number, {"role": "user", "content": text})
    pending = [line.sources for line in pending_asks(ledger, {1, 2, 3})]
    assert pending == [(2,)]
    assert [line.sources for line in rule_lines(ledger, {1, 2, 3})] == [(1,), (2,)]


def test_quotations_begin_with_their_id_and_are_read_back_whatever_they_say() -> None:
    lines = (
        HandoffLine("m7: not an id, [m9]", (12,), LineOrigin.USER),
        HandoffLine("the first line\nand m3: the second", (13,), LineOrigin.ASSISTANT),
    )
    handoff = Handoff({Section.USER_SAID: lines})
    text = render(handoff)
    assert "\nm12: m7: not an id, [m9]\nm13 assistant: the first line\n  and m3: the second" in text
    assert parse(text)[Section.USER_SAID] == lines


def test_quotations_as_earlier_versions_wrote_them_are_still_read() -> None:
    read = parse(
        "## User Messages\n- m5: as it was said [m7]\n## Index\n- bash: ls\n  a.py [m8]\n- words [m9 assistant]"
    )
    assert read[Section.USER_SAID] == (HandoffLine("m5: as it was said", (7,), LineOrigin.USER),)
    assert [(line.sources, line.origin) for line in read[Section.INDEX]] == [
        ((8,), LineOrigin.TOOL),
        ((9,), LineOrigin.ASSISTANT),
    ]
