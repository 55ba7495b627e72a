"""Which of ten languages a text of the user is written in."""

from __future__ import annotations

from functools import lru_cache

from leporello.lazy_regex import lazy_regex
from leporello.ledger.rule_score import vocabulary

LATIN = {
    "en": "the an is are to of and or for with it this that you we my not does was be please don't never always all new every only"
    " at by from if can each needs should must one when they them will would have has had there here what who our your no a use i i'm i'd i've i'll in on let's it's",
    "es": "el la los las un una son y o para en con de del que se por mi tu nunca siempre cada hay está al lo si más usa uses"
    " nada prefiero evita nuestro antes estoy mis no ahora hagas ese a como esta este muy sin pero sus todo toda tres dos nuestros",
    "de": "der die das ein eine ist sind und oder nicht mit für auf den dem zu ich wir du bitte kein keine nie niemals immer im"
    " auch wenn nur alle bei mir mich es unser jede ab statt deine verwende achte dich dir wird werden hat haben vor bis zwei drei"
    " etwas geht einen einem einer vom zum zur noch als was da man niemand brauchen braucht arbeitet keinen unsere",
    "fr": "le la les un une des est sont et ou ne pas pour dans sur avec je tu nous il elle du de au que qui jamais toujours ce"
    " cette mes mon si ça j'aimerais en à réponds n'utilise évite utilise chaque doit on seul seule tout tous aux nos leur avant",
    "pt": "o os um uma é são e ou não para em com de da dos das na no que se por meu você nunca sempre sem cada há ao está isso"
    " mais nada prefiro evite só à antes pergunte estou mantenha respostas vamos continuamos gostei a ao aos pelo pela nossos nossa têm até três dois seja toda todo",
    "it": "il lo la gli le un una è sono e o non con di del della che si mi tu mai sempre senza ogni su da al più nel sul niente"
    " preferisco evita usa dei nei d'ora poi tieni per file puoi fallisce dal nella alla degli delle siamo hanno prima tre due solo"
    " nostri nostro viene sii i",
}
"""Words by which a language in Latin letters is known; of two that know as many, the first is taken."""
LETTERS = {
    "de": frozenset("äöüß"),
    "es": frozenset("ñ¿¡"),
    "pt": frozenset("ãõ"),
    "fr": frozenset("èêœ"),
    "it": frozenset("òì"),
}
"""Letters that only one of them has."""
SHARED = frozenset("a no o e i in on en la de un una con que per se si tu use on es".split())
"""Words that more than one of them has: they tell less."""

_KNOWN_BY = {language: frozenset(known.split()) for language, known in LATIN.items()}
_WORD = lazy_regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SCRIPTS = (
    (lazy_regex(r"[\u3040-\u30ff]"), "ja"),
    (lazy_regex(r"[\uac00-\ud7af]"), "ko"),
    (lazy_regex(r"[\u3400-\u9fff]"), "zh"),
    (lazy_regex(r"[\u0400-\u04ff]"), "ru"),
)


@lru_cache(maxsize=8192)
def language_of(text: str) -> str:
    """The language a text is written in, English where nothing tells."""
    for script, language in _SCRIPTS if not text.isascii() else ():
        if script.search(text):
            return language
    spoken = set(map(str.casefold, _WORD.findall(text.replace("’", "'"))))
    letters = set(text.casefold())
    known = {
        language: 2 * len(known & spoken)
        - len(known & spoken & SHARED)
        + len(vocabulary(language) & spoken)
        + (not letters.isdisjoint(LETTERS.get(language, ())))
        for language, known in _KNOWN_BY.items()
    }
    best = max(known, key=known.__getitem__)
    return best if known[best] else "en"


def common_words(language: str) -> frozenset[str]:
    """Words by which a language is known: they say nothing of what a text is about."""
    return _KNOWN_BY.get(language, frozenset())
