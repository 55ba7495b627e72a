"""Sections of a handoff that the ledger can state as plain facts: rules, asks, files, actions, state, open work."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.ledger import Action, Ask, Ledger
from leporello.ledger.rules import RuleKind, read
from leporello.ledger.units import clip
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

CountText = Callable[[str], int]
ASK_CHARS = 600
ACTION_CHARS = 110
ANSWER_CHARS = 200
MOST_PENDING = 12
ROOT_LINE = "All paths below are inside "


def within(
    lines: Iterable[HandoffLine], budget: int, count: CountText, *, newest_first: bool = False
) -> list[HandoffLine]:
    """As many lines as fit, in their order; `newest_first` gives up the oldest ones instead of the last."""
    chosen: list[HandoffLine] = []
    used = 0
    ordered = list(lines)
    for line in reversed(ordered) if newest_first else ordered:
        cost = count(line.text) + 6
        if used + cost > budget:
            continue
        used += cost
        chosen.append(line)
    return chosen[::-1] if newest_first else chosen


def rule_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Rules that still stand, verbatim; those taken back are marked as such."""
    lines = []
    for rule in ledger.rules:
        if rule.number not in covered:
            continue
        if rule.ended_by is None:
            lines.append(HandoffLine(rule.text, (rule.number,), LineOrigin.USER))
    return lines


def ended_rule_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Rules the user took back or replaced: shown as ended, so that nobody follows an old copy of them."""
    return [
        HandoffLine(f"{ENDED}{rule.ended_by}: {rule.text}", (rule.number,), LineOrigin.USER)
        for rule in ledger.rules
        if rule.number in covered and rule.ended_by is not None
    ]


def active_task(ledger: Ledger) -> list[HandoffLine]:
    """The newest request that is not answered yet; nothing after a stop."""
    if not ledger.asks:
        return []
    newest = ledger.asks[-1]
    if newest.cancelled or newest.answered_by is not None:
        return []
    return [_ask_line(newest)]


def pin_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Pinned messages that are folded, word for word."""
    return [
        HandoffLine(pinned.text, (number,), LineOrigin(pinned.role))
        for number, pinned in sorted(ledger.pins.items())
        if number in covered and pinned.text.strip()
    ]


def pending_asks(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Older requests that nobody answered before the user went on. What only states rules stands among the rules."""
    waiting = [
        ask
        for ask in ledger.asks[:-1]
        if ask.answered_by is None and not ask.cancelled and ask.number in covered and not _only_rules(ask)
    ]
    return [_ask_line(ask) for ask in waiting[-MOST_PENDING:]]


def _only_rules(ask: Ask) -> bool:
    sentences = [sentence for sentence in _SENTENCES.split(ask.text) if sentence.strip()]
    return bool(sentences) and all(read(sentence).kind in _STANDING for sentence in sentences)


_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_STANDING = (RuleKind.CONSTRAINT, RuleKind.PREFERENCE)


def goal(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What the conversation set out to do: the first request, when it is folded."""
    first = next((ask for ask in ledger.asks if ask.text.strip()), None)
    return [_ask_line(first)] if first is not None and first.number in covered else []


def _ask_line(ask: Ask) -> HandoffLine:
    return HandoffLine(clip(ask.text.strip(), ASK_CHARS), (ask.number,), LineOrigin.USER)


def action_lines(actions: Iterable[Action], root: str = "") -> list[HandoffLine]:
    """Actions with their outcome; runs of edits to one file become one line."""
    lines: list[HandoffLine] = []
    run: list[Action] = []
    for action in actions:
        if run and _same_edit(run[-1], action):
            run.append(action)
            continue
        lines.extend(_action_line(run, root))
        run = [action]
    lines.extend(_action_line(run, root))
    return lines


def _same_edit(one: Action, other: Action) -> bool:
    return (
        one.call.work == other.call.work == "edit" and one.call.path == other.call.path and one.failed == other.failed
    )


def _action_line(run: list[Action], root: str) -> Iterator[HandoffLine]:
    if not run:
        return
    last = run[-1]
    times = f" ×{len(run)}" if len(run) > 1 else ""
    what = one_line(inside(last.call.target, root), ACTION_CHARS)
    how = last.outcome or ("failed" if last.failed else last.ended.split(",")[0])
    how = "" if how.endswith(("line", "lines")) and last.call.work == "edit" else f" → {how}"
    sources = (run[0].number, last.number) if len(run) > 1 else (last.number,)
    yield HandoffLine(f"{last.call.name} {what}{times}{how}", sources, LineOrigin.PROGRAM)


def file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Files by what was done to them: changed ones first, newest first."""
    known = [entry for entry in ledger.files.values() if entry.last in covered]
    known.sort(key=lambda entry: (entry.edits == 0, -entry.last))
    root = common_folder(ledger.files)
    lines = [HandoffLine(f"{ROOT_LINE}{root}", (known[0].last,), LineOrigin.PROGRAM)] if root and known else []
    for entry in known:
        done = [f"changed ×{entry.edits}"] if entry.edits else []
        if entry.reads:
            done.append(f"read{''.join(entry.spans[-3:])}" if entry.spans else "read")
        lines.append(HandoffLine(f"{inside(entry.path, root)} ({', '.join(done)})", (entry.last,), LineOrigin.PROGRAM))
    return lines


def state_lines(ledger: Ledger) -> list[HandoffLine]:
    """Where the work stands: the last check and the last repository action."""
    lines = []
    for label, works in (("Last check", ("check",)), ("Last repository action", ("git_write",))):
        action = next((a for a in reversed(ledger.actions) if a.call.work in works), None)
        if action is not None:
            what = one_line(inside(action.call.target, common_folder(ledger.files)), ACTION_CHARS)
            lines.append(
                HandoffLine(f"{label}: {what} → {action.outcome or action.ended}", (action.number,), LineOrigin.PROGRAM)
            )
    return lines


def todo_lines(ledger: Ledger) -> list[HandoffLine]:
    """The open items of the agent's own to-do list, as it last stood."""
    if ledger.todo is None:
        return []
    number, call = ledger.todo
    items = next((v for v in call.parsed().values() if isinstance(v, list)), [])
    lines = []
    for item in items:
        if not isinstance(item, dict):
            continue
        text = next((item[key] for key in ("content", "step", "text", "title") if isinstance(item.get(key), str)), "")
        status = str(item.get("status", ""))
        if text and status not in ("completed", "done", "cancelled"):
            lines.append(
                HandoffLine(f"{one_line(text, ANSWER_CHARS)} ({status or 'open'})", (number,), LineOrigin.ASSISTANT)
            )
    return lines
