"""Whether a later statement replaces an earlier one: about the same thing, with another value.

Replacing wrongly is worse than not noticing. The two must share their rarer words, at least all but a few of the one
that says less; and nothing may tell their subjects apart: another name beside another figure, another label
("chapter 3", "chapter 4"), another word before the same noun ("worker timeout", "client timeout").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import lru_cache

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger import value_patterns as patterns
from leporello.ledger.sentence_pieces import words_in
from leporello.ledger.statements import FIGURES, PLAINLY, Statement, Value, same_by_name
from leporello.ledger.value_patterns import ValueKind

Weight = Callable[[str], float]
"""How much a word tells about what is meant, from 0 to 1."""

SHARED, SHARED_BY_ASSISTANT, SHARED_IF_CHANGED, SHARED_IF_NAMED = 0.55, 0.7, 0.45, 0.3
"""How much of the words two statements share, less what only the longer one has."""
SHARED_WITHOUT_VALUE, SHARED_RETOLD = 0.6, 0.4
SHARED_SEVERAL = 0.25
"""Where they share several rare words."""
FEW, LONG = 3, 5
RARE, RAREST = 0.45, 0.65
LONGEST_SURE = 120
"""Characters of a statement of which it can be told for certain what it is about."""
CLOSE_IF_SAID, CLOSE_FIGURES, CLOSE_NAMES = 0.25, 0.4, 0.6
"""How much of all their words two statements share where the change is certain."""
NEW_CHARS = 120
"""Characters of a sentence that stand for a value where none could be told apart."""
STEM = 4
"""Letters by which a word is known in whatever form."""
_WORD = lazy_regex(r"\w+(?:[./-]\w+)*")
_DIGITS, _LETTERS = lazy_regex(r"[0-9]+"), lazy_regex(r"[^\W\d_]+")
NAMES = (ValueKind.CODE, ValueKind.NAME)


class _Pair(Struct, frozen=True):
    was: Value
    now: Value
    named: bool = False
    """Whether the later sentence names the value it gives up."""

    @property
    def kind(self) -> ValueKind:
        return self.now.kind

    @property
    def of_one_make(self) -> bool:
        """Whether two identifiers look alike and share a part: hosts, branches, numbers of one house."""
        shares = self.kind is ValueKind.CODE and not {*self.was.words}.isdisjoint(self.now.words)
        return shares and _shape(self.was.text) == _shape(self.now.text)


class Replacement(Struct, frozen=True):
    """The old and the new value of a thing."""

    was: str
    now: str
    certain: bool
    """Whether it may be stated: the later sentence says so, or the two say nearly the same. Else it is a guess, good
    enough for what to show first."""


def replaced(old: Statement, new: Statement, weigh: Weight) -> Replacement | None:
    """Both values, when a later statement is about the same thing and gives it another value."""
    values = _replaced(old, new, weigh)
    if values is None:
        return None
    was, now = values
    return Replacement(was, now, _is_certain(old, new, was, now, weigh))


def _is_certain(old: Statement, new: Statement, was: str, now: str, weigh: Weight) -> bool:
    """Whether short statements say plainly that it changed, or the same of the same thing with another value."""
    if max(len(old.text), len(new.text)) > LONGEST_SURE or "?" in old.text or narrows(old, new):
        return False
    if any(patterns.IN_CASE.search(said.text) or patterns.WANTED.match(said.text) for said in (old, new)):
        return False
    come = next((value for value in new.values if value.text == now), None)
    said = new.changes == PLAINLY or bool(new.cancels) or (new.negates and was.casefold() in new.text.casefold())
    if come is None and not new.cancels:
        return False  # the whole sentence stands for the value
    figure = come is not None and come.kind in FIGURES
    shared = _Shared(old, new, set(), weigh, in_context=figure or said)
    if shared.jaccard < (CLOSE_IF_SAID if said else CLOSE_FIGURES if figure else CLOSE_NAMES):
        return False
    # Without a word of change, a word that only the later has may say that it means another thing.
    return said or shared.theirs <= {*words_in(now)}


def _replaced(old: Statement, new: Statement, weigh: Weight) -> tuple[str, str] | None:
    if old.text == new.text or (old.own and new.own and old.role != new.role):
        return None
    if other_one_of_a_row(old, new) or (not new.changes and old.cancels):
        return None
    if not new.changes and _unlike(old, new):
        return None
    pairs = _pairs(old, new)
    named = any(pair.named for pair in pairs)
    if not named and pairs and (_two_things(pairs, old, new) or _other_subjects(old, new, pairs, weigh)):
        return None
    if not pairs:
        return _cancelled(old, new, weigh) if new.cancels else _retold(old, new, weigh)
    if new.cancels and not (named or new.changes or any(pair.kind in FIGURES for pair in pairs)):
        return None
    return (pairs[0].was.text, pairs[0].now.text) if _same_thing(old, new, pairs[0], weigh) else None


def _same_thing(old: Statement, new: Statement, pair: _Pair, weigh: Weight) -> bool:
    given = {*pair.now.words} if pair.named else {*pair.was.words, *pair.now.words}
    shared = _Shared(old, new, given, weigh, in_context=pair.kind in FIGURES or new.changes == PLAINLY)
    if pair.kind is ValueKind.NUMBER and pair.was.key == pair.now.key != "":
        shared.tell(pair.was.key, weigh)
    if pair.of_one_make:
        # Names beside such an identifier tell what it is of.
        shared.telling = shared.both - new.about_change - ({*pair.was.words} & {*pair.now.words})
        shared.rarest = max(map(weigh, shared.telling), default=0.0)
    by_users = old.role == "user" == new.role
    if pair.named and by_users:
        told = new.changes == PLAINLY or (bool(shared.telling) and not patterns.PAST.search(old.text))
        return told and shared.ratio >= SHARED_IF_NAMED
    if pair.kind is ValueKind.CODE and not _alike(pair.was, pair.now) and shared.ratio < SHARED_BY_ASSISTANT:
        return False
    rare = shared.rare(pair.kind, weigh)
    several = rare > 1 and shared.ratio >= (SHARED_SEVERAL if by_users else SHARED) and not happened(old, pair.was)
    if several and new.role == "user":
        return True
    if not shared.telling or shared.rarest < RARE:
        return False
    if not by_users:
        return pair.kind in FIGURES and len(shared.telling) > 1 and shared.jaccard >= SHARED_BY_ASSISTANT
    return _same_for_users(old, new, pair, shared)


def _same_for_users(old: Statement, new: Statement, pair: _Pair, shared: _Shared) -> bool:
    if new.changes == PLAINLY:
        several = len(shared.telling) > 1 or pair.kind in FIGURES
        return shared.ratio >= (SHARED_IF_CHANGED if several else SHARED_WITHOUT_VALUE)
    if happened(old, pair.was):
        return False
    if pair.of_one_make and shared.rarest >= RAREST:
        return True
    if len(shared.telling) == 1:
        # One word in common: it must be rare, and the earlier sentence must say little but it and the value.
        if pair.kind in NAMES and not (any(map(str.isdigit, pair.now.text)) and _alike(pair.was, pair.now)):
            return not shared.ours and len(shared.theirs) < FEW and not new.own
        few = len(shared.ours) < FEW and len(shared.theirs) <= FEW and shared.rarest >= RAREST
        return not shared.ours or (few and not shared.sides(old, shared.ours) & shared.sides(new, shared.theirs))
    return shared.ratio >= (SHARED_BY_ASSISTANT if pair.kind is ValueKind.CODE else SHARED)


def _alike(one: Value, other: Value) -> bool:
    """Whether two identifiers are of one make: hosts, branches, paths of one place."""
    return bool({*one.words} & {*other.words}) or _shape(one.text) == _shape(other.text)


def _shape(text: str) -> str:
    return _DIGITS.sub("0", _LETTERS.sub("a", text))


def happened(said: Statement, value: Value) -> bool:
    """Whether the clause with the value tells what happened."""
    place = max(0, said.text.find(value.text))
    begin = max((match.end() for match in patterns.CLAUSE_END.finditer(said.text, 0, place)), default=0)
    end = patterns.CLAUSE_END.search(said.text, place + len(value.text))
    return patterns.PAST.search(said.text[begin : end.start() if end else None]) is not None


def _cancelled(old: Statement, new: Statement, weigh: Weight) -> tuple[str, str] | None:
    shared = _Shared(old, new, set(), weigh)
    if not old.values or old.cancels or not shared.telling:
        return None
    if shared.common < SHARED_WITHOUT_VALUE * (shared.common + _sum(shared.theirs, weigh)):
        return None
    planned = next((value for value in old.values if value.kind in FIGURES), old.values[-1])
    return (planned.text, new.cancels) if shared.ratio >= SHARED_IF_CHANGED else None


def _retold(old: Statement, new: Statement, weigh: Weight) -> tuple[str, str] | None:
    """Something changed, but not in a value that can be told apart: the sentence stands for it."""
    if old.role != "user" or new.role != "user" or old.changes or len(new.text) > NEW_CHARS:
        return None
    shared = _Shared(old, new, set(), weigh)
    if not shared.telling:
        return None
    wanted = patterns.WANTED.match(old.text) or patterns.WANTED.match(new.text)
    if wanted or patterns.PAST.search(old.text):
        return None
    few = len(shared.ours) <= 1 and len(shared.theirs) < FEW
    if new.changes == PLAINLY and shared.rare(ValueKind.NAME, weigh) >= FEW and shared.ratio >= SHARED_RETOLD:
        return old.text[:NEW_CHARS], new.text[:NEW_CHARS]
    if new.changes != PLAINLY:
        # It says all that was said, with a word that takes it back.
        enough = len(shared.telling) > 1 and not shared.ours and new.negates and not old.negates
    elif len(shared.telling) == 1:
        enough = few and shared.rarest >= RAREST
    else:
        close = shared.jaccard >= SHARED_RETOLD or len(shared.ours) <= 1
        enough = shared.rarest >= RARE and shared.ratio >= SHARED_WITHOUT_VALUE and close
    if not enough or old.text.endswith("!") or (not few and _different(old, new, ())):
        return None
    return old.text[:NEW_CHARS], new.text[:NEW_CHARS]


class _Shared:
    """The words two statements share, and those that only one of them has."""

    def __init__(
        self, old: Statement, new: Statement, given: set[str], weigh: Weight, *, in_context: bool = False
    ) -> None:
        both = old.words & new.words
        # What both say is what they are about, even if it stands in a value or sounds like a change.
        given = (given | new.about_change | old.about_change) - both
        if in_context:
            both |= (old.words & new.context | old.context & new.words) - given
        names = _words_of_names(old) & _words_of_names(new)
        units = {v.unit for v in old.values if v.unit} & {v.unit for v in new.values if v.unit}
        self.both = both
        self.telling = both - names - new.about_change
        self.ours = old.words - new.words - given - both
        self.theirs = new.words - old.words - given - both
        self.common = _sum(both, weigh) + (0.3 if units else 0.0)
        self.rarest = max(map(weigh, self.telling), default=0.0)
        least = min(_sum(self.ours, weigh), _sum(self.theirs, weigh))
        self.ratio = self.common / (self.common + least) if self.common else 0.0
        self.jaccard = self.common / (self.common + _sum(self.ours, weigh) + _sum(self.theirs, weigh)) if both else 0.0

    def rare(self, kind: ValueKind, weigh: Weight) -> int:
        """How many rare words they share; beside a figure, names tell as much as other words."""
        return sum(weigh(word) >= RAREST for word in (self.both if kind in FIGURES else self.telling))

    def sides(self, said: Statement, words: Set[str]) -> set[bool]:
        """Whether words stand behind the one that tells what is meant, or before it."""
        telling = next((place for place, word in enumerate(said.order) if word in self.telling), 0)
        return {place > telling for place, word in enumerate(said.order) if word in words}

    def tell(self, key: str, weigh: Weight) -> None:
        """A word directly before both values tells what they are of, even if it is a name."""
        self.telling = self.telling | {key}
        self.rarest = max(self.rarest, weigh(key))


def _words_of_names(said: Statement) -> set[str]:
    return {word for value in said.values if value.kind in NAMES for word in value.words}


def _sum(words: Iterable[str], weigh: Weight) -> float:
    # In a fixed order: sums of floats must not depend on how a set happens to be laid out.
    return sum(sorted(map(weigh, words)))


def _pairs(old: Statement, new: Statement) -> list[_Pair]:
    """For each kind of value the one that went and the one that came."""
    here, there = {value.plain for value in new.values}, {value.plain for value in old.values}
    spoken, known = here | new.words, there | old.words
    gives_up = new.changes or new.cancels or new.negates
    found = []
    for kind in (*FIGURES, *NAMES):
        come = [value for value in new.values if value.kind is kind and value.plain not in known]
        if not come:
            continue
        gone = [value for value in old.values if value.kind is kind and value.plain not in spoken]
        named = [value for value in old.values if value.kind is kind and value.plain in spoken] if gives_up else []
        pair = _fitting(named, come, named=True) or _fitting(gone, come)
        if pair is not None:
            found.append(pair)
    return found or (_opening(old, new, spoken) if old.role == "user" == new.role else [])


def _opening(old: Statement, new: Statement, spoken: Set[str]) -> list[_Pair]:
    """The name that went and the one that came, where the earlier begins its sentence and does something there."""
    name = old.opening
    come = [value for value in _names(new) if value.plain not in old.words]
    if (
        name is None
        or name.plain in spoken
        or not patterns.DOES.match(old.text)
        or len(old.words & new.words) < FEW - 1
        or len(old.words - new.words) >= FEW
    ):
        return []
    return [_Pair(name, value) for value in come[:1]]


def _names(said: Statement) -> list[Value]:
    return [value for value in said.values if value.kind is ValueKind.NAME]


def _fitting(gone: Sequence[Value], come: Sequence[Value], *, named: bool = False) -> _Pair | None:
    if gone and come[0].kind is ValueKind.NUMBER:
        return next((_Pair(was, now, named) for was in gone for now in come if same_unit(was.unit, now.unit)), None)
    if not gone or (come[-1].kind is ValueKind.NAME and {*gone[0].words} & {*come[-1].words}):
        return None
    return _Pair(gone[0], come[-1], named)


def same_unit(one: str, other: str) -> bool:
    return one == other or ("times" in (one, other) and "" not in (one, other))


def _unlike(old: Statement, new: Statement) -> bool:
    """Whether nothing but the wording is the same: each gives several values that the other does not."""
    gone = {value.plain for value in old.values} - {value.plain for value in new.values}
    come = {value.plain for value in new.values} - {value.plain for value in old.values}
    return min(len(gone), len(come)) >= FEW


def _two_things(pairs: Sequence[_Pair], old: Statement, new: Statement) -> bool:
    """Whether two statements differ in more than a value: only a day and its time change together."""
    kinds = {pair.kind for pair in pairs}
    dated = kinds <= {ValueKind.DATE, ValueKind.TIME}
    replaced = pairs if dated else pairs[:1]
    if not new.changes and _places(old, new, replaced) & _places(new, old, replaced):
        return True
    return not _long(old, new) and len(kinds) > 1 and not dated and not kinds <= {*NAMES}


def _places(said: Statement, other: Statement, pairs: Iterable[_Pair]) -> set[tuple[str, str]]:
    """Between which words a word stands that only this one has, values aside: "for Grafana is", "for Jenkins is"."""
    given = {word for pair in pairs for value in (pair.was, pair.now) for word in _words(value.text)}
    known = given.union(_words(other.text))
    telling = {word[:STEM] for word in said.words - same_by_name(said, other)}
    words = ["", *_words(said.text), ""]
    return {
        (words[k - 1], words[k + 1])
        for k in range(1, len(words) - 1)
        if words[k] not in known and not any(map(str.isdigit, words[k]))
        if not words[k].isalpha() or words[k][:STEM] in telling
    }


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """A statement is compared with many others."""
    return tuple(_WORD.findall(text.casefold()))


def told_apart(old: Statement, new: Statement, weigh: Weight) -> bool:
    """Whether something says that the two are about different things."""
    if other_one_of_a_row(old, new):
        return True
    pairs = _pairs(old, new)
    if not pairs or any(pair.named for pair in pairs):
        return False
    return _two_things(pairs, old, new) or _other_subjects(old, new, pairs, weigh)


def filled_otherwise(old: Statement, new: Statement) -> bool:
    """Whether something else stands between the same words: "for Grafana is", "for Jenkins is"."""
    pairs = _pairs(old, new)
    ours = _places(old, new, pairs)
    return bool(ours) and not ours.isdisjoint(_places(new, old, pairs))


def narrows(old: Statement, new: Statement) -> bool:
    """Whether the later statement says which one it means where the earlier does not: my daughter's appointment."""
    known = old.words.union(same_by_name(old, new), *(value.words for value in new.values))
    return any(head in old.words and beside not in known for head, beside in new.before)


def other_one_of_a_row(old: Statement, new: Statement) -> bool:
    """Whether the two are told to be about different things: staging and production, chapter 3 and chapter 4."""
    return _contrast(old, new) or (not new.changes and _other_labels(old, new))


def _other_labels(old: Statement, new: Statement) -> bool:
    return bool(old.labels and new.labels) and old.labels != new.labels


def _contrast(old: Statement, new: Statement) -> bool:
    """Whether the two name different ones of a row: staging and production."""
    one = {row for row, _ in old.contrasts - new.contrasts}
    other = {row for row, _ in new.contrasts - old.contrasts}
    return any(row > 0 or not _long(old, new) for row in one & other)


def _long(old: Statement, new: Statement) -> bool:
    return min(len(old.order), len(new.order)) > LONG


def _other_subjects(old: Statement, new: Statement, pairs: Sequence[_Pair], weigh: Weight) -> bool:
    """Whether a companion of its own tells the two subjects apart; in long sentences many words have others beside."""
    if not _different(old, new, pairs):
        return False
    both = [word for word in old.words & new.words if weigh(word) >= RAREST]
    return not _long(old, new) or len(both) < FEW


def _different(old: Statement, new: Statement, pairs: Iterable[_Pair]) -> bool:
    """Whether a common word has a companion of its own in each of the two, beside the values."""
    given = {word for pair in pairs for value in (pair.was, pair.now) for word in value.words}
    given |= same_by_name(old, new)
    one, other = old.words - new.words - given, new.words - old.words - given
    return any(_other_beside(was, now, one, other) for was, now in ((old.before, new.before), (old.after, new.after)))


def _other_beside(
    old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]], one: frozenset[str], other: frozenset[str]
) -> bool:
    theirs = {head for head, beside in new if beside in other and head not in other}
    return any(beside in one and head in theirs for head, beside in old)
