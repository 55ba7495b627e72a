"""A session for the OpenAI Agents SDK: the history in a store, folded when it is due, nothing lost.

    from agents import Agent, Runner
    from leporello.adapters.openai_agents import LeporelloSession

    session = LeporelloSession("build-42", model="gpt-5", window=128_000)
    agent = Agent("Assistant", tools=session.tools())
    await Runner.run(agent, "Fix the failing test", session=session)

`session.tools()` lets the model search and reopen what was folded. `pop_item` and `clear_session` go on in a branch or
in a new conversation: what was said stays in the store.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agents import FunctionTool

from leporello.config import Settings, load_settings
from leporello.conversation import Conversation
from leporello.dialects import OPENAI_RESPONSES, Target
from leporello.recall.tools import SCHEMAS, openai_tools
from leporello.store import Store, open_store
from leporello.store.records import Metadata

T = TypeVar("T")

PLATFORM = "openai-agents"
_PLACE = "openai_agents.session."


class LeporelloSession:
    """Keeps the items of one session. Methods are coroutines; the work is done in threads, one step at a time."""

    session_settings: Any = None

    def __init__(
        self,
        session_id: str,
        *,
        model: str = "",
        window: int | None = None,
        store: Store | str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.session_id = session_id
        self._model = model
        self._window = window
        self._settings = settings or load_settings()
        self._owns_store = store is None or isinstance(store, str)
        address = store if isinstance(store, str) else self._settings.store_url
        self._store: Store = store if store is not None and not isinstance(store, str) else open_store(address)
        self._offers_recall = False
        self._lock = threading.Lock()
        self.talk = self._opened(str(self._store.state.get(None, _PLACE + session_id) or session_id))

    # -- the protocol of the SDK

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The history as it should be sent: folded when it is due; the newest items when there is a limit."""
        items = await self._do(self._items)
        return items if limit is None else items[max(0, len(items) - limit) :] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        await self._do(lambda: self._add(items))

    async def pop_item(self) -> Any | None:
        """Take the newest item back; the conversation goes on in a branch without it."""
        return await self._do(self._pop)

    async def clear_session(self) -> None:
        """Start a new conversation under the same session id; the old one stays in the store."""
        await self._do(lambda: self._switch(self._store.conversations.create(None, _metadata(self._model)).id))

    # -- beyond it

    def tools(self) -> list[FunctionTool]:
        """The recall tools for the agent; folds then say how to call them."""
        self._offers_recall = True
        return [self._tool(schema) for schema in SCHEMAS]

    def close(self) -> None:
        """Release the store, if this session opened it."""
        self.talk.close()
        if self._owns_store:
            self._store.close()

    async def _do(self, work: Callable[[], T]) -> T:
        def one_at_a_time() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(one_at_a_time)

    def _items(self) -> list[Any]:
        tools = openai_tools() if self._offers_recall else []
        return self._encoded(self.talk.request(tools).messages) if self.talk.runtime.log.view.lines else []

    def _encoded(self, messages: Sequence[Any]) -> list[Any]:
        wire = OPENAI_RESPONSES.encode_request(messages, target=Target("openai", self._model))
        items: list[Any] = wire["input"]
        return items

    def _add(self, items: Sequence[Any]) -> None:
        plain = [item if isinstance(item, dict) else item.model_dump(exclude_unset=True) for item in items]
        decoded = OPENAI_RESPONSES.decode_request({"model": self._model, "input": plain}, "openai")
        if decoded.messages:
            self.talk.append(*decoded.messages)

    def _pop(self) -> Any | None:
        count = self._store.log.count(self.talk.id)
        if not count or not self.talk.runtime.log.view.lines:
            return None
        items = self._encoded([self._store.log.message(self.talk.id, count).message])
        if count == 1:
            self._switch(self._store.conversations.create(None, _metadata(self._model)).id)
        else:
            self._switch(self._store.conversations.branch(self.talk.id, count - 1).id)
        # One message of ours may be several items of theirs: a text and its calls.
        self._add(items[:-1])
        return items[-1]

    def _switch(self, conversation: str) -> None:
        self._store.state.set(None, _PLACE + self.session_id, conversation)
        self.talk.close()
        self.talk = self._opened(conversation)

    def _opened(self, conversation: str) -> Conversation:
        return Conversation.open(
            conversation,
            model=self._model,
            window=self._window,
            store=self._store,
            settings=self._settings,
            metadata=_metadata(self._model),
        )

    def _tool(self, schema: dict[str, Any]) -> FunctionTool:
        async def invoke(_: Any, arguments: str) -> str:
            return await self._do(
                lambda: self.talk.runtime.recall_tools.handle(schema["name"], json.loads(arguments or "{}"))
            )

        return FunctionTool(
            name=schema["name"],
            description=schema["description"],
            params_json_schema=schema["parameters"],
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )


def _metadata(model: str) -> Metadata:
    return Metadata(model=model, platform=PLATFORM)
