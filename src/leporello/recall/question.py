"""What a query asks: the words to look for, their synonyms, and the type of answer it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from msgspec import Struct

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.ledger.things import things_in
from leporello.text_features.words import index_words, query_words, stem

RELATIVE = 0.6
"""What a relative of a word counts for, beside 1 for the word itself."""
MEMBER = 0.35
"""What a thing of the kind that was asked for counts: `pottery` for `hobby`."""


@cache
def _groups() -> dict[str, tuple[tuple[str, float], ...]]:
    related: dict[str, dict[str, float]] = {}
    for line in shipped("leporello.recall", "relatives.txt").decode().splitlines():
        left, kind, right = line.partition("#")[0].partition(">")
        words = query_words(left)
        others = query_words(right) if kind else words
        for word in words:
            known = related.setdefault(word, {})
            for other in others:
                if other != word:
                    known[other] = max(known.get(other, 0.0), MEMBER if kind else RELATIVE)
    return {word: tuple(others.items()) for word, others in related.items()}


def synonyms_of(word: str) -> tuple[tuple[str, float], ...]:
    """The words (as the index spells them) that may stand for this one, and what they count for."""
    return _groups().get(word, ())


class AnswerType(StrEnum):
    USER = "what the user said"
    AGENT = "what the agent said"
    ERROR = "an error"
    PLACE = "a file or a line"
    COMMIT = "a commit id"
    AMOUNT = "a number"
    TALLY = "the result line of a run"
    REASON = "a reason or a decision"
    NAME = "a name in code"
    ADDRESS = "an address"
    COMMAND = "a command"
    COLOUR = "a colour"
    VERSION = "a version"
    TEST = "a test"
    DATE = "a date"
    RULE = "a rule"
    DEFINITION = "where something is defined"
    EVENT = "what happened"


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return lazy_regex("|".join(alternatives), re.IGNORECASE)


_WANTS: tuple[tuple[AnswerType, re.Pattern[str]], ...] = (
    (
        AnswerType.USER,
        _pattern(
            # Who asks in the first person asks about what they said themselves.
            r"\b(?:users?|customer|my|me|mine|myself|ich|mein\w*|mir|mich|je|mon|mes|yo|eu|meu|minha|mio|mia)\b",
            r"(?<![\w/.])I(?![\w/.])",
            r"\b(?:я|мой|моя|моё|мои|мне|меня)\b",
            "用户|我|私|僕|제가|내가",
        ),
    ),
    (AnswerType.AGENT, _pattern(r"\b(?:agent|assistant)\b", "助手")),
    (
        AnswerType.ERROR,
        _pattern(
            r"\b(?:errors?|complain\w*|complaint|panic\w*|fail\w*|fatal|break\w*|broke\w*|crash\w*|die[ds]?|refus\w*|"
            r"reject\w*|object(?:ed|ion)?|exception|\w+Error|lint\w*|report(?:ed|s)?|message|warn\w*|wrong|missing|"
            r"undefined|den(?:y|ied)|trouble|symptom|abort\w*|stop(?:ped)?|unable|went wrong)\b",
            "错误|报错|失败|异常|警告",
        ),
    ),
    (
        AnswerType.PLACE,
        _pattern(
            r"\b(?:which|what)\s+(?:\w+\s+){0,3}(?:files?|lines?|paths?|modules?|locations?|positions?|director\w+|"
            r"folders?)\b",
            r"\bwhere\b",
            r"\bfile and\b",
            r"\bline(?: number)?s?\b",
            "哪个文件|哪一行|哪里|路径",
        ),
    ),
    (AnswerType.COMMIT, _pattern(r"\b(?:hash|sha|commit(?:ted|s)?|revision)\b", "提交|哈希")),
    (
        AnswerType.AMOUNT,
        _pattern(
            r"\bhow (?:many|large|big|long|much|far|deep|often|old|high|wide|fast|small)\b",
            r"\b(?:size|count|tally|total|sum|statistics|figures?|thresholds?|number of|limit|length|duration|"
            r"percent\w*|amount|timeout|port|price|cost|rate|maximum|minimum|version|release|value)\b",
            r"\b(?:until )?when\b",
            "多少|几个|多大|多长|多久",
        ),
    ),
    (
        AnswerType.TALLY,
        _pattern(
            r"\bstat(?:istics|s)?\b|\bhow (?:large|big|long|many)\b|\b(?:tally|report\w*|summary|closing|passed|passes|"
            r"test run|took|take|duration|outcome|result|total|sum|diff)\b",
            "结果|统计|耗时",
        ),
    ),
    (
        AnswerType.REASON,
        _pattern(
            r"\bwhy\b|\breason\w*|\bargu\w*|\bgrounds?\b|\bbecause\b|\bdeci\w*|\bconclu\w*|\binfer\w*|\breali[sz]\w*|"
            r"\badmit\w*|\bconsequence\w*|\bcauses?\b|\bbenefit\w*|\badvantage\w*|\bdrawback\w*|\brisks?\b|\bapproach\w*|"
            r"\bhow (?:was|were|did|does|do|should|is|are|can|will)\b|\bturned out\b|\bproblems?\b|\bidea\b|"
            r"\bpropos\w*|\bsuggest\w*|\brecommend\w*|\bpurpose\b|\bexpla\w*|\bthink\b|\bthought\b|\bopinion\b|\bplan\w*|"
            r"\bchoice\b|\bchose\b|\bprefer\w*|\btrade-?offs?\b",
            "为什么|原因|为何|决定|理由",
        ),
    ),
    (
        AnswerType.NAME,
        _pattern(
            r"\b(?:names?|named|naming|called|method|function|helper|constant|symbol|variable|field|class|expression|"
            r"signature|flag|option|setting|command|id|identifier|locator|label|test|code|type|key|module|package|"
            r"branch|tool|parameter|property|attribute|event|endpoint|table|column)\b",
            "名字|名称|函数|方法|变量",
        ),
    ),
    (
        AnswerType.ADDRESS,
        _pattern(
            r"\b(?:urls?|address\w*|links?|hosts?|ports?|endpoints?|servers?|origins?|where|site|e-?mail)\b",
            "地址|链接|端口",
        ),
    ),
    (
        AnswerType.COMMAND,
        _pattern(
            r"\b(?:commands?|runs?|ran|execut\w*|invok\w*|flags?|options?|launch\w*|start\w*|restart\w*|steps?|shell)\b",
            "命令",
        ),
    ),
    (AnswerType.COLOUR, _pattern(r"\b(?:colou?rs?|hues?|gr[ae]ys?|green|red|blue|yellow|shade|hex)\b", "颜色")),
    (AnswerType.VERSION, _pattern(r"\b(?:versions?|releases?|pinned|upgrade\w*)\b", "版本")),
    (AnswerType.TEST, _pattern(r"\b(?:tests?|specs?|assert\w*|checks?|suite)\b", "测试")),
    (
        AnswerType.DATE,
        _pattern(r"\b(?:when|date|day|time|valid|expir\w+|deadline|schedule\w*)\b", "什么时候|日期|何时"),
    ),
    (
        AnswerType.DEFINITION,
        _pattern(r"\b(?:defin\w+|declar\w+|implemented|introduced|lives?|located)\b", "定义|声明|实现"),
    ),
    (
        AnswerType.EVENT,
        _pattern(r"\b(?:happen\w*|occur\w*|result(?:ed)?|outcome|came out|go(?:es)? wrong|went)\b", "发生|结果"),
    ),
    (
        AnswerType.RULE,
        _pattern(
            r"\b(?:must|should|instruct\w*|rules?|demand\w*|requir\w*|want\w*|prohibit\w*|forbid\w*|forbidden|allowed|"
            r"limits?|insist\w*|prefer\w*|ask(?:ed)?|told|order(?:ed)?|never|always|task|constraint\w*|polic\w+)\b",
            "要求|规则|必须|禁止",
        ),
    ),
)
_SHAPE = lazy_regex(
    r"\?|？|^\s*(?:who|whom|whose|what|which|when|where|why|how|did|does|do|is|are|was|were|can|could|should|according)\b|"
    r"\b(?:what|which|why|how|where) (?:did|does|do|is|was|were|are|the|should|many|long|large)\b|什么|为何|多少|哪",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """Whether a query asks, rather than naming words to look for."""
    return _SHAPE.search(text) is not None


def answer_types(text: str) -> frozenset[AnswerType]:
    """What a query wants; nothing unless it is a question."""
    if not is_question(text):
        return frozenset()
    return frozenset(want for want, pattern in _WANTS if pattern.search(text))


ANSWER_WORD = 0.5
"""`file`, `line`, `hash`, `error` say what is asked for more than what it is about."""
QUOTED = 1.3
"""Words the query quotes stood in the text exactly so."""
THING = 0.4
"""A thing that is asked about, whatever it is called."""
MOST_TERMS = 64


class Term(Struct, frozen=True):
    """One word of the query with those that may stand for it, and how much it counts."""

    weight: float
    words: tuple[tuple[str, float], ...]
    """The word itself (1.0) first, then its relatives."""

    @property
    def is_thing(self) -> bool:
        """Whether it stands for a thing by whatever name, and not for a word of the question."""
        return self.words[0][0].startswith("@")


@dataclass(frozen=True, slots=True)
class Question:
    terms: tuple[Term, ...]
    wants: frozenset[AnswerType]
    is_question: bool
    """Bare words are meant as they are; a question may be answered in other words."""


_ANSWER_WORDS = frozenset(
    stem(word)
    for word in (
        "file line column path location position name hash id commit error message number value word sentence argument "
        "reason method function helper command step user agent assistant"
    ).split()
)
_SPOKEN = lazy_regex(r"(?<![\w./:@-])(?:[A-Z]?[a-z]+|[A-Z]+)(?:-[a-z]+)*(?![\w/:@]|\.\w|-\w)")
_QUOTATION = lazy_regex(r"`([^`]+)`|\"([^\"]+)\"|“([^“”]+)”|(?<!\w)'([^']+)'(?!\w)")


def understand(text: str, plainly: bool = False) -> Question:
    """Read a query; `plainly` takes its words and nothing else."""
    quoted = {word for found in _QUOTATION.finditer(text) for word in index_words(found.group())}
    wanted = query_words(text)[:MOST_TERMS]
    if plainly:
        return Question(tuple(Term(1.0, ((word, 1.0),)) for word in wanted), frozenset(), False)
    spoken = {word for found in _SPOKEN.finditer(text) for word in index_words(found.group())}
    terms = [_term(word, word in quoted, word in spoken) for word in wanted]
    if is_question(text):
        # By another name too: "Who is my manager?" is answered by "I report to ...".
        terms += [Term(THING, ((thing, 1.0),)) for thing in sorted(things_in(text))]
    return Question(tuple(terms), answer_types(text), is_question(text))


def _term(word: str, quoted: bool, spoken: bool) -> Term:
    weight = QUOTED if quoted else ANSWER_WORD if word in _ANSWER_WORDS else 1.0
    # Names in code and quotations mean exactly what they say.
    others = synonyms_of(word) if spoken and not quoted else ()
    return Term(weight, ((word, 1.0), *others))
