"""The words of a text as search sees them: one tokeniser for every index and every query.

Database tokenisers are made for prose. A session is mostly code, paths, logs and several human languages, so words are
made here, and the databases store them as given. A compound gives the whole, its pieces and its parts:

    src/paths/CheckpointPath.go:45 -> the whole, checkpoint_path_go_45, checkpoint_path_go, checkpoint_path,
                                      src, path, checkpoint, go, 45
    readFile, read_file, read-file -> read_file, read, file     (one spelling for all three)
    --dry-run                      -> _dry_run, dry_run, dry, run
    1,345 · 2.029s · v1.2.3        -> 1345 · 2_029s 2_029 · 1_2_3
    2026-09-07T17:13:21.870Z       -> 2026_09_07, 17_13_21, 17_13   (a date finds all its moments)
    225c5a1f09                     -> 225c5a1f09, 225c5a1       (a short hash finds a long one)
    检索索引                        -> overlapping pairs of characters; a run of one stays one

English word forms are folded lightly (tests, tested, testing -> test). Blobs, data URIs and terminal colour codes give
nothing. Every word matches `[a-z0-9_]+`: a leading `_` marks a flag, a leading `__` text that is not Latin (hexadecimal
code points). So words joined by blanks survive FTS5's `ascii` tokeniser with `tokenchars '_'`, and as an array they go
into a PostgreSQL tsvector unchanged.
"""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

from msgspec import Struct

from leporello.lazy_regex import lazy_regex

WORDS_VERSION = 2
"""Raised when the words of a text change, so that a stored index knows it is out of date."""

FTS5_TOKENIZE = "ascii tokenchars '_'"
"""The FTS5 `tokenize` option that keeps our words whole."""

# One pass over the text finds runs that a compound may be made of; what a run holds is worked out once and remembered,
# because sessions repeat themselves. That is what makes this fast.
_RUN = lazy_regex(r"[A-Za-z0-9_./:@\\,'-]+|[^\x00-\x7f\s]+")
_COMPOUND = lazy_regex(
    r"[A-Za-z]:\\[\w.\\-]+"  # C:\dir\file, where a backslash does join
    r"|\\[nrt]"  # an escaped line end inside quoted output: `\nfound` holds "found", not "nfound"
    r"|(?<![\w-])--?(?=[A-Za-z])[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+){0,8}"
    r"|[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])"
    r"|[A-Za-z0-9]+(?:[-_./:@]{1,3}[A-Za-z0-9]+){0,30}(?:'(?:s|t|d|m|re|ve|ll)\b)?"
)
# Noise that would leave pieces behind: embedded files, and colour codes, which glue their letters to the next word.
_DATA_URI = lazy_regex(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=]*")
_COLOUR = lazy_regex(r"\x1b\[[0-9;?]*[A-Za-z]")
_LEVELS = (lazy_regex(r"[/:@\\]+"), lazy_regex(r"(?<![0-9])\.+|\.+(?![0-9])"), lazy_regex(r"[-_]+"))
_NUMBER = lazy_regex(r"v?([0-9]+(?:\.[0-9]+)*)([a-z%]{0,3})\Z", re.IGNORECASE)
_HEX = lazy_regex(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,128}\Z")
_CASES = lazy_regex(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+[a-z]*")
_NUMBERED = lazy_regex(r"([a-z]{3,})[0-9]+\Z")
_ACCENTED = lazy_regex("[\u00c0-\u024f\u1e00-\u1eff]")
_JOINER = lazy_regex(r"[^a-z0-9]+")
# Logs are full of these, each one different from all others.
_MOMENT = lazy_regex(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,9})?Z?\Z", re.IGNORECASE
)

SHORT_HASH = 7
_LONGEST_WHOLE = 96
_LONGEST_PART = 48
_CACHE_LIMIT = 200_000
_CACHED_LENGTH = 64
_CACHED_NUMBER = 4
"""Longer numbers, times and hashes hardly come again, and are quick to work out: remembering them costs more."""
_LONGEST_NAME = 5

# Scripts written without blanks between words (and Hangul, whose endings hide the word): pairs of characters.
UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""One character of them, as a pattern."""
_UNSPACED = lazy_regex(UNSPACED + "+")

_FILLER = """
    a about after again all also am an and any are as at be because been before being both but by can could did do does
    doing done down each else ever for from get got had has have he her here him his how i if in into is it its just let
    made make many may me might more most much must my new no nor not now of off on once one only onto or other our out
    over own same she should since so some still such than that the their them then there these they this those through
    thus to too two under until up upon us very via was we were what when where whether which while who whom whose why
    will with within without would yet you your
"""
STOP_WORDS = frozenset(_FILLER.split())
"""Words of a question that say nothing about its subject. They are in the index all the same."""


class _Known(dict[str, tuple[str, ...]]):
    """Words by run; those of a new run are worked out when it is asked for."""

    def __missing__(self, run: str) -> tuple[str, ...]:
        words = tuple(_foreign(run) if run[0] > "\x7f" else _ascii_words(run))
        if len(run) <= (_CACHED_NUMBER if run[0].isdigit() else _CACHED_LENGTH):
            if len(self) >= _CACHE_LIMIT:
                self.clear()
            self[run] = words
        return words


_known = _Known()


def index_words(text: str) -> list[str]:
    """All words of a text, in order, repeated as often as they occur."""
    return list(chain.from_iterable(map(_known.__getitem__, _RUN.findall(_plain(text)))))


def query_words(text: str) -> list[str]:
    """The words to look for: each once, without stop words unless there is nothing else."""
    words = list(dict.fromkeys(index_words(text)))
    return [word for word in words if word not in _STOP_FORMS] or words


def joined_words(text: str) -> list[str]:
    """Names that neighbouring words of a short query may make together: `read file` also looks for `read_file`."""
    plain = [run.lower() for run in _RUN.findall(_plain(text)) if run.isalpha() and run.isascii()]
    if not 2 <= len(plain) <= _LONGEST_NAME:
        return []
    spans = [plain[start:stop] for start in range(len(plain)) for stop in range(start + 2, len(plain) + 1)]
    return ["_".join(span) for span in sorted(spans, key=len, reverse=True)]


def stem(word: str) -> str:
    """An English word without its ending: forms of one word meet in one spelling, which need not be a word."""
    if len(word) < 4 or not word.isalpha():
        return word
    return _without_tail(_without_suffix(_singular(word)))


def _singular(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


def _without_suffix(word: str) -> str:
    for suffix, least in (("ing", 3), ("ed", 3), ("ment", 6), ("ion", 3), ("ly", 4)):
        kept = word[: -len(suffix)]
        if word.endswith(suffix) and len(kept) >= least and _has_vowel(kept):
            if suffix == "ion" and kept[-1] not in "st":
                return word
            if suffix in ("ing", "ed") and kept[-1] == kept[-2] and kept[-1] not in "lsz":
                return kept[:-1]
            return kept
    return word


def _without_tail(word: str) -> str:
    if len(word) > 5 and word.endswith("ator"):
        return word[:-2]
    if len(word) > 3 and word.endswith("e"):
        return word[:-1]
    if len(word) > 3 and word.endswith("y"):
        return word[:-1] + "i"
    return word


def _has_vowel(text: str) -> bool:
    return any(letter in "aeiouy" for letter in text)


_STOP_FORMS = STOP_WORDS | {stem(word) for word in STOP_WORDS}


def is_hash(text: str) -> bool:
    """Whether a text is a hexadecimal id, in lower case: seven characters at least, letters and digits."""
    return _HEX.match(text) is not None


def _plain(text: str) -> str:
    """Compatibility forms and accents folded, where there are any; letters keep their case, which splits names."""
    if "base64," in text:
        text = _DATA_URI.sub(" ", text)
    if "\x1b" in text:
        text = _COLOUR.sub(" ", text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _ACCENTED.sub(_without_accent, text) if _ACCENTED.search(text) else text


def _without_accent(match: re.Match[str]) -> str:
    letter = match.group()
    base = unicodedata.normalize("NFKD", letter)[0]
    return base if base.isascii() else _LATIN.get(letter, letter)


# Latin letters that no normal form takes apart.
_LATIN = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "Ae",
    "ø": "o",
    "Ø": "O",
    "œ": "oe",
    "Œ": "Oe",
    "đ": "d",
    "Đ": "D",
    "ł": "l",
    "Ł": "L",
}


def _ascii_words(run: str) -> Iterable[str]:
    if run.isdigit():
        return (run,)
    if run.isalnum():
        return dict.fromkeys(_compound(run))
    if moment := _MOMENT.match(run):
        return dict.fromkeys(_moment_words(moment))
    words: list[str] = []
    for raw in _COMPOUND.findall(run):
        words.extend(dict.fromkeys(_words_of(raw)))
    return words


def _words_of(raw: str) -> Iterable[str]:
    if raw[0] == "\\":
        return ()
    if raw[0] == "-":
        body = raw.lstrip("-")
        return (_mark_flag(body), *_compound(body))
    if "," in raw:
        return (raw.replace(",", ""),)
    if raw[0].isdigit() and (moment := _MOMENT.match(raw)):
        return _moment_words(moment)
    return _contraction(raw) if "'" in raw else _compound(raw)


def _moment_words(moment: re.Match[str]) -> Iterable[str]:
    year, month, day, hour, minute, second = moment.groups()
    return f"{year}_{month}_{day}", f"{hour}_{minute}_{second}", f"{hour}_{minute}"


def _mark_flag(body: str) -> str:
    return "_" + "_".join(_parts(body))


def _contraction(raw: str) -> Iterable[str]:
    word, _, ending = raw.rpartition("'")
    # "user's" is a form of "user"; "don't" is a word of its own.
    return _compound(word + ending) if ending == "t" else _compound(word)


def _compound(text: str) -> Iterable[str]:
    """The whole, then its pieces from coarse to fine, then single parts."""
    if _is_part(text):
        return _part_words(text)
    elements = [_element(piece) for piece in _LEVELS[0].split(text) if piece]
    parts = [part for element in elements for part in element.parts]
    if len(parts) < 2:
        return _part_words(parts[0]) if parts else ()
    if len(elements) == 1:
        words = list(elements[0].pieces)
    else:
        whole = "_".join(parts)
        words = [whole] if len(whole) <= _LONGEST_WHOLE else []
        if elements[-1].text.isdigit():
            # `name.go:45` is a place of its own, whatever directory it was written with.
            words.append("_".join((*elements[-2].parts, elements[-1].text)))
        for element in elements:
            words.extend(element.pieces)
    before = len(words)
    for element in elements:
        words.extend(element.part_words)
    if len(words) == before:
        for part in parts:
            words.extend(_part_words(part))
    return words


class _Element(NamedTuple):
    """One element of a path or place, and its words."""

    text: str
    parts: tuple[str, ...]
    pieces: tuple[str, ...]
    """The element and its pieces from coarse to fine; none if it has but one part."""
    part_words: tuple[str, ...]
    """Words of its parts, single letters left out."""


# A path with a line number, a test's address, a command may be seen for the first time, but not what it is made of.
@lru_cache(maxsize=_CACHE_LIMIT)
def _element(text: str) -> _Element:
    parts = _parts(text)
    pieces: list[str] = []
    if len(parts) > 1:
        _add_pieces(text, parts, 1, pieces)
    words = [word for part in parts if len(part) > 1 for word in _part_words(part)]
    return _Element(text, parts, tuple(pieces), tuple(words))


def _add_pieces(text: str, parts: tuple[str, ...], level: int, words: list[str]) -> None:
    """The text itself and its pieces; `text` has two parts at least."""
    whole = "_".join(parts)
    if len(whole) <= _LONGEST_WHOLE:
        words.append(whole)
    for finer, separator in enumerate(_LEVELS[level:], level + 1):
        pieces = [piece for piece in separator.split(text) if piece]
        if len(pieces) < 2:
            continue
        for piece in pieces:
            if not _is_part(piece) and len(within := _parts(piece)) > 1:
                _add_pieces(piece, within, finer, words)
        return


def _parts(text: str) -> tuple[str, ...]:
    """The smallest words of a compound: split at separators and at changes of case, numbers whole."""
    if _is_part(text):
        return (text,)
    parts: list[str] = []
    for piece in (text,) if text.isalnum() else _LEVELS[0].split(text):
        if _NUMBER.match(piece):
            parts.append(_JOINER.sub("_", piece.lower()).strip("_"))
            continue
        for word in _split_piece(piece):
            if len(word) <= _LONGEST_PART or is_hash(word):
                parts.extend(_split_word(word))
    return tuple(parts)


def _is_part(text: str) -> bool:
    """Whether nothing is to be split. Most new texts are of this kind: numbers, times with their unit, hashes."""
    return text.isalnum() and (text.islower() or text.isdigit()) and len(text) <= _LONGEST_PART


def _split_piece(piece: str) -> Iterator[str]:
    """Words of one path element, versions inside it whole: `tool-0.7.1` is tool and 0.7.1."""
    if piece.isalnum():
        yield piece
        return
    for dotted in _LEVELS[1].split(piece):
        for word in _LEVELS[2].split(dotted):
            yield word.replace(".", "_")


def _split_word(word: str) -> list[str]:
    lowered = word.lower()
    if word == lowered or is_hash(lowered) or word.isupper():
        return [lowered] if word else []
    if _is_noise(word):
        return []
    return [part.lower() for part in _CASES.findall(word)]


def _is_noise(word: str) -> bool:
    """Random letters (keys, base64): the kind of character changes far more often than in any name."""
    if len(word) < 20:
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in word]
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes * 2.5 > len(word)


def _part_words(part: str) -> tuple[str, ...]:
    if part.isdigit():
        return (part,)
    if part.isalpha():
        return (_known_stem(part),)
    number = _NUMBER.match(part.replace("_", "."))
    if number:
        value = number.group(1).replace(".", "_")
        return value + number.group(2).rstrip("%"), value
    if is_hash(part):
        return part, part[:SHORT_HASH]
    numbered = _NUMBERED.match(part)
    return (part, stem(numbered.group(1))) if numbered else (part,)


_known_stem = lru_cache(maxsize=_CACHE_LIMIT)(stem)


def _foreign(run: str) -> Iterator[str]:
    """Words of a run without ASCII characters: pairs for unspaced scripts, whole words for the others."""
    position = 0
    for match in _UNSPACED.finditer(run):
        yield from _foreign_words(run[position : match.start()])
        yield from _pairs(match.group())
        position = match.end()
    yield from _foreign_words(run[position:])


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield _encode(run)
    for index in range(len(run) - 1):
        yield _encode(run[index : index + 2])


def _foreign_words(run: str) -> Iterator[str]:
    word = ""
    for character in run.casefold():
        kind = unicodedata.category(character)[0]
        if kind in "LN":
            word += character
        elif kind != "M" and word:
            yield _encode(word[:_LONGEST_PART])
            word = ""
    if word:
        yield _encode(word[:_LONGEST_PART])


def _encode(characters: str) -> str:
    return "__" + "".join(f"{ord(character):04x}" for character in characters)


# --- BM25: how well the words of a document answer a query -----------------------------------------------------------
#
# SQLite and PostgreSQL rank text differently; candidates from either are scored here, so that the order of hits does
# not depend on the database. A query maps words to weights: what the user typed weighs 1, a guessed relative less.

K1 = 1.2
"""How soon further occurrences of a word stop counting."""
B = 0.5
"""How much a long document is held against it (0 not at all, 1 fully)."""

Key = TypeVar("Key", bound=Hashable)


class Statistics(Struct, frozen=True):
    """What BM25 must know about the whole collection."""

    documents: int
    average_length: float
    """Mean number of words of a document."""
    containing: Mapping[str, int]
    """For each word of the query: how many documents hold it."""


def rarity(documents: int, containing: int) -> float:
    """The weight of one word: near 0 when every document has it, never negative."""
    return math.log1p((max(documents, containing) - containing + 0.5) / (containing + 0.5))


def saturation(frequency: float, length: float, average_length: float) -> float:
    """What `frequency` occurrences in a document of this length are worth, between 0 and K1 + 1."""
    relative = length / average_length if average_length > 0 else 1.0
    return frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * relative))


def score(query: Mapping[str, float], words: Sequence[str], statistics: Statistics) -> float:
    """How well one document answers the query; 0 when it has none of its words."""
    frequencies = Counter(words)
    total = 0.0
    for word, weight in query.items():
        frequency = frequencies.get(word)
        if frequency:
            rare = rarity(statistics.documents, statistics.containing.get(word, 0))
            total += weight * rare * saturation(frequency, len(words), statistics.average_length)
    return total


def rank(
    query: Mapping[str, float],
    candidates: Iterable[tuple[Key, Sequence[str]]],
    statistics: Statistics,
    limit: int,
) -> list[tuple[Key, float]]:
    """The best candidates with their scores, best first; equal scores keep the order in which they came."""
    scored = ((score(query, words, statistics), -place, key) for place, (key, words) in enumerate(candidates))
    best = heapq.nlargest(limit, (entry for entry in scored if entry[0] > 0.0), key=lambda entry: entry[:2])
    return [(key, value) for value, _, key in best]
