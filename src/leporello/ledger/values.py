"""Values over time: what the conversation says about a thing, since when, and what it replaced."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.facts import MessageFacts
from leporello.ledger.mentions import Mention, excerpt, relation
from leporello.ledger.quoted import is_reported
from leporello.ledger.rules import holds_for_good
from leporello.ledger.sentence_pieces import plain_words, words_in
from leporello.ledger.statements import FIGURES, Statement, read, settings
from leporello.ledger.value_matching import FEW, RARE, Replacement, Weight, replaced

MOST_OPEN = 2_000
"""Statements that a later one can replace; of more the oldest are let go."""
MOST_PER_MESSAGE = 40
MOST_POSTED = 12
"""For one word so many of the newest statements are looked at, ..."""
MOST_COMPARED = 8
"""... and of all of them those that share most."""
PRIOR = 20
NEARLY = 0.8
"""A statement of the user that has so much to do with an earlier one as another before it takes its place."""
CLEARLY = 2.0
"""What has so much more to do with a later statement is what it is about, and the rest is not."""
_WRITTEN = lazy_regex(r"[^\W\d_]+")
_TOKEN = lazy_regex(r"[0-9a-z\u00c0-\u024f\u0400-\u04ff]+|[\u3041-\u9fff\uac00-\ud7a3]")
LONGEST_VALUE, SHORTEST_VALUE, LONGEST_ECHO = 60, 3, 80
MARK, LATER = " (was; since m", " (later m"
"""What stands behind a value that was replaced, and behind a statement that the user spoke of again."""


def unmarked(text: str) -> str:
    """What was said, without the mark behind it."""
    return text.partition(MARK)[0].partition(LATER)[0]


SHORTEST, LONGEST = 5, 300
"""Characters of a sentence that states something about a thing; longer ones are listings."""
MOST_TOLD = 3
"""Statements of a message that are shown with later ones, or with earlier ones; more are a list or a text."""
LONGEST_CHAIN = 20
LONGEST_TOLD = 160
"""Characters of a message that is shown as a whole beside an earlier one."""


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
    certain: bool = True
    """Whether it may be stated; a guess only says what to show first."""


class StatedRow(Struct, frozen=True):
    """A value as a sentence gives it, and the message that replaced it."""

    subject: str
    value: str
    since: int
    text: str
    replaced_by: int | None = None


class Setting(Struct, frozen=True):
    value: str
    since: int
    text: str


class _Around(Struct, frozen=True):
    """The message that a statement stands in."""

    words: frozenset[str]
    text: str
    sentences: int


@dataclass
class Values:
    """What was stated so far and holds, and what was replaced."""

    open: dict[int, Statement] = field(default_factory=dict)
    echoes: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """Sentences of the assistant that repeat the value of an open statement, with their messages."""
    settings: dict[str, Setting] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    related: dict[int, dict[str, Mention]] = field(default_factory=dict)
    """For messages their sentences that the user may have spoken of again, with what was said later."""
    frequency: dict[str, int] = field(default_factory=dict)
    """How many sentences hold a word."""
    sentences: int = 0
    next: int = 0
    last: int = 0
    """The message read last."""
    ahead: list[Change] = field(default_factory=list)
    """Changes of messages that were read when they came; they are noted when somebody asks (`read_on`)."""
    among_hits: bool = False
    """Whether these are the hits of a search: its words are common among them, and tell most all the same."""

    def __post_init__(self) -> None:
        self._places: dict[str, dict[int, None]] = {}
        """For each word the open statements it stands in, oldest first."""
        for place, statement in self.open.items():
            self._index(place, statement)
        self._heard: list[int] = []
        """The statements of the user's last message: the answer may repeat them."""
        self._later: dict[tuple[int, str], Change] = {(c.was_since, c.was_text): c for c in self.changes}
        """What replaced a sentence of a message."""
        self._replaced: dict[int, list[Change]] = defaultdict(list)
        self._gone: dict[str, list[Change]] = defaultdict(list)
        """Replaced values by their first word."""
        for change in self.changes:
            self._replaced[change.was_since].append(change)
            self._forget(change)

    def read_on(self, facts: Mapping[int, MessageFacts], last: int) -> None:
        """Read the messages up to `last` that came since the last time, and note what changed."""
        self.read_ahead(facts, last)
        for change in self.ahead:
            self.note(change)
        self.ahead = []

    def read_ahead(self, facts: Mapping[int, MessageFacts], last: int) -> None:
        for number in range(self.last + 1, last + 1):
            if number in facts:
                told = facts[number]
                self._read(number, told.role, (unit.text for unit in told.units if unit.position not in told.quoted))

    def add(self, number: int, role: str, sentences: Iterable[str]) -> None:
        """Take in the sentences of a message; they come in the order of the conversation."""
        self._read(number, role, sentences)
        self.read_on({}, self.last)

    def _read(self, number: int, role: str, sentences: Iterable[str]) -> None:
        self.last = max(self.last, number)
        if role == "user":
            self._heard = []
        before = whole = ""
        said_before: list[Statement] = []
        # The output of programs states nothing; its settings are taken in by `set`.
        for text in islice(sentences, MOST_PER_MESSAGE) if role != "tool" else ():
            if SHORTEST <= len(text) <= LONGEST and MARK not in text and LATER not in text:
                # What an assistant says takes the place of nothing that the user said; it only orders the hits of a
                # search, and what it reads out is not what it says.
                is_told = role == "user" or (self.among_hits and not is_reported(text))
                said = read(text, number, role, before) if is_told else None
                if said is not None:
                    said_before.append(said)
                if role == "assistant":
                    self._hear(number, text, first=not before)
            before = text
            whole += f" {text}" if len(whole) <= LONGEST else ""
        around = _Around(frozenset(word for said in said_before for word in said.keys), whole.strip(), len(said_before))
        for said in said_before:
            self._take(said, around)
        self._heard = [] if role == "assistant" else self._heard

    def set(self, number: int, lines: Iterable[str]) -> None:
        """Take in the settings of programs in these lines."""
        for line in lines:
            for text, key, value in settings(line) if "_" in line else ():
                known = self.settings.get(key)
                if known is not None and known.value != value and known.since != number:
                    self.note(Change(key, value, number, known.value, known.since, text, known.text))
                self.settings[key] = Setting(value, number, text)

    def replaced_in(self, number: int, *, guesses: bool = False) -> list[Change]:
        """The values of a message that hold no longer, each with the newest that took its place."""
        found = []
        for change in self._replaced.get(number, ()):
            if not (change.certain or guesses):
                continue
            newest = self._newest(change)
            if newest.value.casefold() != change.was.casefold():
                found.append(replace(change, value=newest.value, since=newest.since, text=newest.text))
        return found

    def marked(self, number: int, text: str, *, is_output: bool = False, beside: str = "", related: bool = True) -> str:
        """A text of a message with a mark behind every sentence whose value was replaced.

        What somebody said by the way with a value that was replaced later is marked too, the output of programs is not.
        Of a later sentence that stands in the text `beside` it the id is enough.
        """
        for change in self.replaced_in(number):
            if change.was_text and change.was_text in text and change.was_text + MARK not in text:
                mark = f"{change.was_text}{MARK}{change.since}: {change.value})"
                text = text.replace(change.was_text, mark, 1)
        if MARK in text or is_output:
            return text
        for gone in self.repeated_in(number, text):
            return f"{text}{MARK}{gone.since}: {gone.value})"
        for said, later in self.related.get(number, {}).items() if related else ():
            if said in text:
                newest = self._newest_mention(later)
                told = "" if newest.sentence in beside else f": {newest.text}"
                return text.replace(said, f"{said}{LATER}{newest.since}{told})", 1)
        return text

    def related_to(self, number: int, text: str) -> Mention | None:
        """What the user said last that a text of a message may be about too."""
        found = (later for said, later in self.related.get(number, {}).items() if said in text)
        return next(map(self._newest_mention, found), None)

    def _newest_mention(self, later: Mention) -> Mention:
        """What was said last where the later sentence was spoken of again itself."""
        for _ in range(LONGEST_CHAIN):
            again = self.related.get(later.since, {}).get(later.sentence)
            if again is None or again.asks:
                break
            later = again
        return later

    def shown_beside(self, number: int, text: str) -> tuple[int, str]:
        """The later message that a marked text of a message shows, with what it shows of it; nothing is 0 and ""."""
        later = self.related_to(number, text)
        return (later.since, later.text) if later and f"{LATER}{later.since}: {later.text}" in text else (0, "")

    def repeated_in(self, number: int, text: str) -> Iterator[Change]:
        """Replaced values that a text repeats while they held, speaking of the same thing, with the newest of each."""
        folded = text.casefold()
        said: frozenset[str] | None = None
        for token in sorted(self._gone.keys() & set(_TOKEN.findall(folded))):
            for change in self._gone[token]:
                if not change.was_since <= number < change.since or change.was.casefold() not in folded:
                    continue
                newest = self._newest(change)
                said = said or frozenset(words_in(text))
                subject = frozenset(words_in(change.was_text)) - frozenset(words_in(change.was))
                if said & subject and newest.value.casefold() not in folded:
                    yield replace(change, value=newest.value, since=newest.since, text=newest.text)

    def latest(self) -> list[Change]:
        """What changed, newest first: once for each new value, with the value that held before it."""
        found: dict[tuple[int, str], Change] = {}
        for change in reversed(self.changes):
            if change.certain and (change.since, change.text) not in self._later:
                found.setdefault((change.since, change.text), change)
        return list(found.values())

    def told_anew(self) -> Mapping[int, Sequence[str]]:
        """For messages their sentences that say something else about a thing than was said before."""
        found: dict[int, list[str]] = defaultdict(list)
        for change in self.latest():
            found[change.since].append(change.text)
        for mention in (mention for told in self.related.values() for mention in told.values()):
            found[mention.since].append(mention.sentence)
        return found

    def rows(self) -> list[StatedRow]:
        """What the user said and what programs were set to, with what was replaced: once for each sentence."""
        said = [s for s in self.open.values() if s.role == "user" and s.values]
        given = {(change.since, change.text): change.value for change in self.changes}
        found = [StatedRow(_subject(s, s), given.get((s.number, s.text)) or _told(s), s.number, s.text) for s in said]
        found += [StatedRow(key, setting.value, setting.since, setting.text) for key, setting in self.settings.items()]
        found += [StatedRow(c.subject, c.was, c.was_since, c.was_text, c.since) for c in self.changes if c.was_text]
        rows = {(row.since, row.text): row for row in found}
        return sorted(rows.values(), key=lambda row: (row.since, row.text))

    def note(self, change: Change) -> None:
        """Take in that a value was replaced."""
        self.changes.append(change)
        self._later[change.was_since, change.was_text] = change
        self._replaced[change.was_since].append(change)
        self._forget(change)

    def _forget(self, change: Change) -> None:
        tokens = _TOKEN.findall(change.was.casefold()) if len(change.was) < LONGEST_VALUE else []
        # A bare small number stands for too many things.
        if change.certain and tokens and not (len(change.was) < SHORTEST_VALUE and change.was.isdigit()):
            self._gone[tokens[0]].append(change)

    def _newest(self, change: Change) -> Change:
        for _ in range(len(self.changes)):
            later = self._later.get((change.since, change.text))
            if later is None:
                break
            change = later
        return change

    def _take(self, said: Statement, around: _Around) -> None:
        if not said.asks:
            self.sentences += 1
            for word in said.found_by:
                self.frequency[word] = self.frequency.get(word, 0) + 1
        weigh = _alike if self.among_hits else _Weights(self.frequency, self.sentences + PRIOR).__getitem__
        found: dict[int, Replacement | None] = {}
        for place in self._alike(said, weigh):
            earlier = self.open[place]
            found[place] = replaced(earlier, said, weigh) if self._may_replace(earlier, said) else None
        if said.role == "user" and around.sentences <= MOST_TOLD:
            unsure = [place for place, pair in found.items() if not (pair and pair.certain)]
            self._relate_all(unsure, said, around, weigh)
        for place, pair in found.items():
            if pair is not None:
                self._replace(place, said, pair)
        if not said.asks:
            self._open(said)

    @staticmethod
    def _may_replace(earlier: Statement, said: Statement) -> bool:
        takes_back = bool(said.changes or said.negates or said.cancels)
        gives = (earlier.values and said.values) or takes_back or (earlier.opening and said.values)
        return bool(gives) and not said.asks

    def _replace(self, place: int, said: Statement, pair: Replacement) -> None:
        """Take an earlier statement off, and note what took the place of its value."""
        earlier = self.open[place]
        if earlier.number != said.number:
            old, subject = pair.was, _subject(earlier, said)
            by_user = earlier.role == said.role == "user"
            certain = pair.certain and (by_user or self.among_hits)
            echoes = (echo for echo in self.echoes.get(place, ()) if old.casefold() in echo[1].casefold())
            for number, text in ((earlier.number, earlier.text), *echoes):
                self.ahead.append(Change(subject, pair.now, said.number, old, number, said.text, text, certain))
        self._drop(place)

    def _relate_all(self, places: Iterable[int], said: Statement, around: _Around, weigh: Weight) -> None:
        """Note what the user said later that earlier statements have most to do with, where none is clearly ahead."""
        scores: dict[int, float] = {}
        for place in places:
            earlier = self.open[place]
            if earlier.role != "user" or earlier.number == said.number or self._is_listing(place):
                continue
            if said.gives or not holds_for_good(earlier.text):  # a remark changes no rule
                score = relation(earlier, said, around.words, self.frequency, weigh, among_hits=self.among_hits)
                scores.update({place: score} if score else {})
        best = max(scores.values(), default=0.0)
        for place, score in scores.items():
            if self.among_hits or score >= best - CLEARLY:
                self._relate(place, said, around, score)

    def _relate(self, place: int, said: Statement, around: _Around, score: float) -> None:
        """Note that what the user said later has to do with an earlier statement, and with its echo."""
        earlier = self.open[place]
        best = self.related.get(earlier.number, {}).get(earlier.text)
        # What somebody asks is no newer value.
        if best is None or (score >= NEARLY * best.relation and not said.asks):
            whole = len(around.text) <= LONGEST_TOLD and around.sentences < FEW
            gone = tuple(value.text.casefold() for value in earlier.values)
            later = Mention(
                said.number, around.text if whole else excerpt(earlier, said), said.text, gone, score, said.asks
            )
            echoes = (echo for echo in self.echoes.get(place, ()) if len(echo[1]) <= LONGEST_ECHO)
            repeated = ((number, text) for number, text in echoes if any(word in text.casefold() for word in gone))
            for number, text in ((earlier.number, earlier.text), *repeated):
                self.related.setdefault(number, {})[text] = later

    def _is_listing(self, place: int) -> bool:
        """Whether a statement is one of many of its message."""
        number, around = self.open[place].number, range(place - MOST_TOLD, place + MOST_TOLD + 1)
        return sum(near in self.open and self.open[near].number == number for near in around) > MOST_TOLD

    def _open(self, said: Statement) -> None:
        self.open[self.next] = said
        self._index(self.next, said)
        if said.role == "user":
            self._heard.append(self.next)
        self.next += 1
        while len(self.open) > MOST_OPEN:
            self._drop(next(iter(self.open)))

    def _hear(self, number: int, text: str, *, first: bool) -> None:
        """Note where the assistant repeats what the user just said: a value anywhere, other words as it begins."""
        folded = text.casefold()
        for place in self._heard:
            said = self.open.get(place)
            if said is None:
                continue
            repeats = any(value.text.casefold() in folded for value in said.values)
            if repeats or (len(text) <= LONGEST_ECHO and first and any(word in folded for word in said.words)):
                self.echoes.setdefault(place, []).append((number, text))

    def _alike(self, said: Statement, weigh: Callable[[str], float]) -> list[int]:
        """The open statements that share most, newest first."""
        shared: dict[int, float] = defaultdict(float)
        for word in sorted(said.found_by | said.context):
            places = self._places.get(word)
            if places:
                weight = weigh(word)
                for place in islice(reversed(places), MOST_POSTED):
                    shared[place] += weight
        best = sorted((-weight, -place) for place, weight in shared.items() if weight >= RARE)[:MOST_COMPARED]
        return sorted((-place for _, place in best), reverse=True)

    def _index(self, place: int, statement: Statement) -> None:
        for word in statement.found_by | statement.context:
            self._places.setdefault(word, {})[place] = None

    def _drop(self, place: int) -> None:
        self.echoes.pop(place, None)
        gone = self.open.pop(place)
        for word in gone.found_by | gone.context:
            places = self._places.get(word, {})
            places.pop(place, None)
            if not places:
                self._places.pop(word, None)


def _subject(earlier: Statement, said: Statement) -> str:
    """What both speak of, as it was written; else the later sentence."""
    written = (word for word in _WRITTEN.findall(said.text) if not earlier.words.isdisjoint(plain_words(word)))
    return " ".join(dict.fromkeys(written)) or said.text


def _told(said: Statement) -> str:
    """The value a statement gives: a figure rather than a name."""
    return next((value.text for value in said.values if value.kind in FIGURES), said.values[0].text)


class _Weights(dict[str, float]):
    """How much words tell about what is meant, from 0 to 1: rare ones more."""

    def __init__(self, frequency: Mapping[str, int], total: int) -> None:
        super().__init__()
        self._frequency = frequency
        self._total = math.log(total)

    def __missing__(self, word: str) -> float:
        weight = self[word] = max(0.05, 1.0 - math.log(self._frequency.get(word, 0) + 1) / self._total)
        return weight


def _alike(word: str) -> float:
    return 0.8
