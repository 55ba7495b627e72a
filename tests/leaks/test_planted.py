"""Promise 16: of secrets planted anywhere in a conversation nothing is found in anything that is derived from it."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx2
import pytest

from leporello.agent.commands import sessions
from leporello.chat.app import resume_summary
from leporello.config import Home, Settings, load_settings
from leporello.conversation import Conversation
from leporello.events import CompactionEvent
from leporello.ledger import ledger
from leporello.mcp import RecallService
from leporello.messages import Message, encode_json, text_of
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.store.records import LedgerSnapshot, Metadata
from leporello.store.sql.encoding import pack
from leporello.summaries.fold import is_fold
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.conftest import RunCli
from tests.gateway.house import opened
from tests.leaks.planted import Traces, answered, asked, lines, ran, stored_texts

PLANTED = lines()
SECRETS = [secret for _, secret in PLANTED.values()]
ALL = "\n".join(line for line, _ in PLANTED.values())
FILLER = generate(SessionSpec(seed=163, messages=40, tokens=8_000, secrets=0, images=0)).messages
WHERE = ("user", "assistant", "arguments", "words", "pruned arguments", "result", "json result")
ID = "talk-1"


def planted(where: str) -> list[Message]:
    """A conversation that shows every secret in one kind of place, then works on."""
    shown: list[Message] = []
    for place, (line, _) in enumerate(PLANTED.values()):
        id = f"c{place}"
        if where == "user":
            shown += [asked(line), {"role": "assistant", "content": "Noted."}]
        elif where == "assistant":
            shown += [{"role": "user", "content": "And now?"}, answered(line)]
        elif where == "arguments":
            shown += ran(id, {"command": f"cd /srv && make test\n{line}"}, "1 failed")
        elif where == "words":
            shown += ran(id, {"command": line.split(" ")}, "1 failed")
        elif where == "pruned arguments":
            shown += ran(id, {"command": line, "input": "x" * 2_000}, "y" * 900)
        elif where == "result":
            shown += ran(id, {"command": "env"}, f"HOME=/srv\n{line}\nERROR: deploy failed with that setting")
        else:
            output = encode_json({"output": f"HOME=/srv\n{line}\nERROR: it failed", "exit_code": 1}).decode()
            shown += ran(id, {"command": "env"}, output)
    return [asked("which one?"), {"role": "assistant", "content": "This."}, *shown, *FILLER]


def settings_of(folder: Path, engine: str = "compressor") -> Settings:
    return load_settings({"context.engine": engine}, {}, Home(folder))


@pytest.fixture
def provider() -> ScriptedProvider:
    """A summary model that says secrets again, no more of them than its answer has room for."""
    told = "\n".join(f"- {line}" for line in ALL.split("\n")[::20])
    return ScriptedProvider(lambda _: f"## Goal\n- Deploy\n\n## Critical Context\n{told}\n")


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
@pytest.mark.parametrize("where", WHERE)
def test_no_planted_secret_is_in_anything_derived(
    where: str, engine: str, tmp_path: Path, provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "talk.db"
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    messages = planted(where)
    found: dict[str, list[str]] = {}
    with (
        open_store(str(path)) as store,
        Conversation.open(
            ID,
            window=24_000,
            store=store,
            settings=settings_of(tmp_path, engine),
            summariser=summariser,
            metadata=Metadata(title=f"About {ALL}"),
        ) as conversation,
    ):
        events: list[CompactionEvent] = []
        conversation.runtime.hooks.listeners.append(events.append)
        for start in range(0, len(messages), 60):
            conversation.append(*messages[start : start + 60])
        conversation.pins.add("m2", ALL)
        report = conversation.compact(ALL)
        assert report.committed, report.reason
        conversation.append({"role": "user", "content": "Go on."})
        assert conversation.compact(ALL).focus
        while store.index.catch_up(1_000):
            pass
        found["log records"] = [record.getMessage() for record in caplog.records]
        found["events"] = [encode_json(event.as_dict()).decode() for event in events]
        found["folds"] = [text_of(message) for message in conversation.messages if is_fold(message)]
        found["the summary model"] = [encode_json(list(request.messages)).decode() for request in provider.requests]
        found["describe"] = [encode_json(conversation.describe(f"m1-m{conversation.runtime.log.view.last}")).decode()]
        found["search"] = [repr(conversation.search("the setting of the build"))]
        # The log is as it was, and so is what the model sees of messages that are shown whole.
        assert [stored.message for stored in store.log.iterate(ID, 1, len(messages))] == messages
        for line in conversation.runtime.log.view.lines:
            if line.number and not line.shortened:
                assert line.message == store.log.message(ID, line.number).message
    assert found["folds"]
    assert provider.requests
    for table, text in stored_texts(path):
        found.setdefault(f"table {table}", []).append(text)
    traces = Traces(SECRETS)
    leaked = {place: sorted(traces.of("\n".join(texts)))[:3] for place, texts in found.items()}
    assert {place: pieces for place, pieces in leaked.items() if pieces} == {}


@pytest.fixture
def untitled(tmp_path: Path) -> Path:
    """Conversations without a title that begin with a secret, and one with a secret for a title."""
    path = tmp_path / "lists.db"
    with open_store(str(path)) as store:
        for place, (line, _) in enumerate(PLANTED.values()):
            store.conversations.create(f"t{place}", Metadata(platform="chat"))
            store.log.append(f"t{place}", [{"role": "user", "content": line}, {"role": "assistant", "content": line}])
        store.conversations.create("named", Metadata(title=ALL))
    return path


def test_lists_and_heads_show_no_secret(untitled: Path, tmp_path: Path, run_cli: RunCli) -> None:
    traces = Traces(SECRETS)
    url = ("--store", untitled)
    for arguments in (("sessions", "list", "--limit", 200), ("sessions", "list", "--limit", 200, "--json")):
        assert traces.of(run_cli(*arguments, *url).out) == set()
    for place in range(len(PLANTED)):
        assert traces.of(run_cli("sessions", "show", f"t{place}", *url).out) == set()
    settings = settings_of(tmp_path)
    with open_store(str(untitled)) as store:
        service = RecallService(store, settings)
        assert traces.of(encode_json(service.sessions(200)).decode()) == set()
        with Conversation.open("t0", store=store, settings=settings) as conversation:
            assert traces.of(sessions(conversation, "200")) == set()
        for place in range(len(PLANTED)):
            with Conversation.open(f"t{place}", store=store, settings=settings) as conversation:
                about = resume_summary(conversation)
                assert traces.of(f"{about.ask}\n{about.answer}\n{about.line}") == set()


def test_the_dashboard_shows_no_secret_in_lists_heads_and_compactions(tmp_path: Path) -> None:
    traces = Traces(SECRETS)
    with opened(tmp_path) as house, httpx2.Client(base_url=house.url, follow_redirects=True) as web:
        for place, (line, _) in enumerate(PLANTED.values()):
            house.store.conversations.create(f"t{place}", Metadata(platform="chat"))
            house.store.log.append(f"t{place}", [{"role": "user", "content": line}])
        house.store.conversations.create(ID, Metadata(title=ALL, platform="chat", model="gpt-4o"))
        with Conversation.open(ID, window=24_000, store=house.store, settings=settings_of(tmp_path)) as conversation:
            conversation.append(*FILLER, *FILLER)
        token = web.get("/").text.partition('name="form-token" content="')[2].partition('"')[0]
        for line, _ in PLANTED.values():
            form = {"token": token, "focus": line}
            answer = web.post(f"/c/{ID}/compress", headers={"origin": house.url}, data=form)
            assert answer.status_code == 200
            assert traces.of(answer.text) == set()
        attempts = house.store.views.attempts(ID, 200)
        assert len(attempts) == len(PLANTED)
        assert all(attempt.report.focus for attempt in attempts)
        pages = ["/", *(f"/c/{ID}/compactions/{attempt.number}" for attempt in attempts)]
        shown = [web.get(page) for page in pages]
        assert {page.status_code for page in shown} == {200}
        assert traces.of("\n".join(page.text for page in shown)) == set()


def test_a_ledger_of_an_earlier_version_is_made_again_from_the_log(tmp_path: Path) -> None:
    """What an earlier version stored in clear is gone once this one has opened the conversation."""
    path = tmp_path / "old.db"
    settings = settings_of(tmp_path)
    with open_store(str(path)) as store:
        with Conversation.open(ID, window=24_000, store=store, settings=settings) as conversation:
            conversation.append(*planted("user"))
            assert conversation.compact().committed
            rules = [rule.text for rule in conversation.runtime.log.ledger.active_rules]
        store.ledgers.save(ID, LedgerSnapshot(5, 1, ALL.encode()))
        database = store.database
        with database.write() as tx:
            tx.run("DELETE FROM ledgers WHERE version <> 1")
            tx.run("DELETE FROM migrations WHERE name LIKE '%masked-ledgers'")
    with open_store(str(path)) as store:
        with Conversation.open(ID, window=24_000, store=store, settings=settings) as conversation:
            assert [rule.text for rule in conversation.runtime.log.ledger.active_rules] == rules
        assert store.ledgers.latest(ID, 1) is None
        kept = store.ledgers.latest(ID, ledger.VERSION)
        assert kept is not None
        assert kept.base == conversation.runtime.log.view.last
    traces = Traces(SECRETS)
    assert [table for table, text in stored_texts(path) if traces.of(text)] == []


def test_titles_of_an_earlier_version_are_masked_where_they_stand(tmp_path: Path) -> None:
    """A list need not read them for secrets, so none may be left in the store."""
    path = tmp_path / "old.db"
    with open_store(str(path)) as store:
        for number, (line, _) in enumerate(PLANTED.values()):
            store.conversations.create(f"{ID}-{number}", Metadata(title="About"))
            with store.database.write() as tx:
                tx.run("UPDATE sessions SET title = ? WHERE title = 'About'", pack(line))
        with store.database.write() as tx:
            tx.run("DELETE FROM migrations WHERE name LIKE '%masked-titles'")
    traces = Traces(SECRETS)
    with open_store(str(path)) as store:
        titles = [record.metadata.title for record in store.conversations.page(limit=500).conversations]
    assert len(titles) == len(PLANTED)
    assert all(titles)
    assert traces.of("\n".join(titles)) == set()
    assert [table for table, text in stored_texts(path) if traces.of(text)] == []
