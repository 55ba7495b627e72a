"""When a later sentence of the user takes an earlier rule back or lifts its ban, beside English and Chinese.

What such a sentence says is known by the signs of its language ("nicht mehr", "ya puedes"); what it is about, by words
that are neither signs nor among the commonest. Two forms of one word share its beginning in each of these languages.
`leporello.ledger.rule_conflicts` reads English and Chinese, of which it knows more.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile

from leporello.lazy_regex import lazy_regex
from leporello.ledger import rules
from leporello.ledger.language import common_words, language_of
from leporello.ledger.rule_score import signs_of, vocabulary

_WORD = lazy_regex(
    r"[\u30a0-\u30ff]+|[\u3400-\u9fff]+|[\uac00-\ud7af]+|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\d+"
)
_THINGS = frozenset("form need people task order fails name".split())
"""Signs whose words name what a sentence is about."""
_LEAST_LETTERS, _LEAST_SYLLABLES = 4, 2
_ENDING_LETTERS, _ENDING_SYLLABLES = 3, 2
"""How much of the longer of two forms may differ."""
_LEAST_SHARE = 0.5
"""How much of what the later sentence is about the earlier one has to speak of."""
_NEGATIVE = frozenset(("neg", "ban", "never"))
_FORBIDS = frozenset(("order", "please", "ban", "never"))
_ONE_CASE, _GENERAL = frozenset(("this", "nth")), frozenset(("scope", "lifts"))


def takes_back(earlier: str, later: str) -> bool:
    """Whether the later sentence says that the earlier one no longer holds, or allows for good what it forbade."""
    found = _signs(later)
    if "question" in found or "once" in found:
        return False
    old, new = _content(earlier), _content(later)
    # Who says that he takes something back names it as he likes; leave is for what it names alone.
    if _are_apart(old, new) and ("revoke" not in found or "no_more" in found):
        return False
    if "revoke" in found:
        # "Bitte nicht mehr auf main pushen" says a ban again; what has to be no longer takes one back.
        if "no_more" in found and _signs(earlier) & _NEGATIVE and found & _FORBIDS:
            return False
    elif found & _ONE_CASE or not found & _GENERAL or not (rules.permits(later) or "polite" in found):
        return False
    return _is_about(old, new)


@lru_cache(maxsize=8192)
def _signs(sentence: str) -> frozenset[str]:
    return signs_of(sentence, language_of(sentence))


@lru_cache(maxsize=8192)
def _content(sentence: str) -> tuple[str, ...]:
    """What a sentence is about: its words without signs, without common and short ones."""
    language = language_of(sentence)
    known = vocabulary(language, _THINGS) | common_words(language)
    words = dict.fromkeys(_WORD.findall(sentence.lower()))
    return tuple(word for word in words if word not in known and len(word) >= _least(word))


def _least(word: str) -> int:
    return _LEAST_SYLLABLES if _is_syllabic(word) or word.isdigit() else _LEAST_LETTERS


def _is_syllabic(word: str) -> bool:
    return word[0] >= "\u3040"


def _is_about(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    shared = sum(any(_same(word, other) for other in old) for word in new)
    return shared >= max(1, _LEAST_SHARE * len(new))


def _are_apart(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """Whether each names something that the other does not: leave for one table lifts no ban on another."""
    return _names_another(old, new) and _names_another(new, old)


def _names_another(words: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether one of the words is none of the others; a short word of a script of syllables may be a verb's ending."""
    return any(
        not any(_same(word, other) for other in others)
        for word in words
        if not _is_syllabic(word) or len(word) > _LEAST_SYLLABLES
    )


def _same(one: str, other: str) -> bool:
    """Whether two words may be forms of one."""
    if one == other:
        return True
    ending = _ENDING_SYLLABLES if _is_syllabic(one) else _ENDING_LETTERS
    least = max(_least(one) - 1, max(len(one), len(other)) - ending)
    begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return not one.isdigit() and begin >= least
