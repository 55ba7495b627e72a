"""Whether the user speaks again of the thing that an earlier statement is about, with another value of its kind.

Weaker than a replaced value: nothing is said to hold no longer. The earlier statement is shown with the later one, and
whoever reads both sees which is newer. So it needs no word of change. Both are short: what a long sentence is about
can't be told from the words it shares with another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from leporello.ledger.sentence_pieces import words_in
from leporello.ledger.statements import FIGURES, PLAINLY, Statement, Value
from leporello.ledger.value_matching import Weight, happened, narrows, same_unit, told_apart
from leporello.ledger.value_patterns import PAST, WANTED, ValueKind

SHARED, COVERED, COVERED_IF_NAMED = 1.5, 0.45, 0.3
"""How much of rare words both have, and how much of the earlier statement they are, beside its value."""
SHARED_WITH_VALUE, COVERED_WITH_VALUE = 0.65, 0.6
"""The same where both give a value of one kind: one rare word."""
MOST_WORDS, FEW_WORDS = 12, 6
LONGEST = 140
BEFORE_VALUE = 50
LONGEST_OLD, LONGEST_NEW = 120, 200


class Mention(Struct, frozen=True):
    """A later sentence about what an earlier one says something about."""

    since: int
    text: str
    sentence: str
    """The whole of it, of which `text` is the part to be shown."""
    gone: tuple[str, ...] = ()
    """Words of the earlier sentence that it gives up."""
    relation: float = 0.0


def speaks_again(old: Statement, new: Statement, around: frozenset[str], weigh: Weight) -> frozenset[str]:
    """The words of an earlier statement that a later one about the same gives up: its value, as far as one can tell.

    `around`: the words of the whole message. Empty where they are about different things.
    """
    if not are_short(old, new) or old.text == new.text or old.cancels or new.changes == PLAINLY:
        return frozenset()
    if told_apart(old, new, weigh) or narrows(old, new):
        return frozenset()
    was = _other_value(old, new)
    if was is None:
        return frozenset()
    gone = frozenset(words_in(was.text)) - new.words or frozenset((was.plain,))
    named = was.plain in {value.plain for value in new.values}
    given = {word for value in old.values for word in value.words} - new.words
    subject = (old.words | old.context) - gone - given - (set() if named else {*was.words})
    shared, wide = _sum(subject & new.words, weigh), _sum(subject & (new.words | around), weigh)
    whole = _sum(old.words & subject, weigh)
    if happened(old, was):
        near = shared >= SHARED and shared >= COVERED_WITH_VALUE * whole
    else:
        near = shared >= SHARED and shared >= (COVERED_IF_NAMED if named else COVERED) * whole
        near = near or (wide >= SHARED and wide >= COVERED * whole)
        if len(old.order) <= FEW_WORDS or was.kind in FIGURES:
            near = near or (shared >= SHARED_WITH_VALUE and shared >= COVERED_WITH_VALUE * whole)
    return gone if near else frozenset()


RELATED = {"shared": 2.3, "figure": 1.0, "changes": 1.3, "asks": 1.2}
LEAST_RELATED, PER_WORD, MOST_SHARED = 0.9, 0.5, 2.0
"""What speaks for two statements about one thing, how much is needed, and how much less a long statement tells: fitted
to sets of invented pairs and to recorded talks, where most sentences that share rare words are about two things."""


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

    Both give a value of one kind, or the later says that something changes; `among_hits` of a search, which only
    decides what comes first, that they share their rare words is enough. Two things in the same words can't be told
    from one thing that changed: so it says where to look too, and nothing more. `around`: the words of the whole
    message. What counts is how few other sentences have their words.
    """
    if not are_short(old, new) or old.text == new.text or not old.values:
        return 0.0
    about = old.about_change | new.about_change
    both = (old.words & (new.words | around | new.context) | old.context & new.words) - about
    known = {value.plain for value in old.values} | old.words
    fresh = [value for value in new.values if value.plain not in known]
    pairs = [(w, n) for w in old.values for n in fresh if _one_kind(w, n) and w.kind is not ValueKind.CODE]
    named = any(value.text in new.text for value in old.values) and (new.changes or new.negates)
    changes = new.changes == PLAINLY or bool(new.cancels) or bool(named)
    if not both or (not pairs and WANTED.match(new.text)):
        return 0.0
    if not among_hits and (new.asks or not (pairs or changes) or _unlike(old, new, weigh)):
        return 0.0
    found = {
        "shared": min(sum(sorted(1 / max(1, frequency.get(word, 0) - 1) for word in both)), MOST_SHARED),
        "figure": any(was.kind in FIGURES for was, _ in pairs),
        "changes": changes,
        "asks": new.asks,
    }
    above = sum(weight * found[name] for name, weight in RELATED.items()) - LEAST_RELATED
    return max(0.0, above - PER_WORD * math.log1p(len(old.order)))


def _unlike(old: Statement, new: Statement, weigh: Weight) -> bool:
    """Whether somebody is delighted, tells what happened, or speaks of two things."""
    told = any("!" in said.text or PAST.search(said.text) for said in (old, new))
    return told or told_apart(old, new, weigh) or (narrows(old, new) and not new.changes)


def are_short(old: Statement, new: Statement) -> bool:
    return len(old.order) <= MOST_WORDS and len(old.text) <= LONGEST_OLD and len(new.text) <= LONGEST_NEW


def _other_value(old: Statement, new: Statement) -> Value | None:
    """The value of the earlier statement beside which the later one gives another of the same kind."""
    known, come = {value.plain for value in old.values} | old.words, {value.plain for value in new.values}
    fresh = [value for value in new.values if value.plain not in known]
    # Two identifiers or paths in one conversation are seldom two values of one thing.
    able = [was for was in old.values if was.kind is not ValueKind.CODE]
    fitting = [was for was in able if any(_one_kind(was, now) for now in fresh)]
    return min(fitting, key=lambda was: was.plain in come, default=None)


def _one_kind(was: Value, now: Value) -> bool:
    return was.kind is now.kind and (was.kind is not ValueKind.NUMBER or same_unit(was.unit, now.unit))


def excerpt(old: Statement, new: Statement) -> str:
    """The later sentence, of a long one the part around what the earlier does not say."""
    if len(new.text) <= LONGEST:
        return new.text.rstrip(" .。")
    known = {value.plain for value in old.values}
    place = next((new.text.find(value.text) for value in new.values if value.plain not in known), 0)
    start = max(0, min(place - BEFORE_VALUE, len(new.text) - LONGEST))
    end = start + LONGEST
    return ("…" if start else "") + new.text[start:end].strip() + ("…" if end < len(new.text) else "")


def _sum(words: Iterable[str], weigh: Weight) -> float:
    return sum(sorted(map(weigh, words)))
