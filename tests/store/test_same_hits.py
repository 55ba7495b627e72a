"""Both databases find the same, in the same order: who moves from one to the other notices nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.store import Store, open_store
from leporello.store.records import SearchMode, SearchQuery
from leporello.testing.sessions import FactKind, GeneratedSession, generate

SEEDS = (3, 4)


@pytest.fixture(scope="module")
def sessions() -> list[GeneratedSession]:
    return [generate(seed=seed, messages=120) for seed in SEEDS]


def fill(store: Store, sessions: list[GeneratedSession]) -> None:
    for number, session in enumerate(sessions):
        store.conversations.create(f"s{number}")
        store.log.append(f"s{number}", session.messages)


def hits(store: Store, query: SearchQuery) -> list[tuple[str, int, int, float]]:
    return [(hit.conversation, hit.number, hit.start, round(hit.score, 9)) for hit in store.index.search(query)]


def queries(sessions: list[GeneratedSession]) -> list[SearchQuery]:
    """About what was planted in the sessions: identifiers, error lines and pieces of them, asks, questions."""
    found: list[SearchQuery] = []
    for session in sessions:
        for fact in session.facts:
            if fact.kind in (FactKind.IDENTIFIER, FactKind.ERROR):
                found.append(SearchQuery(fact.text))
                found.append(SearchQuery(fact.text, conversation="s1"))
                found.append(SearchQuery(fact.text[1:-1], mode=SearchMode.FRAGMENT))
            elif fact.kind is FactKind.ASK:
                found.append(SearchQuery(fact.text[:60], roles=("user",)))
            found.append(SearchQuery(fact.question))
    return found


def test_the_same_hits_in_the_same_order(tmp_path: Path, postgres_url: str, sessions: list[GeneratedSession]) -> None:
    with open_store(str(tmp_path / "store.db")) as sqlite, open_store(postgres_url) as postgres:
        for store in (sqlite, postgres):
            fill(store, sessions)
        asked = queries(sessions)
        assert len(asked) > 50
        found = 0
        for query in asked:
            expected = hits(sqlite, query)
            assert hits(postgres, query) == expected, query
            found += bool(expected)
        assert found > len(asked) // 2
