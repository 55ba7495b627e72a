"""Importance: how much a unit tells for what it costs; scored once, when its message arrives.

The score is a weighted sum of a few features, the order in which units enter a fold. Rarity is counted over the
messages so far: a word that stood before tells less when it stands there again, so that restatements come last by
themselves. `weights.json` holds the weights; `scripts/fit_importance.py` makes it from question banks about recorded
sessions and public chat data. No feature knows a project, a file or a question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from operator import mul

import orjson

FEATURES = (
    "information",
    "length",
    "rarest_word",
    "mean_rarity",
    "new_words",
    "number",
    "opening",
    "closing",
    "user",
    "tool",
    "error",
    "number_in_output",
    "from_read",
    "from_edit",
    "from_check",
    "from_history",
    "long_message",
    "courtesy",
    "first_person",
)

CHARS_PER_TOKEN = 3.2
LINE_OVERHEAD = 2
SHORT_MESSAGE_TOKENS = 48
PRIOR_MESSAGES = 50
"""Messages that are taken to have been there before the first: else every word of a beginning were rare."""

# Chinese, Japanese and Thai don't put spaces between words: pairs of characters stand for them.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\W{_UNSPACED}]+")
_DIGIT = re.compile(r"\d")

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
_WORK_FEATURES = {"read": "from_read", "edit": "from_edit", "check": "from_check", "git_read": "from_history"}


def words_of(text: str) -> list[str]:
    """The words of a text as they are counted, in order."""
    return _WORD.findall(text.lower())


@dataclass(slots=True)
class Vocabulary:
    """How many of the messages so far hold a word."""

    messages: int = 0
    frequency: dict[str, int] = field(default_factory=dict)

    def add(self, words: Iterable[str]) -> dict[str, float]:
        """Count a message in; returns how rare each of its words is now."""
        self.messages += 1
        frequency = self.frequency
        total = self.messages + PRIOR_MESSAGES + 1
        found: dict[str, float] = {}
        for word in words:
            count = frequency[word] = frequency.get(word, 0) + 1
            found[word] = math.log(total / (count + 0.5))
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """Where units come from: who said them, for a result what kind of call, and the size of the whole message."""

    role: str
    chars: int
    total: int
    """The place of its last unit, plus one."""
    work: str = ""

    @property
    def long(self) -> float:
        return max(0.0, math.log(max(1.0, self.chars / CHARS_PER_TOKEN) / SHORT_MESSAGE_TOKENS))


@cache
def weights() -> tuple[float, ...]:
    data = orjson.loads(files("leporello.ledger").joinpath("weights.json").read_bytes())
    return tuple(float(data["weights"][name]) for name in FEATURES)


def score_units(vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]) -> list[float]:
    """The scores of a message's units (text, position), counted into the vocabulary as one message."""
    table = weights()
    return [sum(map(mul, table, row)) for row in features_of(vocabulary, source, units)]


def features_of(
    vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]
) -> Iterable[tuple[float, ...]]:
    """The features of each unit, in the order of `FEATURES`."""
    words = [set(words_of(text)) for text, _ in units]
    # In a fixed order: sums of floats must not depend on how a set happens to be laid out.
    rarity = vocabulary.add(sorted(set().union(*words)))
    newest = {word for word in rarity if vocabulary.frequency[word] == 1}
    highest = math.log(vocabulary.messages + PRIOR_MESSAGES)
    return [
        _features(text, position, found, rarity, newest, highest, source)
        for (text, position), found in zip(units, words, strict=True)
    ]


def _features(
    text: str,
    position: int,
    words: Set[str],
    rarity: Mapping[str, float],
    newest: Set[str],
    highest: float,
    source: Source,
) -> tuple[float, ...]:
    # fsum: the same to the last bit in whatever order a set hands out its words.
    values = [rarity[word] for word in words]
    total = math.fsum(values)
    tool = source.role == "tool"
    number = 1.0 if _DIGIT.search(text) else 0.0
    return (
        math.log(0.1 + total),
        math.log(len(text) / CHARS_PER_TOKEN + LINE_OVERHEAD),
        max(values, default=0.0) / highest,
        total / max(1, len(values)),
        math.log1p(math.fsum(rarity[word] for word in words & newest)),
        number,
        1.0 if position == 0 else 0.0,
        1.0 if position == source.total - 1 and not tool else 0.0,
        1.0 if source.role == "user" else 0.0,
        1.0 if tool else 0.0,
        1.0 if tool and _tells_error(text, words) else 0.0,
        number if tool else 0.0,
        1.0 if source.work == "read" else 0.0,
        1.0 if source.work == "edit" else 0.0,
        1.0 if source.work == "check" else 0.0,
        1.0 if source.work == "git_read" else 0.0,
        source.long,
        0.0 if tool or words.isdisjoint(COURTESY) else 1.0,
        1.0 if not tool and _first_person(text, words) else 0.0,
    )


def _tells_error(text: str, words: Set[str]) -> bool:
    folded = text.lower()
    return "error" in folded or "exception" in folded or "not found" in folded or not words.isdisjoint(_ERROR_WORDS)


def _first_person(text: str, words: Set[str]) -> bool:
    return not words.isdisjoint(_FIRST_PERSON) or not _FIRST_PERSON_CHARS.isdisjoint(text)


def explain(features: Sequence[float]) -> list[tuple[str, float]]:
    """Each feature's share of a score, largest first."""
    shares = zip(FEATURES, map(mul, weights(), features), strict=True)
    return sorted((share for share in shares if share[1]), key=lambda share: -abs(share[1]))
