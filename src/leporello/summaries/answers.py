"""How requests ended in words: the sentence that answers a question or says what was done; and what did not hold.

Sections of a handoff tell answers as facts. What the user objected to, and what the assistant took back, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import one_line
from leporello.ledger.facts import UnitFacts
from leporello.ledger.importance import words_of
from leporello.ledger.ledger import Ask, Ledger
from leporello.ledger.ranking import is_talk
from leporello.ledger.units import GUESS, INTENT, OFFER, QUESTION
from leporello.ledger.values import LATER

LEAST_ANSWER, ANSWER_CHARS = 8, 200
LONGEST_ANSWER = 420
CLOSING_CHARS, CLOSING_WORDS = 120, 4
ITEM_LESS = 2
"""Words that an item of a list must share more than a sentence to answer as well."""
MESSAGES_BACK = 3
CLOSING_SENTENCES = 3
QUESTION_CHARS = 400
"""A longer message is a request with a question at its end."""
REPLY_WORDS = 5
OBJECTION_CHARS = 80
FIRST_WORDS = 2
"""Sentences at the beginning of a reply, among which it says that the answer before was wrong."""
REPLIES_READ = 4
"""Messages after an objection, among which the reply to it begins."""
Unsettled = dict[int, int]
"""Messages of the assistant that did not hold, each with the message of the user that says so."""


def is_reply(text: str) -> bool:
    """Whether a message of the user is too short to say what is wanted."""
    return len(words_of(text)) < REPLY_WORDS and "\n" not in text.strip()


def agrees(text: str) -> bool:
    """Whether a message says yes to what was asked: what is to be done stands in the question."""
    return len(text) <= QUESTION_CHARS and _AGREES.match(text) is not None


def is_open(ledger: Ledger, ask: Ask) -> bool:
    """Whether a request is still being worked on.

    Some agents say what they do before they do it, and a turn may end with one of several parts: the words that seemed
    to close it were followed by calls, or leave steps of the plan, or announce what comes next.
    """
    if ask.cancelled or ask.answered_by is None:
        return not ask.cancelled
    if ledger.waiting or any(step.is_open and step.number >= ask.number for step in ledger.plan):
        return True
    last = ledger.facts.get(ledger.last)
    if last is None or last.role == "tool" or is_talk(ledger):
        return last is not None and last.role == "tool"
    closing = [unit.text for unit in last.units[-CLOSING_SENTENCES:]]
    return any(map(_COMES_NEXT.search, closing)) and not any(map(_WAITS.search, closing))


def is_question(ledger: Ledger, ask: Ask) -> bool:
    """Whether a message asks for an answer rather than for work; what files were changed for was no question."""
    said = ask.text.strip()
    if ask.cancelled or len(said) > QUESTION_CHARS or not QUESTION.search(said) or is_reply(said):
        return False
    last = _LAST_SENTENCE.split(said)[-1]
    return not (_WANTS_WORK.search(said) or _WANTS_WORK.search(last) or _changed_files(ledger, ask))


def _changed_files(ledger: Ledger, ask: Ask) -> bool:
    end = ask.answered_by or 0
    for action in reversed(ledger.actions):
        if action.number < ask.number:
            break
        if action.number < end and action.call.edits and not action.failed:
            return True
    return False


def answer_to(ledger: Ledger, ask: Ask) -> str:
    """The sentence that answers: with most words of what was asked, the first of these; a yes or no before others.

    Items of lists and fields of records answer less than sentences. Where the last message only goes on from the
    answer, it stands before.
    """
    asked = {word for word in words_of(ask.text) if len(word) > 2}

    def fit(text: str) -> tuple[bool, int]:
        shared = len(asked & _words(text))
        return bool(shared and _SAYS_YES_OR_NO.search(text)), shared - ITEM_LESS * bool(
            _ITEM.match(text) or _FIELD.match(text)
        )

    best = ""
    for units in _told(ledger, ask):
        told = [unit.text for unit in units if len(unit.text) >= LEAST_ANSWER and _adds(unit.text, asked)]
        answer = max(told, key=fit, default="")
        if fit(answer) > (False, 0):
            return _plain(answer)
        best = best or answer
    return _plain(best)


def _plain(answer: str) -> str:
    """An answer on one line, without what made it an item of a list."""
    return one_line(_ITEM.sub("", answer), ANSWER_CHARS)


def _adds(text: str, asked: set[str]) -> bool:
    """Whether a sentence says more than the question did; a yes or no does."""
    return any(len(word) > 2 for word in _words(text) - asked) or bool(_SAYS_YES_OR_NO.search(text))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """The words of a sentence, which is asked several times what it answers."""
    return frozenset(words_of(text))


def closing_words(ledger: Ledger, ask: Ask) -> str:
    """What the assistant said of what it had done: the first sentence of its last message that names something."""
    asked = {word for word in words_of(ask.text) if len(word) > 2}
    best = ""
    for units in _told(ledger, ask):
        told = [unit.text for unit in units if _is_telling(unit.text)]
        sentences = [text for text in told if not _ITEM.match(text)] or told
        naming = (text for text in sentences if _NAMES.search(text) or asked.intersection(words_of(text)))
        best = next(naming, best or next(iter(sentences), ""))
        if best:
            break
    return one_line(best.strip("*_# ").replace("**", ""), CLOSING_CHARS)


def _is_telling(text: str) -> bool:
    return len(words_of(text)) >= CLOSING_WORDS and not _CONCEDES.match(text) and not _THANKS.match(text)


def _told(ledger: Ledger, ask: Ask) -> Iterator[list[UnitFacts]]:
    """The sentences that tell something of the last messages of a turn, newest message first."""
    said = 0
    for number in range(ask.answered_by or 0, ask.number, -1):
        facts = ledger.facts.get(number)
        if facts is not None and facts.role == "assistant" and facts.units:
            yield [unit for unit in facts.units if _tells(unit.text)]
            said += 1
            if said == MESSAGES_BACK:
                return


@lru_cache(maxsize=8192)
def _tells(text: str) -> bool:
    """Whether a sentence is no heading, question back, code, plan, offer or courtesy."""
    return (
        len(text) <= LONGEST_ANSWER
        and " " in text.strip()
        and not _COURTESY.match(text)
        and not (_NO_ANSWER.search(text) or INTENT.match(text) or OFFER.search(text))
    )


def unsettled(ledger: Ledger) -> Unsettled:
    """Answers that the user objected to next, or that the assistant took back in its next words.

    A "no" to what was asked of the user objects to nothing that was said beside it.
    """
    found: Unsettled = {}
    for ask, following in zip(ledger.asks, ledger.asks[1:], strict=False):
        if not ask.answered_by or following.cancelled:
            continue
        if _objects(ledger, ask, following) or _takes_back(ledger, following):
            found[ask.answered_by] = following.number
    return found


def _objects(ledger: Ledger, ask: Ask, following: Ask) -> bool:
    if not _OBJECTS.match(following.text):
        return False
    units = ledger.facts[ask.answered_by].units if ask.answered_by in ledger.facts else ()
    return not (is_reply(following.text) and units and QUESTION.search(units[-1].text))


def _takes_back(ledger: Ledger, ask: Ask) -> bool:
    """Whether the reply to a message begins by saying that what was said before was wrong."""
    for number in range(ask.number + 1, ask.number + REPLIES_READ):
        facts = ledger.facts.get(number)
        if facts is None or facts.role == "user":
            return False
        if facts.role == "assistant" and facts.units:
            first = [unit.text for unit in facts.units[:FIRST_WORDS]]
            return any(map(_regrets, first)) or (
                any(map(_concedes, first)) and _CONTRADICTS.search(ask.text) is not None
            )
    return False


# A fold asks several times what did not hold, and the next one asks the same sentences again.
@lru_cache(maxsize=4096)
def _regrets(text: str) -> bool:
    return _REGRETS.search(text) is not None


@lru_cache(maxsize=4096)
def _concedes(text: str) -> bool:
    return _CONCEDES.match(text) is not None


def objected(ledger: Ledger, number: int, against: Unsettled, *, quoted: bool) -> str:
    """What stands behind a statement that did not hold: the message that says so, and its words unless quoted."""
    since = against.get(number, 0)
    if not since:
        return ""
    said = next((ask.text for ask in reversed(ledger.asks) if ask.number == since), "")
    words = "" if quoted else f": {one_line(said, OBJECTION_CHARS)}"
    return f"{LATER}{since}{words})"


def is_claim(text: str) -> bool:
    """Whether a sentence states something, and neither supposes nor plans nor asks it."""
    return not (GUESS.search(text) or INTENT.match(text) or _THINKS_ALOUD.search(text) or _NO_ANSWER.search(text))


_COMES_NEXT = lazy_regex(
    r"\bnext,? (?:i['’]ll|i will|comes|up)\b"
    r"|\b(?:i['’]ll|i will) (?:(?:now|then|next) )?(?:continue|move on|proceed|start)\b"
    r"|\b(?:moving on to|continuing with|als nächstes|ensuite,? je|a continuación|em seguida)\b|接下来|次に",
    re.IGNORECASE,
)
_WAITS = lazy_regex(
    r"[?？]\W*$|\b(?:if|once|when|after|until|as soon as) (?:you|that|this)\b|\b(?:let me know|would you)\b",
    re.IGNORECASE,
)
_AGREES = lazy_regex(
    r"\W{0,5}(?:yes|yeah|yep|sure|ok(?:ay)?|please do|go ahead|ja|oui|sí|sim|да)\b"
    r"|\W{0,5}(?:好|是的|可以|行(?![动为])|はい|네)",
    re.IGNORECASE,
)
HEADS_OR_ASKS = lazy_regex(r"[?？:：]\W*$|^#")
_LAST_SENTENCE = lazy_regex(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_ITEM = lazy_regex(r"^(?:[-*•>]|\d{1,2}[.)]) ")
_FIELD = lazy_regex(r"\**[A-Z][\w /]{1,30}\**:\**\s.{1,40}$")
"""A name and its value: one of many lines of what was listed."""
_NAMES = lazy_regex(r"`|\d|\b[a-z]+[A-Z_.]\w")
_THANKS = lazy_regex(
    r"^\W{0,5}(?:(?:thanks|thank you|great|good (?:point|idea|question)|danke|merci|gracias|obrigad[oa]|grazie)\b"
    r"|спасибо)",
    re.IGNORECASE,
)
_NO_ANSWER = lazy_regex(
    r"[?？:：]\W*$|^(?:#|//|```|\|)|[{};]$|:= |\) ?=> ?\{|^(?:const|let|var|def|func|return|import) "
    r"|^\W{0,5}(?:but )?(?:wait|hold on|hmm+)\b|^\*\*[^*]{1,200}\*\*\W*$|\b(?:to (?:assist|help) you|once (?:i|you) )\b"
    r"|\b(?:be|am|[’']m) (?:very |more than )?(?:happy|glad|pleased|sorry) to\b"
    r"|^\W{0,4}(?:sure, )?i can (?:help|assist)\b",
    re.IGNORECASE,
)
"""Headings, questions back, comments of code, rows of tables and courtesies answer nothing."""
_COURTESY = lazy_regex(
    r"\W{0,5}(?:(?:ha|oh|ah|hm+|great|absolutely|sure)\b\W{1,3})?(?:(?:that['’]?s |that is )?an? )?"
    r"(?:good|great|fair|excellent|valid|interesting) (?:question|point|catch|idea)s?\W*$"
    r"|\W{0,5}i(?:['’]ve| have) (?:checked|retrieved|reviewed|looked (?:up|into)|pulled up) (?!.*\b(?:and|but|that)\b)"
    r"|\W{0,5}(?:(?:thanks|thank you|danke|vielen dank|merci|gracias|obrigad[oa]|grazie)\b|спасибо|谢谢|感谢|감사)",
    re.IGNORECASE,
)
"""A sentence that thanks, praises or says that somebody looked, and tells nothing."""
_SAYS_YES_OR_NO = lazy_regex(
    r"^\W{0,4}(?:(?:yes|no|yep|nope|correct|exactly|ja|nein|oui|non|sí|sim|não|да|нет)(?=\W{0,2}[,.:;!—–-])"
    r"|short answer\b|是的|不是|はい|いいえ|네|아니)|\*\*(?:yes|no)\b",
    re.IGNORECASE,
)
_WANTS_WORK = lazy_regex(
    r"^\W{0,4}(?:(?:ok(?:ay)?|yes|so|now|then|also|and|but|if so)\W{1,3}){0,3}"
    r"(?:please\b|(?:can|could|would|will) (?:you|we)\b"
    r"(?! (?:also |please )?(?:tell|explain|say|describe|remind|confirm|check|look|see|verify)\b)"
    r"|(?:kannst|könntest|können) (?:du|sie)\b|(?:peux|pourrais)-tu\b|(?:pouvez|pourriez)-vous\b"
    r"|(?:puedes|podrías|puede|pode|poderia|puoi|potresti)\b|(?:можешь|можете)\b)",
    re.IGNORECASE,
)
"""A question in form, and work to do: the story tells how it ended."""
_OBJECTS = lazy_regex(
    r"\W{0,5}(?:(?:hmm?|well|ok(?:ay)?|sorry|wait|uh)\W{1,3}){0,2}"
    r"(?:(?:no(?=\W*$|[,.;:!—–])|no(?= (?:that|this|it|i|you)\b)|nope|wrong|incorrect"
    r"|but(?! (?:first|also|please|before|then|let|can|could)\b)|still (?:not|broken|the same|fail\w*|doesn['’]?t)"
    r"|not (?:true|quite|right|correct|working)|(?:that|this|it)(?:['’]?s| is| was| does| did)? (?:not|wrong|incorrect)"
    r"|(?:that|it|this) (?:doesn|didn|isn|wasn)['’]?t|thats not|you (?:broke|forgot|missed)|you['’]?re wrong"
    r"|i (?:don['’]?t|do not) (?:think|agree|believe)|nein|falsch|aber|das (?:stimmt|ist) nicht|non|faux|mais"
    r"|ce n['’]est pas|incorrecto|pero|não|errado|mas|sbagliato|нет|неверно|неправильно|но)\b"
    r"|不对|不是|错|但是|違い|違う|でも|いいえ|아니|틀렸)",
    re.IGNORECASE,
)
"""How a message begins that does not accept what was said before."""
_CONCEDES = lazy_regex(
    r"^\W{0,5}(?:(?:ah|oh|yes)\W{1,3}){0,2}(?:good catch\b|sorry\b"
    r"|you(?:['’]re| are|r| were) (?:absolutely |completely |totally |quite )?(?:right|correct)\b"
    r"|(?:du hast|sie haben) recht\b|(?:vous avez|tu as) raison\b|tienes razón\b|você tem razão\b|hai ragione\b"
    r"|(?:ты|вы) прав|你说得对|您说得对|你是对的|おっしゃる通り|その通り|맞습니다)",
    re.IGNORECASE,
)
_REGRETS = lazy_regex(
    r"\bmy (?:mistake|bad|apologies)\b|\bi was (?:wrong|mistaken)\b|\bi (?:misread|misunderstood|misspoke)\b"
    r"|\bi apologi[sz]e\b|\bmein fehler\b|\bje me suis trompé|\bme equivoqué\b|\bmi sono sbagliat|\beu errei\b"
    r"|ошибся|我错了|我弄错|間違えました|제가 틀렸",
    re.IGNORECASE,
)
_CONTRADICTS = lazy_regex(
    r"(?:n['’]t|\b(?:not|no|wrong|still|why|already|but|broke\w*|fail\w*|forg[eo]t\w*|miss\w*|errors?|instead|nicht"
    r"|falsch|noch|aber|pas|encore|mais|não|mas|pero|ya|ancora|non))\b|Traceback|не |но |不|没|错|ない|안 ",
    re.IGNORECASE,
)
"""What somebody says to whom "you're right" means that something was wrong; else it agrees to an idea."""
_THINKS_ALOUD = lazy_regex(
    r"^\W{0,5}(?:(?:so|hmm+|oh)\W{1,3})?(?:but|actually|wait|no,|hmm+|hold on|looking (?:at|back)|one possibility"
    r"|let['’]s (?:see|say|think)|based on my|however|or|although)\b|\b(?:i (?:think|believe|bet|assume)|suggests? that"
    r"|should (?:now )?(?:be|look|work|render|have)|would (?:be|need|explain)|doesn['’]t make sense|the question is)\b",
    re.IGNORECASE,
)
"""A sentence on the way to an answer: what it says is often taken back in the next one."""
