"""What a sentence says about which thing: the words of its subject and the values it gives, read in one pass."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import msgspec
from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger import value_patterns as patterns
from leporello.ledger.sentence_pieces import MONEY, UNSPACED, Piece, Sign, Sort, pieces_of, plain_words, without_tail
from leporello.ledger.things import named_in
from leporello.ledger.value_patterns import ValueKind
from leporello.redact.spans import lowered_of

FIGURES = (ValueKind.NUMBER, ValueKind.TIME, ValueKind.DATE, ValueKind.COLOUR)
PERHAPS, PLAINLY = 1, 2
THIN = 3
"""A sentence with fewer words goes on about what was said before."""
LAST_HOUR, YEAR_DIGITS, MONTH_NEAR, LONGEST_VALUE = 24, 4, 6, 48
NAMING_CHARS, BEGIN = 3, 4
"""A number of so many characters may name a thing; so many letters tell how a word begins."""


class Value(Struct, frozen=True):
    """A value as a sentence gives it."""

    kind: ValueKind
    text: str
    plain: str
    """The same for two spellings of one value."""
    unit: str = ""
    """For a number, what it is of."""
    words: tuple[str, ...] = ()
    """For a name its words: where another value is given, they belong to what the sentence is about."""
    key: str = ""
    """The word directly before it."""


@dataclass(frozen=True, slots=True)
class Statement:
    number: int
    role: str
    text: str
    order: tuple[str, ...]
    """The words it has, in plain forms, without small ones."""
    values: tuple[Value, ...] = ()
    labels: frozenset[str] = frozenset()
    """Words with the number that says which one: "chapter 3"."""
    before: frozenset[tuple[str, str]] = frozenset()
    """A word and the one directly before it."""
    after: frozenset[tuple[str, str]] = frozenset()
    """A word and the one that a small word ties to it: "port of the worker"."""
    contrasts: frozenset[tuple[int, str]] = frozenset()
    """Words that name one of a row of things, with the row: staging and production."""
    opening: Value | None = None
    """The word it begins with, which may be a name: every sentence begins with a capital letter."""
    own: bool = False
    """Whether it speaks of whoever says it: two people's own things are two things."""
    changes: int = 0
    """How plainly it says that something changes: not at all, perhaps, plainly."""
    negates: bool = False
    cancels: str = ""
    context: frozenset[str] = frozenset()
    """The words of the sentence before, where this one goes on about the same."""
    about_change: frozenset[str] = frozenset()
    """Its words that say that something changes: they say nothing about what it is."""
    asks: bool = False
    """Whether it is a question: it states nothing, but speaks of things as they are."""
    words: frozenset[str] = field(default=frozenset(), init=False)
    keys: frozenset[str] = field(default=frozenset(), init=False)
    """What says which thing is meant: its words, days, and numbers that may name a ticket or a version."""
    begins: frozenset[str] = field(default=frozenset(), init=False)
    """How its longer words begin: weigh and weight, Treffpunkt and treffen."""
    things: frozenset[str] = field(default=frozenset(), init=False)
    """What the user gives a value to, whatever it is called."""
    known_values: frozenset[tuple[str, str]] = field(default=frozenset(), init=False)
    """Those of its words that are values of a thing by general knowledge."""
    naming: Mapping[str, frozenset[str]] = field(default_factory=dict, init=False)
    """The things that its words name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", frozenset(self.order))
        labels = (label.rpartition(" ")[2] for label in self.labels)
        naming = (number for number in labels if len(number) >= NAMING_CHARS)
        object.__setattr__(self, "keys", self.words.union(naming, map(_naming, self.values)) - {""})
        begins = (begin_of(word) for word in self.words if len(word) >= BEGIN and word[0] < UNSPACED)
        object.__setattr__(self, "begins", frozenset(begins))
        if self.role == "user":
            named = named_in(self.text)
            object.__setattr__(self, "things", named.things)
            object.__setattr__(self, "known_values", named.values)
            object.__setattr__(self, "naming", named.words)

    @property
    def gives(self) -> bool:
        """Whether it gives a value, or says that something changes or ends; a remark does neither."""
        return bool(self.values or self.changes or self.negates or self.cancels)

    @property
    def found_by(self) -> frozenset[str]:
        """What other statements about its thing may have too."""
        return self.keys | self.begins | self.things


def same_by_name(old: Statement, new: Statement) -> frozenset[str]:
    """Words of two statements that name one thing which both speak of, each in its way."""
    both = old.things & new.things
    if not both:
        return both
    said = (*old.naming.items(), *new.naming.items())
    return frozenset(word for word, things in said if not both.isdisjoint(things))


def begin_of(word: str) -> str:
    """How a word begins, as it is compared with others."""
    return f"{word[:BEGIN]}~"


def _naming(value: Value) -> str:
    """What a value may name a thing by; nothing where it is too short to tell."""
    if value.kind is ValueKind.DATE:
        return value.plain
    token = value.text.partition(" ")[0].casefold()
    return token if value.kind is ValueKind.NUMBER and (len(token) >= NAMING_CHARS or not token.isdigit()) else ""


def settings(line: str) -> Iterator[tuple[str, str, str]]:
    """The settings of programs in a line: the text that sets, the key, the value."""
    if "_" not in line or not patterns.HOLDS_SETTING.search(line):
        return
    found = list(patterns.SAID_SETTING.finditer(line))
    setting = patterns.SETTING.match(line)
    while setting is not None:
        found.append(setting)
        setting = patterns.NEXT_SETTING.match(line, setting.end())
    for match in found:
        yield match["set"], match["key"], match["value"]


def read(sentence: str, number: int, role: str, before: str = "") -> Statement | None:
    """What a sentence states; nothing when it supposes, quotes code, or says nothing about anything.

    `before` is the sentence before it in the same message. Of an assistant only figures are taken: it names one thing
    after another; and no questions.
    """
    by_user = role == "user"
    # When a message was sent is nothing that it says.
    sentence = patterns.SENT_AT.sub("", sentence) if sentence[:1] in "([" else sentence
    tail = patterns.ASKING_TAIL.search(sentence) if by_user and sentence.endswith("?") else None
    said = sentence[: tail.start()] if tail else sentence
    asks = patterns.asks(said)
    if not (by_user or (patterns.MAY_TELL_FIGURES.search(said) and not asks)) or patterns.is_no_statement(said):
        return None
    reader = _Reader(said)
    signs = reader.read()
    if not (reader.words or (before and reader.values)) or not (
        by_user or any(value.kind in FIGURES for value in reader.values)
    ):
        return None
    if signs & Sign.UNSURE and patterns.SUPPOSED.search(sentence):
        return None
    if signs & Sign.UNSURE and not by_user and patterns.IN_CASE.search(sentence):
        return None
    changes, cancels, about = _changes(sentence) if signs & Sign.CHANGE else (0, "", frozenset[str]())
    thin = reader.values and (len(reader.words) < THIN or patterns.GOES_ON.match(sentence))
    return Statement(
        number,
        role,
        sentence,
        tuple(reader.words),
        tuple(reader.values),
        frozenset(reader.labels),
        frozenset(reader.before),
        frozenset(reader.after),
        frozenset(reader.contrasts),
        reader.opening,
        own=bool(signs & Sign.OWN),
        changes=changes,
        negates=bool(signs & Sign.NEGATION),
        cancels=cancels,
        context=frozenset(word for piece in pieces_of(before) for word in piece.words) if thin else frozenset(),
        about_change=about,
        asks=asks,
    )


def _changes(sentence: str) -> tuple[int, str, frozenset[str]]:
    """How plainly a sentence says that something changes, that it is cancelled, and the words for it."""
    lowered = lowered_of(sentence)
    phrases = [match[0] for match in patterns.CHANGE.finditer(lowered)]
    plainly = any(not patterns.WEAK_CHANGE.fullmatch(phrase) for phrase in phrases)
    found = patterns.CANCEL.search(lowered)
    cancelled = sentence[slice(*found.span())] if found else ""
    spoken = [*phrases, cancelled] if found else phrases
    about = frozenset(plain for phrase in spoken for word in phrase.split() for plain in plain_words(word))
    return PLAINLY if plainly else PERHAPS if phrases else 0, cancelled, about


class _Reader(Struct):
    """Goes through the pieces of a sentence, once."""

    sentence: str
    words: dict[str, None] = msgspec.field(default_factory=dict)
    values: list[Value] = msgspec.field(default_factory=list)
    labels: set[str] = msgspec.field(default_factory=set)
    before: set[tuple[str, str]] = msgspec.field(default_factory=set)
    after: set[tuple[str, str]] = msgspec.field(default_factory=set)
    following: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """A word and the one directly behind it: where adjectives stand in Romance languages."""
    contrasts: list[tuple[int, str]] = msgspec.field(default_factory=list)
    opening: Value | None = None
    last: str = ""
    """The word that stands directly before, or before the small word in between."""
    direct: bool = False
    linked: bool = False

    def read(self) -> int:
        """Read the whole sentence; returns the signs of its pieces."""
        pieces = pieces_of(self.sentence)
        signs = place = 0
        while place < len(pieces):
            piece = pieces[place]
            sort = piece.sort
            self.contrasts.extend(piece.contrasts)
            signs |= piece.signs
            if sort is Sort.WORD or sort is Sort.ACRONYM:
                self._word(piece, named=self._called(piece))
            elif sort is Sort.SMALL or sort is Sort.LINK:
                self.linked = self.linked or sort is Sort.LINK
                self.direct = False
            elif sort is Sort.PAUSE:
                self.direct = self.linked = False
                self.last = ""
            elif sort is Sort.CAPITAL:
                place = self._capitals(pieces, place)
            elif sort is Sort.FIGURE:
                place = self._figure(pieces, place)
            else:
                place = self._other(pieces, place)
            place += 1
        if signs & Sign.ROMANCE:
            self.after |= self.following
        return signs

    def _word(self, piece: Piece, *, named: bool = False) -> None:
        if not piece.words:
            self.direct = False
            return
        self._follow(piece.words[0])
        for one, other in pairwise(piece.words):
            if one[-1] != other[0]:  # not two pairs of one run: a small word stands between
                self.before.add((other, one))
        if named:
            self._value(ValueKind.NAME, piece.start, piece.end, words=piece.words)
        self._take(piece.words)

    def _follow(self, word: str) -> None:
        """Note which word a word stands behind."""
        if self.last and self.direct:
            self.before.add((word, self.last))
            self.following.add((self.last, word))
        elif self.last and self.linked:
            self.after.add((self.last, word))

    def _take(self, words: Sequence[str]) -> None:
        self.words.update(dict.fromkeys(words))
        self.last, self.direct, self.linked = words[-1], True, False

    def _called(self, piece: Piece) -> bool:
        """Whether a plain word is a name, because of what stands around it."""
        before = self.sentence[max(0, piece.start - 14) : piece.start]
        behind = self.sentence[piece.end : piece.end + 1]
        if piece.sort is Sort.ACRONYM:
            return patterns.BEFORE_ACRONYM.search(before) is not None or behind > "\uabff"
        unspaced = self.sentence[piece.start] > UNSPACED
        return patterns.NAMING.search(before) is not None or (
            unspaced and patterns.IS_THAT.match(self.sentence, piece.end) is not None
        )

    def _capitals(self, pieces: Sequence[Piece], place: int) -> int:
        """Words with capital letters: a name, unless the sentence begins there, or German makes them of any noun."""
        said = self.sentence
        first = pieces[place]
        before = said[: first.start].rstrip(" \"'(*_-#>")
        begins = not before or (before[-1] in ".!?:。！？" and not patterns.TITLE.search(before))
        german = patterns.GERMAN.search(said) is not None
        stop = place
        while said[first.start] <= UNSPACED and self._goes_on(pieces, stop) and not (german and stop > place):
            stop += 1
        if stop == place and (begins or (german and patterns.BEFORE_NAME.search(before) is None)):
            self._word(first)
            if not before and not german:
                self.opening = _value(ValueKind.NAME, said[first.start : first.end], words=first.words)
            return place
        if german and stop > place:
            self._word(first)
            place += 1
        words = tuple(word for piece in pieces[place : stop + 1] for word in piece.words)
        if self.linked:
            self._follow(words[0])
        self._value(ValueKind.NAME, pieces[place].start, pieces[stop].end, words=words)
        self._take(words)
        return stop

    def _goes_on(self, pieces: Sequence[Piece], place: int) -> bool:
        """Whether another word with a capital letter follows."""
        if place + 1 >= len(pieces) or pieces[place + 1].sort is not Sort.CAPITAL:
            return False
        return not self.sentence[pieces[place].end : pieces[place + 1].start].strip()

    def _figure(self, pieces: Sequence[Piece], place: int) -> int:
        """A number with what follows it: a unit, a month, the hand of a clock."""
        said = self.sentence
        start, end = pieces[place].start, pieces[place].end
        text = said[start:end]
        month = next((k for k in range(place + 1, min(place + 4, len(pieces))) if pieces[k].sort is Sort.MONTH), 0)
        if month and pieces[month].start - end < MONTH_NEAR and "." not in text.rstrip("."):
            self._value(ValueKind.DATE, start, pieces[month].end)
            return month
        if found := patterns.CLOCK_UNIT.match(said, end):
            self._value(ValueKind.TIME, start, found.end())
            return place + 1
        if self.direct and self.last in _counted() and (text.isalpha() or text.replace(".", "").isdigit()):
            self.labels.add(f"{self.last} {text}")
            self.direct = False
            return place
        unit, stop = self._unit(pieces, place)
        moment = _moment(text, said[max(0, start - 6) : start]) if not unit and text.isdigit() else None
        self._value(moment or ValueKind.NUMBER, start, stop, unit=unit)
        self.direct = self.linked = False
        # The word of a unit says nothing about what is measured, but who or what is counted does.
        measured = unit in patterns.MEASURES or (unit in patterns.units().values() and unit != "people")
        return place + (bool(unit) and measured and stop > end and stop == pieces[place + 1].end)

    def _unit(self, pieces: Sequence[Piece], place: int) -> tuple[str, int]:
        """What a number is of, and where it ends: a sign at it, or the word behind it."""
        said, end = self.sentence, pieces[place].end
        text = said[pieces[place].start : end]
        rows = patterns.units()
        if text[0] in MONEY:
            return "money", end
        if text[0].isdigit() and (tail := text.lstrip("0123456789.,:万億千百만억천 ").casefold()):
            return rows.get(tail, tail), end
        behind = pieces[place + 1] if place + 1 < len(pieces) else None
        if behind is None or behind.sort is Sort.PAUSE or said[end : behind.start].strip(" -\u00a0"):
            return "", end
        word = said[behind.start : behind.end]
        if word[0] > UNSPACED:
            measure = word[0] in patterns.MEASURES or word[0] > "\uabff"
            size = next((size for size in (3, 2, 1) if word[:size] in rows), int(measure))
            return rows.get(without_tail(word), rows.get(word[:size], word[:size])), behind.start + size
        if row := rows.get(word.casefold()):
            return row, behind.end
        counts = behind.sort is Sort.WORD or behind.sort is Sort.CAPITAL
        if not counts or ("." in text and self.direct):  # a version: "Python 3.12 everywhere"
            return "", end
        return behind.words[0], behind.end

    def _other(self, pieces: Sequence[Piece], place: int) -> int:
        piece = pieces[place]
        start, end, sort = piece.start, piece.end, piece.sort
        if sort is Sort.OWNER:
            words = piece.words or (self.sentence[start : end - 2].casefold(),)
            self._value(ValueKind.NAME, start, end - 2, words=words)
            self._take(words)
            return place
        behind = pieces[place + 1] if place + 1 < len(pieces) else piece
        if sort is Sort.MONTH and behind.sort is Sort.FIGURE and not self.sentence[end : behind.start].strip():
            place += 1
            end = behind.end
        if end - start < LONGEST_VALUE:
            self._value(_KINDS[sort], start, end, words=piece.words)
        self.words.update(dict.fromkeys(piece.words))
        self.direct = self.linked = False
        return place

    def _value(self, kind: ValueKind, start: int, end: int, *, unit: str = "", words: tuple[str, ...] = ()) -> None:
        key = self.last if self.direct else ""
        self.values.append(_value(kind, self.sentence[start:end], unit=unit, words=words, key=key))


_NO_DIGIT = lazy_regex(r"[^\d.万億千百만억천]")
_KINDS = {
    Sort.MONTH: ValueKind.DATE,
    Sort.DATE: ValueKind.DATE,
    Sort.TIME: ValueKind.TIME,
    Sort.COLOUR: ValueKind.COLOUR,
    Sort.CODE: ValueKind.CODE,
}


def _value(kind: ValueKind, text: str, *, unit: str = "", words: tuple[str, ...] = (), key: str = "") -> Value:
    text = text.strip('`"“”„«»「」『』 ').rstrip(".,。，")
    plain = unicodedata.normalize("NFKC", text).casefold().replace(" ", "")
    if kind is ValueKind.NUMBER:
        plain = _NO_DIGIT.sub("", plain.replace(",", "")) or plain
    elif words and kind is ValueKind.NAME:
        plain = words[-1]
    return Value(kind, text, plain, unit, words, key)


def _moment(text: str, before: str) -> ValueKind | None:
    """Whether a bare number is a year or an hour."""
    if len(text) == YEAR_DIGITS and text.startswith(("19", "20")):
        return ValueKind.DATE
    return ValueKind.TIME if int(text) <= LAST_HOUR and patterns.AT_HOUR.search(before) else None


@cache
def _counted() -> frozenset[str]:
    return frozenset(plain for word in patterns.words("counted") for plain in plain_words(word))
