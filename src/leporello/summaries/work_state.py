"""Where the work stands: how the last check ended, what was changed since, what is being done, left, or stops it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import common_folder, inside, one_line, state_of
from leporello.ledger.facts import MessageFacts
from leporello.ledger.ledger import Action, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.units import ERROR, EXCEPTION, FAILED_TEST, INTENT, QUESTION, sentences_of
from leporello.summaries.answers import agrees, is_open
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.replies import agreed_to, is_request

ACTION_CHARS = 110
SAID_CHARS = 240
RESULT_CHARS, MOST_CALLS = 200, 4
MOST_ERRORS, MOST_FAILURES = 3, 8
MOST_NAMED = 4
MOST_SINCE = 12
ENDS_WORK = ("check", "act", "install", "git_write")


def state_lines(ledger: Ledger) -> list[HandoffLine]:
    """The last check and the last repository action; a check says nothing of files that were edited after it."""
    lines = []
    root = common_folder(ledger.files)
    check, passed = _checks(ledger)
    write = next((action for action in reversed(ledger.actions) if action.call.work == "git_write"), None)
    for label, action in (("Last check", check), ("Before it", passed), ("Last repository action", write)):
        if action is not None:
            what = one_line(inside(plain_command(action.call.target), root), ACTION_CHARS)
            since = _edited_since(ledger, action, root) if action is not write else ("", 0)
            sources = tuple(filter(None, (action.number, since[1])))
            lines.append(HandoffLine(f"{label}: {what} → {ending(action)}{since[0]}", sources, LineOrigin.PROGRAM))
    return lines


def _checks(ledger: Ledger) -> tuple[Action | None, Action | None]:
    """The last check; and where it says nothing of how it went the last one of the same request that does."""
    asked = ledger.asks[-1].number if ledger.asks else 0
    last: Action | None = None
    for action in reversed(ledger.actions):
        if action.call.work == "check":
            if last is not None and action.number < asked:
                break
            if action.outcome or action.failed:
                return (action, None) if last is None else (last, action)
            last = last or action
    return last, None


def _edited_since(ledger: Ledger, check: Action, root: str) -> tuple[str, int]:
    """The files that were changed after a check, in words, and the message of the newest change."""
    later = [
        (path, action.number)
        for action in ledger.actions
        if action.number > check.number and not action.failed
        for path, _ in action.call.edits
    ]
    if not later:
        return "", 0
    names = list(dict.fromkeys(inside(path, root) for path, _ in reversed(later)))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; older than the edits of {', '.join(names[:MOST_NAMED])}{more}", later[-1][1]


def plain_command(command: str) -> str:
    """A command without the folder it is run in, the files it adds first and what shortens its output."""
    return _PLUMBING.sub("", command).strip() or command


_PLUMBING = lazy_regex(
    r"^(?:cd [^\s;&|]{1,200} ?(?:&&|;) ?|git add [^;&|]{1,2000}&& ?){1,2}|\s{0,4}2>&1(?=\s|$)"
    r"|\s{0,4}\|\s{0,4}(?:tail|head)\b[^|;&\n]{0,40}$"
)


def ending(action: Action) -> str:
    """How a command ended; how many lines it printed says nothing of that."""
    if action.outcome or action.failed:
        return action.outcome or "failed"
    ended = action.ended.split(",")[0]
    return "no error shown" if ended.endswith(("line", "lines")) else ended


def blocked(ledger: Ledger, unseen: Collection[int]) -> list[HandoffLine]:
    """What failed in the last check, or in the last action of all, when nothing passed since and it stands nowhere.

    Every test or file that failed is told; of other lines of errors those that tell most.
    """
    last = next((action for action in reversed(ledger.actions) if action.call.work == "check"), None)
    if (last is None or not last.failed) and ledger.actions and ledger.actions[-1].call.work in ENDS_WORK:
        last = ledger.actions[-1]
    if last is None or not last.failed or last.number not in unseen:
        return []
    if sum(action.number > last.number for action in ledger.actions) > MOST_SINCE:
        return []  # whoever goes on for that long isn't stopped by it
    every = [unit for unit in ledger.facts[last.number].units if not _PASSED.search(unit.text)]
    units = [unit for unit in every if ERROR.search(unit.text)]
    failed = [unit for unit in every if FAILED_TEST.match(unit.text) or _PLACE.search(unit.text)]
    named = {unit.position: unit for unit in failed[:MOST_FAILURES]}
    best = sorted(units, key=lambda unit: -unit.score)[:MOST_ERRORS]
    told = sorted({**named, **{unit.position: unit for unit in best}}.items())
    return [HandoffLine(unit.text.strip(), (last.number,), LineOrigin.TOOL) for _, unit in told]


_PASSED = lazy_regex(r"^\s*(?:=== (?:RUN|CONT|PAUSE)|--- PASS|ok\b|PASS(?:ED)?\b|[✓✔√])")
"""A line of a test that runs or passed: what it is called may sound like an error."""
_PLACE = lazy_regex(r"^\S{1,200}\.\w{1,8}:\d{1,6}\b")
"""A line that begins with the place of a fault, as compilers and linters print it."""


def at_work(ledger: Ledger) -> list[HandoffLine]:
    """What the assistant said last that it was about to do for a request that is still open, and its last call."""
    asked = ledger.asks[-1] if ledger.asks else None
    if asked is None or is_talk(ledger) or not is_open(ledger, asked):
        return []
    lines = []
    for number in range(ledger.last, asked.number, -1):
        facts = ledger.facts.get(number)
        if facts is not None and facts.role == "assistant" and facts.units:
            said = [unit.text for unit in facts.units if not QUESTION.search(unit.text)]
            plans = [text for text in said if INTENT.match(text)] or said
            if plans:
                told = one_line(plans[-1].rstrip(":"), SAID_CHARS)
                lines.append(HandoffLine(told, (number,), LineOrigin.ASSISTANT))
            break
    root = common_folder(ledger.files)
    for newest in _newest_results(ledger, asked.number):
        facts = ledger.facts[newest]
        heading = facts.answers.heading_within(root) if facts.answers else ""
        lines.append(HandoffLine(f"Last call: {heading} → {_ended(facts)}", (newest,), LineOrigin.PROGRAM))
    return lines


def _newest_results(ledger: Ledger, since: int) -> list[int]:
    """The results that came last: of calls made side by side all of them, for none may be made a second time."""
    newest = next((n for n in range(ledger.last, since, -1) if _result(ledger, n)), 0)
    first = newest
    while first - 1 > since and _result(ledger, first - 1):
        first -= 1
    return list(range(max(first, newest - MOST_CALLS + 1), newest + 1)) if newest else []


def _ended(facts: MessageFacts) -> str:
    """How a call ended; of one that failed the line that says why, and a result of one line as it is."""
    if not facts.failed and len(facts.units) == 1 and facts.ended.endswith("1 line"):
        return one_line(facts.units[0].text, RESULT_CHARS)
    lines = [unit.text for unit in facts.units] if facts.failed else []
    # What ends a traceback says more than how it begins.
    raised = (text for text in reversed(lines) if EXCEPTION.match(text) and not text.startswith("Traceback"))
    why = next(raised, next((text for text in lines if ERROR.search(text)), ""))
    return one_line(why, ACTION_CHARS) or facts.ended


def _result(ledger: Ledger, number: int) -> bool:
    facts = ledger.facts.get(number)
    return facts is not None and facts.role == "tool" and facts.answers is not None and bool(facts.answers.target)


def things_left(ledger: Ledger) -> list[HandoffLine]:
    """Of the things that the user wants dealt with those that were changed, and those that were not yet.

    Where tools know things by ids: what was asked for names them, or the assistant's list of them to which it says yes.
    """
    if ledger.files:
        return []
    known = {
        about.rpartition(" ")[2]: state_of((about, told))
        for _, facts in sorted(ledger.facts.items())
        for about, told in facts.records
        if _is_thing(about)
    }
    asked: dict[str, int] = {}
    for ask in ledger.asks:
        if not ask.cancelled and (is_request(ask.text) or agrees(ask.text)):
            said = (ask.text, *agreed_to(ledger, ask))
            named = next(filter(None, (_named(text, known) for text in said)), [])
            asked |= {name: ask.number for name in named if name not in asked}
    changed = {
        name: action.number
        for action in ledger.actions
        if not action.failed
        for name in _NAME.findall(action.call.target)
        if action.number > asked.get(name, ledger.last)
    }
    left = [name for name in asked if name not in changed and not _IS_OVER.search(known[name])]
    if not left or len(asked) == 1:
        return []
    done = ", ".join(f"{name} (m{changed[name]})" for name in asked if name in changed)
    told = f"Asked for and not changed yet: {', '.join(left)}" + (f"; changed: {done}" if done else "")
    return [HandoffLine(told, (max(asked.values()),), LineOrigin.PROGRAM)]


def _named(text: str, known: Mapping[str, str]) -> list[str]:
    """The things that a text names, without those of which it says that nothing is to be done about them."""
    told = (sentence for sentence in sentences_of(text) if not _LEAVES.search(sentence))
    return [name for sentence in told for name in _NAME.findall(sentence) if name in known]


def _is_thing(about: str) -> bool:
    """Whether a record is of something that requests are about, rather than of who asks."""
    key, _, name = about.partition(" ")
    return bool(name) and " " not in name and not _WHO.search(key)


_NAME = lazy_regex(r"#?\b[A-Za-z0-9][\w-]{2,40}")
_LEAVES = lazy_regex(
    r"\b(?:can['’]?t|cannot|couldn['’]?t|won['’]?t|don['’]?t|do not|not|no longer|keep|leave)\b"
    r"|\b(?:nicht|kein\w{0,2}|pas|no|não|non)\b[^.]{0,40}\b(?:storn|änder|annul|cancel|cambi|modif)|не |不",
    re.IGNORECASE,
)
_IS_OVER = lazy_regex(r"cancel|request|refund|clos|complet|resolv|done|paid", re.IGNORECASE)
"""States of what nothing is left to be done about."""
_WHO = lazy_regex(r"user|customer|account|client|member|profile|passenger|product|flight|catalog", re.IGNORECASE)
"""Keys of records that are asked after, and not dealt with."""
