"""The story of the work: one line for each request, with what was done about it and how that ended."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.ledger import Action, Ask, Ledger
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.sections import is_reply

ASK_CHARS = 100
COMMAND_CHARS = 80
MOST_FILES = 6
MOST_RUNS = 3
TOLD = "told"
"""The kind of work of an action that is known only as the line an earlier fold had for it."""


def episode_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What was done in the covered messages, oldest first."""
    root = common_folder(ledger.files)
    asks = [ask for ask in ledger.asks if not is_reply(ask.text)]
    starts = [ask.number for ask in asks]
    episodes: dict[int, list[Action]] = {}
    lines: list[HandoffLine] = []
    for action in ledger.actions:
        if action.number not in covered:
            continue
        if action.call.work == TOLD:
            lines.append(HandoffLine(action.call.target, (action.number,), LineOrigin.PROGRAM))
        else:
            episodes.setdefault(bisect_right(starts, action.number) - 1, []).append(action)
    for place, actions in episodes.items():
        lines.append(_line(asks[place] if place >= 0 else None, actions, root))
    return lines


def _line(ask: Ask | None, actions: Sequence[Action], root: str) -> HandoffLine:
    done = "; ".join([*_changes(actions, root), *_runs(actions, root)])
    sources = dict.fromkeys((ask.number if ask else actions[0].number, actions[-1].number))
    asked = f"“{one_line(ask.text, ASK_CHARS)}”: " if ask else ""
    return HandoffLine(asked + done, tuple(sources), LineOrigin.PROGRAM)


def _changes(actions: Iterable[Action], root: str) -> list[str]:
    """Which files were changed, how often."""
    edits = Counter(
        inside(action.call.path or action.call.target, root)
        for action in actions
        if action.call.work == "edit" and not action.failed
    )
    if not edits:
        return []
    files = [f"{one_line(path, COMMAND_CHARS)}{f' ×{times}' if times > 1 else ''}" for path, times in edits.items()]
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return [f"changed {', '.join(files[:MOST_FILES])}{more}"]


def _runs(actions: Iterable[Action], root: str) -> list[str]:
    """Commands that checked, published or installed something: each once, with how it ended last."""
    runs: dict[str, list[Action]] = {}
    for action in actions:
        if action.call.work != "edit":
            runs.setdefault(one_line(inside(action.call.target, root), COMMAND_CHARS), []).append(action)
    told = []
    for command, tries in list(runs.items())[-MOST_RUNS:]:
        last = tries[-1]
        failures = sum(action.failed for action in tries[:-1])
        before = f" (after {failures} failed)" if failures else ""
        told.append(f"{command} → {_ending(last)}{before}")
    return told


def _ending(action: Action) -> str:
    if action.outcome or action.failed:
        return action.outcome or "failed"
    # How many lines a command printed says nothing of how it went.
    ended = action.ended.split(",")[0]
    return "no error shown" if ended.endswith(("line", "lines")) else ended
