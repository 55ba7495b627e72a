"""What a sentence states: the values in it, and the words it gives them for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from leporello.ledger import value_patterns as patterns
from leporello.ledger.value_patterns import ValueKind
from leporello.text_features.words import stem

_WORD = re.compile(
    r"[\u3400-\u9fff]+|[\u30a0-\u30ff]{2,}|[\uac00-\ud7a3]+|[^\W\d_\u3400-\u9fff\u3040-\u30ff\uac00-\ud7a3]+"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_HANGUL_TAIL = re.compile(
    r"(?:으로|에서|부터|까지|에게|입니다|합니다|했습니다|됩니다|은|는|이|가|을|를|에|의|로|도|와|과|만)$"
)
_GERMAN = re.compile(r"\b(?:der|das|ist|und|nicht|wir|auf|mit|dem|ein|eine|im|für|wird|wurde)\b|[äöüß]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as a sentence gives it."""

    kind: ValueKind
    text: str
    plain: str
    """The same for two spellings of one value."""
    key: str = ""
    """The word before it, in its plain form."""
    unit: str = ""
    """For a number, what is counted."""
    given_up: bool = False
    """Whether it is named as what was before: "from X to Y"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that gives values, and the words it gives them for."""

    number: int
    text: str
    values: tuple[Value, ...]
    words: frozenset[str]
    labels: frozenset[str] = frozenset()
    """Words with the number that belongs to them: "chapter 3"."""
    before: frozenset[tuple[str, str]] = frozenset()
    """A word and the one directly before it."""
    after: frozenset[tuple[str, str]] = frozenset()
    """A word and the one that is tied to it by a small word: "port of the worker"."""
    subject: str = ""
    """The words as they were written."""
    says_change: bool = False


@lru_cache(maxsize=16_384)
def stated(sentence: str, *, is_output: bool) -> tuple[Statement, ...]:
    """What a sentence states; nothing when it gives no value for anything, asks, or supposes."""
    settings = tuple(_settings(sentence)) if "_" in sentence else ()
    if settings or is_output or patterns.UNSURE.search(sentence) or patterns.CODE.search(sentence):
        return settings
    said = _prose(sentence)
    return (said,) if said else ()


def _settings(sentence: str) -> Iterator[Statement]:
    """Settings of programs; several may stand in one line."""
    found = list(patterns.SAID_SETTING.finditer(sentence))
    setting = patterns.SETTING.match(sentence)
    while setting is not None:
        found.append(setting)
        setting = patterns.NEXT_SETTING.match(sentence, setting.end())
    for match in found:
        key = match["key"]
        yield Statement(0, match["set"], (_value(ValueKind.NAME, match["value"]),), frozenset({key}), subject=key)


def _prose(sentence: str) -> Statement | None:
    said = patterns.LIST_MARK.sub(_blank, sentence)
    spans = _values(said)
    cancelled = patterns.CANCEL.search(said)
    if not spans and cancelled is None:
        return None
    words = _Words()
    words.read(patterns.CHANGE.sub(_blank, patterns.CANCEL.sub(_blank, said)), spans)
    values = tuple(words.values)
    if cancelled is not None:
        values += (_value(ValueKind.CANCELLED, cancelled[0]),)
    if not values or not words.plain:
        return None
    return Statement(
        0,
        sentence,
        values,
        frozenset(words.plain),
        frozenset(words.labels),
        frozenset(words.before),
        frozenset(words.after),
        " ".join(words.written),
        patterns.CHANGE.search(said) is not None,
    )


def _blank(match: re.Match[str]) -> str:
    """What says that something changed says nothing about what it is."""
    return " " * len(match[0])


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    kind: ValueKind
    text: str
    bare: bool = False
    """A number that may be a label of the word before it."""
    given_up: bool = False


def _span(sentence: str, start: int, end: int, kind: ValueKind) -> _Span:
    text = sentence[start:end]
    return _Span(start, end, kind, text, text.isdigit(), patterns.given_up(sentence, start, end))


def _values(sentence: str) -> list[_Span]:
    """The values of a sentence in order."""
    found = [
        _span(sentence, match.start(), match.end(), patterns.KINDS[match.lastgroup or "number"])
        for match in patterns.VALUE.finditer(sentence)
        if "{" not in match[0] and "<" not in match[0]
    ]
    taken = [(span.start, span.end) for span in found]
    german = _GERMAN.search(sentence) is not None
    for match in patterns.NAME.finditer(sentence):
        if not any(match.start() < end and start < match.end() for start, end in taken):
            found.extend(_name(sentence, match, german=german))
    # What is named as given up has something that takes its place.
    staying = {span.kind for span in found if not span.given_up}
    found = [span if span.kind in staying else replace(span, given_up=False) for span in found]
    return sorted(found, key=lambda span: span.start)


def _name(sentence: str, match: re.Match[str], *, german: bool) -> list[_Span]:
    """The name among words with capital letters; the first of a sentence, and German nouns, have one anyway."""
    start, text = match.start(), match[0]
    first, _, rest = text.partition(" ")
    begins = (
        start < 2 or sentence[start - 1] != " " or not (sentence[start - 2].isalnum() or sentence[start - 2] == ",")
    )
    owner = sentence[match.end() :].startswith(("'s ", "’s "))
    if (begins and not owner) or first.casefold() in patterns.STOP or german:
        if not rest or (german and first.casefold() in patterns.STOP):
            return []
        start, text = start + len(first) + 1, rest
    # Short capitals are words of the trade: an API is an API.
    no_name = text.casefold() in patterns.STOP or (text.isupper() and len(text) < 6)
    return [] if no_name else [_span(sentence, start, match.end(), ValueKind.NAME)]


def _value(kind: ValueKind, text: str, key: str = "", unit: str = "", given_up: bool = False) -> Value:
    text = text.strip('`"“”„«»「」『』 ').rstrip(".,")
    plain = unicodedata.normalize("NFKC", text).casefold().replace(" ", "")
    if kind is ValueKind.NUMBER:
        plain = plain.lstrip("v").replace(",", ".")
    plain = plain.removeprefix("http://").removeprefix("https://")
    return Value(kind, text, plain, key, unit, given_up)


class _Words:
    """Goes through a sentence: words of the subject, values with the words beside them."""

    def __init__(self) -> None:
        self.plain: dict[str, None] = {}
        self.written: list[str] = []
        self.values: list[Value] = []
        self.labels: set[str] = set()
        self.before: set[tuple[str, str]] = set()
        self.after: set[tuple[str, str]] = set()
        self._last = ""
        self._direct = False
        self._linked = False

    def read(self, sentence: str, spans: Sequence[_Span]) -> None:
        """Read the whole sentence, once."""
        position = 0
        for place, span in enumerate(spans):
            self._take_words(sentence[position : span.start])
            rest = sentence[span.end : spans[place + 1].start if place + 1 < len(spans) else len(sentence)]
            key = self._last if self._direct else ""
            if span.bare and key and (key in _counted() or _other_figures(spans, span)):
                self.labels.add(f"{key} {span.text}")
            else:
                unit = _unit(rest) if span.kind is ValueKind.NUMBER else ""
                self.values.append(_value(span.kind, span.text, self._last, unit, span.given_up))
            self._direct = self._linked = False
            position = span.end
        self._take_words(sentence[position:])

    def _take_words(self, text: str) -> None:
        for match in _WORD.finditer(text):
            written = match[0]
            if match.start() and text[: match.start()].rstrip()[-1:] in tuple(",;:.()，。；：、"):
                self._direct = self._linked = False
            found = plain_words(written)
            if not found:
                self._linked = self._linked or written.casefold() in patterns.LINKS
                self._direct = False
                continue
            if self._last and self._direct:
                self.before.add((found[0], self._last))
            if self._last and self._linked:
                self.after.add((self._last, found[0]))
            if any(word not in self.plain for word in found):
                self.written.append(written)
            self.plain.update(dict.fromkeys(found))
            self._last = found[-1]
            self._direct, self._linked = True, False


def _other_figures(spans: Sequence[_Span], span: _Span) -> bool:
    return any(other is not span and other.kind is not ValueKind.NAME for other in spans)


@cache
def _counted() -> frozenset[str]:
    return frozenset(plain for word in patterns.COUNTED for plain in plain_words(word))


def _unit(rest: str) -> str:
    match = _WORD.match(rest.lstrip(" -"))
    if match is None:
        return ""
    if match[0][0] > "\u3000":
        return match[0][0]
    found = plain_words(match[0])
    return found[0] if found else ""


def plain_words(word: str) -> list[str]:
    """A word as it is compared: without endings; of Chinese the pairs of characters; empty for small words."""
    if _HAN.match(word):
        runs = patterns.UNSPACED_STOP.sub(" ", word).split()
        return [run[k : k + 2] for run in runs for k in range(max(1, len(run) - 1))]
    if "\u30a0" <= word[0] <= "\u30ff":
        return [word]
    if "\uac00" <= word[0] <= "\ud7a3":
        bare = _HANGUL_TAIL.sub("", word)
        return [] if patterns.CHANGE.match(word) or len(word) < 2 else [bare if len(bare) > 1 else word]
    folded = word.casefold()
    if (
        folded in patterns.STOP
        or len(folded) < 2
        or patterns.CHANGE.fullmatch(folded)
        or patterns.CANCEL.fullmatch(folded)
    ):
        return []
    if "\u0400" <= folded[0] <= "\u04ff":
        return [folded[:5]]
    letters = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return [stem(letters)[:7]]
