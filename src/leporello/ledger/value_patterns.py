"""What a value looks like in a sentence, and the words that say it changed, in ten languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

import orjson

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.text_features.rare import RarePattern

_I = re.IGNORECASE


class ValueKind(StrEnum):
    """Values of one kind can take each other's place."""

    NUMBER = "number"
    """Amounts, versions and plain figures; what is counted is the unit."""
    DATE = "date"
    TIME = "time"
    NAME = "name"
    CODE = "code"
    """Identifiers, quoted words, paths, hosts and addresses."""
    COLOUR = "colour"


@cache
def _tables() -> Mapping[str, Any]:
    data: Mapping[str, Any] = orjson.loads(shipped("leporello.ledger", "value_words.json"))
    return data


@cache
def words(table: str) -> frozenset[str]:
    """The words of a table, as they are compared."""
    return frozenset(str(_tables()[table]).casefold().split())


@cache
def units() -> Mapping[str, str]:
    """What a number is of, by the word or sign behind it: one unit may take the place of another of the same row."""
    return {word: row for row, found in _tables()["units"].items() for word in found.split()}


def contrasts() -> list[str]:
    """Rows of words that name different things, what is said of one says nothing of another; `a/b` are the same.

    A row with a `~` counts in short sentences only: in long ones such words stand for other reasons too.
    """
    return list(_tables()["contrasts"])


_SPELT = (
    r"(?:(?:[二三四五六七八九两]|[一二三四五六七八九]?十[一二三四五六七八九]?)(?:点半?|[時时]半?)"
    r"|[一二三四五六七八九十两]{1,3}(?:分钟|岁|歳|楼|階|层|块|元|円|公斤|杯|米[一二三四五六七八九]{0,2}))"
)
"""Numbers in Chinese characters with what they measure, from hours to metres; "一点" is a little."""
_SHAPES = (
    _SPELT,
    r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|„[^“”\n]{1,80}[“”]|«[^»\n]{1,80}»|「[^」\n]{1,80}」|『[^』\n]{1,80}』",
    r"#[0-9a-fA-F]{3,8}\b",
    r"https?://[^\s)>\]`\"',]+",
    r"[$€£¥₽₩]\s?\d[\d.,]*",
    r"\d{1,2}\s?月\s?\d{1,2}\s?[日号號]|\d{1,2}월\s?\d{1,2}일|(?:星期|周)[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일",
    r"v?\d+(?:[.,:]\d+)*(?:[万億千百만억천]\d*){0,4}(?:\s?%|[A-Za-zµ°]{1,4}(?![^\W\u3041-\u9fff\uac00-\ud7a3]))?(?![A-Za-z0-9_À-ɏЀ-ӿ]|[-/@]\w)",
    r"[~.]{0,2}/?[A-Za-z0-9_À-ɏЀ-ӿ]+(?:[-./:@'’+]{1,2}[A-Za-z0-9_À-ɏЀ-ӿ]+)*(?:\.(?=\s\d))?",
    rf"(?:(?!(?:星期|周)[一二三四五六日天]|{_SPELT})[\u3400-\u9fff])+",
    r"[\u30a0-\u30ff]+",
    r"[\u3041-\u309f]+",
    r"[\uac00-\ud7a3]+",
    r"[,;:.()，。；：、—]",
)
SPELT = lazy_regex(_SPELT)
TOKEN = lazy_regex("|".join(_SHAPES))
"""The pieces of a sentence: quotations, addresses, figures, words, signs between them."""
UNSPACED_DAY = lazy_regex(r"(?:星期|周)[一二三四五六日天]|[月火水木金土日]曜|[월화수목금토일]요일")
CLAUSE_END = lazy_regex(r"[,;:—–]\s|\s(?:and|but|so|because|und|aber|et|mais|y|pero|e|mas|ma|и|но)\s|[，；。、]")
GOES_ON = lazy_regex(r"(?:it|that|this|they|he|she|es|das|er|sie|il|elle|ça|c'est|eso|isso|это|он|она|それ|这)\b", _I)
"""What a sentence begins with that goes on about what was said before."""
AT_HOUR = lazy_regex(r"(?:\bat|\bum|\balle|\bàs|\ba las|\bà|\bв|\bк)\s$", _I)
MEASURES = "个個名位张本次层楼号號室岁歳页条件台人年番"
TITLE = lazy_regex(r"\b(?:mrs?|ms|dr|prof|sig|sra?|mme?|hr|fr)\.$", _I)
CLOCK_UNIT = lazy_regex(r"\s?(?:[ap]\.?m\b|uhr\b|[点點時时](?!間|间)(?:\d{1,2}分|半)?|시(?!간)(?:\s?\d{1,2}분)?)", _I)
NAMING = lazy_regex(
    r"\b(?:called|named|name is|names?|heißt|namens|appelle|appelé\w*|llama\w*|chama\w*|chiama\w*)\s$"
    r"|(?:называется|зовут)\s$|[是叫为找由给]$",
    _I,
)
"""Before a name that is written like any other word."""
IS_THAT = lazy_regex(r"です|でした|さん|だ[。\s]")
DOES = lazy_regex(r"(?!\w+ing )[A-Z]\w*[^\Ws] (?!was )(?:is|has|will|\w+[^\Ws]s) ")
"""A name that somebody goes by, and what they do."""
BEFORE_ACRONYM = lazy_regex(
    r"\b(?:on|to|from|with|use|uses|using|at|via|auf|mit|von|bei|nach|sur|avec|chez|en|con|em|com|su|на|в|с|для)\s$"
    r"|(?-i:[\u3400-\u9fff])\s?$",  # with its case to be looked up, each of these letters took its time to compile
    _I,
)
GERMAN = lazy_regex(
    r"\A(?:Das|Die|Der|Den|Dem) |\b(?:der|ist|und|nicht|wir|auf|mit|dem|eine?|für|wird|wurde|zum|zur)\b|[äöüß]"
)
BEFORE_NAME = lazy_regex(
    r"\b(?:herr\w*|frau|dr|prof\w*|heißt|namens|nach|in|bei|von|mit|an|durch|aus|für|nehmen|nutzen|verwenden)\.?$", _I
)
UNSPACED_OWN = lazy_regex("我(?!们)|私|僕|저는|나는|제가|내가")
_KEY = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_SET = (
    rf"(?P<set>(?P<key>{_KEY})[ \t]*[=:][ \t]*[\"']?"
    r"(?P<value>(?=[*]|\S{0,20}\w)[^\s\"'`,;|&<>(){}$\\]{1,80}))[\"'`]?"
)
SETTING = lazy_regex(rf"\A(?:[^\s=]{{0,80}}[:→])?\s*(?:export |set |- |[\"'`]|ENV |env )*{_SET}")
"""A setting of a program, in a line of its own: `DB_HOST=10.0.0.7`."""
NEXT_SETTING = lazy_regex(rf"[ \t]+{_SET}")
SAID_SETTING = lazy_regex(rf"(?P<set>`(?P<key>{_KEY})`(?: (?!default)\w+){{1,3}} `(?P<value>[^`\s]{{1,80}})`)")
"""The same in a sentence: "`DB_HOST` is set to `10.0.0.7`"."""
HOLDS_SETTING = lazy_regex(r"[A-Z0-9]_[A-Z0-9]")
MAY_TELL_FIGURES = lazy_regex(r"\d|day\b|tag\b|[曜요星周]")
LEAD = lazy_regex(r"\s*(?:(?:[-*•>+]|\d{1,2}[.)])\s+)*(?:\[[^\]\n]{1,60}\]\s*)?(?:[A-Z]\w{1,20}:\s+(?=\S))?")
"""What stands before a sentence: marks of lists, a time in brackets, who speaks."""
_CODE_BEGINS = ("//", "<", "|", "#", "def ", "func ", "import ", "class ", "const ", "var ")
_CODE_OR_PROSE, _ONLY_IN_CODE = ("for ", "if ", "return ", "let "), frozenset("=({[")
_CODE_SIGNS = ("\t", '("', "'/", "➜", 'File "', ":=", "=>", "├", "└", "│", "==", "()", "->", "→")
_ASKS = tuple(
    f"{word} " for word in "why what how when where who which does do did can could should is are am would will".split()
)
_FILLER = lazy_regex(r"^(?:(?:h+m+|so|and|but|ok(?:ay)?|well|oh|wait)\b[\s,.!…]{1,4}){1,3}", _I)


ASKING_TAIL = lazy_regex(
    r"[,;.]\s(?:so |and )?(?:could|can|would|will|do|does|is|are|what|when|how|kannst|könntest|können|peux|pouvez"
    r"|puedes|podrías|pode|podes|puoi|можешь|можете)\b[^,;.]*\?$",
    _I,
)
"""A question behind something that was said: "My flight is KL1204, can you check it?"."""


def asks(sentence: str) -> bool:
    return "?" in sentence or "？" in sentence or _FILLER.sub("", sentence[:40])[:8].lower().startswith(_ASKS)


def is_no_statement(sentence: str) -> bool:
    """Whether it is code or a table: what stands there is not said."""
    return (
        sentence.endswith(("{", "}", ";", "\\"))
        or sentence.startswith(_CODE_BEGINS)
        or sentence.count("|") > 1
        or any(sign in sentence for sign in _CODE_SIGNS)
        or (sentence.startswith(_CODE_OR_PROSE) and (sentence.endswith(":") or not _ONLY_IN_CODE.isdisjoint(sentence)))
    )


# The next three read texts in small letters: to ignore case takes thrice the time.
CHANGE = lazy_regex("|".join(_tables()["patterns"]["change"]))
UNSPACED_NEGATES = lazy_regex("不|没|ない|않|안 ")
"""Beside an earlier value: it holds no longer."""
WEAK_CHANGE = lazy_regex("|".join(_tables()["patterns"]["weak_change"]))
"""Words of change that often mean nothing by it."""
SENT_AT = lazy_regex(r"^[\[(](?=[^\])\n]{0,40}\d{1,2}:\d\d)[^\])\n]{4,48}[\])]:?\s{0,4}")
"""The time of a message, as chats and logs put it before the words."""

ANNOUNCED = RarePattern(
    lazy_regex(
        r"(?<=[\w`)\]] )(?:now|no longer) (?!that\b|let\b|i\b|we\b|you\b)\w|\b(?:instead of|renamed|from now on)\b"
        r"|^\W{0,6}(?:after|nachher|après|después|depois|dopo|после|之后)\W{0,3}:"
        r"|\b(?:jetzt|nicht mehr|umbenannt|ab sofort|désormais|n'est plus|ahora|ya no|agora|já não|d'ora in poi"
        r"|non più)\b"
        r"|теперь|больше не|改为|改成|不再|に変更|になりました|이제|변경",
        _I,
    )
)
"""Says of something how it is from here on."""
CANCEL = lazy_regex("|".join(_tables()["patterns"]["cancel"]))
WANTED = lazy_regex(
    r"(?:(?:and|so|now|then|ok|okay|yes|please|but),? ){0,4}(?:add|make|implement|create|write|update|fix|do|does|run"
    r"|check|show|give|take|look|you|\d|can't wait)|(?:and )?yes\b",
    _I,
)
"""What somebody wants done, or says about you: nothing that could be out of date."""
REMARK = lazy_regex(
    r"(?:\w+: )?(?:sure|yeah|yes|wow|great|nice|cool|awesome|thanks|thank you|i'll|we'll|let's|let me|i'd"
    r"|i love|i like|i hope|i think|that's|that is|this is|these are|it's|there's)\b",
    _I,
)
"""How a remark begins, or what somebody is about to do: nothing that has a value."""
SUPPOSED = lazy_regex(
    r"\b(?:(?:would|could)(?! (?:you|rather)\b)|might|maybe|perhaps|suppose|imagine|for example|e\.g\.|used to"
    r"|previously|formerly|was once|vielleicht|könnte|würde|zum beispiel|früher|peut-être|quizás?|talvez|forse"
    r"|может быть|раньше)\b|也许|可能|かもしれ|아마|예를 들",
    _I,
)
"""Suppositions, examples and looks back: nothing that holds now."""
IN_CASE = lazy_regex(r"(?:^|, )si |\b(?:if|whether|wenn|falls|если)\b|如果|もし|만약", _I)
"""A user who says whom to ask if something fails says something that holds; an assistant mostly weighs what may be."""
PAST = lazy_regex("|".join(_tables()["patterns"]["past"]), _I)
"""Tells what happened: that something else happened later takes nothing back."""

UNSPACED_STOP = lazy_regex(
    "[\u3041-\u309f]+|我们|你们|他们|咱们|大家|现在|改成|改为|改到|改用|换成|换到|推迟到?|提前到?|调整|不再|而不是|已经|决定|确定|应该|需要"
    "|[的是在为了把将到成从和与跟我你他她它请定要用让就也都又还但很吧呢吗这那其及被给有个名于由找里以]"
)
