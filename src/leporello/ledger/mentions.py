"""Whether the user speaks again of the thing that an earlier statement is about.

Weaker than a replaced value: nothing is said to hold no longer. The earlier statement is shown with the later one, and
whoever reads both sees which is newer. So it needs no word of change, and two things in the same words, which can't be
told from one thing that changed, may stand together too. Both are short: what a long sentence is about can't be told
from the words it shares with another.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from leporello.ledger import value_patterns as patterns
from leporello.ledger.sentence_pieces import plain_words
from leporello.ledger.statements import FIGURES, PERHAPS, PLAINLY, Statement, Value, begin_of, same_by_name
from leporello.ledger.things import other_value, others_of_a_kind, somebody_else
from leporello.ledger.value_matching import FEW, Weight, filled_otherwise, narrows, same_unit, told_apart
from leporello.ledger.value_patterns import ValueKind

WEIGHTS = {
    "shared": 2.1,
    "things": 2.3,
    "thing with a value": 2.1,
    "things alone": 1.9,
    "covered": -1.1,
    "other thing": -4.0,
    "somebody else": -1.4,
    "own before": -0.8,
    "apart": -3.9,
    "filled otherwise": -1.4,
    "narrows": -1.1,
    "other script": -2.8,
    "other value": 1.6,
    "name": 0.6,
    "name beside figure": -1.7,
    "figure and contrast": -0.7,
    "figure unanswered": -1.1,
    "neither value nor change": -0.8,
    "no values": -1.1,
    "remarks": -1.0,
    "named": 1.7,
    "nothing gone": -0.8,
    "changes": 1.6,
    "may change": 0.8,
    "cancels": 1.8,
    "a remark before": -2.2,
    "happened before": -2.2,
    "delighted before": -3.6,
    "asks": -2.5,
    "words before": -2.6,
}
LEAST, LEAST_AMONG_HITS = -2.6, -5.1
"""What speaks for two statements about one thing and against it, and how much is needed: fitted to sets of invented
pairs, and to recorded talks and work, where most sentences that share rare words are about two things."""
SCRIPTS = ("\u0400", "\u3041", "\uac00")
"""Where letters of other scripts begin: Cyrillic, Chinese and Japanese, Korean."""
MOST_SHARED, MOST_THINGS = 2.0, 1.5
MOST_WORDS, LONGEST_OLD, LONGEST_NEW = 12, 120, 200
LONGEST, BEFORE_VALUE = 140, 50
LIST_BEGINS, LEAD_ENDS = ("-", "*", "#", "•"), ("?", ":")


class Mention(Struct, frozen=True):
    """A later sentence about what an earlier one says something about."""

    since: int
    text: str
    sentence: str
    """The whole of it, of which `text` is the part to be shown."""
    gone: tuple[str, ...] = ()
    """Values of the earlier sentence."""
    relation: float = 0.0
    asks: bool = False


def relation(
    old: Statement,
    new: Statement,
    around: frozenset[str],
    frequency: Mapping[str, int],
    weigh: Weight,
    *,
    among_hits: bool = False,
) -> float:
    """How much a later statement of the user has to do with an earlier one; 0 where that is too little.

    `around`: the words of the whole message. What counts most is how few other sentences have the words they share.
    `among_hits` of a search, which only decides what comes first, less is enough.
    """
    found = signs(old, new, around, frequency, weigh)
    score = sum(weight * found[name] for name, weight in WEIGHTS.items()) if found else -math.inf
    return max(0.0, score - (LEAST_AMONG_HITS if among_hits else LEAST))


def signs(
    old: Statement,
    new: Statement,
    around: frozenset[str],
    frequency: Mapping[str, int],
    weigh: Weight,
) -> dict[str, float]:
    """What speaks for two statements about one thing, and against it; nothing where they are never compared."""
    if len(old.order) > MOST_WORDS or len(old.text) > LONGEST_OLD or len(new.text) > LONGEST_NEW:
        return {}
    common = _Common(old, new, around)
    states = not (old.asks or old.text.startswith(LIST_BEGINS) or old.text.endswith(LEAD_ENDS))
    if not (common.words or common.things) or not states or old.text == new.text:
        return {}
    found = _signs(old, new, common, weigh)
    if not (old.values or old.known_values) and patterns.GOES_ON.match(old.text):
        return {}  # it does not name its thing
    found["remarks"] = bool(found["neither value nor change"] and found["no values"])
    found["shared"] = min(_few_have(common.words, frequency), MOST_SHARED)
    found["things"] = min(_few_have(common.things, frequency), MOST_THINGS)
    return found


def _few_have(words: frozenset[str], frequency: Mapping[str, int]) -> float:
    """How few other sentences have them."""
    return sum(sorted(1 / max(1, frequency.get(word, 0) - 1) for word in words))


class _Common:
    """What two statements have in common, and what only one of them has."""

    def __init__(self, old: Statement, new: Statement, around: frozenset[str]) -> None:
        changing = old.about_change | new.about_change
        both = (old.keys & new.keys) | (old.keys & (new.context | around)) | (old.context & new.keys)
        both = both - changing - _vague()
        begins = old.begins & new.begins
        if begins:
            begins = begins - _vague_begins() - set(map(begin_of, both | changing))
        self.words = both | begins
        self.things = old.things & new.things
        given = {word for value in (*old.values, *new.values) for word in value.words}
        self._same = same_by_name(old, new)
        self.ours = frozenset(filter(self._is_other, old.words - new.words - changing - given - _vague()))
        self.theirs = frozenset(filter(self._is_other, new.words - old.words - changing - given - _vague()))

    def _is_other(self, word: str) -> bool:
        """Whether a word is nothing that the other statement says too, in another form or by another name."""
        return begin_of(word) not in self.words and word not in self._same


@cache
def _vague() -> frozenset[str]:
    """Words that all sorts of sentences share, whatever they are about."""
    return frozenset(plain for word in patterns.words("vague") for plain in plain_words(word))


@cache
def _vague_begins() -> frozenset[str]:
    return frozenset(map(begin_of, _vague()))


def _signs(old: Statement, new: Statement, common: _Common, weigh: Weight) -> dict[str, float]:
    known, spoken = _said(old), _said(new)
    fresh = [value for value in new.values if value.plain not in known]
    stays = [value for value in old.values if value.plain in spoken]
    kinds = {was.kind for was in old.values for now in fresh if _one_kind(was, now, new)}
    figure = not kinds.isdisjoint(FIGURES)
    name = ValueKind.NAME in kinds and not figure
    other = other_value(old.known_values, new.known_values)
    # What changes is a value: "my changing mind" gives none.
    gives = old.values or len(old.order) < FEW or any(not new.text.startswith(value.text) for value in fresh)
    changes = new.changes == PLAINLY and bool(gives)
    return {
        **_on_what(old, new, common, weigh),
        "thing with a value": not common.words and bool(common.things) and (figure or name),
        "name": name,
        "figure and contrast": bool(figure and common.ours and common.theirs),
        "name beside figure": figure and any(_opens_as_name(new, value) for value in fresh),
        "other thing": bool(kinds) and others_of_a_kind(old.things, new.things),
        "other value": other and not figure,
        "neither value nor change": not (kinds or changes or new.cancels or other),
        "things alone": not (common.words or kinds or changes or new.cancels or other),
        "figure unanswered": not (kinds or changes or new.cancels) and any(v.kind in FIGURES for v in old.values),
        "no values": not (old.values or old.known_values or new.values or new.known_values),
        "named": bool(stays and (new.changes or new.cancels or new.negates)),
        "nothing gone": 0 < len(old.values) == len(stays),
        "changes": changes,
        "may change": new.changes == PERHAPS,
        "cancels": bool(new.cancels),
        "a remark before": patterns.REMARK.match(old.text) is not None,
        "happened before": patterns.PAST.search(old.text) is not None,
        "delighted before": "!" in old.text,
        "asks": new.asks and not figure,
        "words before": math.log1p(len(old.order)),
    }


def _script(text: str) -> int:
    """What a text is written in: who changes the script speaks of the same thing with words in common, or hardly."""
    return bisect(SCRIPTS, max(text, default=""))


def _on_what(old: Statement, new: Statement, common: _Common, weigh: Weight) -> dict[str, float]:
    """What tells whether they are about one thing, whatever their values."""
    both = _weight(common.words, weigh) + _weight(common.things, weigh)
    return {
        "covered": both / (both + _weight(common.ours, weigh)),
        "somebody else": somebody_else(old.things, new.things),
        "own before": old.own and not new.own,
        "apart": told_apart(old, new, weigh),
        "filled otherwise": filled_otherwise(old, new),
        "narrows": narrows(old, new),
        "other script": _script(old.text) != _script(new.text),
    }


def _said(statement: Statement) -> frozenset[str]:
    return statement.words.union(value.plain for value in statement.values)


def _weight(words: frozenset[str], weigh: Weight) -> float:
    # In a fixed order: sums of floats must not depend on how a set happens to be laid out.
    return sum(sorted(map(weigh, words)))


def _opens_as_name(new: Statement, value: Value) -> bool:
    return value.kind is ValueKind.NAME and new.text.startswith(value.text)


def _one_kind(was: Value, now: Value, new: Statement) -> bool:
    """Whether two values are of one kind; what is counted may be called otherwise, what is measured may not."""
    if was.kind is not now.kind or (was.kind is ValueKind.NAME and new.text.startswith(now.text)):
        return False
    measured = was.kind is ValueKind.NUMBER and was.unit in _measures() and now.unit in _measures()
    return not measured or same_unit(was.unit, now.unit)


@cache
def _measures() -> frozenset[str]:
    return frozenset(patterns.units().values())


def excerpt(old: Statement, new: Statement) -> str:
    """The later sentence, of a long one the part around what the earlier does not say."""
    if len(new.text) <= LONGEST:
        return new.text.rstrip(" .。")
    known = {value.plain for value in old.values}
    place = next((new.text.find(value.text) for value in new.values if value.plain not in known), 0)
    start = max(0, min(place - BEFORE_VALUE, len(new.text) - LONGEST))
    end = start + LONGEST
    return ("…" if start else "") + new.text[start:end].strip() + ("…" if end < len(new.text) else "")
