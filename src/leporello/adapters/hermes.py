"""Leporello's engines in a Hermes installation: `context.engine: leporello` or `leporello-lcm`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leporello.adapters.keeping import KeptLog
from leporello.compaction.pipeline import CompactionResult
from leporello.compaction.view import Item, MessageHashes
from leporello.config import Home, fold_key
from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.messages import Message, Messages
from leporello.recall.tools import SCHEMAS, RecallTools
from leporello.store import open_store

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
    """What our engines need beside themselves to live in Hermes: its name there, and a log of their own."""

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
        self._keep(messages)

    def on_session_reset(self) -> None:
        """A new conversation: the old log stays, and is left alone."""
        super().on_session_reset()
        if self._kept is not None:
            self._kept.leave()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The recall tools."""
        return [dict(schema) for schema in SCHEMAS]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Search and reopen everything that was said."""
        if self._kept is None or self._kept.archive is None:
            return '{"error":"there is no session yet"}'
        self._keep(kwargs.get("messages") or [])
        return RecallTools(self._kept.archive, self.counter.text).handle(name, args)

    def _keep(self, messages: Messages) -> None:
        self._numbered(messages, MessageHashes())

    def _numbered(self, messages: Messages, hashes: MessageHashes) -> list[Item]:
        before = self.ledger
        if self.trust.key is None:
            # After a restart Hermes hands the list to a new engine: it knows its folds by this key.
            self.trust.key = fold_key(Home.from_environment())
        items = super()._numbered(messages, hashes)
        if self._kept is not None:
            self._kept.keep(items, afresh=self.ledger is not before)
        return items

    def compact(
        self,
        items: Sequence[Item],
        *,
        focus: str = "",
        trigger: str = "manual",
        fold_number: int = 0,
        hashes: MessageHashes | None = None,
    ) -> CompactionResult:
        """One compaction; its folds can be opened by their ids."""
        done = super().compact(items, focus=focus, trigger=trigger, fold_number=fold_number, hashes=hashes)
        if self._kept is not None and done.report.committed:
            self._kept.add_folds(done.folds)
        return done
