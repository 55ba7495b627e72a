"""What serves a conversation behind the facade: agents and the gateway reach it as `conversation.runtime`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.config import Settings
from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.compact import CompactionHooks
from leporello.conversation.compactor import Compactor
from leporello.conversation.log import ConversationLog
from leporello.conversation.sizes import ATTEMPTS_KEY, METER_KEY, CompactionMemory, PromptSizes
from leporello.conversation.tool_schemas import ToolSchemas
from leporello.errors import StoreConflict
from leporello.messages import Message, role_of
from leporello.models import cost, model_facts
from leporello.plugins.host import EngineSlot, PluginHost
from leporello.providers.base import ModelReply
from leporello.recall.tools import RecallTools, framed, recalled
from leporello.store import Store
from leporello.store.records import ConversationRecord, ModelCall
from leporello.summaries.base import Summariser
from leporello.usage import CanonicalUsage


class ConversationRuntime:
    """One conversation at work: for agents, gateways and background jobs, not for authors."""

    def __init__(
        self,
        store: Store,
        record: ConversationRecord,
        settings: Settings,
        *,
        model: str = "",
        window: int | None = None,
        summariser: Summariser | None = None,
        plugins: PluginHost | None = None,
        beside: bool = False,
    ) -> None:
        """`beside`: another process leads the session, so that none begins or ends here."""
        self.settings = settings
        self.log = ConversationLog(store, record.id)
        self.sizes = PromptSizes(settings, model or record.metadata.model, window)
        self.hooks = CompactionHooks(summariser)
        self.plugins = EngineSlot(plugins or PluginHost(settings), record.metadata.platform)
        self.memory = CompactionMemory(self.log, self.sizes, self.plugins, settings)
        self.compactor = Compactor(self.log, self.sizes, self.plugins, self.hooks, settings, self.memory)
        self.log.after_foreign_compaction = self.memory.take_over
        self.tools = ToolSchemas(self.log, self.sizes, self.compactor, settings.get("tools.schema_share"))
        self.archive = StoredArchive(store, record.id, by_meaning=settings.get("recall.vectors"))
        if not beside:
            self.plugins.session_begins(self.log.view, self.sizes.model)

    def use_model(self, model: str, window: int | None = None) -> None:
        """Go on with another model. What doesn't fit its window is compacted before it is sent."""
        self.sizes.use_model(model, window)
        self.memory.model_changed()
        self.log.store.conversations.update(self.log.id, model=model)

    def use_window(self, window: int | None) -> None:
        """The model's window is another one than was thought."""
        self.sizes.use_window(window)
        self.memory.limits_changed()

    def suspend(self) -> None:
        """Store the measure: opened again, the conversation decides as if it had stayed open."""
        self.memory.keep()

    def leave(self, reason: str = "exit") -> None:
        """A real end for engine and plugins: the program ends, the user begins anew, the conversation expired."""
        self.plugins.session_ends(self.log.view, self.log.sent(self.sizes.fixed.recall), reason)

    @property
    def recall_tools(self) -> RecallTools:
        """The tools by which a model reads back what was compacted."""
        return RecallTools(self.archive, self.sizes.counter.text)

    def recalled(self, *, wanted: bool = True) -> str:
        """What the newest message needs of what was compacted, for the request that goes out now and for no other."""
        text = recalled(self.archive, self.log.view.lines, self.sizes.limits.window) if wanted else ""
        self.sizes.ephemeral = self.sizes.counter.text(framed(text)) if text else 0
        return text

    def append(self, messages: Sequence[Message]) -> list[str]:
        """Store messages durably and return their ids for life."""
        numbers = self.log.append(messages)
        if self.memory.state.attempts and any(role_of(message) == "assistant" for message in messages):
            self.memory.answered()
        return [f"m{number}" for number in numbers]

    def record(self, reply: ModelReply) -> str:
        """Store an answer, its usage and what was measured by it in one transaction; returns the message's id."""
        model = self.sizes.model or reply.model
        call = ModelCall(reply.usage, model, "chat", cost(reply.usage, model_facts(model or None)))
        while True:
            if reply.has_usage:
                self.sizes.observe(reply.usage.prompt_tokens)
            try:
                number = self.log.record(reply.message, call, self._after_answer())
                break
            except StoreConflict:
                # What another process compacted since the request goes first: a count of the old view says nothing of
                # the new one.
                self.log.refresh()
        self.memory.count_from_zero()
        if reply.has_usage:
            self.plugins.engine.update_from_response(reply.usage.as_engine_dict())
        return f"m{number}"

    def _after_answer(self) -> dict[str, Any]:
        """The values that an answer changes: the measure, and the attempts to compact, which count from zero."""
        values = {METER_KEY: self.memory.measured()}
        return {**values, ATTEMPTS_KEY: None} if self.memory.attempted else values

    def observe(self, usage: CanonicalUsage) -> None:
        """The provider counted the last request."""
        self.sizes.observe(usage.prompt_tokens)
        self.plugins.engine.update_from_response(usage.as_engine_dict())
