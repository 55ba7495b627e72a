"""The dashboard in a browser: opening, searching, unfolding, keys, light and dark, long conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard import scenes
from tests.dashboard.watch import Watch, settled
from tests.gateway.house import House, opened

LONG = 10_000
SCROLLED = """
([to, number]) => {
  const list = document.querySelector('details[data-key="all-4"] .msgs');
  list.scrollIntoView({ block: to });
  list.scrollTop = to === "end" ? list.scrollHeight : 0;
  return list.querySelector(`[data-number="${number}"]`) !== null;
}
"""
"""Scrolls on, to the end or the start of what is loaded, until a message is there."""


@pytest.fixture(scope="module")
def house(folder: Path) -> Iterator[House]:
    with opened(folder) as made:
        home = made.gateway.settings.home
        scenes.folded(made.store, home)
        scenes.long(made.store, count=LONG)
        scenes.verified(made.store, "checked")
        scenes.shortened(made.store, "stub")
        scenes.short(made.store, "notes", ["Where is the zanzibar option set?", "In settings.py."], platform="api")
        for number in range(70):
            scenes.short(made.store, f"many-{number}", [f"question {number}"], platform="crowd", model="gpt-4o")
        yield made


def row(page: Page, key: str) -> Locator:
    """A line of the unfolding list."""
    return page.locator(f'details[data-key^="{key}"] > summary').first


def test_from_the_list_to_a_conversation(house: House, page: Page) -> None:
    """The list pages through everything; a filter narrows it; a title leads to its conversation."""
    page.goto(house.url)
    expect(page.locator("table.conversations tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Older").click()
    expect(page.locator("table.conversations tbody tr")).to_have_count(25)
    page.goto(house.url)
    page.get_by_label("Platform").fill("chat")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("table.conversations tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Mend the build").click()
    expect(page.get_by_role("heading", name="Mend the build")).to_be_visible()
    expect(page.get_by_text("What the model sees")).to_be_visible()
    expect(page.locator(".parts")).to_contain_text("summary")
    expect(page.locator("figure.chart")).to_have_count(3)


def test_a_search_leads_to_the_message(house: House, page: Page) -> None:
    """What was said once, anywhere, is found with the words marked, and opens among its neighbours."""
    page.goto(house.url)
    page.get_by_label("Search all conversations").fill("zanzibar")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_have_text(re.compile("zanzibar", re.IGNORECASE))
    page.locator(".hits .item").first.click()
    expect(page.locator(".msg.wanted")).to_contain_text("Where is the zanzibar option set?")
    expect(page.locator(".msg")).to_have_count(2)


def test_unfolding_step_by_step_to_the_raw_messages(house: House, page: Page) -> None:
    """Summary, then the fold and the messages it was made from, then the messages themselves, word for word."""
    page.goto(f"{house.url}/c/build-42")
    folds = house.store.views.folds("build-42")
    newest, first = folds[-1], folds[0]
    row(page, f"fold-{newest.id}").click()
    expect(page.locator(".handoff").first).to_contain_text("Active Task")
    for fold in reversed(folds[:-1]):
        row(page, f"fold-{fold.id}").click()
    number = first.covered.first
    inner = page.locator(f'details[data-key="fold-{first.id}"]')
    inner.locator(f'details[data-key="from-{number}"] > summary').click()
    said = house.store.log.message("build-42", number).message
    shown = inner.locator(f'[data-number="{number}"]')
    expect(shown).to_be_visible()
    words = str(said.get("content") or "").split()[:6]
    expect(shown).to_contain_text(" ".join(words) if words else "m")


def test_a_shortened_message_is_shown_as_the_model_sees_it(house: House, page: Page) -> None:
    """The stub that is sent, not the long text behind it, which is one click away."""
    page.goto(f"{house.url}/c/stub")
    settled(page)
    shown = page.locator('.unfold [data-number="9"]')
    expect(shown).to_contain_text("[5,700 characters of output were left out here]")
    expect(shown).not_to_contain_text("a very long output")
    shown.get_by_role("link", name="shortened").click()
    expect(page.locator("#peek")).to_contain_text("a very long output")
    page.keyboard.press("Escape")
    shown.get_by_role("button", name="Pin m9").click()
    expect(shown.get_by_role("button", name="Unpin m9")).to_be_focused()
    expect(shown).to_contain_text("[5,700 characters of output were left out here]")
    page.get_by_role("link", name="Read it word for word").click()
    expect(page.locator(".msg pre")).to_have_text(
        ["summary", "[5,700 characters of output were left out here]", "and the newest"]
    )


def test_the_strips_are_to_scale(house: House, page: Page) -> None:
    """Widths are as tokens, and a segment opens what it stands for."""
    page.goto(f"{house.url}/c/build-42")
    strips = page.locator("svg.strip")
    for strip in (strips.nth(0), strips.nth(1)):
        whole = strip.bounding_box()
        assert whole is not None
        drawn = strip.evaluate(
            "svg => [...svg.querySelectorAll('.seg > rect:not(.pleats)')].map(r => r.getBoundingClientRect().width)"
        )
        assert abs(sum(drawn) - whole["width"]) < 4
    page.locator("svg.strip a.seg.fold").first.click()
    expect(page.locator(".handoff").first).to_be_visible()


def test_a_source_of_a_line_is_shown_in_place(house: House, page: Page) -> None:
    """A line of a summary names its messages; one of them opens above the page and Escape closes it."""
    page.goto(f"{house.url}/c/build-42")
    row(page, "fold-").click()
    page.locator(".src").first.click()
    dialog = page.locator("#peek")
    expect(dialog.locator(".msg")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_compaction_before_and_after(house: House, page: Page) -> None:
    """Both views to one scale, and what verification kept, quoted and dropped, as text and not as markup."""
    page.goto(f"{house.url}/c/checked")
    expect(page.locator(".tries li")).to_have_count(2)
    page.locator(".tries a", has_text="f1").click()
    expect(page.get_by_role("heading", name="Compaction 1")).to_be_visible()
    expect(page.locator("del")).to_have_text(["The port is 9999", "<b>All tests passed</b>"])
    facts = page.locator(".figures").last
    for words in ("replaced by the messages' own words3", "dropped: nothing supports them2", "rules put back1"):
        expect(facts).to_contain_text(words)
    expect(page.locator("svg.strip:not(.small)")).to_have_count(2)
    page.goto(f"{house.url}/c/checked/compactions/2")
    expect(page.get_by_text("It would have saved 2% only.")).to_be_visible()


def test_everything_by_keyboard_alone(house: House, page: Page) -> None:
    """Search, walk, open, close, go back and ask for help without a mouse."""
    page.goto(house.url)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("zanzibar")
    page.keyboard.press("Enter")
    expect(page.locator(".hits .item").first).to_be_visible()
    settled(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".msg.wanted")).to_be_visible()
    settled(page)
    page.keyboard.press("u")
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    settled(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".item").first).to_be_focused()
    page.goto(f"{house.url}/c/build-42")
    page.keyboard.press("j")
    page.keyboard.press("j")
    fold = row(page, "fold-")
    expect(fold).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".handoff").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".handoff").first).to_be_hidden()
    expect(fold).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("c")
    expect(page.locator("#compress")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#compress")).to_be_hidden()


def test_light_and_dark(house: House, watch: Watch) -> None:
    """The system's choice holds until the reader chooses; the choice is remembered."""
    for system, other in (("light", "dark"), ("dark", "light")):
        page = watch.open(color_scheme=system)
        page.goto(house.url)
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Light or dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", other)
        after = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert before != after
        page.goto(f"{house.url}/insights")
        expect(page.locator("html")).to_have_attribute("data-theme", other)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


def test_nothing_is_wider_than_a_telephone(house: House, watch: Watch) -> None:
    """At 375 pixels every page fits; nothing must be scrolled sideways."""
    page = watch.open(viewport={"width": 375, "height": 740})
    for path in ("/", "/c/build-42", "/c/checked/compactions/1", "/insights", "/settings", "/search?q=test", "/c/long"):
        page.goto(house.url + path)
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, path


def test_ten_thousand_messages_stay_few_on_the_page(house: House, page: Page) -> None:
    """However far one scrolls, the page holds some hundred rows, and any message is one jump away."""
    page.goto(f"{house.url}/c/long")
    assert len(page.content()) < 150_000
    row(page, "fold-f3").click()
    page.locator('details[data-key="all-4"] > summary').click()
    window = page.locator('details[data-key="all-4"] .msgs')
    expect(window.locator('[data-number="4"]')).to_be_visible()
    page.wait_for_function(SCROLLED, arg=["end", 440])
    assert window.locator(".msg").count() <= 200
    expect(window.locator('[data-number="4"]')).to_have_count(0)
    assert page.evaluate("document.querySelectorAll('*').length") < 6_000
    page.wait_for_function(SCROLLED, arg=["start", 44])
    assert window.locator(".msg").count() <= 200
    settled(page)
    jump = page.locator('details[data-key="all-4"] .jump')
    jump.get_by_label("Go to message").fill("7777")
    jump.get_by_role("button", name="Go").click()
    expect(page.locator('details[data-key="all-4"] [data-number="7777"]')).to_contain_text(
        "message number 7777 of the long one"
    )


def test_it_works_without_scripts(house: House, watch: Watch) -> None:
    """Every part is a page of its own where no script runs."""
    page = watch.open(java_script_enabled=False)
    page.goto(f"{house.url}/c/build-42")
    expect(page.locator("svg.strip").first).to_be_visible()
    page.locator("svg.strip a.seg.fold").first.click()
    expect(page.locator(".handoff")).to_be_visible()
    page.goto(f"{house.url}/c/long/messages?first=1&last=100")
    page.get_by_role("link", name="Later").click()
    expect(page.locator('[data-number="41"]')).to_be_visible()
