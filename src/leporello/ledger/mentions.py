"""Whether the user speaks again of the thing that an earlier statement is about.

Weaker than a replaced value: nothing is said to hold no longer. The earlier statement is shown with the later one, and
whoever reads both sees which is newer. So it needs no word of change, and two things in the same words, which can't be
told from one thing that changed, may stand together too. Both are short: what a long sentence is about can't be told
from the words it shares with another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from leporello.ledger import value_patterns as patterns
from leporello.ledger.sentence_pieces import plain_words
from leporello.ledger.statements import FIGURES, PLAINLY, Statement, Value, begin_of
from leporello.ledger.value_matching import Weight, narrows, same_unit, told_apart
from leporello.ledger.value_patterns import ValueKind

WEIGHTS = {
    "shared": 3.0,
    "rarest": 2.4,
    "indirect": -2.6,
    "figure": 0.9,
    "name": 2.3,
    "code": -2.8,
    "neither value nor change": -1.8,
    "no value": -1.2,
    "changes": 0.6,
    "cancels": 0.7,
    "negates": -3.3,
    "happened before": -1.4,
    "delighted before": -3.6,
    "delighted": -1.1,
    "asks": -2.7,
    "wanted before": -1.6,
    "wanted": -1.1,
    "apart": -1.1,
    "narrows": -1.1,
    "words before": -2.8,
    "words": 1.5,
}
LEAST, LEAST_AMONG_HITS = 0.4, -2.0
"""What speaks for two statements about one thing and against it, and how much is needed: fitted to sets of invented
pairs, and to recorded talks and work, where most sentences that share rare words are about two things."""
MOST_SHARED = 2.0
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
    if len(old.order) > MOST_WORDS or len(old.text) > LONGEST_OLD or len(new.text) > LONGEST_NEW:
        return 0.0
    no_subject = old.about_change | new.about_change | _vague()
    direct = (old.keys & new.keys) - no_subject
    both = direct | ((old.keys & (new.context | around) | old.context & new.keys) - no_subject)
    begins = (old.begins & new.begins) - {begin_of(word) for word in both | no_subject}
    states = not (old.asks or old.text.startswith(LIST_BEGINS) or old.text.endswith(LEAD_ENDS))
    if not (both or begins) or not states or old.text == new.text:
        return 0.0
    found = _signs(old, new, weigh)
    if found["no value"] and patterns.GOES_ON.match(old.text):
        return 0.0  # it does not name its thing
    if found["neither value nor change"] and not among_hits:
        return 0.0  # two remarks in the same words tell nothing beside each other
    shared = both | begins
    found["indirect"] = not (direct or begins)
    found["shared"] = min(sum(sorted(1 / max(1, frequency.get(key, 0) - 1) for key in shared)), MOST_SHARED)
    found["rarest"] = max(map(weigh, shared))
    score = sum(weight * found[name] for name, weight in WEIGHTS.items())
    return max(0.0, score - (LEAST_AMONG_HITS if among_hits else LEAST))


@cache
def _vague() -> frozenset[str]:
    """Words that all sorts of sentences share, whatever they are about."""
    return frozenset(plain for word in patterns.words("vague") for plain in plain_words(word))


def _signs(old: Statement, new: Statement, weigh: Weight) -> dict[str, float]:
    known = {value.plain for value in old.values} | old.words
    fresh = [value for value in new.values if value.plain not in known]
    kinds = {was.kind for was in old.values for now in fresh if _one_kind(was, now, new)}
    figure = not kinds.isdisjoint(FIGURES)
    name = ValueKind.NAME in kinds and not figure
    # What changes is a value: "my changing mind" gives none.
    gives = bool(old.values) or any(not new.text.startswith(value.text) for value in fresh)
    changes = new.changes == PLAINLY and gives
    return {
        "figure": figure,
        "name": name,
        # Two identifiers or paths in one conversation are seldom two values of one thing.
        "code": ValueKind.CODE in kinds and not figure and not name,
        "neither value nor change": not (kinds or changes or new.cancels),
        "no value": not old.values,
        "changes": changes,
        "cancels": bool(new.cancels),
        "negates": new.negates,
        "happened before": patterns.PAST.search(old.text) is not None,
        "delighted before": "!" in old.text,
        "delighted": "!" in new.text,
        "asks": new.asks,
        "wanted before": patterns.WANTED.match(old.text) is not None,
        "wanted": patterns.WANTED.match(new.text) is not None,
        "apart": told_apart(old, new, weigh),
        "narrows": narrows(old, new),
        "words before": math.log1p(len(old.order)),
        "words": math.log1p(len(new.order)),
    }


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
