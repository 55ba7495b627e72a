"""Looking at a store from outside while others write: listings, sizes, counts, and nothing is changed by looking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import NotFound
from leporello.events import CompactionReport, Outcome, Span
from leporello.messages import encode_json
from leporello.store import Store
from leporello.store.records import ConversationFilter, InsightsQuery, Metadata, ModelCall, SearchQuery
from leporello.usage import CanonicalUsage
from tests.store.contract.base import ContractBase, any_text, example_settings, fold_all_but, user

USAGE = CanonicalUsage(10, 5, 30, 2, 1)


class ObservingContract(ContractBase):
    """What a page about the store reads."""

    def test_a_pulse_tells_that_something_happened(self, store: Store) -> None:
        store.conversations.create("c")
        first = store.conversations.pulse("c")
        assert (first.messages, first.generation) == (0, 0)
        store.log.append("c", [user("a"), user("b")])
        child = store.views.commit("c", fold_all_but(store.views.view("c"), 1)).session
        second = store.conversations.pulse(child)
        assert (second.messages, second.generation) == (2, 1)
        assert second.updated_at == store.conversations.resolve("c").updated_at
        assert [(mark.id, mark.covered, mark.generation) for mark in store.views.fold_marks("c")] == [
            (fold.id, fold.covered, fold.generation) for fold in store.views.folds("c")
        ]
        with pytest.raises(NotFound):
            store.conversations.pulse("nobody")

    def test_compactions_in_force_are_those_nobody_took_back(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"message {number}") for number in range(12)])
        assert store.views.in_force("c") == []
        for kept in (9, 8):
            store.views.commit("c", fold_all_but(store.views.view("c"), kept))
        store.views.undo("c")
        store.views.commit("c", fold_all_but(store.views.view("c"), 7))
        assert store.views.in_force("c") == [1, 4]
        assert len(store.views.in_force("c")) == store.views.view("c").compactions
        assert store.views.in_force("c", at=2) == [1, 2]
        assert store.views.in_force("c", at=3) == [1]

    @example_settings
    @given(texts=st.lists(any_text | st.text(min_size=100, max_size=3000), max_size=8))
    def test_sizes_are_those_of_the_messages(self, store: Store, texts: list[str]) -> None:
        id = store.conversations.create().id
        store.log.append(id, [user(text) for text in texts])
        expected = [len(encode_json(user(text))) for text in texts]
        assert store.log.sizes(id, Span(1, len(texts) + 5)) == expected
        assert store.log.sizes(id, Span(2, 3)) == expected[1:3]

    def test_pages_go_through_everything_once_whatever_the_filter(self, store: Store) -> None:
        for number in range(60):
            about = Metadata(platform="web" if number % 3 else "cli", model=f"m{number % 4}", owner="o")
            store.conversations.create(f"c{number}", about, created_at=1_000.0 + number // 2)
        for where in (ConversationFilter(), ConversationFilter(model="m1"), ConversationFilter("cli", "m2", "o")):
            seen: list[str] = []
            cursor = None
            while True:
                page = store.conversations.page(where, 7, cursor)
                seen += [record.id for record in page.conversations]
                cursor = page.cursor
                if cursor is None:
                    break
            wanted = [
                f"c{number}"
                for number in range(59, -1, -1)
                if where.model in (None, f"m{number % 4}") and where.platform in (None, "web" if number % 3 else "cli")
            ]
            assert seen == wanted

    def test_attempts_can_be_paged(self, store: Store) -> None:
        store.conversations.create("c")
        for _ in range(5):
            store.views.record_attempt("c", CompactionReport(Outcome.NO_GAIN))
        assert [attempt.number for attempt in store.views.attempts("c", 2)] == [5, 4]
        assert [attempt.number for attempt in store.views.attempts("c", 2, before=4)] == [3, 2]
        assert store.views.attempts("c", 2, before=1) == []

    def test_usage_by_session_adds_up_to_the_chain(self, store: Store) -> None:
        store.conversations.create("c")
        store.usage.add("c", ModelCall(USAGE, "m", cost=0.5))
        store.usage.add("c", ModelCall(USAGE, "other", "summary"))
        for _ in range(2):
            store.log.append("c", [user("more")])
            store.views.commit("c", fold_all_but(store.views.view("c"), 1))
        store.usage.add("c", ModelCall(USAGE, "m", cost=0.25))
        first, third = store.usage.by_session("c")
        assert (first.ordinal, first.totals.calls, first.totals.usage) == (1, 2, USAGE + USAGE)
        assert (third.ordinal, third.totals.calls, third.totals.cost) == (3, 1, 0.25)
        assert first.started_at == store.sessions.all("c")[0].started_at
        assert store.usage.by_session("c")[0].totals.usage + third.totals.usage == store.usage.totals("c").usage

    def test_what_belongs_to_others_is_neither_found_nor_counted(self, store: Store) -> None:
        for owner in ("ada", "bob"):
            store.conversations.create(owner, Metadata(platform="api", model=f"of {owner}", owner=owner))
            store.log.append(owner, [user(f"the zanzibar option of {owner} is off")])
            store.usage.add(owner, ModelCall(USAGE, "m", cost=1.0))
        assert {hit.conversation for hit in store.index.search(SearchQuery("zanzibar"))} == {"ada", "bob"}
        for query in (
            SearchQuery("zanzibar", owner="ada"),
            SearchQuery("anziba", owner="ada"),
            SearchQuery("zanzibar", model="of ada", platform="api"),
        ):
            assert [hit.conversation for hit in store.index.search(query)] == ["ada"]
        assert store.index.search(SearchQuery("zanzibar", platform="web")) == []
        found = store.usage.insights(InsightsQuery(owner="ada"))
        assert (found.conversations, found.messages, found.totals.calls, found.sessions) == (1, 1, 1, 1)

    def test_looking_without_catching_up_writes_nothing(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("the zanzibar option is off")])
        assert store.index.search(SearchQuery("zanzibar", catch_up=False)) == []
        assert store.usage.insights(InsightsQuery(catch_up=False)).messages == 0
        assert store.index.pending() == 1
        assert len(store.index.search(SearchQuery("zanzibar"))) == 1
        assert len(store.index.search(SearchQuery("zanzibar", catch_up=False))) == 1
