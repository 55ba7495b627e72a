"""Sections of a handoff that the ledger can state as plain facts: rules, asks, files, actions, state, open work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import common_folder, inside, one_line
from leporello.ledger.importance import COURTESY, words_of
from leporello.ledger.ledger import Ask, FileFacts, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.rules import MESSAGES_LOOKED_AT, RuleKind, is_small_talk, read
from leporello.ledger.units import QUESTION, clip
from leporello.ledger.user_text import without_tags
from leporello.ledger.value_patterns import ANNOUNCED
from leporello.summaries.answers import (
    ANSWER_CHARS,
    agrees,
    answer_to,
    is_claim,
    is_open,
    is_question,
    is_reply,
    unsettled,
)
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

CountText = Callable[[str], int]
ASK_CHARS = 1_200
GOAL_CHARS = 600
PROPOSAL_CHARS = 500
SUBJECT_CHARS = 80
MOST_PENDING = 12
MOST_RESOLVED = 12
MOST_REPLIES = 8
"""How far back the request is looked for that a reply goes on with."""
RARE_SHARE = 20
"""A word is rare that stands in at most one of so many messages."""
DEALT_SHARE = 0.5
REPEAT_SHARE = 0.8
SAME_RECORD = 0.5
RECENT_ASKS = 4
"""So many of the newest requests belong to the work at hand, whatever was said of them since."""
OPEN_REASON = " (no answer before the user went on)"
LAST_WORDS = 3
"""Sentences at the end of a message, among which a question waits for its answer."""
WAITING_REASON = " (asked of the user)"
ROOT_LINE = "All paths below are inside "
MOST_DETAILED = 8
MOST_CHANGES = 2
MOST_READ = 12
MOST_STEPS = 4
"""Requests that may lead to one goal."""
STALE = 8
"""After so many requests more what was begun and left is not waited for."""
ATTACHED = "Attached: "
MOST_ATTACHED = 8


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
            if line.ordinal:
                break  # a story has no gaps
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


def active_task(ledger: Ledger, covered: Collection[int] = ()) -> list[HandoffLine]:
    """The newest request that is not answered yet; nothing after a stop or a mere thank you.

    A short reply ("yes", "its loaded") says nothing by itself: before it stand the request it goes on with and what the
    assistant had asked, with what it had proposed where that is folded.
    """
    newest = ledger.asks[-1] if ledger.asks else None
    if newest is None or newest.cancelled:
        return []
    if not is_open(ledger, newest):
        return _waiting_for_user(ledger, newest)
    asked = _last_question(
        ledger, newest.number, offers=agrees(newest.text) and _REFERS.search(newest.text) is not None
    )
    if not is_reply(newest.text) and not (asked and agrees(newest.text)):
        return [_ask_line(newest)]
    if is_courtesy(newest.text):
        return []
    before = map(_ask_line, _gone_on_with(ledger, newest))
    proposed = [_proposal(ledger, line) for line in asked if line.sources[0] in covered]
    return [*before, *filter(lambda line: line.text, proposed), *asked, _ask_line(newest)]


def _waiting_for_user(ledger: Ledger, newest: Ask) -> list[HandoffLine]:
    """The task goes on where the assistant's turn ended by asking for what it needs; an offer of more ends it."""
    asked = _last_question(ledger, ledger.last + 1, offers=False)
    if is_talk(ledger) or not asked or asked[0].sources[0] != newest.answered_by:
        return []
    (question,) = asked
    closing = [unit.text for unit in ledger.facts[question.sources[0]].units[-LAST_WORDS:]]
    if question.text not in closing or _OFFERS_MORE.search(question.text):
        return []
    before = _gone_on_with(ledger, None)
    return [*map(_ask_line, before), replace(question, text=question.text + WAITING_REASON)]


_OFFERS_MORE = lazy_regex(
    r"\b(?:(?:want|like|need) me to|(?:shall|should) (?:i|we)|let me|else|next|further|more|now|ready to)\b"
    r"|\b(?:sonst|noch|soll ich|autre|veux-tu que|algo más|quieres que|mais alguma|altro)\b|ещё|其他|还|他に|다른",
    re.IGNORECASE,
)
"""Words of a question that holds out other work: what was asked for is done."""


def _proposal(ledger: Ledger, asked: HandoffLine) -> HandoffLine:
    """Of a message that ends with a question what tells most beside it: what a yes agrees to."""
    (number,) = asked.sources
    left, told = PROPOSAL_CHARS, []
    for unit in sorted(ledger.facts[number].units, key=lambda unit: -unit.score):
        if len(unit.text) < left and unit.text != asked.text and not _HEADS_OR_ASKS.search(unit.text):
            left -= len(unit.text)
            told.append(unit)
    text = "\n".join(unit.text for unit in sorted(told, key=lambda unit: unit.position))
    return HandoffLine(text, (number,), LineOrigin.ASSISTANT)


_REFERS = lazy_regex(r"\b(?:these|those|them|that|this|it|both)\b", re.IGNORECASE)
_OFFERS = lazy_regex(
    r"\b(?:I (?:can|could|suggest|recommend)|I'd (?:suggest|recommend)|if you (?:want|like)|we could)\b"
)


def _gone_on_with(ledger: Ledger, reply: Ask | None) -> list[Ask]:
    """What a reply goes on with: the last thing the user said of some length, and the last plain request up to it."""
    said = [
        ask
        for ask in ledger.asks[-MOST_REPLIES:]
        if ask != reply and not is_reply(ask.text) and not (agrees(ask.text) and len(ask.text) <= ANSWER_CHARS // 2)
    ]
    requests = [ask for ask in said if not QUESTION.search(ask.text)]
    return sorted({*said[-1:], *requests[-1:]}, key=lambda ask: ask.number)


def is_courtesy(text: str) -> bool:
    return all(word in COURTESY for word in words_of(text))


def _last_question(ledger: Ledger, before: int, *, offers: bool) -> list[HandoffLine]:
    """What the assistant asked last, when it asked something; or what it offered, for a yes to "these"."""
    number = next((n for n in range(before - 1, 0, -1) if _speaks(ledger, n)), 0)
    units = ledger.facts[number].units if number else ()
    said = [unit.text for unit in units if QUESTION.search(unit.text)]
    said = said or [unit.text for unit in units if offers and _OFFERS.search(unit.text)]
    return [HandoffLine(said[-1], (number,), LineOrigin.ASSISTANT)] if said else []


def _speaks(ledger: Ledger, number: int) -> bool:
    facts = ledger.facts.get(number)
    return facts is not None and facts.role == "assistant" and bool(facts.units)


def pin_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Pinned messages that are folded, word for word."""
    return [
        HandoffLine(pinned.text, (number,), LineOrigin(pinned.role))
        for number, pinned in sorted(ledger.pins.items())
        if number in covered and pinned.text.strip()
    ]


def pending_asks(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Older requests that nobody answered before the user went on, and that nothing since has dealt with."""
    recent = {ask.number for ask in ledger.asks[-RECENT_ASKS:]}
    waiting = [
        ask
        for place, ask in enumerate(ledger.asks[:-1])
        if ask.answered_by is None
        and not ask.cancelled
        and ask.number in covered
        and not is_reply(ask.text)
        and not _only_rules(ask)
        and not any(_repeats(later.text, ask.text) for later in ledger.asks[place + 1 : place + RECENT_ASKS])
        and (ask.number in recent or not (dealt_with(ledger, ask) or ledger.was_worked_on(place)))
        and not (len(ledger.asks) - place > STALE and _was_begun(ledger, ask))
    ]
    return [_ask_line(ask, OPEN_REASON) for ask in waiting[-MOST_PENDING:]]


def _was_begun(ledger: Ledger, ask: Ask) -> bool:
    """Whether the assistant set to work on it before the user went on."""
    facts = ledger.facts.get(ask.number + 1)
    return facts is not None and facts.role == "assistant"


def resolved_questions(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What the user asked as a question and the assistant answered, with the sentence that answers it.

    An answer that the user did not accept resolved nothing.
    """
    lines: list[HandoffLine] = []
    against = unsettled(ledger)
    for ask in reversed(ledger.asks):
        if ask.answered_by not in covered or ask.answered_by in against or not is_question(ledger, ask):
            continue
        answer = answer_to(ledger, ask)
        if answer and ask.answered_by:
            text = f"“{one_line(ask.text.strip(), SUBJECT_CHARS)}” → {answer}"
            lines.append(HandoffLine(text, (ask.answered_by, ask.number), LineOrigin.ASSISTANT))
            if len(lines) == MOST_RESOLVED:
                break
    return lines[::-1]


_HEADS_OR_ASKS = lazy_regex(r"[?？:：]\W*$|^#")


def _repeats(later: str, earlier: str) -> bool:
    """Whether a later request says again what an earlier one said."""
    words = set(words_of(earlier))
    return len(words & set(words_of(later))) >= REPEAT_SHARE * len(words)


def dealt_with(ledger: Ledger, ask: Ask) -> bool:
    """Whether most of the telling words of a request stand in what the assistant said or did after it."""
    rare = max(3, ledger.vocabulary.messages // RARE_SHARE)
    telling = {
        word for word in words_of(ask.text) if len(word) > 2 and ledger.vocabulary.frequency.get(word, 0) <= rare
    }
    later = sum(ledger.spoken.get(word, 0) > ask.number for word in telling)
    return later >= DEALT_SHARE * len(telling)


def _only_rules(ask: Ask) -> bool:
    sentences = [sentence for sentence in _SENTENCES.split(ask.text) if sentence.strip()]
    return bool(sentences) and all(read(sentence).kind in _STANDING for sentence in sentences)


_SENTENCES = lazy_regex(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_STANDING = (RuleKind.CONSTRAINT, RuleKind.PREFERENCE)


def goal(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What the conversation set out to do: the first request, when it is folded. Small talk sets out to do nothing."""
    if is_talk(ledger) and is_small_talk([ask.text for ask in ledger.asks[:MESSAGES_LOOKED_AT]]):
        return []
    first = next((ask for ask in ledger.asks if _sets_out(ask.text)), None)
    if first is None or first.number not in covered:
        return []
    since = [ask for ask in ledger.asks if ask.number > first.number and not is_reply(ask.text)]
    # Where files are worked on, one request follows the other: the first was reached long ago.
    reached = bool(ledger.files) and first.answered_by is not None and len(since) > MOST_STEPS
    return [] if reached else [_ask_line(first, most=GOAL_CHARS)]


def _sets_out(text: str) -> bool:
    """Whether a message asks for something: no bare command to the program, no greeting."""
    said = _SLASH.sub("", without_tags(text))
    return bool(words_of(said)) and not is_courtesy(said)


_SLASH = lazy_regex(r"\A\s*/[\w:.-]{1,80}")


_COMMAND_TAG = lazy_regex(r"</?command-[a-z]{1,20}>")
"""What a program puts around what was typed behind its command."""


def _ask_line(ask: Ask, reason: str = "", most: int = ASK_CHARS) -> HandoffLine:
    said = _COMMAND_TAG.sub("", ask.text).strip() or ask.text.strip()
    return HandoffLine(clip(said, most) + reason, (ask.number,), LineOrigin.USER)


def announced_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Sentences that say how something is from here on, those that tell most first.

    Where nothing is done, in a talk, only the user's: an assistant that only advises changes nothing. Where work is
    done, of the assistant's only claims of the words that closed a turn, unless they did not hold: what it says between
    its calls is on the way.
    """
    talk, against = is_talk(ledger), unsettled(ledger)
    closing = {ask.answered_by for ask in ledger.asks} - against.keys()
    found = [
        (unit.score, number, facts.role, unit.text)
        for number, facts in ledger.facts.items()
        if number in covered
        if facts.role == "user" or (facts.role == "assistant" and not talk and number in closing)
        # Most messages announce nothing: the automaton reads each as a whole.
        if ANNOUNCED.may_match("\n".join(unit.text for unit in facts.units))
        for unit in facts.units
        # What was only pasted is nobody's word for it.
        if len(unit.text) <= ANSWER_CHARS
        and unit.position not in facts.quoted
        and ANNOUNCED.search(unit.text)
        and not _HEADS_OR_ASKS.search(unit.text)
        and (facts.role == "user" or is_claim(unit.text))
    ]
    found.sort(key=lambda line: (-line[0], line[1]))
    return [HandoffLine(text, (number,), LineOrigin(role)) for _, number, role, text in found]


def record_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """What tools said of things with an id, as told last; those first that stand in most messages."""
    newest: dict[str, list[tuple[int, list[str]]]] = {}
    for number, facts in sorted(ledger.facts.items()):
        for about, told in facts.records:
            parts = told.split("; ")
            names = {part.partition(" ")[0] for part in parts}
            # Another tool may have told something else of the same thing: what is not told anew still holds.
            others = [(n, old) for n, old in newest.get(about, ()) if _share(old, names) < SAME_RECORD]
            newest[about] = [*others, (number, parts)]
    said: set[str] = set()
    lines = []
    spoken = ledger.vocabulary.frequency
    for about in sorted(newest, key=lambda about: -spoken.get(words_of(about)[-1], 0)):
        for number, facets in newest[about]:
            if number in covered:
                parts = [part for part in facets if not (part in said and _OWNER.match(part))]
                said.update(parts)
                lines.append(HandoffLine(f"{about}: {'; '.join(parts)}", (number,), LineOrigin.TOOL))
    return lines


def told_as_records(ledger: Ledger, lines: Iterable[HandoffLine]) -> Iterator[str]:
    """The output that need not be quoted: what stands among these lines as records, all of it.

    Without files nothing but records tells how things stand, and they say more in less room than their output: none of
    it is quoted.
    """
    told = Counter(line.sources[0] for line in lines if line.origin is LineOrigin.TOOL)
    for number in told if ledger.files else ledger.facts:
        facts = ledger.facts[number]
        if facts.records and (len(facts.records) <= told[number] or not ledger.files):
            yield from (unit.text for unit in facts.units)


_OWNER = lazy_regex(r"\w{1,60}_id |address ")
"""What many records of one person say alike."""


def _share(parts: Collection[str], names: Collection[str]) -> float:
    return sum(part.partition(" ")[0] in names for part in parts) / len(parts)


def attached_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Images, documents and sound that are folded away; their message, opened again, has them whole."""
    found = [
        HandoffLine(f"{ATTACHED}{told}; the message holds it whole", (number,), LineOrigin.PROGRAM)
        for number in sorted(covered)
        if number in ledger.facts
        for told in ledger.facts[number].media
    ]
    return found[-MOST_ATTACHED:]


def attached_and_file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    return [*attached_lines(ledger, covered), *file_lines(ledger, covered)]


def file_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Files by what was done to them: changed ones first, newest first; those too that are still being worked on."""
    known = [
        entry
        for entry in ledger.files.values()
        if entry.last in covered or (entry.edits and (entry.first or entry.last) in covered)
    ]
    known.sort(key=lambda entry: (entry.edits == 0, -entry.last))
    del known[sum(entry.edits > 0 for entry in known) + MOST_READ :]
    root = common_folder(ledger.files)
    lines = [HandoffLine(f"{ROOT_LINE}{root}", (known[0].last,), LineOrigin.PROGRAM)] if root and known else []
    commits = any(entry.committed for entry in ledger.files.values())
    for place, entry in enumerate(known):
        done = _done(entry, commits=commits, changes=MOST_CHANGES if place < MOST_DETAILED else 0)
        told = f"{inside(entry.path, root)} ({'; '.join(done)})"
        sources = (entry.last,) if entry.last in covered else (entry.first, entry.last)
        lines.append(HandoffLine(told, sources, LineOrigin.PROGRAM))
    return lines


def _done(entry: FileFacts, *, commits: bool, changes: int) -> Iterator[str]:
    """What was done to a file, and the newest changes; whether it was committed is told where commits were made."""
    if entry.edits:
        what = ", then ".join(list(filter(None, entry.changes))[-changes:]) if changes else ""
        yield f"changed ×{entry.edits}" + (f": {what}" if what else "")
        if entry.committed >= entry.edited:
            yield f"committed m{entry.committed}"
        elif commits:
            yield "changed since the commit" if entry.committed else "not committed"
    if entry.reads:
        yield f"read{''.join(entry.spans[-2:])}" if entry.spans else "read"


def read_file_line(line: HandoffLine, root: str) -> FileFacts:
    """The file that a line of `file_lines` tells of."""
    told = _TOLD.search(line.text)
    path = line.text[: told.start()] if told else line.text
    done = line.text[told.end() :] if told else ""
    path = path if path.startswith("/") else root + path
    entry = FileFacts(path, first=line.sources[0], last=line.sources[-1])
    for part in done.removesuffix(")").split("; "):
        if changed := _CHANGED_TIMES.match(part):
            entry.edits, entry.edited = int(changed[1]), entry.last
            entry.changes = changed[2].split(", then ") if changed[2] else []
        elif part.startswith("committed m"):
            entry.committed = entry.last + 1
        elif part.startswith("read"):
            entry.reads = 1
    return entry


_TOLD = lazy_regex(r" \((?=changed ×|read)")
_CHANGED_TIMES = lazy_regex(r"changed ×(\d{1,6})(?:: (.*))?")
