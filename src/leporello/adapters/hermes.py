"""Leporello's engines in a Hermes installation: `context.engine: leporello` or `leporello-lcm`.

Up to 0.1.0 the log of a Hermes conversation began anew under `<id>-2`, `<id>-3` ... whenever the host had changed its
list, with a placeholder for each message that was folded. `split_logs` finds such logs. The parts overlap: by what
their messages say `join_split_logs` puts them in order, and every message stands once in the first of them.
"""

from __future__ import annotations

import importlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.adapters.host_log import FOLDS_KEY, HostLog, as_parts
from leporello.compaction.pipeline import CompactionResult
from leporello.compaction.view import Item
from leporello.config import Home, fold_key
from leporello.engines.compressor import ContextCompressor
from leporello.engines.guard import reason
from leporello.engines.lcm import LcmEngine
from leporello.errors import ProviderError, StoreError
from leporello.lazy_regex import lazy_regex
from leporello.ledger.user_text import title_from
from leporello.messages import Message, Messages, role_of, text_of
from leporello.policy.state import MANUAL
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.recall.tools import SCHEMAS, RecallTools
from leporello.store import Store, find_or_create, open_store
from leporello.store.records import ConversationFilter, Metadata
from leporello.store.sql.checkup import Finding, Severity
from leporello.summaries.fold import read_fold
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.usage import CanonicalUsage

PLATFORM = "hermes"
ENGINES: dict[str, type[ContextCompressor]] = {"leporello": ContextCompressor, "leporello-lcm": LcmEngine}
DEFAULT = "leporello"
DATABASE = "leporello.db"
SESSION_KEY = "hosted.session."  # where the store notes the conversation of each session id of the host
MOST_ANCESTORS = 1_000
PERSISTED = "_db_persisted"
"""Hermes' mark of a message that its database has. It must not stay in a compacted list, or that would not be saved."""
SUMMARY_MARK = "_compressed_summary"  # by it Hermes tells summaries from what was said
TASK_LIST = "[Your active task list was preserved across context compression]"
SUMMARY_SECONDS = 120.0

_log = logging.getLogger("leporello.hermes")


def register(ctx: Any) -> None:
    """Called by Hermes: registers the engine that its settings name."""
    config = importlib.import_module("hermes_cli.config").load_config() or {}
    section = config.get("context") if isinstance(config, dict) else None
    wanted = str(section.get("engine") or "") if isinstance(section, dict) else ""
    ctx.register_context_engine(make_engine(wanted if wanted in ENGINES else DEFAULT))


def make_engine(name: str, context_length: int = 128_000) -> ContextCompressor:
    """An engine that Hermes takes for one of its own."""
    host: type = importlib.import_module("agent.context_engine").ContextEngine
    made: type[_HermesEngine] = type("LeporelloEngine", (_HermesEngine, ENGINES[name], host), {})
    return made(name, context_length)


class _HermesEngine(ContextCompressor):
    """What an engine needs in addition inside Hermes: its name there, a log of its own, Hermes' summary model."""

    def __init__(self, hosted_name: str, context_length: int) -> None:
        super().__init__(context_length, recall=True)
        self._hosted_name = hosted_name
        self._session_id = ""  # read by Hermes, which binds the session again when it is another one
        self._session_db: Any = None
        self._home = ""
        self._store: Store | None = None
        self._kept: HostLog | None = None
        self._model = HermesModel()

    @property
    def name(self) -> str:
        """The name under which Hermes selects it."""
        return self._hosted_name

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextCompressor:
        """Hermes copies an engine for each agent: a new one with the same window, sharing nothing."""
        return type(self)(self._hosted_name, self.context_length)

    # -- sessions

    def bind_session_state(self, session_db: Any, session_id: str) -> None:
        """Hermes' database, which knows what a session continues. After `/new` and `/resume` only this is called."""
        self._session_db = session_db
        if self._home and session_id != self._session_id:
            self._open(session_id, "")

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Open the log of the conversation; a compression switch goes on in the same one."""
        # At a compression switch Hermes does not name its home again.
        self._home = str(kwargs.get("hermes_home") or self._home)
        goes_on = kwargs.get("boundary_reason") == "compression" or kwargs.get("carry_over_context")
        if self._home and session_id:
            self._open(session_id, str(kwargs.get("old_session_id") or "") if goes_on else "")

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """Keep what came since the last compression."""
        if messages:
            self._numbered(messages)

    def on_session_reset(self) -> None:
        """A new conversation; the old log stays in the store."""
        super().on_session_reset()
        self._kept = None
        self._session_id = ""

    def _open(self, session: str, older: str) -> None:
        if self._store is None:
            folder = Path(self._home)
            folder.mkdir(parents=True, exist_ok=True)
            self._store = open_store(f"sqlite:///{folder / DATABASE}")
        self._session_id = session
        conversation = conversation_of(self._store, session, older, self._session_db)
        if conversation is None:
            # Hermes makes agents for chores of its own too, of which nothing is ever kept.
            self._kept = None
        else:
            self._keep(self._store, conversation)

    def _keep(self, store: Store, conversation: str) -> None:
        store.state.set(None, SESSION_KEY + self._session_id, conversation)
        if self._kept is None or self._kept.id != conversation:
            self._kept = HostLog(store, conversation)

    # -- tools

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [dict(schema) for schema in SCHEMAS]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Answer the recall tools from the log."""
        self._numbered(kwargs.get("messages") or [])
        if self._kept is None:
            return '{"error":"there is no session yet"}'
        return RecallTools(self._kept.archive, self.counter.text).handle(name, args)

    # -- compaction

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Another model: its window and counting, and the one that summaries fall back to."""
        super().update_model(model, context_length, base_url, api_key, provider, api_mode)
        self._model.main = {
            "model": model,
            "provider": provider,
            "base_url": base_url,
            "api_key": api_key,
            "api_mode": api_mode,
        }
        ladder = [SummaryModel(self._model, self._model.name, context_length)]
        self.summariser = ModelSummariser(ladder, self.counter, SUMMARY_SECONDS)

    def _numbered(self, messages: Messages) -> list[Item]:
        """The list with ids; what is new of it is kept."""
        if self.trust.key is None:
            # Without a log of its own the engine knows its folds after a restart by this key.
            self.trust.key = fold_key(Home.from_environment())
        said = [*filter(None, map(as_said, messages))]
        if said and self._kept is None and self._store is not None and self._session_id:
            about = Metadata(title_from(said), platform=PLATFORM)
            own = find_or_create(self._store.conversations, hosted_id(self._session_id), about)
            self._keep(self._store, own.id)
        return self._kept.number(said) if self._kept is not None else super()._numbered(said)

    def _next_fold(self, items: Sequence[Item]) -> int:
        return self._kept.next_fold if self._kept is not None else super()._next_fold(items)

    def compact(self, items: Sequence[Item], *, focus: str = "", trigger: str = MANUAL) -> CompactionResult:
        """One compaction; its folds can be opened by their ids."""
        if self._kept is not None:
            self.ledger = self._kept.ledger
        done = super().compact(items, focus=focus, trigger=trigger)
        for item in done.shown:
            if item.fold is not None:
                item.message[SUMMARY_MARK] = True
        if self._kept is not None and done.report.committed:
            try:
                self._kept.commit(items, done)
            except StoreError as error:
                # The host's turn goes on; the log has every message, only this fold is text to it.
                _log.warning("The compaction is not in Leporello's log: %s", error)
        return done


def as_said(message: Message) -> Message | None:
    """A message without what Hermes adds for itself; None when nothing is left.

    At each compaction Hermes shows the task list again, at the end of the list or joined to the message before it.
    """
    said = {key: value for key, value in message.items() if key != PERSISTED}
    if role_of(said) != "user" or TASK_LIST not in text_of(said):
        return said
    content = said["content"]
    parts = ({**part, "text": _without_tasks(part["text"])} if "text" in part else part for part in as_parts(content))
    left = [part for part in parts if part.get("text") != ""]
    return {**said, "content": left if isinstance(content, list) else left[0]["text"]} if left else None


def _without_tasks(text: str) -> str:
    before, found, behind = text.partition(TASK_LIST)
    if not found:
        return text
    lines = behind.lstrip("\n").split("\n")
    listed = next((k for k, line in enumerate(lines) if not line.startswith("- [")), len(lines))
    return "\n\n".join(filter(None, (before.strip(), "\n".join(lines[listed:]).strip())))


def hosted_id(session: str) -> str:
    """What a conversation is called that begins with this session of Hermes."""
    return f"{PLATFORM}-{session}"


def conversation_of(store: Store, session: str, older: str, session_db: Any) -> str | None:
    """The conversation that a session of Hermes belongs to: the one of the session it continues; None for a new one."""
    chain = [session, older] if older else [session]
    parent, branched = session, False
    for _ in range(MOST_ANCESTORS):
        known = next((found for name in chain if (found := store.state.get(None, SESSION_KEY + name))), None)
        if known or session_db is None:
            break
        row = session_db.get_session(parent) or {}
        parent, reason_ended = str(row.get("parent_session_id") or ""), ""
        if parent:
            reason_ended = str((session_db.get_session(parent) or {}).get("end_reason") or "")
        branched = branched or reason_ended == "branched" or "_branched_from" in str(row.get("model_config") or "")
        if not parent or not (branched or reason_ended == "compression"):
            # A child of a session that goes on is another agent's.
            break
        chain = [parent]
    own = hosted_id(session)
    if known and branched and store.log.count(str(known)) and not store.conversations.exists(own):
        return store.conversations.branch(str(known), store.log.count(str(known)), own).id
    if known and not branched:
        return str(known)
    return own if store.conversations.exists(own) else None


@dataclass(slots=True)
class HermesModel:
    """Hermes' summary model as a provider: the one that `auxiliary.compression` names there, or the main model."""

    main: dict[str, Any] = field(default_factory=dict)
    name: str = "hermes:compression"

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """One summary; a failure is a `ProviderError`: then the fold is written without a model."""
        call: Callable[..., Any] = importlib.import_module("agent.auxiliary_client").call_llm
        try:
            answer = call(task="compression", main_runtime=self.main, messages=list(request.messages))
            text = answer.choices[0].message.content
        except Exception as error:  # noqa: BLE001 - the host's code: whatever it raises, there is no summary
            raise ProviderError(reason(error)) from None
        if not isinstance(text, str) or not text.strip():
            raise ProviderError("the summary model returned no text")
        return ModelReply({"role": "assistant", "content": text}, CanonicalUsage(), model=self.name, has_usage=False)


PLACEHOLDER = "[This message was folded before the archive began.]"
_PART = lazy_regex(rf"({PLATFORM}-.{{1,200}})-([2-9]|[1-9][0-9]{{1,8}})")


@dataclass(frozen=True, slots=True)
class SplitLog:
    """The first part of a log, and the others in the order in which they were written."""

    first: str
    others: tuple[str, ...]


def split_logs(store: Store) -> list[SplitLog]:
    """The conversations whose log is in several parts."""
    ids = {record.id for record in store.conversations.each(ConversationFilter(platform=PLATFORM))}
    parts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for id in ids:
        match = _PART.fullmatch(id)
        if match is None or match[1] not in ids:
            continue
        if store.state.get(None, SESSION_KEY + id.removeprefix(f"{PLATFORM}-")) is None:
            # Otherwise it is no part but a session that the host itself calls so.
            parts[match[1]].append((int(match[2]), id))
    return [SplitLog(first, tuple(id for _, id in sorted(others))) for first, others in sorted(parts.items())]


def findings(store: Store) -> Iterator[Finding]:
    """One for each conversation that is split."""
    for split in split_logs(store):
        count = len(split.others) + 1
        yield Finding(
            "split log", Severity.SPLIT, split.first, f"its messages are in {count} logs, up to {split.others[-1]}"
        )


def join_split_logs(store: Store) -> int:
    """Join what can be joined: parts that have a message in common with what is joined so far. Returns how many."""
    joined = 0
    for split in split_logs(store):
        for part in split.others:
            if _join(store, split.first, part):
                joined += 1
    return joined


def _join(store: Store, first: str, part: str) -> bool:
    log = HostLog(store, first)
    said = [(stored.number, stored.message) for stored in store.log.iterate(part) if _is_said(stored.message)]
    if not any(log.knows(message) for _, message in said):
        return False
    items = log.number_each([message for _, message in said])
    numbers = {number: placed[0].number for (number, _), placed in zip(said, items, strict=True) if placed}
    folds = {fold[0]: fold for fold in store.state.get(first, FOLDS_KEY) or []}
    for id, start, end, text, inner in store.state.get(part, FOLDS_KEY) or []:
        folds[id] = [id, *_span(start, end, numbers), text, inner]
    store.state.set(first, FOLDS_KEY, list(folds.values()))
    for key, value in store.state.items(None).items():
        if key.startswith(SESSION_KEY) and value == part:
            store.state.set(None, key, first)
    store.conversations.delete(part)
    return True


def _is_said(message: Message) -> bool:
    return text_of(message) != PLACEHOLDER and read_fold(message) is None


def _span(start: int, end: int, numbers: Mapping[int, int]) -> Sequence[int]:
    """A span of the part in numbers of the joined log; its ends may be placeholders there."""
    before = max((numbers[number] for number in numbers if number < start), default=0)
    behind = min((numbers[number] for number in numbers if number > end), default=max(numbers.values()) + 1)
    first = min(numbers.get(start, before + 1), behind - 1)
    return first, max(first, numbers.get(end, behind - 1))
