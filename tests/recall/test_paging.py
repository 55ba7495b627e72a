"""Pages of raw messages: everything once, in order, within the budget."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.recall.paging import full_text, json_text, pages
from leporello.tokens import TokenCounter

from .conftest import assistant, call, result, session, user

COUNT = TokenCounter.for_model(None).text
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=2000)
LONG = st.builds(lambda t, n: t * n, st.text(min_size=1, max_size=20), st.integers(1, 400))
MESSAGES = st.lists(
    st.builds(user, TEXT | LONG)
    | st.builds(result, st.just("a"), LONG)
    | st.builds(lambda t, a: assistant(t, call("a", "tool", a)), TEXT, TEXT),
    max_size=8,
)


@settings(deadline=None, max_examples=150)
@given(MESSAGES, st.integers(120, 800))
def test_pages_cover_every_character_once(messages: list[dict[str, Any]], budget: int) -> None:
    """Pieces put together give each message's text exactly, in order, and no page is over the budget."""
    book = list(pages(enumerate(messages, 1), COUNT, budget))
    texts = dict.fromkeys(range(1, len(messages) + 1), "")
    order = []
    for page in book:
        assert page
        assert sum(COUNT(json_text(piece.as_dict())) + 1 for piece in page) <= budget
        for piece in page:
            assert piece.start == len(texts[piece.message])
            texts[piece.message] += piece.text
            order.append(piece.message)
            assert piece.is_last == (texts[piece.message] == full_text(messages[piece.message - 1]))
    assert order == sorted(order)
    assert set(order) == set(texts)
    assert list(texts.values()) == [full_text(message) for message in messages]


def test_long_messages_are_cut_at_line_ends() -> None:
    """A listing is cut between lines, not inside them."""
    (message,) = [m for m in session() if m["role"] == "tool" and "noise_1" in m["content"]]
    book = list(pages([(1, message)], COUNT, 500))
    assert len(book) > 3
    assert all(page[-1].text.endswith("\n") for page in book[:-1])


def test_text_shows_everything_a_message_has() -> None:
    """Text and arguments word for word; pictures as a note of their size."""
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "  two\n words "}, {"type": "image_url", "image_url": {"url": "x" * 50}}],
        "tool_calls": [call("c1", "write", '{"text":  "a"}')],
    }
    shown = full_text(message)
    assert "  two\n words " in shown
    assert '[call c1: write]\n{"text":  "a"}' in shown
    assert "[image, " in shown


def test_a_huge_message_is_paged_in_time() -> None:
    """The first pages of a ten-megabyte result don't wait for the rest to be measured."""
    book = pages([(1, result("a", "line of output\n" * 700_000))], COUNT, 4000)
    first, second = next(book), next(book)
    assert first[0].start == 0
    assert second[0].start == len(first[0].text)
