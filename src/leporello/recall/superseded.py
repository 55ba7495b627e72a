"""Results that state a value which a later result replaces: marked, and the newest statement before the older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from leporello.ledger.units import sentences_of
from leporello.ledger.values import Change, Values
from leporello.recall.base import Window


def mark_superseded(windows: Sequence[Window]) -> list[Window]:
    """The windows with a mark behind every value that another of them replaces; the one that does stands before it."""
    shown = list(windows)
    for conversation in {window.conversation for window in windows}:
        places = [place for place, window in enumerate(shown) if window.conversation == conversation]
        values = _stated(shown[place] for place in places)
        changes = [(place, change) for place in places for change in _replaced(values, shown[place])]
        for place, change in changes:
            shown[place] = replace(shown[place], text=_marked(shown[place].text, change))
        for place, change in changes:
            newer = max((shown[k].score for k in places if shown[k].message == change.since), default=0.0)
            if newer < shown[place].score:
                shown[place] = replace(shown[place], score=newer)
    return sorted(shown, key=lambda window: (-window.score, -window.message))


def _stated(windows: Iterable[Window]) -> Values:
    values = Values()
    for window in sorted(windows, key=lambda window: window.message):
        values.add(window.message, "tool" if window.is_call else window.role, _sentences(window))
    return values


def _sentences(window: Window) -> list[str]:
    return window.text.split("\n") if window.is_call or window.role == "tool" else sentences_of(window.text)


def _replaced(values: Values, window: Window) -> list[Change]:
    return [change for change in values.replaced_in(window.message) if change.was_text in window.text]


def _marked(text: str, change: Change) -> str:
    return text.replace(change.was_text, f"{change.was_text} (superseded by m{change.since})", 1)
