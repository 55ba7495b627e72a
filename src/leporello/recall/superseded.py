"""Results that state a value which a later result replaces: marked, and the newest statement before the older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leporello.lazy_regex import lazy_regex
from leporello.ledger.sentence_pieces import words_in
from leporello.ledger.units import sentences_of
from leporello.ledger.value_patterns import asks
from leporello.ledger.values import Values
from leporello.recall.base import Window

PROSE = ("user", "assistant")
LONGEST_SENTENCE = 160
NEARLY, SHARED_WORDS = 0.6, 2
"""How well a later statement must answer beside an earlier one, and how many words they must share."""


@dataclass(frozen=True, slots=True)
class _Newer:
    """A sentence of a window, and what another window says of the same thing since."""

    was_text: str
    since: int
    text: str
    gone: tuple[str, ...]
    certain: bool


def mark_superseded(windows: Sequence[Window]) -> list[Window]:
    """The windows with a mark behind every value that another of them replaces; the one that does stands before it."""
    shown = list(windows)
    for conversation in {window.conversation for window in windows}:
        places = [place for place, window in enumerate(shown) if window.conversation == conversation]
        values = _stated(shown[place] for place in places)
        newer = [(place, found) for place in places for found in _newer(values, shown[place])]
        for place, found in newer:
            shown[place] = replace(shown[place], text=_marked(shown[place].text, found))
            for later in (k for k in places if shown[k].message == found.since and found.text in shown[k].text):
                shown[later] = _before(shown[later], shown[place].score, found)
        _newest_first(shown, places)
    return sorted(shown, key=lambda window: (-window.score, -window.message))


def _before(window: Window, score: float, found: _Newer) -> Window:
    """The newer window as good as the older one; what it says now stands first where it begins with what was."""
    about = window.about or (_what_holds(found) if window.role == "user" else "")
    return replace(window, score=max(window.score, score), about=about)


def _what_holds(found: _Newer) -> str:
    """The clause of a sentence that gives the new value, where it names the old one before."""
    clauses = _CLAUSE.split(found.text) if len(found.text) <= LONGEST_SENTENCE and not asks(found.text) else [""]
    named = [any(word in clause.casefold() for word in found.gone) for clause in clauses]
    return clauses[-1].strip(" .!。") if any(named) and not named[-1] else ""


_CLAUSE = lazy_regex(r"[,;:—]\s+|[，；。、]|ではなく|じゃなく|而是|아니라 ")


def _newest_first(shown: list[Window], places: Sequence[int]) -> None:
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
    found = [_Newer(c.was_text, c.since, c.text, (c.was.casefold(),), certain=True) for c in changes]
    told = {change.was_text for change in changes}
    for text, later in values.mentions.get(window.message, {}).items():
        if text in window.text and text not in told:
            found.append(_Newer(text, later.since, later.sentence, later.gone, certain=False))
    return found


def _marked(text: str, found: _Newer) -> str:
    mark = f"(superseded by m{found.since})" if found.certain else f"(later: m{found.since})"
    return text.replace(found.was_text, f"{found.was_text} {mark}", 1)
