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
from leporello.summaries.answers import ANSWER_CHARS, HEADS_OR_ASKS, agrees, is_open, is_reply
from leporello.summaries.decisions import option_named
from leporello.summaries.handoff import HandoffLine, LineOrigin

ASK_CHARS = 1_200
GOAL_CHARS = 600
PROPOSAL_CHARS = 500
MOST_PENDING = 12
MOST_REPLIES = 8
"""How far back the request is looked for that a reply goes on with."""
RARE_SHARE = 20
"""A word is rare that stands in at most one of so many messages."""
DEALT_SHARE = 0.5
REPEAT_SHARE = 0.8
RECENT_ASKS = 4
"""So many of the newest requests belong to the work at hand, whatever was said of them since."""
OPEN_REASON = " (no answer before the user went on)"
LAST_WORDS = 3
"""Sentences at the end of a message, among which a question waits for its answer."""
WAITING_REASON = " (asked of the user)"
MOST_STEPS = 4
"""Requests that may lead to one goal."""
SUPPLEMENT_WITHIN, SUPPLEMENT_CHARS, STEM = 3, 200, 5
STALE = 8
"""After so many requests more what was begun and left is not waited for."""


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
    option = option_named(ledger, newest.number, newest.text)
    if not is_reply(newest.text) and not (asked and agrees(newest.text)) and not option.text:
        return [ask_line(newest)]
    if is_courtesy(newest.text):
        return []
    before = [_with_option(ledger, ask) for ask in _gone_on_with(ledger, newest)]
    proposed = [option] if option.text else [_proposal(ledger, line) for line in asked if line.sources[0] in covered]
    return [*before, *filter(lambda line: line.text, proposed), *asked, ask_line(newest)]


def _with_option(ledger: Ledger, ask: Ask) -> HandoffLine:
    """A request, with what it calls by a number."""
    line, option = ask_line(ask), option_named(ledger, ask.number, ask.text)
    return replace(line, text=f"{line.text} (“{option.text}”)") if option.text else line


def _waiting_for_user(ledger: Ledger, newest: Ask) -> list[HandoffLine]:
    """The task goes on where the assistant's turn ended by asking for what it needs; an offer of more ends it.

    Whoever serves somebody and works on no files asks for steps too: "restart it please, and let me know".
    """
    number = _last_spoken(ledger, ledger.last + 1)
    if is_talk(ledger) or not number or number != newest.answered_by:
        return []
    said = [unit.text for unit in ledger.facts[number].units]
    while said and _CHOICE.match(said[-1]):
        said.pop()  # what may be answered stands behind the question
    closing = said[-LAST_WORDS:]
    asked = [text for text in closing if QUESTION.search(text)][-1:]
    asked = [text for text in asked if not _OFFERS_MORE.search(text)]
    if not asked and not ledger.files:
        asked = [text for text in closing if _ASKS_FOR.search(text)][-1:]
    question = [HandoffLine(text + WAITING_REASON, (number,), LineOrigin.ASSISTANT) for text in asked]
    return [*map(ask_line, _gone_on_with(ledger, None)), *question] if question else []


_CHOICE = lazy_regex(r"[-*•] |\d{1,2}[.)] |.{0,80}[:：]$")
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
        if len(unit.text) < left and unit.text != asked.text and not HEADS_OR_ASKS.search(unit.text):
            left -= len(unit.text)
            told.append(unit)
    text = "\n".join(unit.text for unit in sorted(told, key=lambda unit: unit.position))
    return HandoffLine(text, (number,), LineOrigin.ASSISTANT)


_REFERS = lazy_regex(r"\b(?:these|those|them|that|this|it|both)\b", re.IGNORECASE)
_OFFERS = lazy_regex(
    r"\b(?:I (?:can|could|suggest|recommend)|I'd (?:suggest|recommend)|if you (?:want|like)|we could)\b"
)


_ASKS_FOR = lazy_regex(
    r"\bplease (?:confirm|reply|respond|try|check|send|share|provide|restart|tell me)\b"
    r"|\blet me know (?:which|when|once|what you see|how it goes"
    r"|(?:if|whether) (?:it|that|this|you(?:['’]re| are| see| can| still)))\b"
    r"|\b(?:reply|answer|respond|type|say) (?:with )?[\"'“‘]?yes\b"
    r"|\bbitte (?:bestätig|prüf|versuch|schick|sag|gib|starte)"
    r"|\b(?:veuillez|merci de) (?:confirmer|vérifier|essayer|envoyer)"
    r"|\bpor (?:favor|gentileza),? (?:confirm|verifi|comprueb|intent|env[ií]|tent)"
    r"|\bper favore,? (?:conferm|verific|prov|invi)|пожалуйста,? (?:подтверд|провер|попробу|пришл)|подтвердите"
    "|请您?(?:确认|检查|试|提供|重启)|(?:ご確認|確認して|教えて|お試し)ください|(?:확인해|알려|시도해) ?주세요",
    re.IGNORECASE,
)
"""Sentences without a question mark that wait for an answer."""


def _gone_on_with(ledger: Ledger, reply: Ask | None) -> list[Ask]:
    """What a reply goes on with: the last thing the user said of some length, and the last plain request up to it.

    A request that begins with a yes of its own goes on with the one before it.
    """
    said = [
        ask
        for ask in ledger.asks[-MOST_REPLIES:]
        if ask != reply
        and not is_reply(ask.text)
        and not (agrees(ask.text) and len(ask.text) <= ANSWER_CHARS // 2)
        and not _only_answers(ledger, ask)
    ]
    requests = [ask for ask in said if is_request(ask.text)]
    chain = {*said[-1:], *requests[-1:]}
    first = min(chain, key=lambda ask: ask.number, default=None)
    if first is not None and agrees(first.text):
        place = said.index(first)
        chain.update(said[max(0, place - 1) : place])
    return sorted(chain, key=lambda ask: ask.number)


def _only_answers(ledger: Ledger, ask: Ask) -> bool:
    """Whether a message gives whoever serves the user what was asked for, a name or a number, and wants nothing."""
    if ledger.files or len(words_of(ask.text)) > MOST_ANSWER_WORDS or _CAN_YOU.search(ask.text):
        return False
    return _GIVES.search(ask.text) is not None and bool(_last_question(ledger, ask.number, offers=False))


_GIVES = lazy_regex(r"\S@\S|\d{3}|\w_\w{0,40}\d")
MOST_ANSWER_WORDS = 12
_CAN_YOU = lazy_regex(
    r"(?:^|[.!?] )\W{0,4}(?:(?:and|so|ok(?:ay)?|then|now|also)\W{1,3}){0,2}(?:(?:can|could|would|will) you"
    r"|(?:can|could) we)\b"
    r"|\b(?:kannst|könntest|können) (?:du|sie|wir)\b|\b(?:peux|pourrais)-tu\b|\b(?:pouvez|pourriez)-vous\b"
    r"|\b(?:puedes|podrías|podemos|pode|poderia|podes|puoi|potresti|possiamo)\b|\b(?:можешь|можете|сможешь)\b"
    r"|能不能|可以|能否|请你|帮我|(?:てくれ|てもらえ|いただけ)ます|(?:해|봐) ?줄 ?(?:수|래)",
    re.IGNORECASE,
)
"""A question in form, and a request."""
_ASKS_WHY = lazy_regex(
    r"\W{0,4}(?:(?:and|but|so|ok(?:ay)?|hmm?)\W{1,3}){0,2}"
    r"(?:(?:why|what|how|where|who|which)(?:['’]s| (?:is|are|was|do|does|did))"
    r"|any idea|warum|wieso|pourquoi|por qué|por que|perché|почему|зачем)\b|为什么|なぜ|どうして|왜",
    re.IGNORECASE,
)
"""A question, whether or not it has its mark."""


def is_courtesy(text: str) -> bool:
    return all(word in COURTESY for word in words_of(text))


def _last_question(ledger: Ledger, before: int, *, offers: bool) -> list[HandoffLine]:
    """What the assistant asked last, when it asked something; or what it offered, for a yes to "these"."""
    number = _last_spoken(ledger, before)
    units = ledger.facts[number].units if number else ()
    said = [unit.text for unit in units if QUESTION.search(unit.text)]
    said = said or [unit.text for unit in units[-LAST_WORDS:] if _ASKS_FOR.search(unit.text)]
    said = said or [unit.text for unit in units if offers and _OFFERS.search(unit.text)]
    return [HandoffLine(said[-1], (number,), LineOrigin.ASSISTANT)] if said else []


def agreed_to(ledger: Ledger, ask: Ask) -> str:
    """The words of the assistant that a yes of the user agrees to."""
    number = _last_spoken(ledger, ask.number) if agrees(ask.text) else 0
    return "\n".join(unit.text for unit in ledger.facts[number].units) if number else ""


def is_request(text: str) -> bool:
    """Whether a message wants something done, be it in the form of a question."""
    return not (QUESTION.search(text) or _ASKS_WHY.match(text)) or _CAN_YOU.search(text) is not None


def _last_spoken(ledger: Ledger, before: int) -> int:
    """The newest message before a number in which the assistant says something."""
    return next((n for n in range(before - 1, 0, -1) if _speaks(ledger, n)), 0)


def _speaks(ledger: Ledger, number: int) -> bool:
    facts = ledger.facts.get(number)
    return facts is not None and facts.role == "assistant" and bool(facts.units)


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
    first = next((ask for ask in ledger.asks if _sets_out(ask.text)), None)
    if first is None or first.number not in covered:
        return []
    since = [ask for ask in ledger.asks if ask.number > first.number and not is_reply(ask.text)]
    # Where files are worked on, one request follows the other: the first was reached long ago.
    reached = bool(ledger.files) and first.answered_by is not None and len(since) > MOST_STEPS
    return [] if reached else [ask_line(first, most=GOAL_CHARS)]


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
    lines = [line.rstrip() for line in text.split("\n") if line.strip() and not _MARKUP.match(line)]
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
    yield from _up_to(told[::-1], lines, int(most * ENDS_SHARE))
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
_MARKUP = lazy_regex(r"\s{0,20}(?:```.{0,20}|</?[\w-]{1,40}>)\s*$")
_COMMANDS = lazy_regex(
    r"^\s{0,8}(?:[\w.@-]{0,80}/){1,20}[\w.@-]{1,80}:?(?::\d+)*$|\b(?:MUST|EXACT(?:LY)?|CRITICAL|REQUIRED)\b.{0,200}[:：]$"
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
