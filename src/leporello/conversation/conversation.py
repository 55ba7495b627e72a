"""`Conversation`: the facade an agent author meets. The log grows in the store; the model sees the compacted view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from leporello import caching
from leporello.config import Settings, load_settings
from leporello.conversation.artifacts import Pinboard, StoredArtifacts, outputs_folder, waiting_call
from leporello.conversation.rendering import Request, decode
from leporello.conversation.runtime import ConversationRuntime
from leporello.deprecation import moved_attribute, renamed_parameter
from leporello.errors import InputError
from leporello.events import CompactionReport
from leporello.messages import Message, decode_json, text_of
from leporello.plugins.host import PluginHost
from leporello.policy.decision import Occasion
from leporello.providers.base import ModelReply
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.store import Store, find_or_create, open_store
from leporello.store.records import ConversationRecord, Metadata, UsageTotals, View
from leporello.summaries.base import Summariser
from leporello.tools.base import OutputLimits
from leporello.tools.budget import OutputBudget
from leporello.turns import check_roles

_RUNTIME = "Conversation.runtime"
_MOVED = {
    "archive": "archive",
    "compressions": "log.compactions",
    "counter": "sizes.counter",
    "engine": "plugins.engine",
    "extras": "plugins.extras",
    "leave": "leave",
    "limits": "sizes.limits",
    "listeners": "hooks.listeners",
    "measure_fixed": "sizes.measure_fixed",
    "model": "sizes.model",
    "note": "plugins.note",
    "plugins": "plugins.host",
    "reading": "compactor.reading",
    "recall_tools": "recall_tools",
    "refresh": "log.refresh",
    "shrink": "compactor.shrink",
    "store": "log.store",
    "troubles": "plugins.troubles",
    "use_model": "use_model",
    "use_window": "use_window",
    "view": "log.view",
}
"""Attributes of earlier versions, and where in `runtime` they are now."""


class Conversation:
    """One conversation in a store. Not for use from several threads at once; several processes may share the store."""

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
        owns_store: bool = False,
        beside: bool = False,
    ) -> None:
        """`beside`: another process leads the session, so that none begins or ends here."""
        self.id = record.id
        self.runtime = ConversationRuntime(
            store, record, settings, model=model, window=window, summariser=summariser, plugins=plugins, beside=beside
        )
        """For whoever serves conversations (agents, gateways, background jobs): log, sizes, engine, compactions."""
        self._store = store
        self._owns_store = owns_store

    def __repr__(self) -> str:
        view = self.runtime.log.view
        return f"<Conversation {self.id!r}: messages={view.last}, folds={view.compactions}>"

    @classmethod
    @renamed_parameter("narrator", "summariser")
    def open(
        cls,
        id: str | None = None,
        *,
        model: str = "",
        window: int | None = None,
        store: Store | str | None = None,
        settings: Settings | None = None,
        summariser: Summariser | None = None,
        metadata: Metadata | None = None,
        plugins: PluginHost | None = None,
    ) -> Conversation:
        """Open a conversation by any id of its chain, or begin one. SQLite in LEPORELLO_HOME unless told otherwise."""
        settings = settings or load_settings()
        opened = store if store is not None and not isinstance(store, str) else open_store(store or settings.store_url)
        about = metadata or Metadata(model=model)
        if id is None:
            record = opened.conversations.create(None, about)
        else:
            record = find_or_create(opened.conversations, id, about)
        return cls(
            opened,
            record,
            settings,
            model=model,
            window=window,
            summariser=summariser,
            plugins=plugins,
            owns_store=opened is not store,
        )

    # -- one turn

    @property
    def messages(self) -> list[Message]:
        """The view as it is sent: calls and results that match, neighbouring user messages as one."""
        return self.runtime.log.sent(self.runtime.sizes.fixed.recall)

    def append(self, *messages: Message) -> list[str]:
        """Store messages durably and return their ids for life; `InputError` for a role that nobody knows."""
        check_roles(messages, "messages[{}]".format)
        return self.runtime.append(messages)

    def tool_result(self, call_id: str, output: str) -> str:
        """Store the result of a tool call and return its id; one that is too long is kept whole and shown in part.

        All results of one turn together have a limit too. What comes from reading a saved output is not saved again.
        """
        runtime = self.runtime
        folder = outputs_folder(runtime.settings.home, self.id)
        limits = OutputLimits.for_window(runtime.sizes.limits.window)
        budget = OutputBudget(folder, limits, (), StoredArtifacts(self._store, self.id))
        waiting = waiting_call(runtime.log.view.messages, call_id)
        result = waiting.result(output, folder)
        shown = budget.one(waiting.call, None, result, used=waiting.used, waiting=waiting.others)
        return self.append(shown.message())[0]

    def request(
        self,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | Message = "",
        *,
        max_tokens: int | None = None,
        provider: str = "",
    ) -> Request:
        """The next request: compacted when due, valid, ready for breakpoints. Raises when the fixed part can't fit."""
        first: Message | None = {"role": "system", "content": system} if isinstance(system, str) else system
        words = text_of(first) if first else ""
        reading = self.runtime.compactor.prepare(tools, words)
        model, messages = self.runtime.sizes.model, self.messages
        caching_settings = self.runtime.settings.prompt_caching
        head = (first,) if words and first else ()
        fold = self.runtime.log.last_fold
        return Request(
            conversation=self.id,
            model=model,
            messages=(*head, *messages),
            tools=tuple(dict(tool) for tool in tools),
            max_tokens=max_tokens,
            provider=provider,
            layout=caching_settings.layout,
            ttl=caching_settings.cache_ttl,
            tokens=reading.tokens,
            room=self.runtime.sizes.limits.window - reading.tokens,
            summary=None if fold is None else fold + len(head),
            options=caching.cache_options(caching.cache_use(model, provider), self.id),
        )

    def record(self, reply: Any, *, provider: str = "") -> str:
        """Store an answer and its usage; compacts when the turn is over and it is due. Returns the message's id.

        Takes what the official clients return, the JSON of it, or a `ModelReply`.
        """
        answer = reply if isinstance(reply, ModelReply) else decode(reply, provider, self.runtime.sizes.model)
        id = self.runtime.record(answer)
        # Output counts only as far as it stays in the conversation: thinking that is not sent back never does.
        if not answer.message.get("tool_calls"):
            self.runtime.compactor.when_due(Occasion.TURN, "threshold")
        return id

    # -- compaction

    def compact(self, focus: str = "") -> CompactionReport:
        """Compact now, by hand: never refused for earlier attempts, never counted as one."""
        return self.runtime.compactor.compact(_text(focus, "focus"))

    def undo(self) -> View:
        """Show again what was shown before the last compaction, with all that came since."""
        return self.runtime.compactor.undo()

    # -- reading back

    def search(self, query: str, max_tokens: int = DEFAULT_TOKENS) -> list[Window]:
        """Windows of the whole conversation that answer a query or question, folded parts included, best first."""
        return self.runtime.archive.search(RecallQuery(_text(query, "query"), max_tokens))

    def expand(self, id: str, page: int = 1, max_tokens: int = DEFAULT_TOKENS) -> dict[str, Any]:
        """The raw messages behind `m12`, `m10-m20` or `f3`, one page of them."""
        return self._recall("lcm_expand", {"id": id, "page": page, "max_tokens": max_tokens})

    def describe(self, id: str) -> dict[str, Any]:
        """What a message, a span or a fold is about."""
        return self._recall("lcm_describe", {"id": id})

    def _recall(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = decode_json(self.runtime.recall_tools.handle(name, arguments).encode())
        if "error" in answer:
            raise InputError(str(answer["error"]))
        return answer

    @property
    def pins(self) -> Pinboard:
        """Messages the user wants kept word for word."""
        sizes = self.runtime.sizes
        return Pinboard(self._store, self.id, sizes.counter, sizes.limits.pin_tokens)

    @property
    def usage(self) -> UsageTotals:
        """Everything this conversation used so far."""
        return self._store.usage.totals(self.id)

    def close(self) -> None:
        """Release the engine, and the store if this conversation opened it."""
        for closing in self.runtime.hooks.closing:
            closing()
        self.runtime.log.close()
        self.runtime.plugins.close()
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return attrgetter(moved_attribute(self, name, _MOVED, _RUNTIME))(self.runtime)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in _MOVED:
                super().__setattr__(name, value)
                return
            place, _, attribute = moved_attribute(self, name, _MOVED, _RUNTIME).rpartition(".")
            setattr(attrgetter(place)(self.runtime) if place else self.runtime, attribute, value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"must be text (str), not {type(value).__name__}", name)
    return value
