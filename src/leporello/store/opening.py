"""Opens a conversation by its id or begins it, also when others do the same at the same moment."""

from __future__ import annotations

from leporello.errors import NotFound, StoreConflict
from leporello.store.base import Conversations
from leporello.store.records import ConversationRecord, Metadata


def find_or_create(conversations: Conversations, id: str, metadata: Metadata) -> ConversationRecord:
    """The conversation with this id; a new one with this metadata when there is none."""
    try:
        return conversations.resolve(id)
    except NotFound:
        pass
    try:
        return conversations.create(id, metadata)
    except StoreConflict:
        # Somebody else was quicker: theirs is the conversation.
        return conversations.resolve(id)
