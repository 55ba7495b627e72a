"""What was asked: the task at hand, what set the conversation going, and requests that nobody dealt with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from leporello.lazy_regex import lazy_regex
from leporello.ledger.importance import COURTESY, words_of
from leporello.ledger.ledger import Ask, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.rules import MESSAGES_LOOKED_AT, RuleKind, is_small_talk, read
from leporello.ledger.units import CUT_MARK, QUESTION, clip
from leporello.ledger.user_text import without_tags
from leporello.summaries.answers import agrees, is_open, is_question, is_reply
from leporello.summaries.decisions import option_named
from leporello.summaries.endings import does_it_himself, says_that_is_all
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.replies import (
    ASKS_FOR,
    LAST_WORDS,
    goes_on,
    gone_on_with,
    last_question,
    last_spoken,
    proposal,
    referent,
    refers,
)

ASK_CHARS = 1_200
GOAL_CHARS = 600
MOST_PENDING = 12
RARE_SHARE = 20
"""A word is rare that stands in at most one of so many messages."""
DEALT_SHARE = 0.5
REPEAT_SHARE = 0.8
RECENT_ASKS = 4
"""So many of the newest requests belong to the work at hand, whatever was said of them since."""
OPEN_REASON = " (no answer before the user went on)"
WAITING_REASON = " (asked of the user)"
MOST_STEPS = 4
"""Requests that may lead to one goal."""
SUPPLEMENT_WITHIN, SUPPLEMENT_CHARS, STEM = 3, 200, 5
STALE = 8
"""After so many requests more what was begun and left is not waited for."""


def active_task(ledger: Ledger, covered: Collection[int] = ()) -> list[HandoffLine]:
    """The newest request that is not answered yet; nothing after a stop, a mere thank you, or "that's all".

    A short reply ("yes", "its loaded") says nothing by itself: before it stand the request it goes on with and what the
    assistant had asked, with what it had proposed where that is folded. A short request that means by "this" what was
    said before stands behind that.
    """
    newest = ledger.asks[-1] if ledger.asks else None
    if newest is None or newest.cancelled:
        return []
    if not is_open(ledger, newest):
        return _waiting_for_user(ledger, newest)
    if is_courtesy(newest.text) or says_that_is_all(newest.text):
        return []
    option = option_named(ledger, newest.number, newest.text)
    earlier = gone_on_with(ledger, newest)
    spoken = last_spoken(ledger, newest.number)
    if earlier and spoken < earlier[-1].number:
        spoken = 0  # it was said of something else
    offers = agrees(newest.text) and (is_reply(newest.text) or refers(newest.text))
    asked = last_question(ledger, newest.number, offers=offers) if spoken else []
    meant = option
    if option.text or goes_on(ledger, newest, asked):
        before = [_with_option(ledger, ask) for ask in earlier]
        if not option.text and spoken in covered and (asked or agrees(newest.text)):
            meant = proposal(ledger, spoken, asked, newest.text)
    elif refers(newest.text):
        before, asked = [ask_line(ask) for ask in earlier[-1:]], []
        meant = referent(ledger, spoken) if spoken in covered else option
    else:
        return [ask_line(newest)]
    return [*before, *filter(lambda line: line.text, [meant]), *asked, ask_line(newest)]


def _with_option(ledger: Ledger, ask: Ask, most: int = ASK_CHARS) -> HandoffLine:
    """A request, with what it calls by a number."""
    line, option = ask_line(ask, most=most), option_named(ledger, ask.number, ask.text)
    return replace(line, text=f"{line.text} (“{option.text}”)") if option.text else line


def _waiting_for_user(ledger: Ledger, newest: Ask) -> list[HandoffLine]:
    """The task goes on where the assistant's turn ended by asking for what it needs; an offer of more ends it.

    Whoever serves somebody and works on no files asks for steps too: "restart it please, and let me know".
    """
    number = last_spoken(ledger, ledger.last + 1)
    if is_talk(ledger) or not number or number != newest.answered_by:
        return []
    said = [unit.text for unit in ledger.facts[number].units]
    while said and _CHOICE.match(said[-1]):
        said.pop()  # what may be answered stands behind the question
    closing = said[-LAST_WORDS:]
    asked = [text for text in closing if QUESTION.search(text)][-1:]
    asked = [text for text in asked if not _OFFERS_MORE.search(text)]
    if not asked and not ledger.files:
        asked = [text for text in closing if ASKS_FOR.search(text)][-1:]
    question = [HandoffLine(text + WAITING_REASON, (number,), LineOrigin.ASSISTANT) for text in asked]
    return [*map(ask_line, gone_on_with(ledger, None)), *question] if question else []


_CHOICE = lazy_regex(r"[-*•] |\d{1,2}[.)] |.{0,80}[:：]$")
_OFFERS_MORE = lazy_regex(
    r"\b(?:(?:want|like|need) me to|(?:shall|should) (?:i|we)|let me|else|next|further|more|now|ready to)\b"
    r"|\b(?:sonst|noch|soll ich|autre|veux-tu que|algo más|quieres que|mais alguma|altro)\b|ещё|其他|还|他に|다른",
    re.IGNORECASE,
)
"""Words of a question that holds out other work: what was asked for is done."""


def is_courtesy(text: str) -> bool:
    return all(word in COURTESY for word in words_of(text))


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
        and not does_it_himself(ask.text)
        and not any(_repeats(later.text, ask.text) for later in ledger.asks[place + 1 : place + RECENT_ASKS])
        and (ask.number in recent or not (dealt_with(ledger, ask) or ledger.was_worked_on(place)))
        and not (ledger.was_worked_on(place) and _was_left_behind(ledger, place))
        and not (len(ledger.asks) - place > STALE and _was_begun(ledger, ask))
    ]
    return [_with_supplement(ledger, ask) for ask in waiting[-MOST_PENDING:]]


def _with_supplement(ledger: Ledger, ask: Ask) -> HandoffLine:
    """An open request, with what the user added while the assistant had just set to work on it."""
    line = ask_line(ask, OPEN_REASON)
    added = next((later for later in ledger.asks if later.number > ask.number), ask)
    meanwhile = added.answered_by and added.number - ask.number <= SUPPLEMENT_WITHIN and not added.cancelled
    if not meanwhile or is_reply(added.text) or _stems(ask.text).isdisjoint(_stems(added.text)):
        return line
    told = ask_line(added, OPEN_REASON, SUPPLEMENT_CHARS).text
    return replace(line, text=f"{line.text.removesuffix(OPEN_REASON)}\n{told}", sources=(ask.number, added.number))


def _stems(text: str) -> set[str]:
    """The beginnings of a text's longer words: what two messages about one thing share."""
    return {word[:STEM] for word in words_of(text) if len(word) >= STEM}


def _was_left_behind(ledger: Ledger, place: int) -> bool:
    """Whether the assistant closed a request of some length that came later: what was done before it was enough."""
    return any(
        later.answered_by and not later.cancelled and not is_reply(later.text) for later in ledger.asks[place + 1 :]
    )


def _was_begun(ledger: Ledger, ask: Ask) -> bool:
    """Whether the assistant set to work on it before the user went on."""
    facts = ledger.facts.get(ask.number + 1)
    return facts is not None and facts.role == "assistant"


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
    set_out = next((ask for ask in ledger.asks if _sets_out(ask.text)), None)
    first = set_out and next((ask for ask in reversed(ledger.asks[:STALE]) if _says_the_same(ask, set_out)), set_out)
    if first is None or first.number not in covered:
        return []
    since = [ask for ask in ledger.asks if ask.number > first.number and not is_reply(ask.text)]
    # Where files are worked on, one request follows the other: the first was reached long ago.
    answered = bool(ledger.files) and first.answered_by is not None
    reached = answered and (len(since) > MOST_STEPS or is_question(ledger, first))
    return [] if reached else [_with_option(ledger, first, GOAL_CHARS)]


def _says_the_same(ask: Ask, other: Ask) -> bool:
    """Whether one is a repetition of the other: what was interrupted is asked for once more, perhaps with a change."""
    return _repeats(ask.text, other.text) and _repeats(other.text, ask.text)


def _sets_out(text: str) -> bool:
    """Whether a message asks for something: no bare command to the program, no greeting."""
    said = _SLASH.sub("", without_tags(text))
    return bool(words_of(said)) and not is_courtesy(said)


_SLASH = lazy_regex(r"\A\s*/[\w:.-]{1,80}")


_COMMAND_TAG = lazy_regex(r"</?command-[a-z]{1,20}>")
"""What a program puts around what was typed behind its command."""


def ask_line(ask: Ask, reason: str = "", most: int = ASK_CHARS) -> HandoffLine:
    said = _COMMAND_TAG.sub("", ask.text).strip() or ask.text.strip()
    return HandoffLine(condensed(said, most) + reason, (ask.number,), LineOrigin.USER)


def condensed(text: str, most: int) -> str:
    """A long message: how it begins and ends, and between these its rules, commands and files rather than its prose.

    Of lines that differ in their figures only the first two are told.
    """
    if len(text) <= most:
        return text
    lines = [line.rstrip() for line in text.split("\n") if line.strip() and not _TELLS_NOTHING.match(line)]
    if len(lines) < LEAST_LINES:
        return clip(text, most)
    kept: set[int] = set()
    left = most
    for place in _by_weight(lines, most):
        cost = min(len(lines[place]), LINE_CHARS) + GAP_CHARS
        if place not in kept and cost <= left:
            kept.add(place)
            left -= cost
    pieces: list[str] = []
    for before, place in pairwise((-1, *sorted(kept))):
        if place - before > 1 and pieces:
            pieces[-1] += CUT_MARK.rstrip()
        pieces.append(clip(lines[place], LINE_CHARS))
    return "\n".join(pieces)


def _by_weight(lines: Sequence[str], most: int) -> Iterator[int]:
    """The places of lines in the order in which they are taken while there is room; some come twice."""
    alike = Counter[str]()
    told: list[int] = []
    for place, line in enumerate(lines):
        pattern = line.translate(_WITHOUT_FIGURES).strip()
        alike[pattern] += 1
        if alike[pattern] <= MOST_ALIKE:
            told.append(place)
    yield from _up_to(told, lines, int(most * BEGINS_SHARE))
    # What is wanted often stands in the last line, behind all that was pasted.
    last = min(len(lines[-1]), LINE_CHARS) + GAP_CHARS
    yield from _up_to(told[::-1], lines, max(int(most * ENDS_SHARE), last))
    for signs in (_COMMANDS, _FORBIDS, _BINDS):
        for place in told:
            if signs.search(lines[place]):
                yield place
                if lines[place].endswith((":", "：")) and place + 1 in told:
                    yield place + 1
    yield from told


def _up_to(places: Iterable[int], lines: Sequence[str], room: int) -> Iterator[int]:
    for place in places:
        room -= min(len(lines[place]), LINE_CHARS) + GAP_CHARS
        if room < 0:
            return
        yield place


_WITHOUT_FIGURES = dict.fromkeys(map(ord, "0123456789"))
LEAST_LINES, LINE_CHARS, GAP_CHARS, MOST_ALIKE = 6, 160, 3, 2
BEGINS_SHARE, ENDS_SHARE = 0.3, 0.1
_TELLS_NOTHING = lazy_regex(
    r"\s{0,20}(?:```.{0,20}|</?[\w-]{1,40}>)\s*$|If you need specific details from before exiting plan mode\b"
)
"""Markup, and the pointer to a transcript that a program puts behind a plan."""
_COMMANDS = lazy_regex(
    r"^\s{0,8}(?:[\w.@-]{0,80}/){1,20}[\w.@-]{1,80}:?(?::\d+)*$|\b(?:MUST|EXACT(?:LY)?|CRITICAL"
    r"|REQUIRED)\b.{0,200}[:：]$"
)
"""A line that is nothing but a file, as linters print it before what they found there; one that leads to a command."""
_FORBIDS = lazy_regex(
    r"\b(?:NOT|NEVER|CANNOT|NICHT|NIE|NIEMALS|JAMAIS|NUNCA|MAI)\b|\bdo not\b|\bdon['’]t\b|\bnever\b|\bniemals\b"
    r"|\bkeine\b|\bne [^.]{1,40} (?:pas|jamais)\b|\bnunca\b|\bnão\b|\bnon \w+(?:are|ere|ire)\b|нельзя|никогда"
    "|不要|不得|禁止|切勿|してはいけ|しないで|하지 ?마",
)
_BINDS = lazy_regex(
    r"\b(?:must|cannot|can['’]t|may not|only|exactly|critical|make sure|ensure|muss|müssen|doit|doivent|debes?|deben"
    r"|deve|devem|devono)\b|должн|должен|必须|必ず|반드시",
    re.IGNORECASE,
)
"""Words of bans and orders in a long message."""
