"""A conversation of any length in a window of any size: append, request, record, fold, search, reopen, undo.

talk = Conversation.open("build-42", model="claude-sonnet-5")
talk.append({"role": "user", "content": "Fix the failing test"})
request = talk.request(tools=tools)
reply = client.messages.create(**request.anthropic())
talk.record(reply)
"""

from leporello.conversation.conversation import Conversation
from leporello.conversation.rendering import Request

__all__ = ["Conversation", "Request"]
