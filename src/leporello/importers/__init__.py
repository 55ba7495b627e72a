"""Reads recorded sessions of many agents into OpenAI-format messages, and puts them into a store.

    session = load_session("rollout.jsonl")
    session.messages, session.usage, session.notes

The format is found by looking at the content, never at the name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, count, takewhile
from pathlib import Path

from leporello.errors import InputError
from leporello.importers.documents import AIDER, GEMINI, OPENCODE
from leporello.importers.event_logs import ANTIGRAVITY, CODEX, COPILOT, DROID, GROK, KIMI
from leporello.importers.linked_logs import CLAUDE_CODE, PI
from leporello.importers.openai_json import EXPORTED, HERMES, MINI_SWE, OPENAI, SWE_AGENT, TAU
from leporello.importers.source import CallUsage, Format, ImportedSession, SourceFile, moment
from leporello.ledger.user_text import title_from
from leporello.messages import is_instruction, message_hash
from leporello.models import model_facts
from leporello.store import Store
from leporello.store.records import ConversationKind, Metadata, ModelCall

__all__ = [
    "FORMATS",
    "CallUsage",
    "Change",
    "Format",
    "ImportedSession",
    "Stored",
    "UnknownFormat",
    "detect",
    "import_sessions",
    "load_session",
    "load_sessions",
    "looks_recorded",
]


class UnknownFormat(InputError):
    """A file is no recording of any known format; the text lists what can be read, `reason` does not."""

    reason = "is no recording of a known format"

    def __init__(self, where: str) -> None:
        names = ", ".join(known.name for known in FORMATS)
        super().__init__(f"{self.reason} (known: {names})", where)


_DOCUMENTS = (MINI_SWE, SWE_AGENT, GEMINI, OPENCODE, HERMES, TAU)
_LINES = (EXPORTED, CLAUDE_CODE, CODEX, COPILOT, KIMI, ANTIGRAVITY, PI, DROID, GROK)
FORMATS: tuple[Format, ...] = (*_DOCUMENTS, *_LINES, AIDER, OPENAI)
"""In the order in which they are tried: the most specific first, bare messages last."""


def detect(source: SourceFile) -> Format:
    """The format of a file; `InputError` for an empty one, `UnknownFormat` when nothing here can read it."""
    if not source.text.strip():
        raise InputError("is empty", str(source.path))
    for known in FORMATS:
        if known.matches(source):
            return known
    raise UnknownFormat(str(source.path))


def load_sessions(path: str | Path, encoding: str | None = None) -> list[ImportedSession]:
    """Every session of a file: some formats hold many, some hold sub-agents and branches beside the main thread.

    The file is UTF-8, or what its byte order mark says, or in the `encoding` that is named; `NotText` (an `InputError`)
    when it is not. What is not plain UTF-8 has a note that says how it was read.
    """
    source = SourceFile(Path(path), encoding)
    sessions = detect(source).read(source)
    if not source.remark:
        return sessions
    return [replace(session, notes=(source.remark, *session.notes)) for session in sessions]


def looks_recorded(path: Path) -> bool:
    """Whether a file that can't be decoded is a recording all the same: the marks of all formats are plain ASCII."""
    source = SourceFile(path, "latin-1")
    return any(known.matches(source) for known in FORMATS)


def load_session(path: str | Path, encoding: str | None = None) -> ImportedSession:
    """The main session of a file that holds exactly one."""
    main = [session for session in load_sessions(path, encoding) if session.kind == "main"]
    if len(main) != 1:
        raise InputError(f"holds {len(main)} sessions where one is expected", str(path))
    return main[0]


# -- into a store, as often as one likes: the same recording adds nothing the second time, one that has grown adds what
# is new. Where a recording no longer continues what was stored (its end was rewritten, the user went back), the store's
# log is left alone and the session goes on in a branch that shares the common beginning.

_CALLS_DONE = "import.calls"
IMPORTED = "imported"
"""Why an imported session ended: it goes on elsewhere, if at all. Whoever resumes it here opens it again."""
_KINDS = {"main": ConversationKind.ROOT, "sub-agent": ConversationKind.SUBAGENT, "branch": ConversationKind.BRANCH}


class Change(StrEnum):
    NEW = "new"
    GREW = "grew"
    UNCHANGED = "unchanged"
    BRANCHED = "branched"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Stored:
    """One imported session: its conversation, what happened, and how many messages were added."""

    conversation: str
    change: Change
    added: int
    messages: int


def import_sessions(store: Store, sessions: list[ImportedSession], path: Path) -> list[Stored]:
    """All sessions of one file; those beside the main thread name its conversation as their parent."""
    results: list[Stored] = []
    parent = ""
    for session in sessions:
        stored = import_session(store, session, path, parent if session.kind != "main" else "")
        parent = stored.conversation if session.kind == "main" else parent
        results.append(stored)
    return results


def import_session(store: Store, session: ImportedSession, path: Path, parent: str = "") -> Stored:
    """One session: found again by its id, continued where its messages match, branched off where they don't."""
    head = sum(1 for _ in takewhile(is_instruction, session.messages))
    messages = session.messages[head:]
    if not messages:
        return Stored("", Change.EMPTY, 0, 0)
    hashes = [message_hash(message) for message in messages]
    times = _times(session)
    since = times[head] if times else None
    place = _place(store, conversation_id(session, path, hashes[0]), hashes)
    if place.change is Change.NEW:
        tip = store.conversations.resolve(parent).tip.id if parent else None
        title = title_from(messages, session.title)
        model = session.models[-1] if session.models else ""
        metadata = Metadata(title, platform=session.format, model=model, system_prompt=session.system or None)
        store.conversations.create(place.conversation, metadata, _KINDS[session.kind], tip, since)
    elif place.change is Change.BRANCHED:
        store.conversations.branch(place.origin, place.common, place.conversation, since)
        shared = sum(call.index < head + place.common for call in session.usage)
        store.state.set(place.conversation, _CALLS_DONE, shared)
    added = messages[place.common :]
    if added:
        recorded = times[-len(added) :] if times else None
        store.log.append(place.conversation, added, recorded, after=place.common)
    _count_calls(store, place.conversation, session, times)
    store.conversations.end(place.conversation, IMPORTED, times[-1] if times else None)
    return Stored(place.conversation, place.change, len(added), len(messages))


def conversation_id(session: ImportedSession, path: Path, first: str) -> str:
    """The recording's own id, or one made of the file's name and its first message."""
    name = session.id or f"{path.name.split('.')[0]}-{first.removeprefix('b2:')[:8]}"
    return f"{session.format}:{name}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a session goes: the conversation, how many of the messages stand there already, and what that means."""

    conversation: str
    common: int
    change: Change
    origin: str = ""
    """The conversation to branch off from."""


def _place(store: Store, base: str, hashes: list[str]) -> _Place:
    """Look at every conversation of this recording: one that it continues, or the one that shares most with it."""
    nearest, shared = "", 0
    name = base
    for number in count(2):
        if not store.conversations.exists(name):
            break
        # How many messages from the beginning are the same.
        pairs = zip(store.log.iterate(name), hashes, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: message_hash(pair[0].message) == pair[1], pairs))
        if common == len(hashes):
            return _Place(name, common, Change.UNCHANGED)
        if common == store.log.count(name):
            return _Place(name, common, Change.GREW)
        if common > shared:
            nearest, shared = name, common
        name = f"{base}~{number}"
    return _Place(name, shared, Change.BRANCHED if nearest else Change.NEW, nearest)


def _times(session: ImportedSession) -> list[float] | None:
    """A time for each message, never going back; None when the recording tells none at all."""
    first = next((time for time in session.times if time is not None), moment(session.started))
    if first is None:
        return None
    known = (time or first for time in session.times or (None,) * len(session.messages))
    return list(accumulate(known, max))


def _count_calls(store: Store, conversation: str, session: ImportedSession, times: list[float] | None) -> None:
    """Recorded usage goes into the counters once, on the day it was recorded; how far it got is kept beside it.

    A call without a recorded cost has the list price of its model.
    """
    done = store.state.get(conversation, _CALLS_DONE) or 0
    tip = store.conversations.resolve(conversation).tip.id
    for call in session.usage[done:]:
        at = times[call.index] if times else None
        cost = call.bill.cost(model_facts(call.model), call.usage.output_tokens) if call.cost is None else call.cost
        store.usage.add(tip, ModelCall(call.usage, call.model, cost=cost, at=at))
    if len(session.usage) > done:
        store.state.set(conversation, _CALLS_DONE, len(session.usage))
