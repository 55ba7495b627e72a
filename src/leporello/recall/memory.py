"""A conversation in memory: search over its messages, and its archive as the recovery tools read it.

Static word vectors (the extra `vectors`) give a second opinion on which lines answer a question. The weights are those
of the `wordllama` package: one vector for each piece of a word, and the mean of them for a text. They are read here
directly; the package's own code is not imported. What the vectors find is fused with what the words find by rank, so
that the two scales need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from leporello.errors import ConfigError
from leporello.events import Span
from leporello.ledger.units import sentences_of
from leporello.ledger.values import Values
from leporello.messages import Message, role_of, text_of
from leporello.recall.base import DEFAULT_TOKENS, ArchivedFold, RecallMode, RecallQuery, Window
from leporello.recall.chunks import MemoryIndex
from leporello.recall.hops import find_lines, lifted
from leporello.recall.question import is_question
from leporello.recall.ranking import Count, choose, render
from leporello.redact.messages import masked
from leporello.store.records import StatedValue
from leporello.tokens import TokenCounter

if TYPE_CHECKING:
    import numpy as np

_EXTRA = ("numpy", "safetensors", "tokenizers")
NEAREST = 120
"""Lines that the vectors may name for one question."""
LEAST_LETTERS = 12
"""Shorter lines have no meaning of their own."""


class Embedding(Protocol):
    """Texts as vectors of length 1."""

    def embed(self, texts: list[str]) -> np.ndarray:
        """One row for each text."""


class StaticVectors:
    """The mean of the vectors of a text's word pieces."""

    def __init__(self, table: np.ndarray, tokenizer: Any) -> None:
        self._table = table
        self._tokenizer = tokenizer

    @classmethod
    @cache
    def load(cls) -> StaticVectors:
        """The weights of the installed package; `ConfigError` says how to get them."""
        found = find_spec("wordllama")
        if found is None or found.origin is None or any(find_spec(name) is None for name in _EXTRA):
            raise ConfigError("Search by meaning needs more packages: pip install 'leporello[vectors]'")
        # Optional: numpy and the readers are there only with the extra.
        from safetensors.numpy import load_file  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        folder = Path(found.origin).parent
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        tokenizer.no_padding()
        weights = load_file(str(folder / "weights" / "l2_supercat_256.safetensors"))
        return cls(next(iter(weights.values())).astype("float32"), tokenizer)

    def embed(self, texts: list[str]) -> np.ndarray:
        """One row for each text; a text without a known piece is all zeros."""
        import numpy as np  # noqa: PLC0415

        rows = np.zeros((len(texts), self._table.shape[1]), dtype="float32")
        for row, encoded in enumerate(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)):
            if encoded.ids:
                rows[row] = self._table[encoded.ids].mean(axis=0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        of_length_one: np.ndarray = rows / np.maximum(lengths, 1e-9)
        return of_length_one


class LineVectors:
    """The lines of a growing collection as vectors; each is worked out once."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._lines: list[int] = []
        self._rows: list[np.ndarray] = []
        self._known = 0

    def nearest(self, collection: MemoryIndex, text: str) -> list[int]:
        """Lines whose meaning is nearest to a text, nearest first."""
        import numpy as np  # noqa: PLC0415

        self._catch_up(collection)
        if not self._lines:
            return []
        rows = np.concatenate(self._rows)
        self._rows = [rows]
        alike = rows @ self._embedding.embed([text])[0]
        best = np.argsort(-alike, kind="stable")[:NEAREST]
        return [self._lines[place] for place in best if alike[place] > 0]

    def _catch_up(self, collection: MemoryIndex) -> None:
        new = [
            line
            for line in range(self._known, len(collection.lines))
            if not collection.repeated[line] and sum(map(str.isalpha, collection.lines[line])) >= LEAST_LETTERS
        ]
        self._known = len(collection.lines)
        if new:
            self._lines.extend(new)
            self._rows.append(self._embedding.embed([collection.lines[line] for line in new]))


class MemoryRecall:
    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        count: Count | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self._collection = MemoryIndex()
        self._vectors = LineVectors(embedding) if embedding is not None else None
        self._count = count or TokenCounter.for_model(None).text
        self._newest = 0
        for message in messages:
            self.add(self._newest + 1, message)

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        self._collection.add(number, message)
        self._newest = number

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        scored = find_lines(self._collection, query.text, query.mode)
        if self._vectors is not None and query.mode is RecallMode.HYBRID and is_question(query.text):
            scored = lifted(scored, self._vectors.nearest(self._collection, query.text))
        if query.roles or query.last is not None:
            places = enumerate(self._collection.entries)
            admitted = {place for place, entry in places if query.admits(entry.passage.role, entry.message)}
            scored = [found for found in scored if self._collection.entry_of[found.line] in admitted]
        return choose(self._collection, scored, self._count, query)

    def answer(self, text: str, max_tokens: int = DEFAULT_TOKENS) -> str:
        """One search as text: what a model reads."""
        return render(self.search(RecallQuery(text, max_tokens)))


class MemoryArchive:
    """Messages (numbered from 1) and folds, held in memory."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._folds: list[ArchivedFold] = []
        self._recall = MemoryRecall()
        self._stated = Values()
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> int:
        """Add the next message and return its number."""
        self._messages.append(message)
        self._recall.add(len(self._messages), message)
        return len(self._messages)

    def add_fold(self, fold: ArchivedFold) -> None:
        self._folds.append(fold)

    def newest(self) -> int:
        """Number of the newest message; 0 when there is none."""
        return len(self._messages)

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        last = min(span.last, len(self._messages))
        for number in range(max(1, span.first), last + 1):
            yield number, self._messages[number - 1]

    def folds(self) -> Sequence[ArchivedFold]:
        """All folds, oldest first."""
        return tuple(self._folds)

    def values(self, span: Span) -> Sequence[StatedValue]:
        """What messages of a span say about things, oldest first, and what replaced it."""
        for number, message in self.read(Span(self._stated.last + 1, len(self._messages))):
            self._stated.add(number, role_of(message), sentences_of(text_of(masked(message))))
        rows = (row for row in self._stated.rows() if span.first <= row.since <= span.last)
        return [StatedValue(row.subject, row.value, row.since, row.text, row.replaced_by) for row in rows]

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        return self._recall.search(query)
