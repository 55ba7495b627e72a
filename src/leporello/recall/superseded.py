"""Results that state a value which a later result replaces: marked, and the newest statement before the older ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from msgspec import Struct

from leporello.ledger.mentions import LEAST, LEAST_AMONG_HITS
from leporello.ledger.sentence_pieces import gives_value, words_in
from leporello.ledger.statements import PLAINLY, Statement, read
from leporello.ledger.units import sentences_of
from leporello.ledger.value_patterns import CLAUSE_END, PAST, asks
from leporello.ledger.values import Values
from leporello.recall.base import Window

PROSE = ("user", "assistant")
LONGEST_SENTENCE = 160
NEARLY, SHARED_WORDS = 0.6, 2
"""How well a later statement must answer beside an earlier one, and how many words they must share."""
BEST, FEW_HITS, FAINTLY = 5, 4, 0.15
"""So many of the best hits are looked at; a word tells what they are about that so few hits have; what shares one with
them and gives another value need not answer as well."""


class _Newer(Struct, frozen=True):
    """A sentence of a window, and what another window says of the same thing since."""

    said: str
    was_text: str
    """The same where it is marked; empty where it is not sure that it holds no longer."""
    since: int
    text: str
    gone: tuple[str, ...]
    certain: bool


def mark_superseded(windows: Sequence[Window], asked: Set[str] = frozenset()) -> list[Window]:
    """The windows with a mark behind every value that another of them replaces; the one that does stands before it.

    Words that were `asked` for tell which sentence a window was found by: what was said later of another one of its
    sentences answers nothing.
    """
    shown = list(windows)
    for conversation in {window.conversation for window in windows}:
        places = [place for place, window in enumerate(shown) if window.conversation == conversation]
        values = _stated(shown[place] for place in places)
        newer = [(place, f) for place in places for f in _newer(values, shown[place]) if f.was_text or place < BEST]
        for place, found in newer:
            about = _is_found_by(shown[place], found.said, asked)
            shown[place] = replace(shown[place], text=_marked(shown[place].text, found))
            if not about:
                continue
            for later in (k for k in places if shown[k].message == found.since and found.text in shown[k].text):
                shown[later] = _before(shown[later], shown[place].score, found)
        _newest_first(shown, places, asked)
    return sorted(shown, key=lambda window: (-window.score, -window.message))


def _is_found_by(window: Window, sentence: str, asked: Set[str]) -> bool:
    """Whether a sentence has a word that was asked for, as far as any sentence of its window has one."""
    having = [said for said in sentences_of(window.text) if not asked.isdisjoint(words_in(said))]
    return not having or any(sentence in said or said in sentence for said in having)


def _before(window: Window, score: float, found: _Newer) -> Window:
    """The newer window as good as the older one; what it says behind the old value stands first."""
    about = window.about or (_what_holds(window.text, found) if window.role == "user" else "")
    return replace(window, score=max(window.score, score), about=about)


def _what_holds(text: str, found: _Newer) -> str:
    """What a text says behind the old value, where it names that; from the next clause on, if that gives a value."""
    folded = text.casefold()
    end = max((folded.rfind(word) + len(word) for word in found.gone if word and word in folded), default=0)
    behind = " ".join(text[end:].split()) if end and not asks(found.text) else ""
    clause = CLAUSE_END.search(behind)
    if clause and gives_value(behind[clause.end() :]):
        behind = behind[clause.end() :]
    return behind.strip(" .!。,;，、") if len(behind) <= LONGEST_SENTENCE else ""


def _newest_first(shown: list[Window], places: Sequence[int], asked: Set[str]) -> None:
    """What the user said last about the same words stands before what was said earlier, sure of a change or not."""
    prose = sorted(
        (k for k in places if shown[k].role in PROSE and not shown[k].is_call), key=lambda k: shown[k].message
    )
    words = {place: frozenset(words_in(shown[place].text)) for place in prose}
    for index, place in enumerate(prose):
        for later in prose[index + 1 :]:
            near = NEARLY * shown[place].score <= shown[later].score < shown[place].score
            if near and shown[later].role == "user" and len(words[place] & words[later]) >= SHARED_WORDS:
                shown[place] = replace(shown[place], score=shown[later].score)
    _another_answer(shown, prose, words, asked)


def _another_answer(shown: list[Window], prose: Sequence[int], words: Mapping[int, Set[str]], asked: Set[str]) -> None:
    """What the user said later of what the best hits are about, with another value of the kind, before them.

    Of one subject are two that share a word which few hits have.
    """
    having: dict[str, set[int]] = defaultdict(set)
    for place in prose:
        for word in words[place]:
            having[word].add(place)
    best = sorted((k for k in prose if shown[k].role == "user"), key=lambda k: -shown[k].score)[:BEST]
    for place in sorted(best, key=lambda k: shown[k].message):
        telling = {word: having[word] for word in words[place] if len(having[word]) <= FEW_HITS}
        for later in sorted(set[int]().union(*telling.values())):
            newer = shown[later].message > shown[place].message and shown[later].role == "user"
            if newer and shown[later].score >= FAINTLY * shown[place].score:
                common = {word for word, places in telling.items() if later in places}
                found = _another(shown[place], shown[later], common, asked)
                shown[later] = _before(shown[later], shown[place].score, found) if found else shown[later]


def _another(earlier: Window, later: Window, common: Set[str], asked: Set[str]) -> _Newer | None:
    """What a later window says instead of an earlier one; what happened or delights is not taken back by it."""
    was = [
        said
        for said in _about(earlier, common)
        if "!" not in said.text and not PAST.search(said.text) and _is_found_by(earlier, said.text, asked)
    ]
    given = {value.plain for said in was for value in said.values}.union(*(said.words for said in was))
    kinds = {value.kind for said in was for value in said.values}
    for said in _about(later, common) if was else ():
        changes = said.changes == PLAINLY
        fresh = any(value.kind in kinds and value.plain not in given for value in said.values)
        if changes or said.cancels or (fresh and not PAST.search(said.text)):
            gone = tuple(value.text.casefold() for old in was for value in old.values)
            return _Newer(was[0].text, "", later.message, said.text, gone, certain=False)
    return None


def _about(window: Window, words: Set[str]) -> Iterator[Statement]:
    for text in sentences_of(window.text):
        said = read(text, window.message, window.role)
        if said is not None and said.words & words:
            yield said


def _stated(windows: Iterable[Window]) -> Values:
    values = Values(among_hits=True)
    for window in sorted(windows, key=lambda window: window.message):
        values.set(window.message, window.text.split("\n"))
        if not window.is_call:
            values.add(window.message, window.role, sentences_of(window.text))
    return values


def _newer(values: Values, window: Window) -> list[_Newer]:
    changes = [change for change in values.replaced_in(window.message) if change.was_text in window.text]
    if not (changes or window.is_call or window.role == "tool"):
        lines = window.text.split("\n")
        repeated = ((line, change) for line in lines for change in values.repeated_in(window.message, line))
        changes = [replace(change, was_text=line) for line, change in repeated][:1]
    found = [_Newer(c.was_text, c.was_text, c.since, c.text, (c.was.casefold(),), certain=True) for c in changes]
    told = {change.was_text for change in changes}
    for text, later in values.related.get(window.message, {}).items():
        if text in window.text and text not in told:
            # A question about a thing speaks of it later, and says nothing new.
            marked = text if later.relation > LEAST - LEAST_AMONG_HITS and not asks(later.sentence) else ""
            found.append(_Newer(text, marked, later.since, later.sentence, later.gone, certain=False))
    return found


def _marked(text: str, found: _Newer) -> str:
    if not found.was_text:
        return text
    mark = f"(superseded by m{found.since})" if found.certain else f"(later: m{found.since})"
    return text.replace(found.was_text, f"{found.was_text} {mark}", 1)
