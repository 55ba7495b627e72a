"""Which conversation a request belongs to: continuations, branches, edits, other clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.config import Home, load_settings
from leporello.conversation.sizes import METER_KEY
from leporello.fingerprint import start
from leporello.gateway.proxy.conversations import CachedConversation, ConversationHint, ProxiedConversations
from leporello.messages import Message
from leporello.store import open_store
from leporello.store.records import ConversationKind


@pytest.fixture
def conversations(tmp_path: Path) -> Iterator[ProxiedConversations]:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        yield ProxiedConversations(store, load_settings({}, environ={}, home=Home(tmp_path)))


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def wanted(said: list[Message], owner: str = "o", name: str = "") -> ConversationHint:
    return ConversationHint(start(owner, name), said, owner, "gpt-4o", 100)


def log_of(conversations: ProxiedConversations, live: CachedConversation) -> list[Message]:
    return [stored.message for stored in conversations.store.log.iterate(live.id)]


def turns(count: int, tag: str = "") -> list[Message]:
    said: list[Message] = []
    for turn in range(count):
        said += [user(f"ask {turn}{tag}"), {"role": "assistant", "content": f"answer {turn}{tag}"}]
    return said


def test_a_conversation_goes_on(conversations: ProxiedConversations) -> None:
    """Each longer request of one history is the same conversation, and stores only what is new."""
    said = turns(5)
    ids = {conversations.take(wanted(said[: k + 1])).id for k in range(0, len(said), 2)}
    assert len(ids) == 1
    live = conversations.take(wanted(said))
    assert log_of(conversations, live) == said


def test_a_conversation_is_known_by_what_its_user_said_first(conversations: ProxiedConversations) -> None:
    """Not by what the client's program put before it; and no secret of it is in the title."""
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    said = [user("<system-reminder>\nBe brief.\n</system-reminder>"), user(f"Try {key} on the harbour gate, please.")]
    live = conversations.take(wanted(said))
    title = conversations.store.conversations.resolve(live.id).metadata.title
    assert title.startswith("Try ")
    assert title.endswith(" on the harbour gate, please.")
    assert key not in title


def test_an_edit_is_a_branch(conversations: ProxiedConversations) -> None:
    """A client that changes its history goes on in a branch; the conversation it left is as it was."""
    said = turns(4)
    first = conversations.take(wanted(said[:7]))
    edited = [*said[:4], user("something else"), {"role": "assistant", "content": "well"}, user("more")]
    second = conversations.take(wanted(edited))
    assert second.id != first.id
    assert conversations.store.conversations.resolve(second.id).kind is ConversationKind.BRANCH
    assert log_of(conversations, first) == said[:7]
    assert log_of(conversations, second) == edited
    # Both go on, each where it stands.
    assert conversations.take(wanted([*said[:7], said[7], user("next")])).id == first.id
    assert conversations.take(wanted([*edited, user("and more")])).id == second.id


def test_own_compaction_is_a_new_conversation(conversations: ProxiedConversations) -> None:
    """A client that replaced its history by a summary of its own shares no beginning with what was before."""
    first = conversations.take(wanted(turns(4)))
    second = conversations.take(wanted([user("Summary of everything so far"), *turns(1, "x")]))
    assert second.id != first.id
    assert conversations.store.conversations.resolve(second.id).kind is ConversationKind.ROOT


def test_going_back_writes_nothing(conversations: ProxiedConversations) -> None:
    """The same question asked again, later ones forgotten: nothing is stored, the conversation stays whole."""
    said = turns(4)
    first = conversations.take(wanted(said[:7]))
    assert conversations.take(wanted(said[:3])) is None
    assert log_of(conversations, first) == said[:7]


def test_what_was_evicted_comes_back_from_the_store(conversations: ProxiedConversations) -> None:
    """Only so much is kept at hand: the rest comes back from the store, the same conversation, its measure with it."""
    small = ProxiedConversations(conversations.store, conversations.settings, most_bytes=1_000)
    first = small.take(wanted(turns(3)))
    with first.guard:
        small.open(first, "gpt-4o", 10_000)
    small.take(wanted(turns(3, "other")))
    assert conversations.store.state.get(first.id, METER_KEY)["model"] == "gpt-4o"
    again = small.take(wanted([*turns(3), user("more")]))
    assert again is not first
    assert again.id == first.id
    assert log_of(conversations, again) == [*turns(3), user("more")]
    assert small.open(again, "gpt-4o", 10_000).runtime.log.ledger.last == 7


def test_strangers_share_nothing(conversations: ProxiedConversations) -> None:
    """The same words under another key, or under another name of the client's choosing, are another conversation."""
    said = turns(2)
    made = {conversations.take(wanted(said, owner, name)).id for owner in ("a", "b") for name in ("", "x", "y")}
    assert len(made) == 6


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=12))
def test_never_mixed_up(tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, int]]) -> None:
    """Whatever clients do (go on, go back, change), the log of the conversation found is exactly what was sent."""
    folder = tmp_path_factory.mktemp("mix")
    with open_store(f"sqlite:///{folder}/t.db") as store:
        settings = load_settings({}, environ={}, home=Home(folder))
        conversations = ProxiedConversations(store, settings)
        said: list[Message] = [user("begin")]
        for number, (keep, words_) in enumerate(moves):
            said = [*said[: max(1, len(said) - keep)], *(user(f"w{words_}") for _ in range(1 + words_))]
            if number % 5 == 4:
                # A gateway that was started again knows what the store knows.
                conversations = ProxiedConversations(store, settings)
            live = conversations.take(wanted(said))
            if live is not None:
                assert log_of(conversations, live) == said
