"""Importance: how much a unit tells for what it costs; scored once, when its message arrives.

The score is a weighted sum of a few features, the order in which units enter a fold. Rarity is counted over the
messages so far: a word that stood before tells less when it stands there again, so that restatements come last by
themselves. `weights.json` holds the weights; `scripts/fit_importance.py` makes it from question banks about recorded
sessions and public chat data. No feature knows a project, a file or a question.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache
from itertools import chain, repeat
from operator import mul, truediv

import orjson
from msgspec import Struct, field

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.ledger.units import PLACE

_OF_ALL = ("information", "length", "rarest_word", "mean_rarity", "new_words", "number", "opening")
_OF_OUTPUT = ("error", "number_in_output")
_OF_SPEECH = ("closing", "first_person", "name", "time")
_OF_MESSAGE = ("user", "tool", "from_files", "from_read", "from_edit", "from_check", "from_history", "long_message")
FEATURES = (*_OF_ALL, *_OF_OUTPUT, *_OF_SPEECH, *_OF_MESSAGE)

SHOWS_FILES = ("read", "search", "list")
"""Kinds of calls that show files as they are: they can be read again, and an error word in a source is no error."""
CHARS_PER_TOKEN = 3.2
LINE_OVERHEAD = 2
SHORT_MESSAGE_TOKENS = 48
PRIOR_MESSAGES = 50
"""Messages that are taken to have been there before the first: else every word of a beginning were rare."""

# Chinese, Japanese and Thai don't put spaces between words: pairs of characters stand for them.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_IS_UNSPACED = lazy_regex(f"[{_UNSPACED}]")
_WORD = lazy_regex(rf"[{_UNSPACED}]{{1,2}}|[^\W{_UNSPACED}]+")
_SPACED_WORD = lazy_regex(r"\w+")
"""The same where no such character stands, in half the time."""
_DIGIT = lazy_regex(r"\d")

_ERROR_WORDS = frozenset(
    "fail fails failed failing failure failures fatal panic denied refused cannot unable invalid traceback abort"
    " aborted missing undefined unexpected timeout conflict rejected killed fehler erreur ошибка ошибки"
    " 错误 失败 异常 無効 失敗 エラ".split()
)
COURTESY = frozenset(
    "you your yours thanks thank glad great awesome wow cool nice love amazing congrats yeah sounds welcome"
    " danke gern toll super merci génial gracias genial obrigado obrigada ótimo grazie prego fantastico спасибо отлично"
    " 谢谢 太好 あり りが 감사합니다 고마워".split()
)
_FIRST_PERSON = frozenset(
    "i my mine me we our ours us ich mein meine meinen wir unser unsere je mon ma mes nous notre nos yo mi mis"
    " nosotros nuestro nuestra eu meu minha nós nosso nossa io mio mia noi nostro nostra я мой моя моё мы наш наша"
    " 나는 내가 저는 제가 우리".split()
)
_FIRST_PERSON_CHARS = frozenset("我私僕俺")
_TIMES = frozenset(
    "yesterday today tomorrow tonight last next ago since until week weekend month year years monday tuesday"
    " wednesday thursday friday saturday sunday january february march april june july august september october"
    " november december gestern heute morgen letzte letzten letztes nächste nächsten nächstes seit woche"
    " wochenende monat jahr jahre jahren montag dienstag mittwoch donnerstag freitag samstag sonntag januar"
    " februar märz mai juni juli oktober dezember hier aujourd demain dernier dernière prochain prochaine depuis"
    " semaine mois an ans année années lundi mardi mercredi jeudi vendredi samedi dimanche janvier février avril"
    " juin juillet août septembre octobre novembre décembre ayer hoy mañana pasado pasada próximo próxima desde"
    " semana mes año años lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo"
    " junio julio agosto septiembre octubre noviembre diciembre ontem hoje amanhã passado passada mês meses ano"
    " anos segunda terça quarta quinta sexta janeiro fevereiro março maio junho julho setembro outubro novembro"
    " dezembro ieri oggi domani scorso scorsa prossimo prossima settimana mese anno anni lunedì martedì mercoledì"
    " giovedì venerdì sabato domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre"
    " вчера сегодня завтра прошлом прошлой прошлый следующий следующей неделе неделю неделя месяц месяце год года"
    " году лет назад понедельник вторник среду четверг пятницу субботу воскресенье января февраля марта апреля мая"
    " июня июля августа сентября октября ноября декабря 어제 오늘 내일 지난 다음 작년 내년 올해 주말"
    " 지난주 다음주".split()
)
_TIME_CHARS = frozenset("年月昨週周")
_NAME = lazy_regex(r"[A-Z\u00c0-\u00de\u0401\u0410-\u042f](?<=[^\W\d_]\s.|,\s.)\w")
"""A capital in the middle of a sentence."""


def words_of(text: str) -> list[str]:
    """The words of a text as they are counted, in order."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered.translate(_NO_WORD).split()
    (words,) = _words_of_units([text], lowered)
    return words


class Vocabulary(Struct):
    """How many of the messages so far hold a word."""

    messages: int = 0
    frequency: dict[str, int] = field(default_factory=dict)

    def add(self, words: Collection[str]) -> dict[str, float]:
        """Count a message in by its words, each once; returns how rare each of them is now."""
        self.messages += 1
        counts = [count + 1 for count in map(self.frequency.get, words, repeat(0))]
        self.frequency.update(zip(words, counts, strict=True))
        total = self.messages + PRIOR_MESSAGES + 1
        # There are far fewer counts than words.
        rarity = {count: math.log(total / (count + 0.5)) for count in set(counts)}
        return dict(zip(words, map(rarity.__getitem__, counts), strict=True))

    def rarity(self, word: str) -> float:
        """How rare a word is among the messages so far."""
        return math.log((self.messages + PRIOR_MESSAGES + 1) / (self.frequency.get(word, 0) + 0.5))


class Source(Struct, frozen=True):
    """Where units come from: who said them, for a result what kind of call, and the size of the whole message."""

    role: str
    chars: int
    total: int
    """The place of its last unit, plus one."""
    work: str = ""

    @property
    def features(self) -> tuple[float, ...]:
        """Those that all its units have alike, in the order of `_OF_MESSAGE`."""
        return (
            1.0 if self.role == "user" else 0.0,
            1.0 if self.role == "tool" else 0.0,
            1.0 if self.work in SHOWS_FILES else 0.0,
            *(1.0 if self.work == work else 0.0 for work in ("read", "edit", "check", "git_read")),
            max(0.0, math.log(max(1.0, self.chars / CHARS_PER_TOKEN) / SHORT_MESSAGE_TOKENS)),
        )


@cache
def weights(names: tuple[str, ...] = FEATURES) -> tuple[float, ...]:
    data = orjson.loads(shipped("leporello.ledger", "weights.json"))
    return tuple(float(data["weights"][name]) for name in names)


def user_weight() -> float:
    """What the user's words are worth more than others: in work, where they are requests; not between two people."""
    return weights(("user",))[0]


def score_units(vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]) -> list[float]:
    """The scores of a message's units (text, position), counted into the vocabulary as one message."""
    if not units:
        vocabulary.add(())
        return []
    scores = [sum(map(mul, weights(_OF_MESSAGE), source.features))] * len(units)
    for name, column in _own_features(vocabulary, source, units):
        (weight,) = weights((name,))
        if weight:
            scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
    return scores


def features_of(
    vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]
) -> Iterable[tuple[float, ...]]:
    """The features of each unit, in the order of `FEATURES`."""
    shared = {name: [value] * len(units) for name, value in zip(_OF_MESSAGE, source.features, strict=True)}
    columns = {**shared, **dict(_own_features(vocabulary, source, units))}
    return zip(*(columns.get(name, [0.0] * len(units)) for name in FEATURES), strict=True)


_NO_WORDS = [0.0]


def _own_features(
    vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, Iterable[float]]]:
    """The features that differ within a message, each as a column of all its units, in the order of `FEATURES`.

    There are dozens of units for each message: a column is worked out in half the time of its single values, and only
    when somebody reads it.
    """
    texts = [text for text, _ in units]
    lowered = "\n".join(texts).lower()
    if source.work in (*SHOWS_FILES, "edit"):
        lowered = PLACE.sub("", lowered)
    found = _words_of_units(texts, lowered)
    # In the order in which they stand: how a set happens to be laid out must decide nothing.
    rare = vocabulary.add(dict.fromkeys(chain.from_iterable(found)))
    total = vocabulary.messages + PRIOR_MESSAGES
    # A word that never stood before is as rare as any can be.
    newest, highest = math.log((total + 1) / 1.5), math.log(total)
    words, rarity = list(map(set, found)), rare.__getitem__
    values = [list(map(rarity, apart)) or _NO_WORDS for apart in words]
    # fsum: the same to the last bit in whatever order a set hands out its words.
    sums = list(map(math.fsum, values))
    yield "information", map(math.log, map((0.1).__add__, sums))
    yield "length", map(_log_of_length, map(len, texts))
    yield "rarest_word", (value / highest for value in map(max, values))
    yield "mean_rarity", map(truediv, sums, map(len, values))
    new = [rarities.count(newest) for rarities in values]
    yield "new_words", map({count: math.log1p(count * newest) for count in set(new)}.__getitem__, new)
    yield "number", _with_digit(rare, words)
    yield "opening", (not position for _, position in units)
    if source.role != "tool":
        yield from _of_speech(texts, [position == source.total - 1 for _, position in units], words)
        return
    if source.work not in SHOWS_FILES and _tells_error(lowered, rare.keys()):
        yield "error", map(_tells_error, map(str.lower, texts), words)
    yield "number_in_output", _with_digit(rare, words)


def _with_digit(rare: Iterable[str], words: Sequence[Set[str]]) -> Iterator[bool]:
    """Whether each unit has a figure, once somebody asks."""
    with_digit = {word for word in rare if not word.isalpha() and (word[-1].isdecimal() or _DIGIT.search(word))}
    yield from (not apart.isdisjoint(with_digit) for apart in words)


_NO_WORD = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_\n")}
_SIGNS = "→—–’‘“”…•·│├└─✓✗⎿"
"""Signs of no word that stand in much ASCII, the first before every line of a file that an agent reads."""


def _words_of_units(texts: Sequence[str], whole: str) -> list[list[str]]:
    """The words of each text, in order; `whole` is all of them in small letters.

    What is ASCII is taken apart without a pattern, in a fifth of the time.
    """
    if not whole.isascii():
        for sign in _SIGNS:
            whole = whole.replace(sign, " ")
    if whole.isascii():
        return _apart(whole.translate(_NO_WORD), texts)
    word = _WORD if _IS_UNSPACED.search(whole) else _SPACED_WORD
    lines = whole.split("\n") if whole.count("\n") < len(texts) else [text.lower() for text in texts]
    return [line.translate(_NO_WORD).split() if line.isascii() else word.findall(line) for line in lines]


def _apart(whole: str, texts: Sequence[str]) -> list[list[str]]:
    lines = (
        whole.split("\n") if whole.count("\n") < len(texts) else [text.lower().translate(_NO_WORD) for text in texts]
    )
    return [line.split() for line in lines]


@lru_cache(maxsize=1024)
def _log_of_length(chars: int) -> float:
    return math.log(chars / CHARS_PER_TOKEN + LINE_OVERHEAD)


def _of_speech(
    texts: Sequence[str], closing: Sequence[bool], words: Sequence[Set[str]]
) -> Iterator[tuple[str, Iterable[float]]]:
    yield "closing", closing
    yield "first_person", _with_any(_FIRST_PERSON, _FIRST_PERSON_CHARS, texts, words)
    yield "name", (_NAME.search(text) is not None for text in texts)
    yield "time", _with_any(_TIMES, _TIME_CHARS, texts, words)


def _with_any(some: Set[str], chars: Set[str], texts: Sequence[str], words: Sequence[Set[str]]) -> list[bool]:
    """Whether each text has one of some words, or one of the characters, none of which is ASCII."""
    return [
        not (apart.isdisjoint(some) and (text.isascii() or chars.isdisjoint(text)))
        for text, apart in zip(texts, words, strict=True)
    ]


def _tells_error(folded: str, words: Set[str]) -> bool:
    return "error" in folded or "exception" in folded or "not found" in folded or not words.isdisjoint(_ERROR_WORDS)


def explain(features: Sequence[float]) -> list[tuple[str, float]]:
    """Each feature's share of a score, largest first."""
    shares = zip(FEATURES, map(mul, weights(), features), strict=True)
    return sorted((share for share in shares if share[1]), key=lambda share: -abs(share[1]))
