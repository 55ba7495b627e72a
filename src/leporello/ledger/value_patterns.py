"""What a value looks like in a sentence, and the words that say it changed, in ten languages."""

from __future__ import annotations

import re
from enum import StrEnum

_I = re.IGNORECASE


class ValueKind(StrEnum):
    """Values of one kind can take each other's place."""

    NUMBER = "number"
    """Amounts, versions and plain figures; what is counted is the unit."""
    DATE = "date"
    TIME = "time"
    NAME = "name"
    """Names, identifiers and quoted words."""
    PLACE = "place"
    """Paths, hosts and addresses."""
    CANCELLED = "cancelled"


_MONTHS = (
    "jan(?:uary|uar|vier|eiro)?|enero|gennaio|января|feb(?:ruary|ruar|rero|braio)?|février|fevereiro|февраля"
    "|mar(?:ch|s|zo|ço)?|märz|марта|apr(?:il|ile)?|avril|abril|апреля|may|mai|mayo|maio|maggio|мая"
    "|june?|juni|juin|junio|junho|giugno|июня|july?|juli|juillet|julio|julho|luglio|июля"
    "|aug(?:ust)?|août|agosto|августа|sept?(?:ember|embre|iembre)?|setembro|settembre|сентября"
    "|oct(?:ober|obre|ubre)?|okt(?:ober)?|outubro|ottobre|октября|nov(?:ember|embre|iembre|embro)?|ноября"
    "|dec(?:ember)?|dez(?:ember|embro)?|décembre|diciembre|dicembre|декабря"
)
_WEEKDAYS = (
    "mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|saturday|sunday"
    "|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    "|lunes|martes|miércoles|jueves|viernes|sábado|domingo|segunda-feira|terça-feira|quarta-feira|quinta-feira"
    "|sexta-feira|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"
    "|понедельник|вторник|сред[ау]|четверг|пятниц[ау]|суббот[ау]|воскресенье"
)
_UNSPACED_DAYS = "[周星][期]?[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일"
_NUMERALS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety|hundred"
    "|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|zwanzig|dreißig"
    "|deux|trois|quatre|cinq|sept|huit|neuf|dix|douze|vingt|trente|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
    "|doce|veinte|treinta|dois|três|quatro|sete|oito|nove|dez|doze|vinte|trinta|due|tre|cinque|sei|otto|dieci|dodici"
    "|venti|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять|двадцать|тридцать|[两二三四五六七八九十]+(?=[个名天周次小分年人])"
)
_START = r"(?<![A-Za-z0-9_.])"
"""Where a figure begins; a Chinese character may stand right before it."""
_SHAPES = {
    "quoted": r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|„[^“”\n]{1,80}[“”]|«[^»\n]{1,80}»"
    r"|「[^」\n]{1,80}」|『[^』\n]{1,80}』",
    "address": r"https?://[^\s)>\]`\"',]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
    rf"|{_START}\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?|\blocalhost(?::\d+)?"
    r"|(?<![\w.-])[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,5}\.(?:com|org|net|io|dev|app|local|internal|lan|cloud)\b",
    "date": rf"{_START}\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d)|{_START}\d{{1,2}}\.(?:0[1-9]|1[0-2])\.(?:\d{{2,4}})?"
    rf"|{_START}\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?(?![\w/])"
    rf"|{_START}\d{{1,2}}(?:st|nd|rd|th|\.|er|º)?\s(?:of\s|de\s)?(?:{_MONTHS})\b(?:\s(?:de\s)?\d{{4}})?"
    rf"|\b(?:{_MONTHS})\s\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s\d{{4}})?|\d{{1,2}}\s?[月월]\s?\d{{1,2}}\s?[日号號일]"
    rf"|\d{{1,2}}\s?[号號日일](?![\w-])|\b(?:{_WEEKDAYS})s?\b|{_UNSPACED_DAYS}",
    "path": r"(?<![\w/.-])(?:~|\.{1,2})?/?[\w.-]{1,80}(?:/[\w.-]{1,80})+",
    "time": rf"{_START}\d{{1,2}}:\d{{2}}(?:\s?[ap]\.?m\b\.?)?|{_START}\d{{1,2}}\s?[ap]\.?m\b\.?"
    rf"|{_START}\d{{1,2}}(?:[.:]\d{{2}})?\suhr\b|{_START}\d{{1,2}}\s?h(?:\d{{2}})?\b|\bnoon\b|\bmidnight\b"
    r"|(?:[上下]午|午[前後]|오[전후])?\s?\d{1,2}\s?[点點時시](?:\d{1,2}分|半|\s?\d{1,2}분)?",
    "money": r"[$€£¥₽₩]\s?\d[\d.,]*(?<![.,])(?:\s?(?:k|m|million|billion)\b)?",
    "identifier": r"(?-i:(?<![\w.-])(?!\d+(?:st|nd|rd|th|[a-zA-Z]{1,3})\b)(?!\d+(?:[.,]\d+)*(?![\w-]))"
    r"(?=[A-Za-z0-9.-]*[\d_]|[\w-]+\.[a-z])(?=[\d_.-]*[A-Za-z])[A-Za-z0-9]{1,60}(?:[._-][A-Za-z0-9]{1,60}){0,9}(?!\w)"
    r"|\b[a-z]{2,40}[A-Z]\w{1,60}|\b[A-Z][a-z]{1,40}[A-Z]\w{1,60})",
    "number": rf"{_START}v?\d[\d.,]*(?<![.,])(?:\s?%|\s?[kKMG]?B\b|\s?ms\b)?",
    "numeral": rf"\b(?:{_NUMERALS})\b",
}
VALUE = re.compile("|".join(f"(?P<{name}>{shape})" for name, shape in _SHAPES.items()), _I)
_CAPITAL = "[A-ZÀ-ÖØ-ÞŁŚŠŽĆČА-ЯЁ]"
NAME = re.compile(rf"(?<![\w'’-]){_CAPITAL}[^\W\d_]+(?:[ -]{_CAPITAL}[^\W\d_]+){{0,2}}")
KINDS = {
    "quoted": ValueKind.NAME,
    "identifier": ValueKind.NAME,
    "address": ValueKind.PLACE,
    "path": ValueKind.PLACE,
    "date": ValueKind.DATE,
    "time": ValueKind.TIME,
    "money": ValueKind.NUMBER,
    "number": ValueKind.NUMBER,
    "numeral": ValueKind.NUMBER,
}
_KEY = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_SET = rf"(?P<set>(?P<key>{_KEY})[ \t]*[=:][ \t]*[\"']?(?P<value>[^\s\"'`,;|&<>(){{}}$\\]{{1,80}}))[\"'`]?"
SETTING = re.compile(rf"\A(?:[^\s=]{{0,80}}[:→])?\s*(?:export |set |- |[\"'`]|ENV |env )*{_SET}")
"""A setting of a program, in a line of its own: `DB_HOST=10.0.0.7`."""
NEXT_SETTING = re.compile(rf"[ \t]+{_SET}")
SAID_SETTING = re.compile(rf"(?P<set>`(?P<key>{_KEY})`(?: \w+){{1,3}} `(?P<value>[^`\s]{{1,80}})`)")
"""The same in a sentence: "`DB_HOST` is set to `10.0.0.7`"."""
LIST_MARK = re.compile(r"\A\s*(?:(?:[-*•>+]|\d{1,2}[.)])\s+)+")
CODE = re.compile(
    r"[{};\\]\s*$|:=|=>|[├└│]|\|.*\|"
    r"|^\s*(?://|<|\||#|def |func |for |if |return |import |from \S+ import |class |const |let |var )"
)
"""Code and tables: what stands there is not said."""

CHANGE = re.compile(
    r"(?<=[\w,;] )now\b|\b(?:instead|rather than|from now on|no longer|not any ?more|chang\w+|renam\w+|mov(?:e|ed"
    r"|ing) (?:it |this |that )?to"
    r"|mov(?:e|ed|ing)|switch\w*|replac\w+|updat\w+|postpon\w+|push(?:ed)? back|brought forward|resched\w+"
    r"|bump\w*|rais\w+|lower\w+"
    r"|increas\w+|decreas\w+|reduc\w+|correct(?:ion|ed)|actually|after all|scratch that|make (?:it|that)|new)\b"
    r"|\b(?:jetzt|nun|ab sofort|statt\w*|anstatt|nicht mehr|doch|geändert|umbenannt|verschoben|verleg\w+|ersetzt"
    r"|erhöht|gesenkt"
    r"|neu\w*|korrektur|nunmehr|umgezogen|umgestellt|wechsel\w+)\b"
    r"|\b(?:maintenant|désormais|dorénavant|plutôt|au lieu|finalement|n'est plus|ne .{1,20} plus|changé\w*"
    r"|renommé\w*|déplacé\w*"
    r"|reporté\w*|repoussé\w*|remplac\w+|passe\w* (?:à|de)|nouve\w+|correction)\b"
    r"|\b(?:ahora|en vez|en lugar|ya no|finalmente|al final|cambi\w+|renombr\w+|mov\w+ a|aplaz\w+|pospuest\w+"
    r"|reemplaz\w+|sustitu\w+"
    r"|nuev\w+|corrección|pasa\w* a)\b"
    r"|\b(?:agora|em vez|no lugar|já não|não é mais|afinal|mud\w+|renomea\w+|adiad\w+|adiámos|substitu\w+"
    r"|nov[oa]s?|correção|passa\w* a|passou)\b"
    r"|\b(?:adesso|ora|d'ora in poi|invece|al posto|non più|alla fine|cambiat\w+|rinominat\w+|spostat\w+"
    r"|rinviat\w+|sostituit\w+|nuov\w+"
    r"|correzione|passa\w* a)\b"
    r"|(?:теперь|вместо|больше не|отныне|изменил\w*|перенес\w+|перенёс\w*|переименов\w+|сменил\w*|заменил\w*"
    r"|обновил\w*|нов(?:ый|ая|ое|ые)"
    r"|перешл\w+|переехал\w*)"
    r"|现在|改成|改为|改到|改名|改用|换成|换到|推迟|提前|调整|不再|而不是|更新为|更正|已改|变更|挪到|移到"
    r"|変更|変わり|代わりに|ではなく|今後|これから|改名|延期|移動|になりました|に変え|新しい|もう.{0,10}ない"
    r"|이제|대신|변경|바뀌|바꾸|바꿨|옮겼|옮기|연기|더 이상|수정|새로운|새 ",
    _I,
)
ANNOUNCED = re.compile(
    r"(?<=[\w`)\]] )(?:now|no longer) (?!that\b|let\b|i\b|we\b|you\b)\w|\b(?:instead of|renamed|from now on)\b"
    r"|\b(?:jetzt|nicht mehr|umbenannt|ab sofort|désormais|n'est plus|ahora|ya no|agora|já não|d'ora in poi|non più)\b"
    r"|теперь|больше не|改为|改成|不再|に変更|になりました|이제|변경",
    _I,
)
"""Says of something how it is from here on."""
_GIVEN_UP = re.compile(
    r"(?:\b(?:from|instead of|rather than|not|no longer(?: \w+){0,3}|replac\w+|statt|anstatt|nicht(?: mehr)?|von"
    r"|vom|au lieu de"
    r"|n'est plus|plutôt que|de|du|en lugar de?l?|en vez de?l?|em vez d[eoa]|no lugar d[eoa]|invece d\w+"
    r"|al posto d\w+|da|dal|вместо|не|с)"
    r"|而不是|不是|不再是?|从|由)[\s`\"'“„«「(]*$",
    _I,
)
_GIVES_WAY = re.compile(
    r"[\s`\"'”“»」)]*(?:(?:to|into|nach|zu|auf|на)\b|->|→|から|ではなく|じゃなくて|에서|대신|(?:이|가)? ?아니라|改)",
    _I,
)


def given_up(text: str, start: int, end: int) -> bool:
    """Whether the value at this place is named as what was before: "from X to Y", "instead of X"."""
    return _GIVEN_UP.search(text, max(0, start - 30), start) is not None or _GIVES_WAY.match(text, end) is not None


CANCEL = re.compile(
    r"\b(?:cancel(?:l?ed|s)?|called off|call(?:ing)? off|scrapped|dropped|off the table|no longer (?:happening"
    r"|needed|planned|taking place)"
    r"|won't (?:happen|take place)|abgesagt|fällt aus|entfällt|gestrichen|storniert|findet nicht statt|annulé\w*"
    r"|supprimé\w*|n'aura pas lieu"
    r"|cancelad[oa]s?|anulad[oa]s?|suspendid[oa]s?|annullat[oa]|cancellat[oa]|disdett[oa]|saltat[oa])\b"
    r"|отмен[её]н\w*|отменил\w*|отменяется|не состоится|取消|作废|中止|キャンセル|取りやめ|취소",
    _I,
)
UNSURE = re.compile(
    r"[?？]\s*$|(?:^|, )si |\b(?:if|whether|would|could|might|maybe|perhaps|suppose|imagine|for example|e\.g\."
    r"|used to|previously|formerly|was once"
    r"|let me|i'll|wenn|falls|vielleicht|könnte|würde|zum beispiel|früher|peut-être|quizás?|talvez|forse|если"
    r"|может быть|раньше)\b"
    r"|如果|也许|可能|もし|かもしれ|만약|아마|예를 들",
    _I,
)
"""Questions, suppositions and looks back: nothing that holds now."""

LINKS = frozenset(
    "of for to by in at de du des d' della del do da das dos para pour für von zum zur di per для из о".split()
)
"""Small words that tie what follows to what stands before: the port *of* the worker."""

COUNTED = frozenset(
    """
    page part chapter step phase test item line section task issue row column figure attempt batch hunk round iteration
    day week question message file commit block module lesson unit exercise run job stage point number option
    seite teil kapitel schritt aufgabe zeile tag étape partie chapitre ligne página paso parte capítulo línea linha
    pagina passo capitolo riga страница шаг часть глава строка
    """.split()
)
"""Words whose number is which one of many: page 3 and page 4 are two pages."""

STOP = frozenset(
    """
    a about after again all also am an and any are as at be because been before being both but by can could did do
    does doing done down each else ever for from get got had has have he her here him his how i if in into is it its
    just let made make many may me might more most much must my new no nor not now of off on once one only onto or
    other our out over own same she should since so some still such than that the their them then there these they
    this those through to too under until up upon us very via was we were what when where whether which while who
    whom whose why will with within without would yet you your set use uses used using change changed keep put
    update updated switch switched run runs move moved take takes going go goes ok okay please yes fine today
    tomorrow instead rather longer anymore actually need needs want wants like think know say says said note
    remember decided decide agreed confirmed correction currently exactly around roughly least per always never
    first really let's we'll i'm it's that's der die das den dem des ein eine einen einem einer eines und oder aber
    ist sind war wird werden wurde wir ich ihr sie er es nicht kein keine mit von vom zu zum zur auf aus bei für im
    ab um als auch noch nur schon wie wenn dann jetzt nun statt anstatt sofort doch bitte soll sollen haben hat
    hatte liegt läuft heißt unser unsere unseren unserem mein sich nach bis über unter vor durch mehr neu neue neuen
    neuer findet le la les un une du de d l et ou mais est sont était sera ont avons nous je vous il elle ils ne pas
    plus avec pour par sur dans en au aux ce cet cette ces se son sa ses notre nos votre qui que quoi dont où
    maintenant désormais plutôt lieu finalement doit faut el los las unos unas y o pero fue será han hemos ha
    nosotros yo usted él ella con para por sobre al del lo su sus nuestro nuestra mi quien donde ahora vez lugar ya
    finalmente está están queda os uma uns umas e mas é são foi tem temos nós eu você ele ela não com em na nas ao à
    da dos seu sua nosso nossa meu minha quem onde agora já fica ficou gli uno una ma è sono era sarà abbiamo noi io
    voi lui lei non nel nella alla della dei delle di dal dalla suo nostro nostra mio mia che chi dove adesso ora
    invece più sta и или но а же это этот эта эти был была было были будет есть мы я вы он она они не ни с со в во
    на по из от до для о об к ко у за при как что кто где когда наш наша наше мой моя теперь вместо больше уже нам
    нас его её их
    """.split()
)
UNSPACED_STOP = re.compile(
    "[\u3041-\u309f]+|我们|你们|他们|咱们|大家|现在|改成|改为|改到|改用|换成|换到|推迟到?|提前到?|调整|不再|而不是|已经|决定|确定|应该|需要"
    "|[的是在为了把将到成从和与跟我你他她它请定要用让就也都又还但很吧呢吗这那其及被给有个名于由]"
)
CONTRASTS = (
    "staging production prod dev development test testing demo live prüfung pruebas producción produção"
    " produzione teste"
    " тестов прода продак",
    "frontend backend server client api worker web mobile",
    "read write",
    "upload download",
    "min max minimum maximum",
    "morning afternoon evening night",
    "left right",
    "north south east west",
    "primary secondary replica backup main",
    "first second third fourth last",
    "input output",
    "old new",
    "start end begin finish open close launch",
    "arrival departure outbound return",
    "adult child",
    "weekday weekend",
    "before after",
    "up down",
    "low high",
    "public private internal external",
    "daily weekly monthly yearly annual",
    "connect request read idle session",
    "ios android windows linux macos",
    "basic standard premium pro enterprise free",
    "breakfast lunch dinner",
    "principal secondaire secundario secundário primario",
    "测试 生产 开发 预发 正式",
    "前端 后端",
    "上传 下载",
    "開発 本番 検証",
    "개발 운영 테스트",
)
"""Words of one row name different things: what is said of one says nothing of another."""
