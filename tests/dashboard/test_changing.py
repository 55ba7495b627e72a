"""The dashboard's buttons and its live pages, in a browser, on conversations of every origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from leporello.providers.scripted import ScriptedProvider
from leporello.testing.stub_server import Say, Step
from tests.dashboard import scenes
from tests.dashboard.watch import Watch
from tests.gateway.house import House, opened


def answers() -> Iterator[Step]:
    number = 0
    while True:
        number += 1
        yield Say(f"Answer {number}. " + "All is in order with this part of the work. " * 40)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path, answers(), window=16_000) as made:
        yield made


def facts(page: Page) -> str:
    return page.locator(".facts").inner_text()


def test_compress_and_undo(house: House, page: Page) -> None:
    """A fold made by hand appears with its topic; undone, the model sees what it saw before. Nothing is reloaded."""
    scenes.folded(house.store, house.gateway.settings.home)
    folds = len(house.store.views.folds("build-42"))
    house.store.log.append(
        "build-42", [scenes.user("more of it"), *(scenes.assistant("words " * 600) for _ in range(9))]
    )
    page.goto(f"{house.url}/c/build-42")
    page.evaluate("window.same = true")
    page.get_by_role("button", name="Compress…").click()
    page.get_by_label("Keep in detail what is about").fill("the release")
    page.keyboard.press("Enter")
    expect(page.locator("#notices")).to_contain_text("Folded")
    expect(page.locator(f'details[data-key="fold-f{folds + 1}"]')).to_be_visible()
    attempt = house.store.views.attempts("build-42", 1)[0]
    assert (attempt.report.focus, attempt.report.trigger) == ("the release", "manual")
    page.get_by_role("button", name="Undo last fold").click()
    expect(page.locator("#notices")).to_contain_text("undone")
    expect(page.locator(f'details[data-key="fold-f{folds + 1}"]')).to_have_count(0)
    expect(page.locator(f'details[data-key="fold-f{folds}"]')).to_be_visible()
    assert page.evaluate("window.same")


def test_what_can_not_be_done_is_said(house: House, page: Page) -> None:
    """Nothing to fold, nothing to undo: a sentence, and nothing changes."""
    scenes.short(house.store, "short", ["hello", "hi"])
    page.goto(f"{house.url}/c/short")
    expect(page.get_by_role("button", name="Undo last fold")).to_be_disabled()
    page.get_by_role("button", name="Compress…").click()
    page.get_by_role("button", name="Compress", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("Nothing to fold yet")
    assert house.store.conversations.pulse("short").generation == 0


def test_pins_are_set_and_taken_off(house: House, page: Page) -> None:
    """A message is pinned from its row and unpinned from the list of pins."""
    scenes.short(house.store, "talk", ["Never touch the public API.", "Understood."])
    page.goto(f"{house.url}/c/talk")
    page.get_by_role("button", name="Pin m1", exact=True).click()
    expect(page.locator(".pins")).to_contain_text("m1")
    expect(page.locator('[data-number="1"]').get_by_role("button", name="Unpin m1")).to_be_focused()
    assert [pin.number for pin in house.store.pins.all("talk")] == [1]
    page.locator(".pins").get_by_role("button", name="Unpin m1").click()
    expect(page.locator(".pins")).to_be_hidden()
    assert house.store.pins.all("talk") == []


def test_new_messages_and_folds_appear_by_themselves(house: House, page: Page) -> None:
    """While somebody else writes, the open page follows; what was opened stays open."""
    scenes.folded(house.store, house.gateway.settings.home)
    page.goto(f"{house.url}/c/build-42")
    expect(page.locator(".live")).to_be_visible()
    page.locator('details[data-key="from-1"] > summary').click()
    expect(page.locator('details[data-key="from-1"] .msg').first).to_be_visible()
    page.evaluate("window.same = true")
    before = house.store.log.count("build-42")
    house.store.log.append("build-42", [scenes.user("A word from another process")])
    expect(page.locator(f'[data-number="{before + 1}"]')).to_contain_text("A word from another process")
    expect(page.locator(".facts")).to_contain_text(f"{before + 1:,} messages")
    house.store.views.undo("build-42")
    folds = len(house.store.views.folds("build-42"))
    expect(page.locator(f'details[data-key="fold-f{folds}"]')).to_have_count(0)
    expect(page.locator('details[data-key="from-1"] .msg').first).to_be_visible()
    assert page.evaluate("window.same")


def test_the_list_follows_too(house: House, page: Page) -> None:
    """A conversation that begins elsewhere stands on top of the list without a reload."""
    scenes.short(house.store, "old", ["the old one"])
    page.goto(house.url)
    expect(page.locator(".conversations")).to_contain_text("the old one")
    scenes.short(house.store, "new", ["the new one"])
    expect(page.locator(".conversations tbody tr").first).to_contain_text("the new one")


def test_where_no_stream_gets_through_the_page_asks(house: House, page: Page) -> None:
    """A proxy that breaks event streams does not stop the page from following."""
    scenes.short(house.store, "talk", ["first words"])
    page.route("**/live?seen=*", lambda route: route.abort())
    page.goto(f"{house.url}/c/talk")
    expect(page.locator('[data-number="1"]')).to_be_visible()
    house.store.log.append("talk", [scenes.assistant("and an answer")])
    expect(page.locator('[data-number="2"]')).to_contain_text("and an answer")


def test_conversations_of_the_proxy(house: House, page: Page) -> None:
    """What a client sends through the proxy is seen as it grows, folded by hand and still recognised afterwards."""
    said = []
    for turn in range(5):
        said.append({"role": "user", "content": f"Question {turn}: " + "what about this part of the work? " * 30})
        reply = httpx2.post(f"{house.url}/v1/chat/completions", json={"model": "gpt-4o", "messages": said}, timeout=60)
        said.append(reply.json()["choices"][0]["message"])
    page.goto(house.url)
    page.locator(".conversations .item").first.click()
    expect(page.locator(".facts")).to_contain_text("gateway")
    for turn in range(5, 12):
        said.append({"role": "user", "content": f"Question {turn}: " + "what about this part of the work? " * 30})
        reply = httpx2.post(f"{house.url}/v1/chat/completions", json={"model": "gpt-4o", "messages": said}, timeout=60)
        said.append(reply.json()["choices"][0]["message"])
    expect(page.locator("body")).to_contain_text("Question 11")
    page.get_by_role("button", name="Compress…").click()
    page.get_by_role("button", name="Compress", exact=True).click()
    expect(page.locator('details[data-key^="fold-f"]').first).to_be_visible()
    said.append({"role": "user", "content": "And one more thing"})
    reply = httpx2.post(f"{house.url}/v1/chat/completions", json={"model": "gpt-4o", "messages": said}, timeout=60)
    assert reply.status_code == 200
    assert "leporello-fold" in house.model_calls[-1].raw.decode()
    expect(page.locator("body")).to_contain_text("And one more thing")
    assert len(house.store.conversations.page().conversations) == 1


def test_conversations_of_agents_whose_model_is_not_here(house: House, page: Page) -> None:
    """An agent session can be folded and unfolded though nobody here can answer in it."""
    texts = [f"part {n}: " + "words and more words " * 150 for n in range(40)]
    scenes.short(house.store, "agent", texts, platform="api", model="gpt-4o")
    page.goto(f"{house.url}/c/agent")
    page.get_by_role("button", name="Compress…").click()
    page.get_by_role("button", name="Compress", exact=True).click()
    expect(page.locator('details[data-key="fold-f1"]')).to_be_visible()
    page.get_by_role("button", name="Undo last fold").click()
    expect(page.locator('details[data-key="fold-f1"]')).to_have_count(0)


def test_sessions_of_an_agent(tmp_path: Path, page: Page) -> None:
    """A message to the agent appears with its answer; the agent folds when the button is pressed, and goes on."""
    with opened(tmp_path, provider=ScriptedProvider(lambda request: "Noted. " * 200), window=16_000) as house:
        at = f"{house.url}/api/conversations"
        id = httpx2.post(at, json={"title": "Agent at work"}, timeout=60).json()["id"]
        for number in range(12):
            asked = scenes.user(f"Remember number {number}: " + "it matters a lot to us. " * 40)
            house.store.log.append(id, [asked, scenes.assistant("Noted. " * 200)])
        page.goto(f"{house.url}/c/{id}")
        expect(page.locator("body")).to_contain_text("Remember number 11")
        page.get_by_role("button", name="Compress…").click()
        page.get_by_role("button", name="Compress", exact=True).click()
        expect(page.locator("#notices")).to_contain_text("Folded")
        expect(page.locator('details[data-key="fold-f1"]')).to_be_visible()
        reply = httpx2.post(f"{at}/{id}/messages", json={"text": "And one more thing"}, timeout=60)
        assert reply.json()["status"] == "done"
        expect(page.locator("body")).to_contain_text("And one more thing")
        page.goto("about:blank")


def test_export_holds_every_message(house: House, watch: Watch) -> None:
    """One line for each message, byte for byte what was stored, odd characters too."""
    page = watch.open(accept_downloads=True)
    scenes.short(house.store, "odd id / with \u202e", ["plain", "half \ud800 a character", "nul \0 byte"])
    page.goto(house.url)
    page.locator(".conversations .item").first.click()
    with page.expect_download() as caught:
        page.get_by_role("link", name="Export").click()
    lines = Path(caught.value.path()).read_text("utf-8").splitlines()
    exported = [json.loads(line)["message"] for line in lines]
    assert exported == [stored.message for stored in house.store.log.iterate("odd id / with \u202e")]
