"""Leporello's engines in a Hermes installation: `context.engine: leporello` or `leporello-lcm`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leporello.compaction.pipeline import CompactionResult, NewFold
from leporello.compaction.view import Item, Origin
from leporello.config import Home, fold_key
from leporello.conversation.artifacts import StoredArchive
from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.events import Span
from leporello.fingerprint import message_fingerprint
from leporello.messages import Message, Messages
from leporello.policy import MANUAL
from leporello.recall.base import ArchivedFold
from leporello.recall.tools import SCHEMAS, RecallTools
from leporello.store import Store, find_or_create, open_store
from leporello.store.records import Metadata

FOLDS_KEY = "hosted.folds"
_SESSION_KEY = "hosted.session."
_UNKNOWN: Message = {"role": "assistant", "content": "[This message was folded before the archive began.]"}


class KeptLog:
    """The log of one conversation of another host, across the session ids that the host gives it."""

    def __init__(self, store: Store, platform: str = "hermes") -> None:
        self._store = store
        self._platform = platform
        self._session = ""
        self._conversation = ""
        self.archive: KeptArchive | None = None

    def open(self, session: str, older: str = "") -> None:
        """Continue the log of this session, or of the one it continues; otherwise begin a new one."""
        known = self._store.state.get(None, _SESSION_KEY + session) or (
            self._store.state.get(None, _SESSION_KEY + older) if older else None
        )
        self._session = session
        self._use(str(known or f"{self._platform}-{session}"))

    def leave(self) -> None:
        """Detach from the log: what comes next belongs to another conversation."""
        self.archive = None

    def keep(self, items: Sequence[Item], *, afresh: bool = False) -> None:
        """Store the messages that are new. `afresh`: the host's list is not the one of before."""
        if self.archive is None:
            return
        fresh = {item.number: item.message for item in items if item.origin is Origin.LOG}
        if afresh or self._differs(fresh):
            self._use(self._next_name())
        last = self._store.log.count(self._conversation)
        new = sorted(number for number in fresh if number > last)
        if not new:
            return
        messages = [fresh.get(number, _UNKNOWN) for number in range(last + 1, new[-1] + 1)]
        self._store.log.append(self._conversation, messages)

    def _use(self, conversation: str) -> None:
        find_or_create(self._store.conversations, conversation, Metadata(platform=self._platform))
        self._store.state.set(None, _SESSION_KEY + self._session, conversation)
        self._conversation = conversation
        self.archive = KeptArchive(self._store, conversation)

    def _differs(self, messages: dict[int, Message]) -> bool:
        """Whether the list was rewritten: its first or newest message is not what the log has under that number.

        Others may differ without harm: a compaction shortens tool outputs of the tail.
        """
        ends = {1, max(messages, default=1)} & messages.keys()
        stored = self._store.log.pick(self._conversation, ends)
        return any(
            message_fingerprint(known.message) != message_fingerprint(messages[known.number]) for known in stored
        )

    def _next_name(self) -> str:
        number = 2
        while self._store.conversations.exists(f"{self._platform}-{self._session}-{number}"):
            number += 1
        return f"{self._platform}-{self._session}-{number}"


class KeptArchive(StoredArchive):
    """What the recall tools read of a kept log. The engine's folds are in the state: the log has no views."""

    def folds(self) -> Sequence[ArchivedFold]:
        """Oldest first."""
        kept = self._store.state.get(self._conversation, FOLDS_KEY) or []
        return [ArchivedFold(id, Span(first, last), text, tuple(inner)) for id, first, last, text, inner in kept]

    def add(self, folds: Sequence[NewFold]) -> None:
        kept = self._store.state.get(self._conversation, FOLDS_KEY) or []
        new = [[f.fold.id, f.fold.span.first, f.fold.span.last, f.text, list(f.children)] for f in folds]
        self._store.state.set(self._conversation, FOLDS_KEY, [*kept, *new])


ENGINES: dict[str, type[ContextCompressor]] = {"leporello": ContextCompressor, "leporello-lcm": LcmEngine}
DEFAULT = "leporello"
DATABASE = "leporello.db"


def register(ctx: Any) -> None:
    """Called by Hermes: registers the engine that its settings name."""
    wanted = _chosen_engine()
    ctx.register_context_engine(make_engine(wanted if wanted in ENGINES else DEFAULT))


def _chosen_engine() -> str:
    config = importlib.import_module("hermes_cli.config").load_config() or {}
    section = config.get("context") if isinstance(config, dict) else None
    return str(section.get("engine") or "") if isinstance(section, dict) else ""


def make_engine(name: str, context_length: int = 128_000) -> ContextCompressor:
    """An engine that Hermes takes for one of its own."""
    host: type = importlib.import_module("agent.context_engine").ContextEngine
    made: type[_HermesEngine] = type("LeporelloEngine", (_HermesEngine, ENGINES[name], host), {})
    return made(name, context_length)


class _HermesEngine(ContextCompressor):
    """What an engine needs in addition inside Hermes: its name there, and a log of its own."""

    def __init__(self, hosted_name: str, context_length: int) -> None:
        super().__init__(context_length, recall=True)
        self._hosted_name = hosted_name
        self._kept: KeptLog | None = None

    @property
    def name(self) -> str:
        """The name under which Hermes selects it."""
        return self._hosted_name

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextCompressor:
        """Hermes copies an engine for each agent: a new one with the same window, sharing nothing."""
        return type(self)(self._hosted_name, self.context_length)

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Open the log of the conversation; a compression switch goes on in the same one."""
        home = kwargs.get("hermes_home")
        if not home:
            return
        if self._kept is None:
            folder = Path(str(home))
            folder.mkdir(parents=True, exist_ok=True)
            self._kept = KeptLog(open_store(f"sqlite:///{folder / DATABASE}"))
        self._kept.open(session_id, str(kwargs.get("old_session_id") or ""))

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """Keep what came since the last compression."""
        self._numbered(messages)

    def on_session_reset(self) -> None:
        """A new conversation; the old log stays in the store."""
        super().on_session_reset()
        if self._kept is not None:
            self._kept.leave()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [dict(schema) for schema in SCHEMAS]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Answer the recall tools from the log."""
        if self._kept is None or self._kept.archive is None:
            return '{"error":"there is no session yet"}'
        self._numbered(kwargs.get("messages") or [])
        return RecallTools(self._kept.archive, self.counter.text).handle(name, args)

    def _numbered(self, messages: Messages) -> list[Item]:
        """The list with ids; what is new of it is kept."""
        before = self.ledger
        if self.trust.key is None:
            # After a restart Hermes hands the list to a new engine: it knows its folds by this key.
            self.trust.key = fold_key(Home.from_environment())
        items = super()._numbered(messages)
        if self._kept is not None:
            self._kept.keep(items, afresh=self.ledger is not before)
        return items

    def compact(self, items: Sequence[Item], *, focus: str = "", trigger: str = MANUAL) -> CompactionResult:
        """One compaction; its folds can be opened by their ids."""
        done = super().compact(items, focus=focus, trigger=trigger)
        if self._kept is not None and self._kept.archive is not None and done.folds:
            self._kept.archive.add(done.folds)
        return done
