"""Key Decisions: what was settled and why, among the sentences that are worth keeping.

An option that was held out is none until the user takes it; what was found out or guessed on the way is told where it
was said: much of it is refuted later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import one_line
from leporello.ledger.facts import UnitFacts
from leporello.ledger.importance import words_of
from leporello.ledger.ledger import Ledger
from leporello.ledger.ranking import RankedUnit
from leporello.ledger.units import CHOICE, OFFER, QUESTION
from leporello.ledger.values import unmarked
from leporello.summaries.answers import agrees, is_claim, unsettled
from leporello.summaries.handoff import HandoffLine, LineOrigin
from leporello.summaries.replies import last_spoken, referent, refers

MOST_DECISIONS = 24
DECISION_WORDS = 6
CHOICE_CHARS, REASON_CHARS, OPTION_CHARS, LISTED_CHARS = 240, 200, 120, 200
CLOSING_SENTENCES = 3
_I = re.IGNORECASE


class Decision(NamedTuple):
    unit: RankedUnit
    reason: UnitFacts | None
    """The next sentence, where it says why."""
    option: str = ""
    """What the user took by its number or by "this"."""

    @property
    def text(self) -> str:
        told = f"{self.unit.text} {self.reason.text}" if self.reason else self.unit.text
        return f"{told} (“{self.option}”)" if self.option else told


def decisions_among(units: Iterable[RankedUnit], ledger: Ledger) -> list[Decision]:
    """The best of the units that state what the assistant settled or the user chose, in their order."""
    open_or_wrong = _not_settled(ledger)
    found = [unit for unit in units if unit.number not in open_or_wrong and _settles(unit, ledger)]
    found = sorted(found, key=lambda unit: -unit.unit.score)[:MOST_DECISIONS]
    found.sort(key=lambda unit: (unit.number, unit.position))
    places = {(unit.number, unit.position) for unit in found}
    return [Decision(unit, _reason(unit, ledger, places), _option(unit, ledger)) for unit in found]


def _option(unit: RankedUnit, ledger: Ledger) -> str:
    """What the user took by its number, or by "this"."""
    if unit.role != "user":
        return ""
    named = option_named(ledger, unit.number, unit.text).text
    spoken = 0 if named or not refers(unit.text) else last_spoken(ledger, unit.number)
    return one_line(referent(ledger, spoken).text.strip("*#-| "), LISTED_CHARS) if spoken else named


def _not_settled(ledger: Ledger) -> set[int]:
    """Messages that ended by asking the user, who did not agree, and those that did not hold."""
    messages = set(unsettled(ledger))
    for place, ask in enumerate(ledger.asks):
        facts = ledger.facts.get(ask.answered_by or 0)
        following = ledger.asks[place + 1 : place + 2]
        if facts and ask.answered_by and not (following and agrees(following[0].text)):
            closing = [unit.text for unit in facts.units[-CLOSING_SENTENCES:]]
            if any(QUESTION.search(text) or _HOLDS_OUT.search(text) for text in closing):
                messages.add(ask.answered_by)
    return messages


def _settles(unit: RankedUnit, ledger: Ledger) -> bool:
    text = unmarked(unit.text)
    if unit.role == "user":
        pasted = unit.position in ledger.facts[unit.number].quoted
        return not pasted and len(text) <= CHOICE_CHARS and not QUESTION.search(text) and bool(_CHOOSES.search(text))
    following = ledger.facts.get(unit.number + 1)
    calls = following is not None and following.role == "tool"
    return unit.role == "assistant" and _decides(text) and not (calls and _OBSERVES.search(text))


@lru_cache(maxsize=2048)
def _decides(text: str) -> bool:
    """Whether a sentence of the assistant states what was decided, with enough of it to be understood."""
    return (
        not text.startswith(("#", "|", ">"))
        and not (_LISTED.match(text) and not _SAYS_WHY.search(text))
        and len(words_of(text)) >= DECISION_WORDS
        and CHOICE.search(text) is not None
        and not OFFER.search(text)
        and not _ON_THE_WAY.search(text)
        and is_claim(text)
    )


def _reason(unit: RankedUnit, ledger: Ledger, places: set[tuple[int, int]]) -> UnitFacts | None:
    if _SAYS_WHY.search(unit.text):
        return None
    units = ledger.facts[unit.number].units
    place = next((place for place, known in enumerate(units) if known.position == unit.position), len(units))
    following = units[place + 1] if place + 1 < len(units) else None
    if following is None or (unit.number, following.position) in places or len(following.text) > REASON_CHARS:
        return None
    near = following.position - unit.position <= 2
    return following if near and _SAYS_WHY.search(following.text) and not QUESTION.search(following.text) else None


def option_named(ledger: Ledger, number: int, text: str) -> HandoffLine:
    """What the assistant had called by the number that a message of the user names; of a bare heading its items too."""
    closed = (ask.answered_by for ask in ledger.asks if ask.answered_by and ask.answered_by < number)
    before = max(closed, default=0) or last_spoken(ledger, number)  # a command of the program has no answer
    told = [known.text for known in ledger.facts[before].units] if before in ledger.facts else []
    named = next((one for one in _NAMED_OPTION.finditer(text) if not _is_refused(text[: one.start()])), None)
    if named:
        wanted = named[0].casefold().replace("#", "")
        place = next((place for place, known in enumerate(told) if _is_called(known, wanted)), len(told))
        meant = _with_its_items(told, place, _NAMED_OPTION)
    elif any(_numbered(known, "1") for known in told):
        meant = [line for wanted in _numbers_taken(text) for line in _item_of(told, wanted)]
    else:
        return HandoffLine("")
    said = "; ".join(known.strip("*#-| ") for known in meant)
    limit = OPTION_CHARS if len(meant) == 1 else LISTED_CHARS
    return HandoffLine(one_line(said, limit), (before,), LineOrigin.ASSISTANT)


def _item_of(told: Sequence[str], number: str) -> list[str]:
    """The item of a list that has a number; its sentence may stand behind its number."""
    place = next((place for place, known in enumerate(told) if _numbered(known, number)), len(told))
    bare = told[place : place + 1] and _ITEM_NUMBER.fullmatch(told[place])
    return _with_its_items(told, place + bool(bare), _ITEM_NUMBER)


def _with_its_items(told: Sequence[str], place: int, next_one: re.Pattern[str]) -> list[str]:
    """A line, and where it is a bare heading what stands under it up to the next one."""
    meant = list(told[place : place + 1])
    if meant and _IS_HEADING.search(meant[0]):
        meant += takewhile(lambda known: not next_one.search(known), told[place + 1 :])
    return meant


def _numbers_taken(text: str) -> list[str]:
    """The numbers by which a message takes items of a list: no figures of its own, no list of its own."""
    found = _BARE_NUMBER.match(text) or _NUMBER_LAST.search(text)
    if found and _is_refused(text[: found.start(1)]):
        return []
    if found:
        return [] if _OWN_ITEM.search(text, found.end()) else _FIGURES.findall(found[1])
    ordinal = _ORDINAL.match(text)
    return [str(_PLACES[(ordinal[1] or ordinal[2]).casefold()[:3]])] if ordinal else []


def _is_refused(before: str) -> bool:
    """Whether what stands before a number in its clause says no to it: "do not pick 1", "use 3, not 1"."""
    clause = _CLAUSE_ENDS.split(before[-LONGEST_REFUSAL:])[-1]
    return _REFUSES.search(clause) is not None


def _numbered(text: str, number: str) -> bool:
    """Whether a text is the item or the row of a list that has a number."""
    begins = _ITEM_NUMBER.match(text)
    return begins is not None and begins[1] == number


_NUMBERS = r"(#?\d{1,2}(?:(?:,\s?|\s?[&+]\s?|,?\s(?:and|und|et|y|e|и)\s)#?\d{1,2}){0,5})"
_TAKEN = (
    r"(?=\W*$|[,;:!.)](?!\s*#?\d|\w)|\s[-–—]{1,2}\s(?!\d)|\s(?:please|pls|thanks?|thank|then|but|with(?:out)?|instead"
    r"|first"
    r"|because|for (?:now|me)|and (?!\W?\d|an?\b|half)|(?:is|are|would be) (?:fine|good|ok(?:ay)?|best|better|great"
    r"|right|it"
    r"|the (?:best|better|way|one))|(?:does |do |would )?(?:seems?|sounds?|looks?|makes? sense)"
    r"(?! (?:not|bad|wrong|risky|worse|too|odd|off)\b)|bitte|danke|aber|ohne"
    r"|mit|klingt|s['’]il|mais|avec|sans|merci|por favor|pero|con|sin|mas|com|sem|per favore|ma|senza|пожалуйста|но)\b"
    r"|\s?(?:吧|号|番|번))"
)
"""What stands behind an option that is taken; behind a figure stands what it counts."""
_SAYS_TAKE = (
    r"\W{0,3}(?:(?:ok(?:ay)?|yes|yeah|yep|no|sure|so|then|well|please|let['’]?s|i|i['’]?d|i['’]?ll|i would|i will|we"
    r"|ja|oui|sí"
    r"|sim|да|and|do|go (?:with|for)|take|pick|choose|prefer|try|use|start with|nimm|nehmen wir|ich nehme|mach|prends"
    r"|je prends|toma|elijo)\W{1,2}){0,4}(?:选择?|就|用)?"
)
_BARE_NUMBER = lazy_regex(
    rf"{_SAYS_TAKE}(?:(?:number|nummer|numéro|número|numero|no\.|nr\.?)\s)?{_NUMBERS}{_TAKEN}", _I
)
_NUMBER_LAST = lazy_regex(
    r"\b(?:(?:fix|mend|solve|address|tackle|do|for|about|with|take|pick|choose|try|behebe|mach|nimm|für|zu|mit|corrige"
    r"|pour|avec|arregla|para|con|per|com)(?: the)?(?: (?:issue|point|number|bug|item|problem|punkt|nummer|punto"
    r"|ponto))|(?:add a )?fix(?: for)?|do|take|pick|choose|go (?:with|for)|start with|nimm|mach)"
    rf" {_NUMBERS}(?: (?:please|bitte|then|first|instead))?\W{{0,3}}$",
    _I,
)
_ORDINAL = lazy_regex(
    rf"{_SAYS_TAKE}(?:(?:the|der|die|das|den|le|la|el|o|a|il)\s(first|second|third|fourth|fifth|erste|zweite|dritte"
    rf"|vierte"
    r"|premi[eè]re?|deuxième|troisième|primer[oa]?|segund[oa]|tercer[oa]|primeir[oa]|terceir[oa]|prim[oa]|second[oa]"
    r"|terz[oa])n?(?:\s(?:one|option|variant|approach|way|proposal|suggestion|choice|möglichkeit|variante|vorschlag"
    r"|opción"
    rf"|opção|opzione))?|第([一二三四五])[个种项]?){_TAKEN}",
    _I,
)
_PLACES = {
    start: place
    for place, starts in enumerate(
        ("fir ers pre pri 一", "sec zwe deu seg 二", "thi dri tro ter 三", "fou vie 四", "fif 五"), 1
    )
    for start in starts.split()
}
LONGEST_REFUSAL = 60
_CLAUSE_ENDS = lazy_regex(
    r"[,.;:!?\n，。、]|\s[-–—]{1,2}\s"
    r"|(?<!all )(?<!anything )(?<!everything )\b(?:but|so|then|and|sondern|und|mais|et|sino|mas|ma)\b",
    _I,
)
_REFUSES = lazy_regex(
    r"n['’]t\b|\b(?:(?<!why )not|dont|never|no|cannot|neither|nor|skip|avoid|ignore|nicht|kein\w{0,2}|nie|niemals"
    r"|pas|jamais|nunca|não|non|mai|не)\b|不|别"
    r"|\b(?:against|without|except|instead of|rather than|other than|(?:all|anything|everything) but|ohne|außer|statt"
    r"|sauf|sans|sin|sem|senza)\b[^.]{0,12}$",
    _I,
)
_FIGURES = lazy_regex(r"\d+")
_OWN_ITEM = lazy_regex(r"\n\s{0,8}\d{1,2}[.):]")
_ITEM_NUMBER = lazy_regex(r"[*#| ]{0,4}(\d{1,2})(?:[.)]|\s*\|)")


def _is_called(text: str, name: str) -> bool:
    """Whether a text begins with the name of an option, behind its number in a list or a word of its kind."""
    said = _LEADS.sub("", text.casefold())
    at = said.find(name)
    return 0 <= at <= LONGEST_KIND and not said[at + len(name) : at + len(name) + 1].isalnum()


_LEADS = lazy_regex(r"^(?:[*#|> -]|\d{1,2}[.)])*")
_IS_HEADING = lazy_regex(r"^\W{0,6}(?:\w{1,40}\W{1,6}){1,5}$")
LONGEST_KIND = 12
_HOLDS_OUT = lazy_regex(
    r"\b(?:would you (?:like|prefer)|want me to|shall i|should i|your call|up to you"
    r"|let me know (?:which|whether|what|if you(?:['’]d)? (?:prefer|want me)))\b",
    _I,
)
_LISTED = lazy_regex(r"[-*•] |\d{1,2}[.)] |\*\*")
"""An item of a list is one of several ways, unless it says why it is taken."""
_OBSERVES = lazy_regex(
    r"\b(?:has|have|had|is|are|was|were|be|gets?|got|getting|shows?|returns?|still|adds?|adding|sees?|seeing|generates?"
    r"|expect\w*|hit(?:s|ting)?)\b[^.]{0,120}\b(?:instead|rather than)\b",
    _I,
)
"""What is one way and should be another: found while working, not chosen."""
_ON_THE_WAY = lazy_regex(
    r"^\W{0,4}(?:(?:so|but|and|now),? )?(?:the|one|another) (?:\w+ )?(?:issue|problem|symptom|bug|error|cause)\b"
    r"(?!.{0,200}\b(?:so (?:we|i)|decided|chose)\b)"
    r"|\bstill (?:has|have|points?|shows?|uses?|gets?)\b.{1,120}\binstead of\b"
    r"|\bis (?:still )?\w+ing\b.{1,120}\binstead of\b"
    r"|\bso (?:we|i) (?:can['’]t|cannot|won['’]t|could|know|go to|fall|end up|enter|hit"
    r"|take (?:the|a)\b.{1,100}\b(?:path|branch))\b"
    r"|\bis (?:false|true|none|null),? so (?:we|i)\b"
    r"|^so we(?: have (?!decided|chosen|to\b)|['’]re (?!going with|keeping|using|dropping))"
    r"|(?:\bwe could|\bwould (?:require|need)|\banother (?:approach|option|way)"
    r"|^\W{0,4}(?:another|one) (?:possible )?(?:way|fix|approach|option|possibility))\b"
    r"(?!.{0,200}\b(?:so (?:we|i)|decided|chose)\b)",
    _I,
)
"""A fault that was found, a step through code as it runs, a way that could be gone: nothing is settled by it."""
_CHOOSES = lazy_regex(
    r"\b(?:let['’]?s (?:go|use|keep|do|stick|leave|skip|drop|make|store|move|rename|not)|(?<!good to )go (?:with|for)"
    r"|i(?:['’]?d| would)? prefer\w?|(?:option|variant|approach) #?\w{1,2}|rather (?:than|not)|stick (?:with|to)"
    r"|we(?:['’]ll| will) (?:use|keep|go|do|stick|drop|not)"
    r"|(?:use|do|take|keep|make|put) [^.]{1,60} instead|do nothing|nehmen wir|lieber"
    r"|stattdessen|plutôt|on prend|mejor|prefiero|prefiro|meglio|prendiamo)\b"
    r"|лучше|давай|改用|还是用|就用|にしよう|にしましょう|으로 하자",
    _I,
)
"""How a user takes one of several ways."""
_SAYS_WHY = lazy_regex(
    r"\b(?:because|since|so that|in order to|to avoid|otherwise|that way|the reason|it (?:keeps|avoids|lets)"
    r"|this (?:way|keeps|avoids|means|makes|lets|gives)|simpler|cleaner|safer|faster|weil|damit|sonst|parce que"
    r"|pour éviter|porque|para evitar|perché)\b|потому|чтобы|因为|避免|ため|なので|때문",
    _I,
)
_NAMED_OPTION = lazy_regex(r"\b(?:option|variant|approach) #?(\w{1,2})\b", _I)
