"""An open page follows: a reader at the end of a conversation sees the newest message, one further up is not moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from leporello.store.records import ModelCall
from tests.dashboard import scenes
from tests.dashboard.watch import settled
from tests.gateway.house import House, opened
from tests.store.contract.base import fold_all_but

IN_SIGHT = """
number => {
  const list = document.querySelector('.unfold > details:last-of-type .msgs');
  const row = list?.querySelector(`:scope > [data-number="${number}"]`);
  if (!row) return false;
  const box = list.getBoundingClientRect(), its = row.getBoundingClientRect();
  return its.bottom > Math.max(box.top, 0) && its.bottom <= Math.min(box.bottom, innerHeight) + 1;
}
"""
"""Whether the end of a message can be read without scrolling."""
READING = """
number => {
  const list = document.querySelector('.unfold > details:last-of-type .msgs');
  const row = list.querySelector(`:scope > [data-number="${number}"]`);
  return row ? Math.round(row.getBoundingClientRect().top) : null;
}
"""
WITHIN = """
number => {
  const list = document.querySelector('.unfold > details:last-of-type .msgs');
  const row = list.querySelector(`:scope > [data-number="${number}"]`);
  return row ? row.getBoundingClientRect().top - list.getBoundingClientRect().top : null;
}
"""
SCROLL = """
number => {
  const list = document.querySelector('.unfold > details:last-of-type .msgs');
  list.scrollIntoView({ block: "center" });
  if (!number) { list.scrollTop = list.scrollHeight; return; }
  const row = list.querySelector(`[data-number="${number}"]`);
  list.scrollTop += row.getBoundingClientRect().top - list.getBoundingClientRect().top;
}
"""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path) as made:
        yield made


def text(number: int) -> str:
    return f"message {number}: " + "some words to fill the line of the page with " * (number * 11 % 29 + 1)


def say(house: House, id: str, first: int, last: int) -> None:
    """Messages of both sides, of different heights."""
    made = [(scenes.user if n % 2 else scenes.assistant)(text(n)) for n in range(first, last + 1)]
    house.store.log.append(id, made)


def begin(house: House, page: Page, count: int) -> None:
    house.store.conversations.create("talk")
    say(house, "talk", 1, count)
    page.goto(f"{house.url}/c/talk")
    settled(page)
    page.wait_for_function("() => document.querySelector('.unfold > details:last-of-type .msg')")


@pytest.mark.parametrize("count", [3, 12, 60])
def test_a_reader_at_the_end_sees_the_newest_message(house: House, page: Page, count: int) -> None:
    """Message after message, in a short list and in one that scrolls by itself."""
    begin(house, page, count)
    page.evaluate(SCROLL, 0)
    page.evaluate(
        "() => document.querySelector('.unfold > details:last-of-type .msg:last-of-type').scrollIntoView(false)"
    )
    page.wait_for_function(IN_SIGHT, arg=count)
    for number in range(count + 1, count + 7):
        say(house, "talk", number, number)
        page.wait_for_function(IN_SIGHT, arg=number)
        settled(page)
        assert page.evaluate(IN_SIGHT, number)


def test_a_reader_further_up_is_not_moved(house: House, page: Page) -> None:
    """New messages come in behind what is read, and a compaction leaves it in its place."""
    begin(house, page, 60)
    page.evaluate(SCROLL, 35)
    before, within = page.evaluate(READING, 35), page.evaluate(WITHIN, 35)
    for number in (61, 62, 63):
        say(house, "talk", number, number)
        expect(page.locator(f'.unfold > details:last-of-type [data-number="{number}"]')).to_have_count(1)
        assert page.evaluate(READING, 35) == before
    house.store.views.commit("talk", fold_all_but(house.store.views.view("talk"), 50))
    expect(page.locator('details[data-key="fold-f1"]')).to_be_visible()
    expect(page.locator(".unfold > details:last-of-type > summary")).to_contain_text("m14–m63")
    settled(page)
    assert abs(page.evaluate(WITHIN, 35) - within) <= 2
    assert not page.evaluate(IN_SIGHT, 63)


def test_earlier_messages_that_were_fetched_stay(house: House, page: Page) -> None:
    """Who went back to the beginning goes on reading there while the conversation goes on."""
    begin(house, page, 90)
    page.wait_for_function(
        "() => { const list = document.querySelector('.unfold > details:last-of-type .msgs'); list.scrollTop = 0;"
        " return list.querySelector('[data-number=\"1\"]') !== null; }"
    )
    page.evaluate(SCROLL, 2)
    before = page.evaluate(READING, 2)
    say(house, "talk", 91, 91)
    expect(page.locator(".facts")).to_contain_text("91 messages")
    settled(page)
    assert page.evaluate(READING, 2) == before


def test_cost_is_shown_as_soon_as_it_is_known(house: House, page: Page) -> None:
    """Usage is written down after its message; the page does not wait for the next one."""
    begin(house, page, 4)
    expect(page.locator('[data-key="totals"]')).to_contain_text("calls0")
    house.store.usage.add("talk", ModelCall(scenes.USAGE, "gpt-4o", "chat", 0.25))
    expect(page.locator('[data-key="totals"]')).to_contain_text("$0.25")


def test_ended_conversations_are_not_live(house: House, page: Page) -> None:
    """A conversation that ends while it is looked at is not called live any longer, nor is one that had ended."""
    begin(house, page, 4)
    expect(page.locator(".live")).to_be_visible()
    house.store.conversations.end("talk", "exit")
    expect(page.locator(".facts")).to_contain_text("ended (exit)")
    expect(page.locator(".live")).to_be_hidden()
    with page.expect_response("**/live*"):
        page.reload()
    expect(page.locator(".facts")).to_contain_text("ended (exit)")
    expect(page.locator(".live")).to_be_hidden()


def test_the_list_shows_a_compaction_at_once(house: House, page: Page) -> None:
    """Of any conversation on the page, not only of the newest."""
    for id in ("first", "second"):
        house.store.conversations.create(id)
        say(house, id, 1, 6)
    page.goto(house.url)
    row = page.locator(".conversations tr", has_text="first")
    expect(row.locator('[data-label="compactions"]')).to_have_text("–")
    house.store.views.commit("first", fold_all_but(house.store.views.view("first"), 2))
    expect(page.locator(".conversations tr", has_text="first").locator('[data-label="compactions"]')).to_have_text("1")
    house.store.views.undo("first")
    expect(page.locator(".conversations tr", has_text="first").locator('[data-label="compactions"]')).to_have_text("–")
