"""Reading a sentence: which names, figures and quotations it holds, which words carry it, and what it says of them.

Claims and sources are read by the same code, so that whatever it misjudges it misjudges on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from leporello.summary.support.figures import Figure, figures
from leporello.summary.support.lexicon import Side, root, sides_of
from leporello.summary.support.status import Status, statuses_of
from leporello.text_features.words import STOP_WORDS, UNSPACED

QUOTED = re.compile(r"“([^”]{2,1000})”|\"([^\"]{2,})\"|(?<![\w`])`([^`]{1,})`|「([^」]{2,1000})」|『([^』]{2,1000})』")
TOKEN = re.compile(
    r"https?://[^\s<>\"'`)\]]+"
    r"|(?<![\w-])--?[A-Za-z][\w-]*(?:=[^\s,;)`\"']+)?"
    r"|[A-Za-z]+(?:n['’]t|['’](?:s|re|ve|ll|d|m))(?![\w-])"
    rf"|(?:[~.@#$\\/*-]{{0,64}}+[A-Za-z0-9_]++)++(?:(?:(?!{UNSPACED})[\w./:@#~+*\\-])*(?!{UNSPACED})[\w/*+])?"
    rf"|{UNSPACED}+|(?:(?!{UNSPACED})[^\W\d_])+(?:'[^\W\d_]+)?"
    r"|[.;:!?。；：！？，,、()\[\]{}→]|->|—|–|\n"
)
_PLAIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\u0400-\u04ff]+(?:['’][A-Za-z]+)?\Z")
_HYPHENED = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)+\Z")
HAN = re.compile(UNSPACED)
"""Han and the other scripts without blanks between words."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_HEX = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\Z")
LINE_NUMBER = re.compile(r":\d+(?:[-:]\d+)?\Z")
_NUMERIC = re.compile(r"\d[\d,_]*(?:\.\d+)?(?:[kmg]|[kmgt]i?b|%|[nµu]?s|ms|min|h|d|px|x)?\Z")
_TRIM = ".,;:!?()[]{}<>\"'`*…"

_NEGATORS = """
    not no never without cannot nor neither nobody nothing none barely hardly unable non
    can't don't doesn't didn't isn't aren't wasn't weren't won't wouldn't shouldn't couldn't hasn't haven't hadn't
    mustn't needn't
"""
NEGATORS = frozenset(_NEGATORS.split())
DOUBTING = frozenset("might may could maybe perhaps possibly probably likely presumably apparently seems".split())
_HAN_NEGATORS = re.compile("没有|尚未|还没|未能|并非|不是|不再|不能|不会|不要|不得|禁止|无法|没|未|不|无|勿|别")
_SKIPPED = frozenset(
    (
        "the a an any be been being become becomes became to do does did have has had get gets "
        "yet longer ever more even all"
    ).split()
)
"""Words between a negator and what it negates."""
_BOUNDARIES = frozenset(".;:!?。；：！？，,、()[]{}→—–\n") | {"->"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name or number with the keys under which it is compared; `name` marks identifiers and paths."""

    text: str
    keys: tuple[str, ...]
    start: int
    name: bool = False
    boundary: bool = False
    negated: bool = False
    content: bool = False

    @property
    def denying(self) -> bool:
        """Whether it holds its negation within itself, as Chinese words do."""
        return self.negated and bool(HAN.match(self.text))

    @property
    def key(self) -> str:
        """The first key: the whole of it."""
        return self.keys[0] if self.keys else ""


@dataclass(frozen=True, slots=True)
class Facet:
    """A word that takes a side, with its place in the tokens."""

    side: Side
    negated: bool
    position: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence, read."""

    text: str
    tokens: tuple[Token, ...]
    figures: tuple[Figure, ...]
    quotes: tuple[str, ...]
    facets: tuple[Facet, ...] = ()
    statuses: frozenset[Status] = field(default_factory=frozenset)

    @property
    def names(self) -> tuple[Token, ...]:
        """Identifiers, paths, hashes, flags, versions."""
        return tuple(token for token in self.tokens if token.name)

    @property
    def content(self) -> tuple[Token, ...]:
        """Words that are neither names nor grammar."""
        return tuple(token for token in self.tokens if token.content)

    @property
    def keys(self) -> frozenset[str]:
        """Everything it can be found by."""
        return frozenset(key for token in self.tokens if token.name or token.content for key in token.keys)


@lru_cache(maxsize=200_000)
def keys_of(raw: str) -> tuple[str, ...]:
    """The keys of a token: for a name the whole and its parts, for a word its root, for Han its pairs."""
    if HAN.match(raw):
        return (raw,) if len(raw) == 1 else tuple(raw[k : k + 2] for k in range(len(raw) - 1))
    text = _bare(raw)
    if not text:
        return ()
    if _PLAIN_WORD.match(text) and not _mixed_case(text):
        return (root(text.replace("’", "'").removesuffix("'s")),)
    whole = text.casefold()
    if is_hash(whole) or _numeric(whole):
        return (whole,)
    parts = tuple(root(part) for part in _PARTS.findall(text) if len(part) > 1)
    return tuple(dict.fromkeys((whole, *_endings(whole), *parts)))


def _endings(path: str) -> Iterator[str]:
    """A path is also known by its last parts, and without its line."""
    bare = LINE_NUMBER.sub("", path)
    if bare != path:
        yield bare
    if "/" in bare and "://" not in bare:
        parts = bare.strip("/").split("/")
        yield from ("/".join(parts[-count:]) for count in range(min(4, len(parts)), 0, -1))


def _bare(raw: str) -> str:
    """A token without punctuation around it; a hidden file keeps its dot."""
    text = raw.strip(_TRIM)
    start = raw.find(text) if text else 0
    return "." + text if text and start and raw[start - 1] == "." and "/" in text else text


def _mixed_case(text: str) -> bool:
    return not text.islower() and not text.isupper() and not text.istitle()


def is_name(raw: str) -> bool:
    """Whether a token names something exactly: a path, symbol, flag, hash, version or number with letters."""
    text = raw.strip(_TRIM)
    if len(text) < 2 or HAN.match(text):
        return False
    if _PLAIN_WORD.match(text):
        return _mixed_case(text) and not text[1:].islower()
    if is_hash(text):
        return True
    if _HYPHENED.match(text) or _numeric(text.casefold()):
        return False
    return (
        any(c.isalpha() for c in text) or text.count(".") > 1 or "/" in text or text.startswith("#") or "-" in text[1:]
    )


def is_hash(text: str) -> bool:
    """Whether a token is a hexadecimal id."""
    return bool(_HEX.match(text))


ELLIPSIS = re.compile(r"\s{0,64}(?:\.\.\.|…|\[…\])\s*")
_LEFT_OUT = re.compile(r"(?:\.\.\.|…|\[…\])/")


@lru_cache(maxsize=20_000)
def read(text: str) -> Reading:
    """Read a sentence; marks of emphasis are left out."""
    text = text.replace("**", "").replace("__", "") if "**" in text or text.startswith("__") else text
    text = _LEFT_OUT.sub("", text)
    numbers = tuple(figures(text))
    tokens = _with_negation([_outside(_token(match), numbers) for match in TOKEN.finditer(text)])
    facets = tuple(
        Facet(side, token.negated, position)
        for position, token in enumerate(tokens)
        if token.keys and not token.name
        for key in token.keys
        for side in sides_of(key)
    )
    quotes = tuple(next(group for group in match if group) for match in QUOTED.findall(text))
    return Reading(text, tokens, numbers, quotes, facets, statuses_of(text))


def _outside(token: Token, numbers: Sequence[Figure]) -> Token:
    """A unit belongs to its number and is no word of its own."""
    if token.content and any(figure.start <= token.start < figure.end and not figure.word for figure in numbers):
        return replace(token, content=False)
    return token


def _token(match: re.Match[str]) -> Token:
    raw = match.group()
    if raw in _BOUNDARIES:
        return Token(raw, (), match.start(), boundary=True)
    keys = keys_of(raw)
    name = is_name(raw)
    lowered = raw.casefold().strip(_TRIM)
    grammar = lowered in STOP_WORDS or lowered in NEGATORS or _CONTRACTED.match(lowered)
    content = bool(keys) and not name and not grammar and not lowered.isdigit() and not _numeric(lowered)
    return Token(raw, keys, match.start(), name, content=content)


_CONTRACTED = re.compile(r"(?:i|we|you|they|he|she|it|that|there|who|what|let|here)['’](?:s|re|ve|ll|d|m)$")
"""A pronoun with its verb."""


def _numeric(text: str) -> bool:
    return text[:1].isdigit() and bool(_NUMERIC.match(text)) and not is_hash(text)


def _with_negation(tokens: list[Token]) -> tuple[Token, ...]:
    """Mark the word that each negator bears on: the next one that says something, within the clause."""
    negated: set[int] = set()
    waiting = 0
    for position, token in enumerate(tokens):
        lowered = token.text.casefold().replace("’", "'").strip(_TRIM)
        if token.boundary:
            waiting = 0
        elif lowered in NEGATORS:
            waiting = 4
        elif HAN.match(token.text) and _HAN_NEGATORS.search(token.text):
            negated.add(position)
        elif waiting and (token.content or token.name) and lowered not in _SKIPPED:
            negated.add(position)
            waiting = 0
        elif waiting and lowered not in _SKIPPED:
            waiting -= 1
    return tuple(
        Token(t.text, t.keys, t.start, t.name, t.boundary, k in negated, t.content) for k, t in enumerate(tokens)
    )
