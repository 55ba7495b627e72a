"""Conversations and their chain of sessions: one id for life."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import InputError, NotFound, StoreConflict
from leporello.store import Store, StoreOptions
from leporello.store.records import (
    COMPRESSION,
    ConversationFilter,
    ConversationKind,
    LedgerSnapshot,
    Metadata,
)
from tests.store.contract.base import (
    ODD_IDS,
    ContractBase,
    any_text,
    contents,
    example_settings,
    fold_all_but,
    json_values,
    user,
)

FULL = Metadata(
    title="Fix the build",
    platform="cli",
    model="some-model",
    owner="ada",
    system_prompt="You are careful.\n" * 500,
    custom={"zulu": 1, "alpha": {"nested": [1, 2.5, None]}},
)


def rotate(store: Store, conversation: str, times: int = 1) -> list[str]:
    """Compact a few times; returns the ids of the new sessions."""
    ids = []
    for _ in range(times):
        store.log.append(conversation, [user("more")])
        view = store.views.view(conversation)
        ids.append(store.views.commit(conversation, fold_all_but(view, 1)).session)
    return ids


class SessionsContract(ContractBase):
    """`store.conversations`."""

    def test_a_new_conversation_is_its_own_tip(self, store: Store) -> None:
        made = store.conversations.create("c", FULL)
        assert made == store.conversations.resolve("c")
        assert (made.id, made.tip.id, made.tip.ordinal, made.generation, made.messages) == ("c", "c", 1, 0, 0)
        assert made.metadata == FULL
        assert made.open
        assert store.conversations.exists("c")
        assert not store.conversations.exists("d")

    def test_made_up_ids_differ(self, store: Store) -> None:
        assert len({store.conversations.create().id for _ in range(50)}) == 50

    def test_an_id_can_be_given_once(self, store: Store) -> None:
        store.conversations.create("c")
        (session,) = rotate(store, "c")
        for taken in ("c", session):
            with pytest.raises(StoreConflict):
                store.conversations.create(taken)

    @pytest.mark.parametrize("id", ODD_IDS, ids=lambda id: ascii(id)[:30])
    def test_any_string_is_an_id(self, store: Store, id: str) -> None:
        store.conversations.create("c")
        store.conversations.create(id, Metadata(title=id, platform=id, model=id, owner=id, system_prompt=id))
        store.log.append(id, [user(id)])
        rotate(store, id)
        assert store.conversations.resolve(id).id == id
        assert store.conversations.resolve(id).metadata.title == id
        assert store.sessions.get_compression_tip(id) == store.conversations.resolve(id).tip.id
        assert store.log.message(id, 1).message == user(id)
        assert store.log.count("c") == 0
        store.state.set(id, "key", id)
        assert store.state.get(id, "key") == id
        store.conversations.delete(id)
        assert store.conversations.exists("c")
        assert not store.conversations.exists(id)

    @example_settings
    @given(
        id=any_text,
        metadata=st.builds(
            Metadata,
            title=any_text,
            platform=any_text,
            model=any_text,
            owner=any_text,
            system_prompt=st.none() | any_text,
            custom=st.dictionaries(any_text, json_values, max_size=4),
        ),
    )
    def test_metadata_of_any_text_is_kept_and_inherited(self, store: Store, id: str, metadata: Metadata) -> None:
        if store.conversations.exists(id):
            store.conversations.delete(id)
        store.conversations.create(id, metadata)
        rotate(store, id)
        found = store.conversations.resolve(id)
        assert found.id == id
        assert found.metadata == metadata
        assert list(found.metadata.custom) == list(metadata.custom)

    def test_a_title_of_a_megabyte_does_not_slow_or_break_anything(self, store: Store) -> None:
        title = "t" * 1_000_000
        store.conversations.create("c", Metadata(title=title))
        rotate(store, "c", 2)
        assert store.conversations.resolve("c").metadata.title == title

    def test_every_id_of_the_chain_leads_to_the_tip(self, store: Store) -> None:
        store.conversations.create("first", FULL)
        ids = ["first", *rotate(store, "first", 4)]
        for id in ids:
            found = store.conversations.resolve(id)
            assert (found.id, found.tip.id) == ("first", ids[-1])
            assert store.sessions.get_compression_tip(id) == ids[-1]
            assert store.log.count(id) == 4
            assert contents(store.views.view(id)) == contents(store.views.view("first"))

    def test_rotation_ends_the_parent_by_compression_and_inherits_everything(self, store: Store) -> None:
        store.conversations.create("c", FULL)
        rotate(store, "c", 2)
        chain = store.sessions.all("c")
        assert [session.ordinal for session in chain] == [1, 2, 3]
        assert [session.parent_session_id for session in chain] == [None, chain[0].id, chain[1].id]
        assert [session.end_reason for session in chain] == [COMPRESSION, COMPRESSION, None]
        assert [session.first for session in chain] == [1, 2, 3]
        assert all(session.conversation == "c" for session in chain)
        for parent, child in pairwise(chain):
            assert parent.ended_at is not None
            assert child.started_at >= parent.ended_at
            assert child.metadata == parent.metadata == FULL
        assert [child.id for child in store.sessions.children(chain[0].id)] == [chain[1].id]
        assert store.sessions.get(chain[1].id) == chain[1]

    def test_a_sub_agent_is_no_continuation(self, store: Store) -> None:
        store.conversations.create("c")
        store.conversations.create("early", kind=ConversationKind.SUBAGENT, parent_session_id="c")
        (session,) = rotate(store, "c")
        # Started after the parent ended by compression, and names it: still not its continuation.
        store.conversations.create("late", kind=ConversationKind.SUBAGENT, parent_session_id="c")
        assert store.sessions.get_compression_tip("c") == session
        assert store.sessions.get_compression_tip("late") == "late"
        assert store.conversations.resolve("late").kind is ConversationKind.SUBAGENT
        assert {child.id for child in store.sessions.children("c")} == {"early", session, "late"}

    def test_a_clock_that_runs_backwards_breaks_no_chain(self, url: str) -> None:
        times = iter([1000.0, 900.0, 800.0, 700.0, 600.0, 500.0] + [400.0] * 100)
        with self.open(url, StoreOptions(clock=lambda: next(times))) as store:
            store.conversations.create("c")
            ids = rotate(store, "c", 3)
            assert store.sessions.get_compression_tip("c") == ids[-1]
            assert store.care.checkup().clean

    def test_metadata_can_be_changed(self, store: Store) -> None:
        store.conversations.create("c", FULL)
        rotate(store, "c")
        changed = store.conversations.update("c", title="New", custom={"x": 1})
        assert (changed.metadata.title, changed.metadata.custom) == ("New", {"x": 1})
        assert changed.metadata.system_prompt == FULL.system_prompt
        assert store.conversations.resolve("c").metadata == changed.metadata

    @pytest.mark.parametrize("changes", [{"nonsense": 1}, {"title": 3}, {"custom": {"a": {1, 2}}}])
    def test_nonsense_metadata_is_refused(self, store: Store, changes: dict[str, Any]) -> None:
        store.conversations.create("c", FULL)
        with pytest.raises(InputError):
            store.conversations.update("c", **changes)
        assert store.conversations.resolve("c").metadata == FULL

    def test_ending_and_reopening(self, store: Store) -> None:
        store.conversations.create("c")
        store.conversations.end("c", "exit")
        store.conversations.end("c", "expiry")
        ended = store.conversations.resolve("c")
        assert (ended.tip.end_reason, ended.open) == ("exit", False)
        store.conversations.reopen("c")
        assert store.conversations.resolve("c").open
        with pytest.raises(InputError):
            store.conversations.end("c", COMPRESSION)

    def test_what_was_recorded_elsewhere_keeps_its_times(self, store: Store) -> None:
        """Begin, activity, end and branch of an imported conversation are as old as its recording."""
        begun, last = 1_600_000_000.0, 1_600_000_900.0
        store.conversations.create("c", created_at=begun)
        store.log.append("c", [user("1"), user("2")], at=[begun, last])
        store.conversations.end("c", "imported", last)
        store.conversations.end("c", "exit")
        record = store.conversations.resolve("c")
        assert (record.created_at, record.updated_at) == (begun, last)
        assert (record.tip.started_at, record.tip.ended_at, record.tip.end_reason) == (begun, last, "imported")
        branch = store.conversations.branch("c", at=1, id="b", created_at=begun)
        assert (branch.created_at, branch.updated_at, branch.tip.started_at) == (begun, begun, begun)

    def test_a_branch_has_the_same_past_and_its_own_future(self, store: Store) -> None:
        store.conversations.create("c", FULL)
        store.log.append("c", [user(str(n)) for n in range(1, 11)])
        store.views.commit("c", fold_all_but(store.views.view("c"), 2))
        store.ledgers.save("c", LedgerSnapshot(5, 1, b"ledger"))
        store.pins.add("c", 3, "keep")
        handle = store.artifacts.put("c", b"artifact")
        store.log.append("c", [user("11"), user("12")])
        branch = store.conversations.branch("c", at=11)
        assert (branch.kind, branch.messages) == (ConversationKind.BRANCH, 11)
        assert branch.metadata == FULL
        assert contents(store.views.view(branch.id)) == ["summary", "9", "10", "11"]
        assert [m.message for m in store.log.iterate(branch.id)] == [user(str(n)) for n in range(1, 12)]
        assert store.pins.all(branch.id)[0].note == "keep"
        assert store.artifacts.get(branch.id, handle) == b"artifact"
        assert store.ledgers.latest(branch.id, 1) == LedgerSnapshot(5, 1, b"ledger")
        assert store.views.fold(branch.id, "f1").text == "summary"
        store.log.append(branch.id, [user("elsewhere")])
        assert store.log.message("c", 12).message == user("12")
        assert store.log.message(branch.id, 12).message == user("elsewhere")
        assert store.sessions.get_compression_tip("c") != branch.tip.id
        store.conversations.delete("c")
        assert contents(store.views.undo(branch.id)) == [*(str(n) for n in range(1, 12)), "elsewhere"]

    def test_a_branch_from_before_a_compaction_does_not_know_it(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(1, 7)])
        store.views.commit("c", fold_all_but(store.views.view("c"), 1))
        store.log.append("c", [user("7")])
        store.views.undo("c")
        branch = store.conversations.branch("c", at=4, id="b")
        assert branch.id == "b"
        assert contents(store.views.view("b")) == ["1", "2", "3", "4"]
        with pytest.raises(NotFound):
            store.views.undo("b")
        with pytest.raises(NotFound):
            store.conversations.branch("c", at=8)
        with pytest.raises(StoreConflict):
            store.conversations.branch("c", at=4, id="b")

    def test_listing_shows_the_newest_activity_first_in_pages(self, store: Store) -> None:
        base = 1_700_000_000.0
        for n in range(7):
            metadata = Metadata(platform="web" if n % 2 else "cli", owner=f"o{n % 3}")
            store.conversations.create(f"c{n}", metadata, created_at=base + n)
        store.log.append("c0", [user("x")], at=[base + 100])
        seen: list[str] = []
        cursor = None
        while True:
            page = store.conversations.page(limit=3, cursor=cursor)
            seen.extend(found.id for found in page.conversations)
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == ["c0", "c6", "c5", "c4", "c3", "c2", "c1"]
        web = store.conversations.page(ConversationFilter(platform="web", owner="o0"))
        assert [found.id for found in web.conversations] == ["c3"]
        recent = store.conversations.page(ConversationFilter(active_since=base + 5, active_before=base + 50))
        assert [found.id for found in recent.conversations] == ["c6", "c5"]
        for wrong in ("'; DROP TABLE sessions", "12", "12-x", "x-12", "-", f"{2**63}-1"):
            with pytest.raises(InputError):
                store.conversations.page(cursor=wrong)

    def test_deleting_removes_the_conversation_and_nothing_else(self, store: Store) -> None:
        for id in ("gone", "kept"):
            store.conversations.create(id, FULL)
            store.log.append(id, [user(f"{id} needle")])
            rotate(store, id, 2)
            store.artifacts.put(id, b"x" * 1000)
            store.state.set(id, "k", 1)
        old = store.conversations.resolve("gone").tip.id
        store.index.catch_up()
        store.conversations.delete("gone")
        for id in ("gone", old):
            with pytest.raises(NotFound):
                store.conversations.resolve(id)
        assert store.log.message("kept", 1).message == user("kept needle")
        made = store.conversations.create("gone")
        assert (made.messages, store.state.items("gone"), store.artifacts.all("gone")) == (0, {}, [])

    def test_pruning_spares_open_pinned_and_recent_ones(self, store: Store) -> None:
        long_ago = time.time() - 90 * 86_400
        for id in ("old", "open", "pinned", "recent"):
            store.conversations.create(id, created_at=long_ago)
            store.log.append(id, [user("x")], at=[long_ago])
        for id in ("old", "pinned", "recent"):
            store.conversations.end(id, "exit")
        store.pins.add("pinned", 1)
        store.log.append("recent", [user("y")])
        month_ago = time.time() - 30 * 86_400
        assert store.conversations.prune(month_ago, dry_run=True) == ["old"]
        assert store.conversations.exists("old")
        assert store.conversations.prune(month_ago) == ["old"]
        assert not store.conversations.exists("old")
        assert all(store.conversations.exists(id) for id in ("open", "pinned", "recent"))
