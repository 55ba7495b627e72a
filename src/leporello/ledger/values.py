"""Values over time: what the conversation says about a thing, since when, and what it replaced.

A sentence that gives a value states something about the words around it. A later sentence about the same thing with
another value of the same kind replaces it, whether or not it says that something changed. Replacing wrongly is worse
than not noticing, so the two must share most of their rarer words, and nothing may tell their subjects apart: another
name, another label ("chapter 3", "chapter 4"), another word before the same noun ("worker timeout", "client timeout").
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice

from leporello.ledger import value_patterns as patterns
from leporello.ledger.statements import Statement, Value, plain_words, stated
from leporello.ledger.value_patterns import ValueKind

MOST_OPEN = 1_500
"""Statements that a later one can replace; of more the oldest are let go."""
MOST_PER_MESSAGE = 40
MOST_COMPARED = 30
MARK = " (was; since m"
LONGEST = 300
"""Characters of a sentence that states a value; longer ones are listings."""
SHARED, SHARED_IF_CHANGED, SHARED_IF_NAMED = 0.6, 0.5, 0.3
"""How much of the rarer words two sentences share: silently, with a word of change, with the old value named."""
SHARED_OF_LONGER, SHARED_BY_NAMES = 0.3, 0.65
NAMING = (ValueKind.NAME, ValueKind.PLACE)

Weight = Callable[[str], float]


@dataclass(frozen=True, slots=True)
class Change:
    """One value took the place of another."""

    subject: str
    value: str
    since: int
    """The message that says so."""
    was: str
    was_since: int
    text: str
    """The sentence that gives the new value."""
    was_text: str


@dataclass
class Values:
    """What was stated so far and holds, and what was replaced."""

    open: dict[int, Statement] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    next: int = 0

    def __post_init__(self) -> None:
        self._places: dict[str, dict[int, None]] = {}
        """For each word the open statements it stands in, oldest first."""
        for place, statement in self.open.items():
            self._index(place, statement)
        self._later: dict[tuple[int, str], Change] = {(c.was_since, c.was_text): c for c in self.changes}
        """What replaced a sentence of a message."""
        self._replaced: dict[int, list[Change]] = defaultdict(list)
        for change in self.changes:
            self._replaced[change.was_since].append(change)

    def add(self, number: int, role: str, sentences: Iterable[str]) -> None:
        """Take in the sentences of a message; they come in the order of the conversation."""
        readable = (text for text in sentences if len(text) <= LONGEST and MARK not in text)
        said = (statement for text in readable for statement in stated(text, is_output=role == "tool"))
        told = (statement for statement in said if role == "user" or _tells_figures(statement))
        for statement in islice(told, MOST_PER_MESSAGE):
            self._take(replace(statement, number=number))

    def replaced_in(self, number: int) -> list[Change]:
        """The values of a message that hold no longer, each with the newest that took its place."""
        found = []
        for change in self._replaced.get(number, ()):
            newest = self._newest(change)
            if newest.value.casefold() != change.was.casefold():
                found.append(replace(change, value=newest.value, since=newest.since, text=newest.text))
        return found

    def marked(self, number: int, text: str) -> str:
        """A text of a message with a mark behind every sentence whose value was replaced."""
        for change in self.replaced_in(number):
            if change.was_text and change.was_text in text and change.was_text + MARK not in text:
                mark = f"{change.was_text}{MARK}{change.since}: {change.value})"
                text = text.replace(change.was_text, mark, 1)
        return text

    def latest(self) -> list[Change]:
        """What changed, newest first: once for each new value, with the value that held before it."""
        found: dict[tuple[int, str], Change] = {}
        for change in reversed(self.changes):
            if (change.since, change.text) not in self._later:
                found.setdefault((change.since, change.text), change)
        return list(found.values())

    def _newest(self, change: Change) -> Change:
        for _ in range(len(self.changes)):
            later = self._later.get((change.since, change.text))
            if later is None:
                break
            change = later
        return change

    def _take(self, said: Statement) -> None:
        for place in self._alike(said):
            earlier = self.open[place]
            pair = replaced(earlier, said, self._weight)
            if pair is None:
                continue
            if earlier.number != said.number:
                old, new = pair
                self.note(Change(said.subject, new, said.number, old, earlier.number, said.text, earlier.text))
            self._drop(place)
        self.open[self.next] = said
        self._index(self.next, said)
        self.next += 1
        while len(self.open) > MOST_OPEN:
            self._drop(next(iter(self.open)))

    def note(self, change: Change) -> None:
        """Take in that a value was replaced."""
        self.changes.append(change)
        self._later[change.was_since, change.was_text] = change
        self._replaced[change.was_since].append(change)

    def _alike(self, said: Statement) -> list[int]:
        """The open statements that share most words, newest first."""
        shared: dict[int, float] = defaultdict(float)
        for word in said.words:
            weight = self._weight(word)
            for place in islice(reversed(self._places.get(word, {})), MOST_COMPARED):
                shared[place] += weight
        least = 0.0 if said.says_change else SHARED_OF_LONGER * sum(map(self._weight, said.words))
        close = [place for place, weight in shared.items() if weight >= least]
        return sorted(sorted(close, key=lambda place: (-shared[place], -place))[:MOST_COMPARED], reverse=True)

    def _weight(self, word: str) -> float:
        """Rare words tell more about what is meant."""
        return 1.0 / (1.0 + math.log(max(1, len(self._places.get(word, ())))))

    def _index(self, place: int, statement: Statement) -> None:
        for word in statement.words:
            self._places.setdefault(word, {})[place] = None

    def _drop(self, place: int) -> None:
        for word in self.open.pop(place).words:
            places = self._places.get(word, {})
            places.pop(place, None)
            if not places:
                self._places.pop(word, None)


def replaced(old: Statement, new: Statement, weight: Weight) -> tuple[str, str] | None:
    """The old and the new value, when a later statement is about the same thing and gives it another value."""
    if _different(old, new):
        return None
    pair = _pair(old, new)
    if pair is None:
        return None
    before, after = (said.words if pair[1].kind in NAMING else said.words | _names(said) for said in (old, new))
    common = before & after
    shared, ours, theirs = (sum(map(weight, words)) for words in (common, before, after))
    shorter, longer = min(ours, theirs), max(ours, theirs)
    if pair[1].kind is ValueKind.CANCELLED:
        enough = shared >= SHARED * theirs and shared >= SHARED_IF_NAMED * ours
    elif new.says_change and any(value.given_up and value.plain == pair[0].plain for value in new.values):
        enough = shared >= SHARED_IF_NAMED * shorter
    elif pair[1].kind in NAMING:
        # Anything can have a name: the two must say the same but for it.
        alone = old.words == new.words and (new.says_change or _is_setting(new))
        enough = shared >= SHARED_BY_NAMES * longer and (len(common) > 1 or alone)
    elif new.says_change:
        enough = shared >= SHARED_IF_CHANGED * shorter
    else:
        enough = shared >= max(SHARED * shorter, SHARED_OF_LONGER * longer) and (
            len(common) > 1 or old.words == new.words
        )
    return (pair[0].text, pair[1].text) if enough else None


def _names(said: Statement) -> frozenset[str]:
    """The names in a sentence as words: where the value is something else, they belong to what it is about."""
    names = (value.text for value in said.values if value.kind is ValueKind.NAME)
    return frozenset(plain for name in names for word in name.split() for plain in plain_words(word))


def _tells_figures(said: Statement) -> bool:
    """Whether a statement gives more than names: the lists of an assistant name one thing after another."""
    return said.says_change or _is_setting(said) or any(value.kind not in NAMING for value in said.values)


def _is_setting(said: Statement) -> bool:
    return said.subject.isupper() and "_" in said.subject


def _different(old: Statement, new: Statement) -> bool:
    """Whether something tells the two subjects apart."""
    if old.labels != new.labels and old.labels and new.labels:
        return True
    one, other = old.words - new.words, new.words - old.words
    table = _contrasts()
    rows = {row for word in one for row in table.get(word, ())}
    if rows and any(row in rows for word in other for row in table.get(word, ())):
        return True
    named, renamed = ({(v.plain, v.key) for v in said.values if v.kind is ValueKind.NAME} for said in (old, new))
    return any(
        _other_beside(was, now, one, other)
        for was, now in ((old.before, new.before), (old.after, new.after), (named, renamed))
    )


def _other_beside(
    old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]], one: frozenset[str], other: frozenset[str]
) -> bool:
    """Whether a common word has a companion of its own in each of the two."""
    theirs = {head for head, beside in new if beside in other and head not in other}
    return any(beside in one and head in theirs for head, beside in old)


def _pair(old: Statement, new: Statement) -> tuple[Value, Value] | None:
    """The one value that differs. Two that differ name two things, unless they are a date and its time."""
    here = {value.plain for value in new.values}
    there = {value.plain for value in old.values}
    given_up = {value.plain for value in new.values if value.given_up}
    gone = [value for value in old.values if value.plain not in here or (new.says_change and value.plain in given_up)]
    come = [value for value in new.values if value.plain not in there and not (new.says_change and value.given_up)]
    if _other_names(gone, come, here):
        return None
    cancelled = next((value for value in come if value.kind is ValueKind.CANCELLED), None)
    if cancelled is not None:
        planned = next((value for value in old.values if value.kind is not ValueKind.NAME), old.values[0])
        return (planned, cancelled) if old.values[-1].kind is not ValueKind.CANCELLED else None
    for value in come:
        fitting = [was for was in gone if _fits(was, value)] or _only_numbers(gone, come, old.words & new.words)
        alike = [v for v in come if v.kind is value.kind and _fits(value, v)]
        if len(alike) == 1 and fitting:
            named = [was for was in fitting if was.plain in here]
            if len(fitting) == 1 or len(named) == 1:
                return (named or fitting)[0], value
    return None


def _fits(was: Value, value: Value) -> bool:
    """Whether one may stand for the other: of the same kind, and numbers of the same thing."""
    if was.kind is not value.kind:
        return False
    if was.kind is not ValueKind.NUMBER:
        return True
    if was.unit and value.unit:
        return was.unit == value.unit
    return was.key == value.key != ""


def _only_numbers(gone: Sequence[Value], come: Sequence[Value], shared: frozenset[str]) -> list[Value]:
    """The old number where each gives just one, without a unit, for something both speak of."""
    was, now = ([value for value in values if value.kind is ValueKind.NUMBER] for values in (gone, come))
    if len(was) != 1 or len(now) != 1 or was[0].unit or now[0].unit:
        return []
    return was if was[0].key in shared and now[0].key in shared else []


def _other_names(gone: Sequence[Value], come: Sequence[Value], here: set[str]) -> bool:
    """Whether each names something that the other does not, and gives another figure for it."""
    ours = [value for value in gone if value.kind in NAMING and value.plain not in here]
    theirs = [value for value in come if value.kind in NAMING]
    if not ours or not theirs:
        return False
    figures = any(value.kind not in NAMING for value in come) and any(value.kind not in NAMING for value in gone)
    return figures or len(ours) > 1 or len(theirs) > 1


@cache
def _contrasts() -> Mapping[str, frozenset[int]]:
    table: dict[str, set[int]] = defaultdict(set)
    for number, row in enumerate(patterns.CONTRASTS):
        for word in row.split():
            for plain in plain_words(word) or [word]:
                table[plain].add(number)
    return {word: frozenset(rows) for word, rows in table.items()}
