"""What a store hands out and takes in: frozen values without any database in them.

Times are seconds since the epoch (stored to the millisecond). Message numbers are the N of `m<N>`: the position in the
conversation's log, counted from 1, for life.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from leporello.events import CompactionReport, Span, ViewEntry
from leporello.messages import Message
from leporello.usage import CanonicalUsage

if TYPE_CHECKING:  # what a fold says is read with a view, not with a list of conversations
    from leporello.summaries.fold import ViewFold

COMPRESSION = "compression"  # the end reason of a session that goes on in a child


class ConversationKind(StrEnum):
    ROOT = "root"
    BRANCH = "branch"
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known about a conversation beside its messages; a continuation inherits all of it."""

    title: str = ""
    platform: str = ""
    model: str = ""
    owner: str = ""
    system_prompt: str | None = None
    """The exact text in use; None when there is none yet."""
    custom: Mapping[str, Any] = field(default_factory=dict)
    """Any JSON object; kept with key order."""


class SessionRecord(Struct, frozen=True):
    id: str
    conversation: str
    """The id for life: the id of the chain's first session."""
    ordinal: int
    """1 for the first session of the conversation."""
    parent_session_id: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    first: int
    """The number of the first message appended in this session (it may not exist yet)."""
    metadata: Metadata


class ConversationRecord(Struct, frozen=True):
    id: str
    kind: ConversationKind
    tip: SessionRecord
    generation: int
    """Raised by every commit and every undo."""
    messages: int
    """How many the log has; also the number of the newest."""
    created_at: float
    updated_at: float
    compactions: int = 0
    """How many are in force: those that were not undone."""

    @property
    def metadata(self) -> Metadata:
        """Title, model and so on, as the newest session has them."""
        return self.tip.metadata

    @property
    def open(self) -> bool:
        return self.tip.ended_at is None


class Pulse(Struct, frozen=True):
    """How far a conversation has come: enough to tell whether anything happened since."""

    messages: int
    generation: int
    updated_at: float
    open: bool
    """Whether the newest session has not ended."""


class ConversationFilter(Struct, frozen=True):
    """Which conversations a listing shows. Newest activity first."""

    platform: str | None = None
    model: str | None = None
    owner: str | None = None
    kind: ConversationKind | None = None
    active_since: float | None = None
    active_before: float | None = None
    open: bool | None = None
    """Whether the newest session has not ended."""


class Page(Struct, frozen=True):
    """One page of a listing; `cursor` continues it, None at the end.

    Where a filter leaves out nearly everything, a page may be shorter than asked for, or empty, and still go on.
    """

    conversations: tuple[ConversationRecord, ...]
    cursor: str | None


class StoredMessage(Struct, frozen=True):
    """A message as it was appended, with its number and time."""

    number: int
    message: Message
    created_at: float

    @property
    def id(self) -> str:
        return f"m{self.number}"


@dataclass(frozen=True, slots=True)
class ViewLine:
    """One line of a view, resolved.

    `number` is the stored message it shows or comes from; None for a message that a compaction wrote. `shortened` says
    that `message` differs from the stored one. `fold` is the id of the fold it shows.
    """

    message: Message
    number: int | None = None
    fold: str | None = None
    shortened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldLine(ViewLine):
    """The line of a fold that one of our engines wrote, with what it says as a value."""

    summary: ViewFold


@dataclass(frozen=True, slots=True)
class View:
    """What the model sees now, and the stamp a compaction of it must carry (`generation`, `last`)."""

    conversation: str
    session: str
    generation: int
    last: int
    """Number of the newest message of the log that this view accounts for; 0 when there is none."""
    lines: tuple[ViewLine, ...]
    folds: int
    """How many folds the conversation has ever had; the next is `f<folds + 1>`."""
    compactions: int
    """How many compactions it went through, without those taken back; an engine may write several folds in one."""
    waits_for_hard_limit: bool
    """True after an undo: automatic compaction leaves the view alone until the hard limit."""

    @property
    def messages(self) -> list[Message]:
        return [line.message for line in self.lines]


class StoredFold(Struct, frozen=True):
    """One summary and what it stands for. `children` are folds it was made of (a DAG of summaries)."""

    id: str
    covered: Span
    text: str = ""
    handoff: Any = None
    """The typed handoff as a JSON value."""
    children: tuple[str, ...] = ()
    generation: int = 0
    """Set by the store."""


class FoldMark(Struct, frozen=True):
    """What a fold covers and since when, without its text."""

    id: str
    covered: Span
    generation: int


class StatedValue(Struct, frozen=True):
    """What a conversation says about a thing."""

    subject: str
    value: str
    message: int
    """The message that says so."""
    text: str
    """The sentence that says so; one value is kept for each."""
    replaced_by: int | None = None
    """The message that gave another value; None: it holds."""
    task: int | None = None
    """The request it was said under, by its message."""
    since: float | None = None
    """When it was said; set by the store."""


class LedgerSnapshot(Struct, frozen=True):
    """The ledger after message `base`, as bytes only the ledger understands; and as rows the values it knows."""

    base: int
    version: int
    data: bytes
    values: Sequence[StatedValue] = ()


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """All that one compaction writes; it becomes visible as a whole or not at all."""

    base_generation: int
    """`View.generation` of the view that was compacted."""
    base_last: int
    """`View.last` of that view; messages appended later follow the entries by themselves."""
    entries: Sequence[ViewEntry]
    report: CompactionReport
    folds: Sequence[StoredFold] = ()
    ledger: LedgerSnapshot | None = None
    system_prompt: str | None = None
    """The child's system prompt; None keeps the parent's."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Values of the conversation's state that become visible with it."""


class Generation(Struct, frozen=True):
    """One step in the life of a view: a commit or an undo."""

    generation: int
    kind: str
    """`start`, `compaction` or `undo`."""
    state: int
    """The compaction whose result is shown; 0 is the whole log. An undo shows an older one again."""
    base_last: int
    session: str
    created_at: float
    entries: tuple[ViewEntry, ...]


class Attempt(Struct, frozen=True):
    """One attempt at a compaction, committed (`generation` is set) or not."""

    number: int
    at: float
    session: str
    generation: int | None
    report: CompactionReport


class Lease(Struct, frozen=True):
    """The right to compact a conversation until `expires_at`; `token` grows with every new holder."""

    conversation: str
    owner: str
    token: int
    expires_at: float


class InboxMessage(Struct, frozen=True):
    """A message that somebody sent to the agent of a conversation, and how it ended.

    It is not in the log yet: it may be a command, and it may have to wait.
    """

    conversation: str
    id: str
    """Chosen by the sender; the same id is the same message, and can't have another text."""
    number: int
    """Grows in the order of arrival."""
    text: str
    """Empty once the message has ended: the log has the text."""
    attempts: int = 0
    """How often somebody began to answer it."""
    message: int | None = None
    """The number of the message in the log, once it was appended there."""
    cancelled: bool = False
    outcome: Mapping[str, Any] | None = None
    """How it ended; None while it waits or is being answered."""


class ArtifactInfo(Struct, frozen=True):
    """A large output, stored whole under the hash of its bytes."""

    handle: str
    size: int
    name: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Pin:
    """A message that must survive; pins keep a conversation from being pruned."""

    number: int
    note: str
    created_at: float


class ModelCall(Struct, frozen=True):
    """One call to a model, for the counters."""

    usage: CanonicalUsage
    model: str = ""
    purpose: str = "chat"
    """`chat`, `summary`, ...: what the call was made for."""
    cost: float | None = None
    """US dollars; None when no price is known."""
    at: float | None = None
    """When it was made, in seconds since the epoch; None is now."""


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """Sums over calls to models: tokens, how many calls, and what they cost in US dollars."""

    usage: CanonicalUsage = field(default_factory=CanonicalUsage)
    calls: int = 0
    cost: float = 0.0
    unpriced_calls: int = 0
    """Calls whose cost was unknown and is not in `cost`."""

    @property
    def cache_hit_rate(self) -> float:
        """Share of prompt tokens that were read from the provider's cache."""
        prompt = self.usage.prompt_tokens
        return self.usage.cache_read_tokens / prompt if prompt else 0.0


class Reservation(Struct, frozen=True):
    """A part of its owner's day that something under way may use; it ends by itself unless it is renewed."""

    owner: str
    id: str
    tokens: int
    cost: float


class DayUse(Struct, frozen=True):
    """What an owner has used of a day, and what is reserved for what is under way in any process."""

    tokens: int
    cost: float
    reserved_tokens: int
    reserved_cost: float


class SessionUsage(Struct, frozen=True):
    ordinal: int
    started_at: float
    totals: UsageTotals


class InsightsQuery(Struct, frozen=True):
    since: float | None = None
    until: float | None = None
    conversation: str | None = None
    platform: str | None = None
    owner: str | None = None
    catch_up: bool = True
    """Messages and tools are counted on the way into the index. False writes nothing and leaves out what is new."""


class ToolUse(Struct, frozen=True):
    """How often a tool was called and how much text it gave back."""

    calls: int = 0
    results: int = 0
    result_characters: int = 0


class CompactionTotals(Struct, frozen=True):
    """Attempts by outcome, and what the committed ones saved."""

    attempts: Mapping[str, int] = msgspec.field(default_factory=dict)
    undone: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Insights(Struct, frozen=True):
    """Answers of `leporello insights`; days are UTC, `YYYY-MM-DD`."""

    totals: UsageTotals
    conversations: int
    sessions: int
    messages: int
    by_day: Mapping[str, UsageTotals]
    by_model: Mapping[str, UsageTotals]
    by_platform: Mapping[str, UsageTotals]
    by_purpose: Mapping[str, UsageTotals]
    by_tool: Mapping[str, ToolUse]
    compactions: CompactionTotals


class SearchMode(StrEnum):
    WORDS = "words"
    FRAGMENT = "fragment"
    """A piece of text to be found literally (case folded), inside words too."""
    HYBRID = "hybrid"
    """Words first, then fragments for what words miss."""


class SearchQuery(Struct, frozen=True):
    text: str
    conversation: str | None = None
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    limit: int = 10
    mode: SearchMode = SearchMode.HYBRID
    platform: str | None = None
    model: str | None = None
    owner: str | None = None
    catch_up: bool = True
    """Whether what is not indexed yet is indexed first. False writes nothing and may miss the newest messages."""


class Hit(Struct, frozen=True):
    """A chunk of a message that answers a query."""

    conversation: str
    number: int
    role: str
    tool: str
    """The tool that was called or gave the result; empty otherwise."""
    created_at: float
    score: float
    start: int
    """Where the chunk begins in the message's searchable text (`leporello.store.sql.chunks`)."""
    text: str
    """The chunk, secrets masked."""
    query: str = ""

    @property
    def id(self) -> str:
        return f"m{self.number}"

    @property
    def snippet(self) -> str:
        """A line or two of the text where it answers the query best."""
        # Records are loaded with every store, what reads texts with a search.
        from leporello.store.sql.chunks import snippet  # noqa: PLC0415

        return snippet(self.text, self.query)
