"""The story of the work: one line for each request, what was done about it and how that ended; and what is planned."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.ledger import Action, Ask, Ledger
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.sections import answer_to, ending, is_question, is_reply

ASK_CHARS, BRIEF_CHARS = 100, 60
COMMAND_CHARS = 80
MOST_FILES = 6
MOST_DETAILED = 2
MOST_RUNS = 3
STEP_CHARS = 200
MOST_ASKS_SINCE = 3
"""After so many requests a to-do list that was not touched says nothing of the work at hand."""
TOLD = "told"
"""The kind of work of an action that is known only as the line an earlier fold had for it."""


def episode_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What was done in the covered messages, oldest first, numbered over the whole conversation."""
    root = common_folder(ledger.files)
    asks = [ask for ask in ledger.asks if not is_reply(ask.text)]
    starts = [ask.number for ask in asks]
    episodes: dict[int, list[Action]] = {}
    lines: list[HandoffLine] = []
    for action in ledger.actions:
        if action.call.work != TOLD:
            episodes.setdefault(bisect_right(starts, action.number) - 1, []).append(action)
        elif action.number in covered:
            number = int(action.outcome or 0)
            lines.append(HandoffLine(action.call.target, (action.number,), LineOrigin.PROGRAM, number))
    told = max((line.ordinal or place for place, line in enumerate(lines, 1)), default=0)
    answered: dict[int, str] = {}
    if ledger.files:  # where nothing but words is exchanged, they are quoted
        told_of = {place: _answered(ledger, ask) for place, ask in enumerate(asks) if place not in episodes}
        answered = {place: text for place, text in told_of.items() if text}
        episodes |= {place: [] for place in answered}
    last = told + len(episodes)
    for number, (place, actions) in enumerate(sorted(episodes.items()), told + 1):
        shown = [action for action in actions if action.number in covered]
        if not actions and asks[place].answered_by in covered:
            ask = asks[place]
            sources = (ask.number, ask.answered_by or ask.number)
            lines.append(HandoffLine(answered[place], sources, LineOrigin.PROGRAM, number))
        if shown:
            brief = number <= last - MOST_DETAILED
            lines.append(replace(_line(asks[place] if place >= 0 else None, shown, root, brief=brief), ordinal=number))
    return lines


def _answered(ledger: Ledger, ask: Ask) -> str:
    """A request that ended with words, and these; empty for a plain question, which stands among the resolved ones."""
    answer = "" if ask.cancelled or is_question(ask) else answer_to(ledger, ask)
    return f"“{one_line(ask.text, BRIEF_CHARS)}”: answered: {answer}" if answer else ""


def _line(ask: Ask | None, actions: Sequence[Action], root: str, *, brief: bool) -> HandoffLine:
    """What was done about a request; `brief` names the files without their folders and only how the last run ended."""
    changes = _changes(actions, root, brief=brief)
    runs = _runs(actions, root)
    if not (changes or runs):
        # Every change failed or was refused: that is how it ended.
        runs = [_run(_called(actions[-1], root), actions[-1:])]
    done = "; ".join([*changes, *(runs[-1:] if brief else runs)])
    sources = dict.fromkeys((ask.number if ask else actions[0].number, actions[-1].number))
    asked = f"“{one_line(ask.text, BRIEF_CHARS if brief else ASK_CHARS)}”: " if ask else ""
    return HandoffLine(asked + done, tuple(sources), LineOrigin.PROGRAM)


def _changes(actions: Iterable[Action], root: str, *, brief: bool) -> list[str]:
    """Which files were changed, how often."""
    edits = Counter(inside(path, root) for action in actions if not action.failed for path, _ in action.call.edits)
    if not edits:
        return []
    files = [f"{one_line(path, COMMAND_CHARS)}{f' ×{times}' if times > 1 else ''}" for path, times in edits.items()]
    most = MOST_FILES // 2 if brief else MOST_FILES
    more = f" and {len(files) - most} more" if len(files) > most else ""
    return [f"changed {', '.join(files[:most])}{more}"]


def _runs(actions: Iterable[Action], root: str) -> list[str]:
    """Commands that checked, published or installed something: each once, with how it ended last."""
    runs: dict[str, list[Action]] = {}
    for action in actions:
        if action.call.work != "edit" or not action.call.edits:
            runs.setdefault(_called(action, root), []).append(action)
    return [_run(command, tries) for command, tries in list(runs.items())[-MOST_RUNS:]]


def _called(action: Action, root: str) -> str:
    called = inside(action.call.target, root) if action.call.command else action.call.heading_within(root)
    # A command that begins with a here-document has no words before it.
    return one_line(called, COMMAND_CHARS) or action.call.name


def _run(command: str, tries: Sequence[Action]) -> str:
    failures = sum(action.failed for action in tries[:-1])
    before = f" (after {failures} failed)" if failures else ""
    return f"{command} → {ending(tries[-1])}{before}"


def plan_lines(ledger: Ledger) -> tuple[list[HandoffLine], list[HandoffLine]]:
    """The open steps of the agent's own plan, as it last stood: those under way, and those still to come."""
    kept = max((step.number for step in ledger.plan), default=0)
    since = [ask for ask in ledger.asks if ask.number > kept and not is_reply(ask.text)]
    if len(since) > MOST_ASKS_SINCE:
        return [], []  # nobody kept it up
    begun: list[HandoffLine] = []
    waiting: list[HandoffLine] = []
    for step in ledger.plan:
        if step.is_open:
            line = HandoffLine(one_line(step.text, STEP_CHARS), (step.number,), LineOrigin.ASSISTANT)
            (begun if step.under_way else waiting).append(line)
    return begun, waiting
