"""The story of the work: for each request what was done about it and how that ended; and what is planned."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple, overload

from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.importance import words_of
from leporello.ledger.ledger import Action, Ask, Ledger
from leporello.ledger.units import OFFER
from leporello.ledger.user_text import without_tags
from leporello.summaries.answers import (
    CLOSING_WORDS,
    Unsettled,
    answer_to,
    closing_words,
    is_claim,
    is_open,
    is_question,
    is_reply,
    objected,
    unsettled,
)
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.work_state import ending, plain_command

ASK_CHARS, BRIEF_CHARS, AGAIN_CHARS = 100, 60, 30
COMMAND_CHARS = 80
MOST_FILES = 6
MOST_DETAILED = 2
MOST_RUNS = 3
MOST_ACTIONS = 12
"""Actions that one line tells of; what is asked for once and takes hours is a story too."""
MANY = 3
"""A command that is run so often in one part is worth a count."""
FOUND_WORDS, FOUND_CHARS = 7, 120
TELLING_WORK = ("git_write", "install")
STEP_CHARS = 200
MOST_ASKS_SINCE = 3
"""After so many requests a to-do list that was not touched says nothing of the work at hand."""
TOLD = "told"
"""The kind of work of an action that is known only as the line an earlier fold had for it."""


def episode_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What was done in the covered messages, oldest first, numbered over the whole conversation."""
    return list(Story(ledger, covered))


class Story(Sequence[HandoffLine]):
    """The same, each line written when it is asked for: of a long story a fold has room for the end only."""

    def __init__(self, ledger: Ledger, covered: Collection[int]) -> None:
        self._ledger = ledger
        self._root = common_folder(ledger.files)
        self._asks = [ask for ask in ledger.asks if not is_reply(ask.text)]
        self._against = unsettled(ledger)
        starts = [ask.number for ask in self._asks]
        by_ask: dict[int, list[Action]] = {}
        told: list[HandoffLine] = []
        for action in ledger.actions:
            if action.call.work != TOLD:
                by_ask.setdefault(bisect_right(starts, action.number) - 1, []).append(action)
            elif action.number in covered:
                number = int(action.outcome or 0)
                told.append(HandoffLine(action.call.target, (action.number,), LineOrigin.PROGRAM, number))
        self._lines: list[Callable[[], HandoffLine]] = [partial(_as_it_is, line) for line in told]
        before = max((line.ordinal or place for place, line in enumerate(told, 1)), default=0)
        self._put(by_ask, covered, before)

    def _put(self, by_ask: Mapping[int, Sequence[Action]], covered: Collection[int], before: int) -> None:
        answered: dict[int, str] = {}
        if self._ledger.files:  # where nothing but words is exchanged, they are quoted
            asks = ((place, ask) for place, ask in enumerate(self._asks) if place not in by_ask)
            told_of = {place: _answered(self._ledger, ask, self._against) for place, ask in asks}
            answered = {place: text for place, text in told_of.items() if text}
        episodes = [*_episodes(by_ask), *(_Episode(place, (), 1, True) for place in answered)]
        episodes.sort(key=lambda episode: episode.place)
        last = before + len(episodes)
        for number, episode in enumerate(episodes, before + 1):
            ask = self._asks[episode.place] if episode.place >= 0 else None
            shown = [action for action in episode.actions if action.number in covered]
            if not episode.actions and ask is not None and ask.answered_by in covered:
                sources = (ask.number, ask.answered_by or ask.number)
                line = HandoffLine(answered[episode.place], sources, LineOrigin.PROGRAM, number)
                self._lines.append(partial(_as_it_is, line))
            if shown:
                brief = number <= last - MOST_DETAILED
                self._lines.append(cache(partial(self._line, number, episode, ask, shown, brief=brief)))

    def _line(
        self, number: int, episode: _Episode, ask: Ask | None, shown: Sequence[Action], *, brief: bool
    ) -> HandoffLine:
        ended = _closing(self._ledger, ask, self._against) if ask is not None and episode.ends else ""
        ended = ended or _found(self._ledger, shown)
        asked = _label(ask, episode.part, BRIEF_CHARS if brief else ASK_CHARS) if ask is not None else ""
        first = ask.number if ask is not None else shown[0].number
        done = f"{asked}{_done(shown, self._root, ended, brief=brief)}"
        places = tuple(dict.fromkeys((first, shown[-1].number)))
        return HandoffLine(done, places, LineOrigin.PROGRAM, number)

    @overload
    def __getitem__(self, place: int) -> HandoffLine: ...

    @overload
    def __getitem__(self, place: slice) -> list[HandoffLine]: ...

    def __getitem__(self, place: int | slice) -> HandoffLine | list[HandoffLine]:
        if isinstance(place, slice):
            return [write() for write in self._lines[place]]
        return self._lines[place]()

    def __len__(self) -> int:
        return len(self._lines)


def _as_it_is(line: HandoffLine) -> HandoffLine:
    return line


def done_so_far(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What was done for the request at hand where the story does not tell it yet."""
    asked = ledger.asks[-1] if ledger.asks else None
    if asked is None or not is_open(ledger, asked):
        return []
    since = [action for action in ledger.actions if action.number > asked.number and action.call.work != TOLD]
    if all(action.number in covered for action in since):
        return []
    done = _done(since, common_folder(ledger.files), "", brief=False)
    return [HandoffLine(f"Done so far: {done}", (asked.number, since[-1].number), LineOrigin.PROGRAM)]


class _Episode(NamedTuple):
    """Actions for a request, by its place; of a long piece of work a part of them."""

    place: int
    actions: Sequence[Action]
    part: int
    ends: bool
    """Whether it is the last part."""


def _episodes(by_ask: Mapping[int, Sequence[Action]]) -> Iterator[_Episode]:
    for place, actions in by_ask.items():
        for part, start in enumerate(range(0, len(actions), MOST_ACTIONS), 1):
            yield _Episode(place, actions[start : start + MOST_ACTIONS], part, start + MOST_ACTIONS >= len(actions))


def _answered(ledger: Ledger, ask: Ask, against: Unsettled) -> str:
    """A request that ended with words, and these; empty for a plain question, which stands among the resolved ones."""
    unaccepted = ask.answered_by in against
    answer = "" if ask.cancelled or (is_question(ledger, ask) and not unaccepted) else answer_to(ledger, ask)
    if len(words_of(answer)) < CLOSING_WORDS:
        return ""
    mark = objected(ledger, ask.answered_by or 0, against, quoted=True)
    return f"“{_asked(ask, BRIEF_CHARS)}”: answered: {answer}{mark}"


def _found(ledger: Ledger, actions: Sequence[Action]) -> str:
    """What the assistant found out in a part of a long piece of work, in its own words."""
    if len(actions) < MOST_ACTIONS:
        return ""
    said = (
        unit
        for number in range(actions[0].number, actions[-1].number + 2)
        if number in ledger.facts and ledger.facts[number].role == "assistant"
        for unit in ledger.facts[number].units
        if len(words_of(unit.text)) >= FOUND_WORDS and is_claim(unit.text) and not OFFER.search(unit.text)
    )
    best = max(said, key=lambda unit: unit.score, default=None)
    return f"“{one_line(best.text.strip('*_# ').replace('**', ''), FOUND_CHARS)}”" if best else ""


def _closing(ledger: Ledger, ask: Ask, against: Unsettled) -> str:
    words = closing_words(ledger, ask)
    return f"“{words}”{objected(ledger, ask.answered_by or 0, against, quoted=True)}" if words else ""


def _asked(ask: Ask, most: int) -> str:
    return one_line(without_tags(ask.text).strip() or ask.text, most)


def _label(ask: Ask, part: int, most: int) -> str:
    """What was asked; that it goes on is told in fewer words."""
    return f"“{_asked(ask, most)}”: " if part == 1 else f"“{_asked(ask, AGAIN_CHARS)}”, part {part}: "


def _done(actions: Sequence[Action], root: str, ended: str, *, brief: bool) -> str:
    """What was done about a request; `brief` names the files without their folders and only how the last run ended."""
    changes = _changes(actions, root, brief=brief)
    runs = _runs(actions, root, telling=brief and bool(ended or changes))
    if not (changes or runs or ended):
        # Every change failed or was refused: that is how it ended.
        runs = [_run(_called(actions[-1], root), actions[-1:])]
    return "; ".join([*changes, *(runs[-1:] if brief else runs), *([ended] if ended else [])])


def _changes(actions: Iterable[Action], root: str, *, brief: bool) -> list[str]:
    """Which files were changed, how often."""
    edits = Counter(inside(path, root) for action in actions if not action.failed for path, _ in action.call.edits)
    if not edits:
        return []
    named = {path: path.rpartition("/")[2] or path if brief else path for path in edits}
    files = [f"{one_line(named[path], COMMAND_CHARS)}{f' ×{n}' if n > 1 else ''}" for path, n in edits.items()]
    most = MOST_FILES // 2 if brief else MOST_FILES
    more = f" and {len(files) - most} more" if len(files) > most else ""
    return [f"changed {', '.join(files[:most])}{more}"]


def _runs(actions: Iterable[Action], root: str, *, telling: bool) -> list[str]:
    """Commands that checked, published or installed something: each once, with how it ended last.

    With `telling` only those whose end says something.
    """
    runs: dict[str, list[Action]] = {}
    for action in actions:
        if action.call.work != "edit" or not action.call.edits:
            runs.setdefault(_called(action, root), []).append(action)
    shown = [
        (command, tries)
        for command, tries in runs.items()
        if not telling or tries[-1].outcome or tries[-1].failed or tries[-1].call.work in TELLING_WORK
    ]
    return [_run(command, tries) for command, tries in shown[-MOST_RUNS:]]


def _called(action: Action, root: str) -> str:
    called = (
        inside(plain_command(action.call.target), root) if action.call.command else action.call.heading_within(root)
    )
    # A command that begins with a here-document has no words before it.
    return one_line(called, COMMAND_CHARS) or action.call.name


def _run(command: str, tries: Sequence[Action]) -> str:
    failures = sum(action.failed for action in tries[:-1])
    before = f" (after {failures} failed)" if failures else f" ×{len(tries)}" if len(tries) >= MANY else ""
    return f"{command} → {ending(tries[-1])}{before}"


def plan_lines(ledger: Ledger) -> tuple[list[HandoffLine], list[HandoffLine]]:
    """The open steps of the agent's own plan, as it last stood: those under way, and those still to come."""
    kept = max((step.number for step in ledger.plan), default=0)
    since = [ask for ask in ledger.asks if ask.number > kept and not is_reply(ask.text)]
    owner = next((ask for ask in reversed(ledger.asks) if ask.number < kept), None)
    closed = owner is not None and (owner.answered_by or 0) > kept
    others = closed and any(ask.answered_by and not ask.cancelled and not is_question(ledger, ask) for ask in since)
    if others or len(since) > MOST_ASKS_SINCE:
        return [], []  # nobody kept it up: its request was closed, and other work was begun and ended since
    begun: list[HandoffLine] = []
    waiting: list[HandoffLine] = []
    for step in ledger.plan:
        if step.is_open:
            line = HandoffLine(one_line(step.text, STEP_CHARS), (step.number,), LineOrigin.ASSISTANT)
            (begun if step.under_way else waiting).append(line)
    return begun, waiting
