"""`StoreRecall`: search in a store, for one conversation of any length and for all of them at once.

    recall = StoreRecall(store)                                   # or StoreRecall(store, RecallScope("build-42"))
    for window in recall.search(RecallQuery("Which port does staging use?", max_tokens=800)):
        print(window)                                             # [build-42 m8] user ...

The store's index names the messages that may answer. Those are read together with what they belong to (the call of a
result, the question of an answer) and ranked line by line, as a conversation in memory is. Secrets are masked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from leporello.deprecation import renamed_names
from leporello.errors import NotFound
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.recall.base import RecallMode, RecallQuery, Window
from leporello.recall.chunks import Chunk, MemoryIndex, MessageOrigin, lines_of
from leporello.recall.hops import find_lines, lifted
from leporello.recall.memory import Embedding, LineVectors
from leporello.recall.question import AnswerType, Question, understand
from leporello.recall.ranking import Count, choose
from leporello.redact.messages import masked
from leporello.store import Store
from leporello.store.records import Hit, SearchMode, SearchQuery, StoredMessage
from leporello.text_features.words import rarity
from leporello.tokens import TokenCounter

CANDIDATES = 60
"""Hits of the index that are looked at line by line."""
WITH_NEIGHBOURS = 24
"""The best hits, whose neighbours are read too."""
FEW_CANDIDATES, FEW_WITH_NEIGHBOURS = 24, 8
"""The same for bare words, which mean what they say: the index itself knows best what holds them. Measured on generated
sessions, all that 60 and 24 found is found, in half of the time."""
NEAR = 2
"""How many messages on either side of them."""
FURTHEST = 24
"""How many messages before a hit its call or its question is looked for."""
RANK_OFFSET = 20
"""Of the fusion by rank: the larger, the less the first places count for themselves."""
LONGEST_PASSAGE = 2_000
"""Characters; of a longer passage only what was hit is looked at, or its beginning and end."""
LONG_RESULT = 8_000
"""Characters; of a longer result only what was hit is read for secrets and divided into lines."""
LONGEST_ABOUT = 120
_LEAST_RARITY = 1.0


class RecallScope(Struct, frozen=True):
    """Where to look: one conversation (any id of its chain) or all, one tool's calls and results, a time."""

    conversation: str | None = None
    tools: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


class StoreRecall:
    """The conversations of a store, searchable. Nothing is kept between two searches."""

    def __init__(
        self,
        store: Store,
        scope: RecallScope | None = None,
        count: Count | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._scope = scope or RecallScope()
        self._count = count or TokenCounter.for_model(None).text

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first; `NotFound` when the scope names no known conversation."""
        question = understand(query.text, plainly=query.mode is RecallMode.WORDS)
        hits = self._hits(query, question)
        collection = self._collected(hits, WITH_NEIGHBOURS if question.is_question else FEW_WITH_NEIGHBOURS)

        def rare(word: str) -> float:
            # All passages were found by these words, so that none of them is rare here; none may count for nothing.
            return max(_LEAST_RARITY, rarity(len(collection.entries), collection.spread.get(word, 0)))

        scored = find_lines(collection, query.text, query.mode, rare)
        if self._embedding is not None and question.is_question:
            scored = lifted(scored, LineVectors(self._embedding).nearest(collection, query.text))
        admitted = self._admitted(query, hits, collection)
        scored = [found for found in scored if collection.entry_of[found.line] in admitted]
        windows = choose(collection, scored, self._count, query, collection.about)
        return windows if self._scope.conversation is None else [replace(found, conversation="") for found in windows]

    def _hits(self, query: RecallQuery, question: Question) -> list[Hit]:
        """What the index finds by the words; for a question also by their relatives and by who is asked about."""
        mode = SearchMode.WORDS if query.mode is RecallMode.WORDS else SearchMode.HYBRID
        if not question.is_question:
            return self._asked(query.text, mode, query.roles, FEW_CANDIDATES)
        found = [self._asked(query.text, mode, query.roles)]
        others = {other: None for term in question.terms for other, _ in term.words[1:]}
        if others:
            found.append(self._asked(" ".join(others), SearchMode.WORDS, query.roles))
        if AnswerType.USER in question.wants and not query.roles:
            found.append(self._asked(query.text, SearchMode.WORDS, ("user",)))
        return _fused(found)

    def _asked(self, text: str, mode: SearchMode, roles: tuple[str, ...], limit: int = CANDIDATES) -> list[Hit]:
        scope = self._scope
        return self._store.index.search(
            SearchQuery(text, scope.conversation, roles, scope.tools, scope.since, scope.until, limit, mode)
        )

    def _admitted(self, query: RecallQuery, hits: Sequence[Hit], collection: MemoryIndex) -> set[int]:
        """Entries that may be shown: all, or where the search is narrowed only those of the hits themselves."""
        scope, entries = self._scope, collection.entries
        if not (query.roles or scope.tools or scope.since is not None or scope.until is not None):
            return {place for place, entry in enumerate(entries) if query.admits(entry.passage.role, entry.message)}
        found = {(hit.conversation, hit.number) for hit in hits}
        return {
            place
            for place, entry in enumerate(entries)
            if (entry.origin.conversation, entry.message) in found
            and query.admits(entry.passage.role, entry.message)
            and (not scope.tools or entry.passage.tool in scope.tools or entry.passage.role == "tool")
        }

    def _collected(self, hits: Sequence[Hit], with_neighbours: int) -> _Collected:
        """The messages of the hits and what the best of them belong to."""
        parts: dict[str, dict[int, list[Hit]]] = defaultdict(lambda: defaultdict(list))
        for hit in hits:
            parts[hit.conversation][hit.number].append(hit)
        best: dict[str, set[int]] = defaultdict(set)
        for hit in hits[:with_neighbours]:
            best[hit.conversation].add(hit.number)
        collected = _Collected()
        for conversation, found in parts.items():
            reader = _Reader(self._store, conversation)
            reader.read(found.keys(), best[conversation])
            collected.take(conversation, reader, found)
        return collected


class _Reader:
    def __init__(self, store: Store, conversation: str) -> None:
        self._log = store.log
        self._conversation = conversation
        self.messages: dict[int, StoredMessage] = {}
        self.questions: dict[int, int] = {}
        """For an answer the message that it answers."""

    def read(self, numbers: Iterable[int], best: Iterable[int]) -> None:
        """Read messages, those beside the best of them, and the calls and questions these belong to."""
        beside = {near for number in best for near in range(number - NEAR, number + NEAR + 1)}
        try:
            self._keep(self._log.pick(self._conversation, {*numbers, *beside}))
            for number in best:
                if number in self.messages:
                    self._read_origin(number)
        except NotFound:
            # Deleted by somebody since the index was asked.
            self.messages.clear()

    def _keep(self, messages: Iterable[StoredMessage]) -> None:
        self.messages.update((stored.number, stored) for stored in messages)

    def _read_origin(self, number: int) -> None:
        message = self.messages[number].message
        if is_result(message):
            before = self._until(number, "assistant")
            self._keep(before)
        elif role_of(message) == "assistant" and not calls_of(message):
            before = self._until(number, "user")
            self._keep(before[:1])
            self.questions.update((number, stored.number) for stored in before[:1])

    def _until(self, number: int, role: str) -> list[StoredMessage]:
        """The messages from the nearest one of a role before a message up to it; empty when there is none near."""
        near = self.messages.get(number - 1)
        if near is not None and role_of(near.message) == role:
            return [near]
        before = self._log.pick(self._conversation, range(max(1, number - FURTHEST), number))
        places = [place for place, stored in enumerate(before) if role_of(stored.message) == role]
        return before[places[-1] :] if places else []


class _Collected(MemoryIndex):
    """What was read, ready to be ranked, and which question each answer belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self._questions: dict[tuple[str, int], str] = {}

    def take(self, conversation: str, reader: _Reader, found: Mapping[int, Sequence[Hit]]) -> None:
        before = 0
        for number in sorted(reader.messages):
            if number != before + 1:
                self.part()
            before = number
            stored, hits = reader.messages[number], found.get(number, ())
            origin = MessageOrigin(conversation, stored.created_at)
            self.add(number, _hit_parts(stored.message, hits), origin, partial(_shortened, hits=hits))
        for answer, question in reader.questions.items():
            self._questions[conversation, answer] = text_of(masked(reader.messages[question].message))

    def about(self, place: int) -> str:
        """One line on what a passage belongs to; empty when it stands for itself."""
        entry = self.entries[place]
        call = self.partners.get(place)
        if entry.passage.is_call:
            return ""
        if call is not None:
            return _line(" ".join(self.entries[call].passage.lines))
        return _line(self._questions.get((entry.origin.conversation, entry.message), ""))


def _fused(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Several answers of the index as one, by rank: what stands high in one or fairly high in two comes first."""
    scores: dict[tuple[str, int, str, int], float] = defaultdict(float)
    hits: dict[tuple[str, int, str, int], Hit] = {}
    for found in lists:
        for place, hit in enumerate(found):
            key = (hit.conversation, hit.number, hit.tool, hit.start)
            scores[key] += 1.0 / (RANK_OFFSET + place)
            hits.setdefault(key, hit)
    return [hits[key] for key in sorted(scores, key=lambda key: -scores[key])]


def _hit_parts(message: Message, hits: Sequence[Hit]) -> Message:
    """A long result as the parts that were hit, which the index holds masked; any other message as it is."""
    content = message.get("content")
    if not hits or not is_result(message) or not isinstance(content, str) or len(content) <= LONG_RESULT:
        return message
    return {**message, "content": _joined(hits)}


def _joined(hits: Iterable[Hit]) -> str:
    return "\n".join(hit.text for hit in sorted(hits, key=lambda hit: hit.start))


def _shortened(passage: Chunk, hits: Sequence[Hit]) -> Chunk:
    """Of a long passage the parts that were hit, else its beginning and end."""
    text = "\n".join(passage.lines)
    if len(text) > LONGEST_PASSAGE:
        called = passage.tool if passage.is_call else ""
        half = LONGEST_PASSAGE // 2
        shown = _joined(hit for hit in hits if not called or hit.tool == called)
        text = shown or f"{text[:half]}\n{text[-half:]}"
    return replace(passage, lines=tuple(lines_of(text)) or passage.lines[:1])


def _line(text: str) -> str:
    text = " ".join(text[: LONGEST_ABOUT * 4].split())
    return text if len(text) <= LONGEST_ABOUT else text[: LONGEST_ABOUT - 1] + "…"


if not TYPE_CHECKING:  # type checkers should refuse the old name
    __getattr__ = renamed_names(__name__)
