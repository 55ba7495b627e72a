"""Question banks, and whether a gold text occurs in a context: case and white space folded, o200k tokens counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from splintr import AnyTokenizer, Tokenizer

from leporello.errors import InputError
from leporello.files import decode_text
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, calls_of, is_result, parse_json
from leporello.text_features.words import STOP_WORDS


@cache
def _tokenizer() -> AnyTokenizer:
    return Tokenizer.from_pretrained("o200k_base")


def text_tokens(text: str) -> int:
    """Tokens of a text; special marks in it are plain text."""
    return len(_tokenizer().encode_ordinary(text.encode("utf-8", "replace").decode()))


def json_tokens(messages: Iterable[Message]) -> int:
    """Tokens of a message list written as JSON, the way the standard library writes it, letters unescaped."""
    return text_tokens(json.dumps(list(messages), ensure_ascii=False))


def clip_to_tokens(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most `limit` tokens."""
    clean = text.encode("utf-8", "replace").decode()
    tokens = _tokenizer().encode_ordinary(clean)
    if len(tokens) <= limit:
        return clean
    return str(_tokenizer().decode_lossy(tokens[:limit])).rstrip("�")


class RunningCount:
    """The size of a growing list, counted message by message: each message is counted once."""

    def __init__(self, count: Callable[[Message], int] | None = None) -> None:
        """By `count`, else by the tokens of its JSON."""
        self._count = count or (lambda message: text_tokens(json.dumps(message, ensure_ascii=False)) + 1)
        self._known: dict[int, tuple[Message, int]] = {}

    def of(self, messages: Iterable[Message]) -> int:
        """Tokens of the messages; those seen before cost a look-up."""
        return sum(map(self._one, messages))

    def _one(self, message: Message) -> int:
        known = self._known.get(id(message))
        # The message is held beside its count, so that its id can't be reused by another one.
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, self._count(message))
        return known[1]


def fold(text: str) -> str:
    """Case and white space don't matter."""
    return " ".join(text.split()).casefold()


class Haystack:
    """All text of a context, ready to be asked many times."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = fold("\n".join(texts))

    def has(self, gold: str) -> bool:
        return fold(gold) in self._text


NEAR_SHARE = 0.8
NEAR_SPAN, NEAR_WORDS = 1.5, 5
_WORD = lazy_regex(r"[^\W_]+")
_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+|\n+")


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in order; a line end ends one too.

    Not the reader that engines use: how they read must not decide what is measured.
    """
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def words_of(text: str) -> list[str]:
    """The words of a text, case folded, in order."""
    return _WORD.findall(text.casefold())


class WordIndex(Haystack):
    """A haystack that also finds a text of which most content words stand close together.

    Close are words within a span of 1.5 times the text's length + 5 words; 80% of its content words must be there.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__(texts)
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(words_of(self._text)):
            self._places.setdefault(word, []).append(place)

    def has(self, gold: str) -> bool:
        """Whether the text occurs, word for word or nearly."""
        return super().has(gold) or self._nearly(words_of(gold))

    def _nearly(self, words: list[str]) -> bool:
        wanted = Counter(word for word in words if word not in STOP_WORDS)
        least = NEAR_SHARE * wanted.total()
        places = sorted((place, word) for word in wanted for place in self._places.get(word, ()))
        span = int(NEAR_SPAN * len(words)) + NEAR_WORDS
        inside: Counter[str] = Counter()
        found = first = 0
        for place, word in places:
            inside[word] += 1
            found += inside[word] <= wanted[word]
            while place - places[first][0] >= span:
                left = places[first][1]
                found -= inside[left] <= wanted[left]
                inside[left] -= 1
                first += 1
            if found >= least:
                return True
        return False


def texts_of(messages: Iterable[Message]) -> Iterator[str]:
    """Every text a model would read in these messages, JSON both as written and decoded."""
    for message in messages:
        yield from _leaves(message.get("content"))
        for call in calls_of(message):
            yield call.arguments
        yield from decoded_texts_of(message)


def decoded_texts_of(message: Message) -> Iterator[str]:
    """The text of one message with JSON strings decoded: what a person would read."""
    content = message.get("content")
    if is_result(message) and isinstance(content, str):
        yield from _decoded(content) or [content]
    else:
        yield from _leaves(content)
    for call in calls_of(message):
        yield call.name
        yield from _decoded(call.arguments) or [call.arguments]


def recovered_texts(answer: str) -> Iterator[str]:
    """The texts of a search answer: as it is, and with its JSON strings decoded when it is JSON."""
    yield answer
    yield from _decoded(answer)


def _decoded(text: str) -> list[str]:
    """The strings inside a JSON text; nothing when it is not JSON."""
    return list(_leaves(parse_json(text))) if text.lstrip()[:1] in ("{", "[") else []


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)


KINDS = ("rule", "decision", "identifier", "error", "outcome", "path", "order")


@dataclass(frozen=True, slots=True)
class ExamQuestion:
    """One question; `gold` is text of the session, word for word."""

    id: str
    kind: str
    question: str
    gold: str
    line: int = 0
    position: float = 0.0


@dataclass(frozen=True, slots=True)
class Bank:
    """The questions about one session; `session` is its file, relative to the sessions folder."""

    session: str
    questions: tuple[ExamQuestion, ...]
    path: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"session": self.session, "questions": [asdict(question) for question in self.questions]}


def read_json_file(path: Path) -> Any:
    """The JSON value of a file; None when it is not JSON."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError("there is no such file or folder", str(path)) from error
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", str(path)) from error
    return parse_json(decode_text(data, str(path)).text)


def load_bank(path: str | Path) -> Bank:
    path = Path(path)
    value = read_json_file(path)
    if not isinstance(value, dict) or not isinstance(value.get("questions"), list):
        raise InputError(
            'is not a question bank: {"session", "questions": [...]} is expected; other exams need --format', str(path)
        )
    questions = tuple(_question(raw, number, path) for number, raw in enumerate(value["questions"], 1))
    if not questions:
        raise InputError("has no questions", str(path))
    return Bank(str(value.get("session") or ""), questions, path)


def _question(raw: Any, number: int, path: Path) -> ExamQuestion:
    where = f"{path}: question {number}"
    if not isinstance(raw, dict):
        raise InputError("is not an object", where)
    for key in ("question", "gold"):
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise InputError(f"has no {key}", where)
    line, position = raw.get("line"), raw.get("position")
    return ExamQuestion(
        id=str(raw.get("id") or f"q{number:02}"),
        kind=str(raw.get("kind") or "other"),
        question=raw["question"],
        gold=raw["gold"],
        line=line if isinstance(line, int) else 0,
        position=float(position) if isinstance(position, int | float) else 0.0,
    )


def session_of(path: Path) -> str:
    """The session that a bank file is about; empty when it is no bank."""
    value = read_json_file(path)
    return str(value.get("session") or "") if isinstance(value, dict) else ""


def session_file(session: str, folder: Path, bank: Path | None = None) -> Path:
    """The session of a bank: under the folder as the bank names it or by its file name, or beside the bank's file."""
    candidates = [folder / session, folder / Path(session).name]
    if bank is not None:
        candidates.append(bank.parent / session)
    for candidate in candidates:
        if session and candidate.is_file():
            return candidate
    where = "here" if folder == Path() else f"under {folder}"
    raise InputError(f"its session {session!r} is not {where}; --sessions DIR names its folder", str(bank or "bank"))
