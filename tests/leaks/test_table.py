"""Promise 16 as a table: kinds of secrets by places that keep or show something, on both databases.

The summary model is the worst there could be: it says again whatever it is shown, in clear, encoded, backwards and cut.
"""

from __future__ import annotations

import base64
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from leporello.conversation import Conversation
from leporello.errors import ProviderError
from leporello.events import CompactionEvent
from leporello.messages import Message, encode_json, text_of
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider
from leporello.store.records import Metadata
from leporello.summaries.fold import is_fold
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.conftest import RunCli
from tests.gateway.house import STORE_URL, opened
from tests.leaks.planted import RAW_TABLES, WITHOUT_TEXT, decoded, ran, stored_texts
from tests.redact import corpus
from tests.store.conftest import server as server
from tests.store.server import Server

ID = "talk-1"
OF_EACH, SHORTEST = 3, 6
FILLER = generate(SessionSpec(seed=164, messages=40, tokens=8_000, secrets=0, images=0)).messages
RAW = RAW_TABLES | WITHOUT_TEXT | {"inbox"}


def chosen() -> list[corpus.Item]:
    """Some shapes of every kind and every language; codes of a few digits are in any text by chance."""
    seen: dict[tuple[str, str], int] = defaultdict(int)
    found = []
    for item in corpus.items():
        if min(map(len, item.secrets)) >= SHORTEST and seen[item.kind, item.language] < OF_EACH:
            seen[item.kind, item.language] += 1
            found.append(item)
    return found


ITEMS = chosen()
SECRETS = {(item.kind, secret) for item in ITEMS for secret in item.secrets}


def planted() -> list[Message]:
    """Every shape once in each role and in a call."""
    shown: list[Message] = []
    for place, item in enumerate(ITEMS):
        shown += [{"role": "user", "content": f"Never lose this:\n{item.text}\nGo on."}]
        shown += ran(f"c{place}", {"command": item.text}, f"HOME=/srv\n{item.text}\nERROR: it failed")
        shown += ran(f"d{place}", {"command": "env"}, encode_json({"output": item.text, "exit_code": 1}).decode())
        shown += [{"role": "assistant", "content": f"I decided to keep it, because the build needs it:\n{item.text}"}]
    return [{"role": "user", "content": "Deploy it."}, {"role": "assistant", "content": "Yes."}, *shown, *FILLER]


def said_again(request: ModelRequest) -> str:
    """The lines where secrets stood, in four writings; as many as an answer has room for."""
    lines = [line for message in request.messages for line in text_of(message).splitlines() if "[REDACTED]" in line]
    told = []
    for place, line in enumerate(lines[-60:]):
        encoded = " ".join(base64.b64encode(word.encode()).decode() for word in line.split())
        told.append("- " + (line, encoded, line[::-1], ".".join(line))[place % 4][:200])
    return "## Goal\n- Deploy\n\n## Critical Context\n" + "\n".join(told) + "\n"


def leaks(text: str) -> set[tuple[str, str]]:
    """Kinds whose secret is in a text: in clear, in small letters, encoded, backwards or cut. Never the secret."""
    lowered = text.lower()
    found = set()
    for kind, secret in SECRETS:
        encoded = base64.b64encode(secret.encode()).decode()
        ways = {"clear": secret in text, "small": len(secret) > 9 and secret.lower() in lowered}
        ways |= {"encoded": encoded in text, "backwards": secret[::-1] in text, "cut": ".".join(secret) in text}
        found |= {(kind, way) for way, there in ways.items() if there}
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    database: Server = request.getfixturevalue("server")
    token = STORE_URL.set(database.new_database())
    yield STORE_URL.get()
    STORE_URL.reset(token)


def test_no_kind_of_secret_is_in_any_place(
    url: str, tmp_path: Path, run_cli: RunCli, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = ScriptedProvider(said_again)
    every = "\n".join(item.text for item in ITEMS)
    places: dict[str, str] = {}
    with opened(tmp_path) as house, httpx2.Client(base_url=house.url, follow_redirects=True) as web:
        summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
        settings = house.gateway.settings
        about = Metadata(title=f"About {every}", platform="chat", model="gpt-4o")
        events: list[CompactionEvent] = []
        with Conversation.open(
            ID, window=24_000, store=house.store, settings=settings, summariser=summariser, metadata=about
        ) as talk:
            talk.runtime.hooks.listeners.append(events.append)
            messages = planted()
            for start in range(0, len(messages), 80):
                talk.append(*messages[start : start + 80])
            talk.pins.add("m3", every)
            assert talk.compact(every).committed
            talk.append(*FILLER)
            provider_error = _failed(talk, every)
            places["folds"] = "\n".join(text_of(message) for message in talk.messages if is_fold(message))
            places["describe"] = encode_json(talk.describe(f"m1-m{len(messages)}")).decode()
            places["search"] = repr(talk.search("what must never be lost"))
        while house.store.index.catch_up(1_000):
            pass
        places["error texts"] = provider_error
        places["requests to the summary model"] = "\n".join(
            text_of(message) for request in provider.requests for message in request.messages
        )
        places["events"] = "\n".join(encode_json(event.as_dict()).decode() for event in events)
        places["metrics"] = web.get("/metrics").text
        attempts = house.store.views.attempts(ID, 50)
        pages = ["/", *(f"/c/{ID}/compactions/{attempt.number}" for attempt in attempts)]
        places["dashboard"] = "\n".join(web.get(page).text for page in pages)
        store = url or house.store.url
        for words in (
            ("sessions", "list"),
            ("sessions", "list", "--json"),
            ("sessions", "show", ID),
            ("insights",),
        ):
            places[" ".join(words)] = run_cli(*words, "--store", store).out
        for table, text in stored_texts(tmp_path / "gateway.db") if not url else _postgres_texts(url):
            places[f"table {table}"] = places.get(f"table {table}", "") + "\n" + text
        places["log records"] = "\n".join(record.getMessage() for record in caplog.records)
    assert provider.requests
    assert places["folds"]
    assert "[REDACTED]" in places["requests to the summary model"]
    assert {place: sorted(found) for place, text in places.items() if (found := leaks(text))} == {}


def _failed(talk: Conversation, every: str) -> str:
    """What is reported when the summary model fails and its error repeats what it was sent."""
    failing = ScriptedProvider([ProviderError(f"bad request: {every}")] * 9)
    models = [SummaryModel(failing, "gpt-4.1", 128_000)]
    talk.runtime.hooks.summariser = ModelSummariser(models, TokenCounter.for_model("gpt-4.1"))
    return repr(talk.compact())


def _postgres_texts(url: str) -> Iterator[tuple[str, str]]:
    """Everything in a PostgreSQL store but the log, the queue included."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert {table for _, table in tables} >= {"ledgers", "folds", "documents", "procrastinate_jobs"}
        for schema, table in tables:
            if table not in RAW:
                for row in connection.execute(f'SELECT * FROM "{schema}"."{table}"'):
                    for value in row:
                        plain = bytes(value) if isinstance(value, memoryview) else value
                        for text in decoded(plain if isinstance(plain, bytes) else str(plain)):
                            yield table, re.sub(r"'(\S+)':\d+", r"\1", text)
