"""What the dashboard withstands: hostile content, other sites, wrong keys; and that everybody can use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from leporello.events import CompactionReport, Outcome, Span, Verification, ViewEntry
from leporello.gateway.auth import Keys
from leporello.gateway.dashboard.http import slug
from leporello.store import Store
from leporello.store.records import CompactionRecord, Metadata, ModelCall, StoredFold
from leporello.usage import CanonicalUsage
from tests.dashboard import scenes
from tests.dashboard.watch import Watch, settled
from tests.gateway.house import House, opened

EVIL = (
    "<script>document.title='taken'; alert(1)</script>",
    "<img src=x onerror=\"document.title='taken'\"><svg onload=alert(2)>",
    "<iframe srcdoc='<script>alert(3)</script>'></iframe><style>*{display:none}</style>",
    "<a href=\"javascript:alert(4)\">click</a> <form action='https://example.org'><input name=token>",
    "\x1b[31mred\x1b]0;title\x07 \x9b2J bell\x07 nul\0 backspace\x08",
    "safe \u202eetirw ot\u202c \u2066isolated\u2069 \u200f",
    "half \ud800 a character",
    "{{ 7 * 7 }} {% raw %} ${7*7} </textarea></title></pre></details>",
    "]]>--><!-- ' \" ` = <b",
)
NAME = '"><script>alert(9)</script>\u202e\0'


def hostile(store: Store, id: str) -> None:
    """Evil in every place that somebody from outside can fill."""
    about = Metadata(title=NAME, platform=NAME, model=NAME, owner=NAME, custom={NAME: NAME})
    store.conversations.create(id, about)
    messages: list[dict[str, Any]] = [{"role": "user", "content": text} for text in EVIL]
    messages.append({"role": NAME, "content": NAME})
    call = {"id": NAME, "type": "function", "function": {"name": NAME, "arguments": f'{{"{NAME[2:8]}": 1}}'}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": NAME, "name": NAME, "content": EVIL[0]})
    messages.append(
        {"role": "assistant", "content": [{"type": NAME, "x": NAME}, {"type": "thinking", "thinking": NAME}]}
    )
    messages.append({"role": "assistant", "content": {"odd": NAME}})
    messages.append({"content": "no role"})
    messages.append({"role": "user", "content": "<b>" + "x" * 1_000_000})
    store.log.append(id, messages)
    store.pins.add(id, 1, NAME)
    store.usage.add(id, ModelCall(CanonicalUsage(10, 10, 10, 10, 0), NAME, NAME, 0.1))
    view = store.views.view(id)
    report = CompactionReport(
        Outcome.COMMITTED,
        NAME,
        engine=NAME,
        summariser=NAME,
        trigger=NAME,
        focus=NAME,
        fold=NAME,
        covered=Span(2, 6),
        tokens_before=900,
        tokens_after=300,
        verification=Verification(3, 2, 0, 0, EVIL[:2], 1),
        warnings=EVIL,
        details={"sections": {NAME: 3}},
    )
    handoff = {NAME: [{"text": text, "sources": [1, 2], "origin": NAME} for text in EVIL], "odd": [1, {"text": 5}]}
    entries = [
        ViewEntry(ref=1),
        ViewEntry(inline=scenes.assistant(NAME), fold=NAME),
        *(ViewEntry(ref=n) for n in range(7, 17)),
    ]
    folds = [StoredFold(NAME, Span(2, 6), NAME, handoff)]
    store.views.commit(id, CompactionRecord(view.generation, view.last, entries, report, folds))
    store.views.record_attempt(id, CompactionReport(Outcome.FAILED, EVIL[0]))


@pytest.fixture(scope="module")
def house(folder: Path) -> Iterator[House]:
    with opened(folder) as made:
        hostile(made.store, NAME)
        scenes.folded(made.store, made.gateway.settings.home)
        yield made


def test_hostile_content_is_text(house: House, page: Page) -> None:
    """Scripts, markup, escape sequences and turned text are shown as what they are, wherever they stand."""
    page.goto(house.url)
    row = page.locator(".conversations tbody tr", has_text="‹U+202E›").first
    expect(row).to_contain_text("<script>alert(9)</script>")
    row.locator(".item").click()
    expect(page.locator(".parts")).to_be_visible()
    for key in ("from-1", "fold-"):
        page.locator(f'details[data-key^="{key}"] > summary').first.click()
    expect(page.locator(".handoff").first).to_contain_text(EVIL[0])
    page.locator('details[data-key="from-2"] > summary').click()
    for number, text in enumerate(EVIL[1:6], 2):
        shown = page.locator(f'details[data-key="from-2"] [data-number="{number}"] pre').first
        expect(shown).to_contain_text(text.split("\x1b")[0].split(" \u202e")[0])
    ansi = page.locator('details[data-key="from-2"] [data-number="5"] pre')
    expect(ansi).to_contain_text("␛[31mred␛]0;title␇ ‹U+009B›2J bell␇ nul␀ backspace␈")
    settled(page)
    place = page.url.rpartition("/")[2]
    for path in ("compactions/1", "compactions/2", "window", "usage", "m/1", "messages", "m/7"):
        page.goto(f"{house.url}/c/{place}/{path}")
        settled(page)
        assert page.title() != "taken"
    for path in (
        "/insights",
        "/settings?model=" + "%3Cscript%3E",
        "/search?q=%3Cscript%3Ealert",
        "/?platform=%22%3E%3Cb",
    ):
        page.goto(house.url + path)
        settled(page)
        assert "Leporello" in page.title()


def test_a_line_of_a_megabyte_comes_in_pieces(house: House, page: Page) -> None:
    """The page of a huge message is small; the rest follows when it is asked for, piece by piece."""
    number = house.store.log.count(NAME)
    page.goto(f"{house.url}/c/{slug(NAME)}/m/{number}?alone=1")
    assert len(page.content()) < 30_000
    more = page.locator(".rest-of")
    expect(more).to_contain_text("999K characters left")
    more.click()
    expect(page.locator(".rest-of")).to_contain_text("979K characters left")
    assert page.locator(".block pre").nth(1).inner_text() == "x" * 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_pages_keep_to_themselves(house: House) -> None:
    """Every page forbids what it does not need; other origins, other names and frames get nothing."""
    for path in ("/", "/c/build-42", "/insights", "/settings", "/search?q=x", "/c/nobody", "/login", "/assets/app.js"):
        reply = httpx2.get(house.url + path, follow_redirects=False)
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in reply.headers
    port = house.url.rpartition(":")[2]
    for headers in (
        {"host": f"evil.example:{port}"},
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ):
        reply = httpx2.get(house.url, headers=headers)
        assert reply.status_code == 403
        assert "Mend the build" not in reply.text


def form_token(page: httpx2.Response) -> str:
    return page.text.partition('name="form-token" content="')[2].partition('"')[0]


def test_only_our_own_pages_change_something(house: House) -> None:
    """A POST needs the session's cookie, its token, and the exact origin; each alone is not enough."""
    with httpx2.Client(base_url=house.url) as web:
        token = form_token(web.get("/"))
        assert len(token) == 64
        good = {"origin": house.url}
        before = house.store.conversations.pulse("build-42")
        for headers, form in (
            ({}, {"token": token}),
            (good, {"focus": "no token"}),
            (good, {"token": token[:-1] + ("0" if token[-1] != "0" else "1")}),
            ({"origin": "http://127.0.0.1:1"}, {"token": token}),
            ({"origin": "http://evil.example"}, {"token": token}),
            ({"origin": "null"}, {"token": token}),
            ({**good, "sec-fetch-site": "same-site"}, {"token": token}),
        ):
            reply = web.post("/c/build-42/undo", headers=headers, data=form)
            assert reply.status_code == 403, (headers, form)
        other = httpx2.post(house.url + "/c/build-42/undo", headers=good, data={"token": token})
        assert other.status_code == 403
        assert house.store.conversations.pulse("build-42") == before
        assert web.get("/c/build-42/undo").status_code in (404, 405)
        assert web.post("/c/build-42/pin", headers=good, data={"token": token, "number": "3"}).status_code == 200
        assert [pin.number for pin in house.store.pins.all("build-42")] == [3]


def test_signing_in_and_out(tmp_path: Path, watch: Watch) -> None:
    """With keys set nothing is shown without one; each key sees its own, an operator all; signing out is final."""
    keys, ada = Keys().add("ada")
    keys, bob = keys.add("bob")
    keys, chief = keys.add("chief", operator=True)
    with opened(tmp_path, keys=keys) as house:
        scenes.short(house.store, "of-ada", ["the zanzibar plan"], platform="api", owner="ada")
        scenes.short(house.store, "of-bob", ["the zanzibar bill"], platform="gateway", owner="bob")
        page = watch.open()
        page.goto(f"{house.url}/c/of-ada")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.get_by_label("Key of the gateway").fill("lep-wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not one of the gateway's keys")
        page.get_by_label("Key of the gateway").fill(ada)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Sign in")).to_have_count(0)
        page.goto(house.url)
        expect(page.locator(".conversations tbody tr")).to_have_count(1)
        assert page.goto(f"{house.url}/c/of-bob").status == 404  # type: ignore[union-attr]
        page.goto(f"{house.url}/search?q=zanzibar")
        expect(page.locator(".hits li")).to_have_count(1)
        page.goto(f"{house.url}/settings")
        expect(page.locator("main")).to_contain_text("compression.threshold")
        expect(page.locator("main")).not_to_contain_text("store.url")
        cookie = next(item for item in page.context.cookies() if item["name"] == "leporello_session")
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert ada not in cookie["value"]
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        stolen = httpx2.get(house.url, cookies={"leporello_session": cookie["value"]})
        assert stolen.status_code == 303
        operator = watch.open()
        operator.goto(house.url)
        operator.get_by_label("Key of the gateway").fill(chief)
        operator.keyboard.press("Enter")
        expect(operator.locator(".conversations tbody tr")).to_have_count(2)
        assert bob


def test_keys_can_not_be_guessed_quickly(tmp_path: Path) -> None:
    """After some wrong keys an address must wait, and is told so; forms of other sites are not counted at all."""
    keys, secret = Keys().add("ada")
    with opened(tmp_path, keys=keys) as house:
        headers = {"origin": house.url}
        many = {f"field{n}": "x" for n in range(60)}
        assert httpx2.post(f"{house.url}/login", headers=headers, data=many).status_code == 400
        rights = [
            httpx2.post(f"{house.url}/login", headers=headers, data={"key": secret}).status_code for _ in range(12)
        ]
        assert 429 not in rights, "right keys don't count"
        codes = [
            httpx2.post(f"{house.url}/login", headers=headers, data={"key": f"lep-{n}"}).status_code for n in range(12)
        ]
        assert codes == [401] * 10 + [429] * 2
        assert httpx2.post(f"{house.url}/login", headers=headers, data={"key": secret}).status_code == 429
        foreign = httpx2.post(f"{house.url}/login", headers={"origin": "http://evil.example"}, data={"key": secret})
        assert foreign.status_code == 403


CONTRAST = """
() => {
  const channel = (byte) => {
    const value = byte / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const colour = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.nodeValue.trim() || element.closest("svg, :disabled, [hidden]")) continue;
    if (!element.getClientRects().length) continue;
    const pair = [light(colour(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const words = walker.currentNode.nodeValue.trim().slice(0, 30);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.className} ${words}`);
  }
  for (const label of document.querySelectorAll("svg text")) {
    const shape = label.parentElement.querySelector("rect");
    const outside = ground(label.ownerSVGElement.parentElement);
    const behind = shape && label.closest(".seg") ? colour(getComputedStyle(shape).fill) : outside;
    const pair = [light(colour(getComputedStyle(label).fill)), light(behind)].sort((a, b) => b - a);
    if ((pair[0] + 0.05) / (pair[1] + 0.05) < 4.5) poor.push(`svg ${label.textContent}`);
  }
  return poor;
}
"""
UNNAMED = """
() => [...document.querySelectorAll("a, button, input:not([type=hidden]), summary, svg[role], dialog, table, nav")]
  .filter((one) => one.getClientRects().length)
  .filter((one) => {
    if (one.matches("input")) return !one.labels?.length && !one.getAttribute("aria-label");
    if (one.matches("table")) return !one.querySelector("th");
    const words = one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.textContent.trim();
    return !words;
  }).map((one) => one.outerHTML.slice(0, 120))
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_and_reach_it(house: House, watch: Watch, scheme: str) -> None:
    """Text stands out from its ground, everything has a name, there is one main heading, and ids are unique."""
    page = watch.open(color_scheme=scheme)
    for path in ("/", "/c/build-42", "/c/build-42/compactions/1", "/insights", "/settings", "/search?q=test"):
        page.goto(house.url + path)
        settled(page)
        if path == "/c/build-42":
            page.locator('details[data-key^="fold-"] > summary').first.click()
            expect(page.locator(".handoff").first).to_be_visible()
            expect(page.locator("figure.chart")).to_have_count(3)
            page.keyboard.press("?")
        assert page.evaluate(CONTRAST) == [], path
        assert page.evaluate(UNNAMED) == [], path
        assert page.locator("h1").count() == 1
        assert page.locator("html[lang]").count() == 1
        assert page.locator("main").count() == 1
        twice = page.evaluate(
            "() => { const ids = [...document.querySelectorAll('main [id]')].map(e => e.id);"
            " return ids.filter((id, place) => ids.indexOf(id) !== place); }"
        )
        assert twice == [], path
