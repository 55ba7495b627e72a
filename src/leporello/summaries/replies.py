"""What a reply goes on with: the request before it, and what the assistant had asked, offered or proposed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice, pairwise

from leporello.lazy_regex import lazy_regex
from leporello.ledger.facts import UnitFacts
from leporello.ledger.importance import words_of
from leporello.ledger.ledger import Ask, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.units import CUT_MARK, QUESTION
from leporello.summaries.answers import ANSWER_CHARS, HEADS_OR_ASKS, agrees, is_reply
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.text_features.words import STOP_WORDS

PROPOSAL_CHARS, REFERENT_CHARS = 500, 240
MOST_REPLIES, MOST_LOOKED_AT = 8, 200
"""Of how many messages that say something the request is taken that a reply goes on with, and how far back they are
looked for: "go on" may be said forty times."""
MOST_ASIDES = 2
"""The last thing that was said, and the request before it: what is older and was dealt with is another matter."""
MOST_OF_MATTER = 4
LAST_WORDS = 3
"""Sentences at the end of a message, among which a question waits for its answer."""
MOST_ANSWER_WORDS, MOST_REFERRING_WORDS = 12, 12
BRIEF_ANSWER_WORDS = 6
LEAST_SHARED = 4
"""Letters of a word that a short answer must share with the question."""
LEAST_TOLD = 4
"""Words of a sentence that is worth telling as what somebody means by "this"."""


def refers(text: str) -> bool:
    """Whether a short message means by "this" or "it" what was said before, and not what it names itself."""
    if len(words_of(text)) > MOST_REFERRING_WORDS or "\n" in text.strip():
        return False
    word = _REFERS.search(text)
    return word is not None and not _NAMES.search(text[: word.start()])


def goes_on(ledger: Ledger, ask: Ask, asked: Collection[HandoffLine]) -> bool:
    """Whether a message says little without what was said before it: a yes, an answer to what was asked."""
    if is_reply(ask.text) or (agrees(ask.text) and (asked or refers(ask.text))):
        return True
    return bool(asked) and (_only_answers(ledger, ask) or _names_what_was_asked(ask, asked))


def _names_what_was_asked(ask: Ask, asked: Collection[HandoffLine]) -> bool:
    """Whether a few words take one of the things that a question names: "minor, it is a big change".

    The word is all that they take: "patch the recipe of the build too" is an order of its own.
    """
    said = words_of(ask.text)
    if len(said) > BRIEF_ANSWER_WORDS or "?" in ask.text:
        return False
    named = {word for line in asked for word in words_of(line.text)}
    taken = words_of(_FIRST_PART.split(ask.text.strip(" \t*_`'\"“"), 1)[0])
    return (
        bool(taken) and len(taken[0]) >= LEAST_SHARED and named.issuperset(word for word in taken if word not in _KIND)
    )


_FIRST_PART = lazy_regex(
    r"[.,;:!()–—\n]|\s-{1,2}\s|\b(?:because|since|but|i (?:think|guess)|for now|weil|denn|aber|car|mais|porque|pero"
    r"|mas|perché|потому|но)\b",
    re.IGNORECASE,
)
"""Where an answer of a few words ends, and what is said about it begins."""
_KIND = frozenset(
    "please pls thanks thank you then instead of course is fine best bitte danke dann s'il te vous plaît plait por"
    " favor"
    " per favore gracias merci пожалуйста спасибо".split()
)
"""Words beside an answer that add nothing to it."""


def gone_on_with(ledger: Ledger, reply: Ask | None) -> list[Ask]:
    """What a reply goes on with: the last thing the user said of some length, and the last plain request up to it.

    A request that begins with a yes of its own goes on with the one before it.
    """
    told = (
        ask
        for ask in ledger.asks[: -MOST_LOOKED_AT - 1 : -1]
        if ask != reply
        and not is_reply(ask.text)
        and not (agrees(ask.text) and len(ask.text) <= ANSWER_CHARS // 2)
        and not _only_answers(ledger, ask)
    )
    said = list(islice(told, MOST_REPLIES))[::-1]
    if reply is not None and not ledger.files and not is_talk(ledger):
        return _since_the_last_act(ledger, said, reply)
    requests = [
        ask for ask in said if is_request(ask.text) and (ask in said[-MOST_ASIDES:] or not _was_done(ledger, ask))
    ]
    chain = {*said[-1:], *requests[-1:]}
    first = min(chain, key=lambda ask: ask.number, default=None)
    if first is not None and agrees(first.text):
        place = said.index(first)
        chain.update(said[max(0, place - 1) : place])
    return sorted(chain, key=lambda ask: ask.number)


def _since_the_last_act(ledger: Ledger, said: list[Ask], reply: Ask) -> list[Ask]:
    """What was said of the matter at hand: whoever is served tells what is wanted bit by bit, as he is asked."""
    acts = (action.number for action in ledger.actions if action.number < reply.number and not action.failed)
    last = max(acts, default=0)
    return [ask for ask in said if ask.number > last][-MOST_OF_MATTER:] or said[-1:]


def _was_done(ledger: Ledger, ask: Ask) -> bool:
    """Whether files were changed for a request, and the assistant closed it."""
    return ask.answered_by is not None and ledger.was_worked_on(ledger.asks.index(ask))


def _only_answers(ledger: Ledger, ask: Ask) -> bool:
    """Whether a message gives whoever serves the user what was asked for, a name, a number, a reason; wants"
    " nothing."""
    if ledger.files or len(words_of(ask.text)) > MOST_ANSWER_WORDS or _CAN_YOU.search(ask.text):
        return False
    gives = _GIVES.search(ask.text) or (not QUESTION.search(ask.text) and _STATES.match(ask.text))
    return bool(gives) and bool(last_question(ledger, ask.number, offers=False))


_GIVES = lazy_regex(r"\S@\S|\d{3}|\w_\w{0,40}\d")
_STATES = lazy_regex(
    r"\W{0,4}(?:(?:sure|no problem|ok(?:ay)?|yes|no|oh|ah|sorry|well|of course)\W{1,3}){0,2}"
    r"(?:(?:it|this|that|these|those|they|both)\b[^?]{0,20}\b(?:is|are|was|were)\b|(?:it|that)['’]s\b|i['’]?m\b|i am\b"
    r"|my \w|because\b|due to\b|das (?:ist|war)\b|es (?:ist|war)\b|ich bin\b|mein|weil\b|c['’]est\b|je suis\b"
    r"|parce que\b|es (?:por|un|una|el|la)\b|soy\b|porque\b|é (?:o|a|um|uma|por)\b|sono\b|perché\b)|это |потому|因为",
    re.IGNORECASE,
)
"""How a message begins that tells something and wants nothing."""
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


def last_question(ledger: Ledger, before: int, *, offers: bool) -> list[HandoffLine]:
    """What the assistant asked last, when it asked something; or what it offered, for a yes to "these"."""
    number = last_spoken(ledger, before)
    units = ledger.facts[number].units if number else ()
    said = [unit.text for unit in units if _ASKS.search(unit.text) and not _HOLDS_NOTHING_OUT.search(unit.text)]
    said = said or [unit.text for unit in units[-LAST_WORDS:] if ASKS_FOR.search(unit.text)]
    said = said or [
        unit.text for unit in units if offers and _OFFERS.search(unit.text) and not HEADS_OR_ASKS.search(unit.text)
    ]
    return [HandoffLine(said[-1], (number,), LineOrigin.ASSISTANT)] if said else []


_ASKS = lazy_regex(r"[?？](?:\W*$|[*_]{1,3}\s)")
"""A question at the end, or one that is printed bold with a word about it behind it."""
_HOLDS_NOTHING_OUT = lazy_regex(
    r"^#|\b(?:what(?:['’]s| is| would| do| should| can)\b[^.?]{0,60}\b(?:next|now|else|today)"
    r"|(?:any|some)thing (?:else|more)|how (?:can|may) i (?:help|assist))\b"
    r"|\b(?:was|womit)\b[^.?]{0,60}\b(?:als nächstes|noch)\b|\bautre chose\b|\balgo más\b|\bmais alguma coisa\b"
    r"|\bqualcos['’]altro\b|что-нибудь ещё|还有什么|他に何か",
    re.IGNORECASE,
)
"""A heading, or a question that leaves it to the user what comes next: no yes answers it."""
_REFERS = lazy_regex(r"\b(?:these|those|them|that|this|it|both|above|again)\b(?!['’])", re.IGNORECASE)
_NAMES = lazy_regex(r"[`#]|\w[A-Z_./]\w|[\w/]\.\w")
_OFFERS = lazy_regex(
    r"\b(?:I (?:can|could|suggest|recommend)|I'd (?:suggest|recommend)|if you (?:want|like)|we could)\b"
)
ASKS_FOR = lazy_regex(
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


def proposal(ledger: Ledger, number: int, asked: Collection[HandoffLine], reply: str) -> HandoffLine:
    """Of a message of the assistant what its question is about: what a yes agrees to.

    That stands right before the question, under its heading. A reply of more words says itself what is wanted: the
    lines that it takes up are told, in less room.
    """
    units, said = ledger.facts[number].units, {line.text for line in asked}
    if len(words_of(reply)) <= MOST_ANSWER_WORDS:
        told = _before_the_question(units, said)
    else:
        told = _taken_up([unit for unit in units if unit.text not in said], reply)
    return HandoffLine(_with_marks(units, told), (number,), LineOrigin.ASSISTANT)


def _before_the_question(units: Sequence[UnitFacts], said: Collection[str]) -> list[UnitFacts]:
    """What stands right before a question, or at the end of a message without one; and the heading above it."""
    place = next((place for place in range(len(units) - 1, -1, -1) if units[place].text in said), len(units))
    first, left = place, PROPOSAL_CHARS
    while first and len(units[first - 1].text) <= left:
        first -= 1
        left -= len(units[first].text)
    told = list(units[first:place])
    if not any(unit.text.startswith("#") for unit in told[:1]):
        headed = next((unit for unit in reversed(units[:first]) if _HEADING.match(unit.text)), None)
        told = [headed, *told] if headed is not None else told
    return told


_HEADING = lazy_regex(r"#{1,4} .{1,120}$")


def _taken_up(units: Sequence[UnitFacts], reply: str) -> list[UnitFacts]:
    """The lines that share most words with a reply."""
    about = {word for word in words_of(reply) if len(word) >= LEAST_SHARED and word not in STOP_WORDS}
    shared = {unit.position: len(about.intersection(words_of(unit.text))) for unit in units}
    least = max(shared.values(), default=0) / 2
    left, told = REFERENT_CHARS, []
    for unit in sorted(units, key=lambda unit: (-shared[unit.position], -unit.score)):
        if 0 < least <= shared[unit.position] and len(unit.text) < left and not QUESTION.search(unit.text):
            left -= len(unit.text)
            told.append(unit)
    return sorted(told, key=lambda unit: unit.position)


def _with_marks(units: Sequence[UnitFacts], told: Sequence[UnitFacts]) -> str:
    """The chosen lines of a message; a mark stands for what was left out between two of them.

    Without it an item of a list would be read as part of another one.
    """
    places = {unit.position: place for place, unit in enumerate(units)}
    text = told[0].text if told else ""
    for before, unit in pairwise(told):
        if places[unit.position] - places[before.position] > 1:
            text += CUT_MARK.rstrip()
        text += f" {unit.text}" if unit.position - before.position == 1 else f"\n{unit.text}"
    return text


def referent(ledger: Ledger, number: int) -> HandoffLine:
    """The last sentence of a message that tells something: what "this" means in the next."""
    told = [
        unit.text
        for unit in ledger.facts[number].units
        if len(words_of(unit.text)) >= LEAST_TOLD
        and len(unit.text) <= REFERENT_CHARS
        and not HEADS_OR_ASKS.search(unit.text)
    ]
    return HandoffLine(told[-1] if told else "", (number,), LineOrigin.ASSISTANT)


def agreed_to(ledger: Ledger, ask: Ask) -> list[str]:
    """What the assistant said that a yes of the user agrees to: the question first, then all of its message."""
    number = last_spoken(ledger, ask.number) if agrees(ask.text) else 0
    if not number:
        return []
    asked = [line.text for line in last_question(ledger, ask.number, offers=False)]
    return [*asked, "\n".join(unit.text for unit in ledger.facts[number].units)]


def is_request(text: str) -> bool:
    """Whether a message wants something done, be it in the form of a question."""
    return not (QUESTION.search(text) or _ASKS_WHY.match(text)) or _CAN_YOU.search(text) is not None


def last_spoken(ledger: Ledger, before: int) -> int:
    """The newest message before a number in which the assistant says something."""
    return next((n for n in range(before - 1, 0, -1) if _speaks(ledger, n)), 0)


def _speaks(ledger: Ledger, number: int) -> bool:
    facts = ledger.facts.get(number)
    return facts is not None and facts.role == "assistant" and bool(facts.units)
