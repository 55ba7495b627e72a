"""Pages say what the library says: every number and text, at every generation of generated conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest

from leporello.config import load_settings
from leporello.conversation import Conversation
from leporello.conversation.rendering import sent_messages
from leporello.events import Span
from leporello.messages import Message, calls_of, role_of
from leporello.present.text import clock, count, percent, short_count, visible
from leporello.present.window import headline, rows, window_use
from leporello.providers.base import ModelReply
from leporello.store.records import InsightsQuery, Metadata, ModelCall
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage, money
from tests.dashboard.tree import Node, tree
from tests.gateway.house import House, opened

WINDOW = 14_000
HIDDEN = 700
"""Tokens that the provider counts beyond what anybody sees."""
STEP = 12


@dataclass(slots=True)
class Checked:
    """A gateway and a conversation that is held beside it."""

    house: House
    talk: Conversation

    def page(self, path: str = "") -> Node:
        return self.at(f"/c/{self.talk.id}{path}")

    def at(self, path: str) -> Node:
        reply = httpx2.get(self.house.url + path, timeout=60)
        assert reply.status_code == 200, (path, reply.text)
        return tree(reply.text)

    def tokens(self, *messages: Message) -> int:
        return sum(map(self.talk.runtime.sizes.counter.message, messages))

    def log_tokens(self, span: Span) -> int:
        return self.tokens(*(item.message for item in self.talk.runtime.log.store.log.span(self.talk.id, span)))

    @property
    def standing(self) -> list[int]:
        """Generations of the compactions in force, by what each step of the view itself says."""
        steps = self.talk.runtime.log.store.views.generations(self.talk.id)
        found: list[int] = []
        for step in steps[1:]:
            if step.kind == "undo":
                while found and found[-1] != step.state:
                    found.pop()
            else:
                found.append(step.generation)
        return found


@pytest.fixture(scope="module", params=["compressor", "lcm"])
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    folder = tmp_path_factory.mktemp("truth")
    with opened(folder) as house:
        home = house.gateway.settings.home
        settings = load_settings({"context.engine": request.param}, environ={}, home=home)
        metadata = Metadata(title="Mend  the <build>", platform="chat", model="gpt-4o")
        with Conversation.open(
            "it", model="gpt-4o", window=WINDOW, store=house.store, settings=settings, metadata=metadata
        ) as conversation:
            yield Checked(house, conversation)


def test_every_page_says_what_the_library_says(checked: Checked) -> None:
    """While it grows and is compacted, after an undo, after another compaction, and when it has ended."""
    conversation = checked.talk
    session = generate(seed=23, messages=90)
    provider = TokenCounter.for_model("gpt-4o")
    generation = -1
    for start in range(0, len(session.messages), STEP):
        conversation.append(*session.messages[start : start + STEP])
        sent = conversation.request(session.tools, session.system)
        prompt = round(provider.request(sent.messages, sent.tools) * 1.04) + HIDDEN
        usage = CanonicalUsage(prompt // 3, 40, prompt - prompt // 3, 0, 0)
        conversation.record(ModelReply({"role": "assistant", "content": f"Done with part {start}."}, usage))
        if conversation.runtime.log.view.generation != generation:
            compare(checked)
        generation = conversation.runtime.log.view.generation
    compare(checked)
    assert conversation.runtime.log.compactions >= 2
    assert (
        any(line.shortened for line in conversation.runtime.log.view.lines)
        or conversation.runtime.plugins.engine.name != "compressor"
    )
    conversation.undo()
    compare(checked)
    conversation.append({"role": "user", "content": "First this."}, {"role": "user", "content": "<b>Then</b> that."})
    compare(checked)
    assert conversation.compact("the tests").committed
    conversation.pins.add("m2")
    compare(checked)
    conversation.undo()
    conversation.undo()
    compare(checked)
    conversation.runtime.log.store.conversations.end(conversation.id, "exit")
    compare(checked)


def compare(checked: Checked) -> None:
    page = checked.page()
    compare_head(checked, page)
    compare_window(checked, page)
    compare_segments(checked, page)
    compare_log(checked, page)
    compare_use(checked, page)
    compare_compactions(checked, page)
    compare_view(checked)
    compare_many(checked)


def compare_head(checked: Checked, page: Node) -> None:
    conversation, record = checked.talk, checked.talk.runtime.log.store.conversations.resolve(checked.talk.id)
    facts = page.one(cls="facts")
    assert page.one("h1").line == "Mend the <build>"
    assert f"{conversation.runtime.log.view.last:,} messages" in facts.line
    folded = len(checked.standing)
    assert folded == conversation.runtime.log.compactions
    assert re.search(rf"\b{folded:,} compactions?\b", facts.line)
    undone = sum(step.kind == "undo" for step in conversation.runtime.log.store.views.generations(conversation.id))
    assert (f"{undone} undone" in facts.line) == bool(undone)
    assert f"active {clock(record.updated_at)}" in facts.line
    assert bool(page.all(cls="live")) == record.open
    assert ("ended" in facts.line) != record.open
    pins = [pin.number for pin in conversation.pins.all()]
    assert [node.line for node in page.one(data_key="pins").all("a")] == [f"m{number}" for number in pins]


def compare_window(checked: Checked, page: Node) -> None:
    use = window_use(checked.talk)
    assert use.used == checked.talk.runtime.compactor.reading.tokens
    about = "" if use.measured else "about "
    told = f"{about}{use.used:,} of {use.window:,} tokens, folds at {use.threshold:,}"
    assert page.one(cls="strip-head").line.startswith(f"What the model sees{told}")
    card = checked.page("/window")
    assert card.one("p", cls="muted").line == headline(use)
    shown = [(row.one("th").text, row.one("td").line) for row in card.one("tbody").all("tr")]
    assert shown == [(f"{part.value}{remark}", f"{tokens:,}") for part, tokens, remark in rows(use)]
    strip = [node.line for node in page.one("svg", cls="strip").all("title")]
    drawn = sum(sizes(title)[0] for title in strip)
    beyond = max(0, sum(map(checked.tokens, checked.talk.runtime.log.view.messages)) - use.used)
    assert drawn == max(use.window, use.used) + beyond


def sizes(title: str) -> list[int]:
    """The numbers of a segment: its tokens, and those it stands for."""
    return [int(found.replace(",", "")) for found in re.findall(r"(?<![\w–])([\d,]+)(?: tokens|$)", title)]


def compare_segments(checked: Checked, page: Node) -> None:
    """The lines of `Unfold` and the upper strip are the view, sized as the library sizes it."""
    conversation = checked.talk
    unfold = page.one(data_key="unfold").all("details")
    listed = [node.one("summary").line for node in unfold]
    strip = [node.one("title").line for node in page.one("svg", cls="strip").all("a", cls="seg")]
    expected: list[tuple[str, int]] = []
    marks = {mark.id: mark for mark in conversation.runtime.log.store.views.fold_marks(conversation.id)}
    numbers: list[int] = []
    for line in conversation.runtime.log.view.lines:
        size = checked.tokens(line.message)
        if line.fold:
            expected.append((line.fold, size))
            told = f"{size:,} for {checked.log_tokens(marks[line.fold].covered):,} tokens"
            assert any(row.startswith(line.fold) and row.endswith(told) for row in listed), (told, listed)
        elif line.number is not None and numbers and numbers[-1] == line.number - 1 and not expected[-1][0]:
            expected[-1] = ("", expected[-1][1] + size)
        elif line.number is not None:
            expected.append(("", size))
        else:
            expected.append(("note", size))
        if line.number is not None:
            numbers.append(line.number)
    expected = [(fold, size) for fold, size in expected if fold != "note"]
    assert [sizes(title)[0] for title in strip] == [size for _, size in expected]
    for row, (fold, size) in zip(listed, expected, strict=True):
        assert fold or row.endswith(f"{size:,} tokens"), (row, size)
    opened = [node for node in unfold if not node["data-key"].startswith("fold-")]
    seen = [row for node in opened for row in rows_of(checked, node["data-src"].split("&from=")[0])]
    sent = [
        line.number
        for item in sent_messages(conversation.runtime.log.view)
        for line in item.lines
        if line.number is not None
    ]
    assert [number for row in seen for number in row.numbers] == sent
    for fold in {line.fold for line in conversation.runtime.log.view.lines if line.fold}:
        message = next(line.message for line in conversation.runtime.log.view.lines if line.fold == fold)
        covered = checked.log_tokens(marks[fold].covered)
        said = checked.page(f"/fold/{fold}").one(cls="opened").one("p").line
        assert said.startswith(f"{checked.tokens(message):,} tokens stand for {covered:,} of m"), said


@dataclass(slots=True)
class Shown:
    """One row of a list of messages."""

    role: str
    numbers: list[int]
    tokens: int
    texts: list[str]


def rows_of(checked: Checked, path: str, texts: bool = False) -> list[Shown]:
    """All rows of a list, page by page, with each text to its end if that is wanted."""
    found: list[Shown] = []
    following: str | None = path
    while following:
        page = checked.at(following)
        for node in page.all("article"):
            head = node.one("header")
            labels = [link.line for link in head.all("a", cls="no")]
            numbers = [int(label[1:].replace(",", "")) for label in labels if re.fullmatch(r"m[\d,]+", label)]
            tokens = int(head.one(cls="n").line.removesuffix(" tokens").replace(",", ""))
            blocks = node.all("div", cls="block") if texts else []
            found.append(Shown(head.one(cls="role").line, numbers, tokens, [whole(checked, it) for it in blocks]))
        more = page.all("a", cls="down")
        following = urljoin(following, more[0]["href"]) if more else None
    return found


def whole(checked: Checked, block: Node) -> str:
    text = block.one("pre").text
    more = block.all("a", cls="rest-of")
    while more:
        page = checked.at(more[0]["href"]).one("main")
        text += page.one("pre").text
        more = page.all("a", cls="rest-of")
    return text


def written(message: Message) -> list[str]:
    """Every text of a message, as it is sent."""
    texts = [str(message["reasoning_content"])] if message.get("reasoning_content") else []
    content = message.get("content")
    if isinstance(content, list):
        texts += [part["text"] for part in content if part.get("type") == "text"]
    elif content:
        texts.append(str(content))
    return [visible(text) for text in [*texts, *(call.arguments for call in calls_of(message))]]


def compare_view(checked: Checked) -> None:
    """`What the model sees, word for word` is the list of messages of the next request."""
    conversation = checked.talk
    seen = rows_of(checked, f"/c/{conversation.id}/view", texts=True)
    sent = conversation.messages
    assert [row.role for row in seen] == [role_of(message) for message in sent]
    assert [row.tokens for row in seen] == [checked.tokens(message) for message in sent]
    for row, message in zip(seen, sent, strict=True):
        texts = written(message)
        assert [text for text in row.texts if text in texts] == texts
    assert (
        f"{conversation.runtime.compactor.reading.tokens:,} tokens" in checked.page("/view").one("p", cls="muted").line
    )


def compare_log(checked: Checked, page: Node) -> None:
    """The lower strip holds every message once, sized as above, and its sum is what is said about it."""
    conversation = checked.talk
    head, strip = page.all(cls="strip-head")[1], page.all("svg", cls="strip")[1]
    total = checked.log_tokens(Span(1, conversation.runtime.log.view.last))
    assert head.line.startswith(f"The whole log{total:,} tokens in {conversation.runtime.log.view.last:,} messages")
    place = 1
    for node in strip.all("a", cls="seg"):
        title = node.one("title").line
        found = re.search(r", m([\d,]+)(?:–m([\d,]+))?, ([\d,]+) tokens$", title)
        assert found, title
        first, last, size = (int((text or found[1]).replace(",", "")) for text in found.groups())
        assert first == place
        assert size == checked.log_tokens(Span(first, last)), title
        place = last + 1
    assert place == conversation.runtime.log.view.last + 1
    stored = conversation.runtime.log.store.log.span(conversation.id, Span(1, conversation.runtime.log.view.last))
    listed = rows_of(checked, f"/c/{conversation.id}/messages?first=1&last={conversation.runtime.log.view.last}")
    assert [(row.numbers, row.tokens) for row in listed] == [
        ([item.number], checked.tokens(item.message)) for item in stored
    ]


def compare_use(checked: Checked, page: Node) -> None:
    totals = checked.talk.usage
    told = {node.one("dt").line: node.one("dd").line for node in page.one(data_key="totals").all("div")}
    assert told == {
        "calls": count(totals.calls),
        "prompt tokens": short_count(totals.usage.prompt_tokens),
        "output": short_count(totals.usage.output_tokens),
        "from the cache": percent(totals.cache_hit_rate),
        "cost": money(totals.cost) if totals.calls else "–",
    }
    table = checked.page("/usage").one("tbody")
    shown = [[cell.line for cell in row.all() if cell.name in ("th", "td")] for row in table.all("tr")]
    sessions = checked.talk.runtime.log.store.usage.by_session(checked.talk.id)
    assert [row[:2] for row in shown] == [[str(used.ordinal), count(used.totals.calls)] for used in sessions]


def compare_compactions(checked: Checked, page: Node) -> None:
    """Each attempt with its numbers; one that was taken back says so, here and on its own page."""
    conversation, standing = checked.talk, checked.standing
    attempts = conversation.runtime.log.store.views.attempts(conversation.id, 1_000)
    lines = page.one(data_key="compactions").all("li")
    for node, attempt in zip(lines, attempts, strict=False):
        report = attempt.report
        undone = report.committed and attempt.generation not in standing
        if report.committed:
            assert f"{short_count(report.tokens_before)} → {short_count(report.tokens_after)}" in node.line
        assert ("undone" in node.line) == undone
        own = checked.page(f"/compactions/{attempt.number}")
        assert [chip.line for chip in own.one("h1").all(cls="chip")][1:] == (["undone"] if undone else [])
        if report.committed:
            heads = [head.line for head in own.all(cls="strip-head")]
            assert heads[0].startswith(f"Before{report.tokens_before:,} tokens in {report.messages_before:,}")
            assert heads[1].startswith(f"After{report.tokens_after:,} tokens in {report.messages_after:,}")
    assert len(lines) == min(8, len(attempts))


def compare_many(checked: Checked) -> None:
    """The list and the insights."""
    conversation = checked.talk
    row = checked.at("/").one("tbody").one("tr")
    cells = {node["data-label"]: node.line for node in row.all("td") if "data-label" in node.attributes}
    assert row.one("a").line == "Mend the <build>"
    assert cells["messages"] == f"{conversation.runtime.log.view.last:,}"
    assert cells["compactions"] == (
        f"{conversation.runtime.log.compactions:,}" if conversation.runtime.log.compactions else "–"
    )
    page = checked.at("/insights")
    told = {node.one("dt").line: node.one("dd").line for node in page.one(cls="tiles").all("div")}
    found = conversation.runtime.log.store.usage.insights(InsightsQuery())
    assert told["messages"] == short_count(conversation.runtime.log.view.last)
    assert told["conversations"] == "1"
    assert told["cost"] == money(conversation.usage.cost)
    assert told["calls"] == count(conversation.usage.calls)
    committed = found.compactions.attempts.get("committed", 0)
    name = "compactions" + (f", {found.compactions.undone} undone" if found.compactions.undone else "")
    assert told[name] == str(committed)
    tables = [card for card in page.all("section") if [head.line for head in card.all("h2")] == ["By tool"]]
    lines = [node for table in tables for node in table.one("tbody").all("tr")]
    assert {node.one("th").line: node.one("td").line for node in lines} == {
        tool: count(use.calls) for tool, use in found.by_tool.items()
    }


def test_no_number_of_an_old_store_is_lost(tmp_path: Path) -> None:
    """A conversation that nobody has measured has sizes all the same."""
    with opened(tmp_path) as house:
        house.store.conversations.create("plain", Metadata(model="gpt-4o"))
        house.store.log.append("plain", [{"role": "user", "content": "hello there"}])
        page = tree(httpx2.get(f"{house.url}/c/plain", timeout=60).text)
        assert re.match(r"What the model seesabout \d+ of [\d,]+ tokens", page.one(cls="strip-head").line)


def test_a_window_says_whose_it_is(tmp_path: Path) -> None:
    """A conversation that goes on with another model than it began with has the window of the one used last."""
    with opened(tmp_path) as house:
        settings, metadata = house.gateway.settings, Metadata(model="gpt-4o")
        for model, said in (
            ("gpt-4o", ""),
            ("claude-sonnet-4-5", "(the window of claude-sonnet-4-5, the model used last)"),
        ):
            with Conversation.open("it", model=model, store=house.store, settings=settings, metadata=metadata) as talk:
                talk.append({"role": "user", "content": "Hello"})
                talk.request([], "Be brief.")
                talk.record(ModelReply({"role": "assistant", "content": "Hello."}, CanonicalUsage(20, 5)))
            head = tree(httpx2.get(f"{house.url}/c/it", timeout=60).text).one(cls="strip-head").line
            assert said in head
            assert ("the window of" in head) == bool(said)


def test_insights_show_the_days_that_were_asked_for(tmp_path: Path) -> None:
    """A year at most; the page names the range that it shows."""
    with opened(tmp_path) as house:
        for asked, shown in ((30, "30 days"), (120, "120 days"), (500, "366 days")):
            page = httpx2.get(f"{house.url}/insights?days={asked}", timeout=60).text
            assert re.search(rf'aria-current="true">{shown}<', page)


def test_hits_with_one_title_are_told_apart(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        for id in ("codex:one", "pi:two"):
            house.store.conversations.create(id, Metadata("Mend the build"))
            house.store.log.append(id, [{"role": "user", "content": "the zanzibar option"}])
        page = tree(httpx2.get(f"{house.url}/search?q=zanzibar", timeout=60).text).one(cls="hits").line
        assert "codex:one" in page
        assert "pi:two" in page


def test_a_cost_that_nobody_knows_is_not_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        house.store.conversations.create("it", Metadata("Mend the build"))
        house.store.usage.add("it", ModelCall(CanonicalUsage(20, 5), "odd-1"))
        page = httpx2.get(f"{house.url}/insights", timeout=60).text
        assert "unknown: no call has a known price" in page
