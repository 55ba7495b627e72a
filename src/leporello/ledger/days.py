"""The day on which something was said, where messages tell it: "yesterday" means nothing to whoever reads it later."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter

from leporello.lazy_regex import lazy_regex

STAMP_CHARS = 60


def split_stamp(text: str) -> tuple[str, str]:
    """The day that a message begins with, as it is written there, and what was said; a line of a log has none."""
    if text[:1] not in "[(" or (stamp := _STAMP.match(text)) is None:
        return "", text
    day = _DAY.search(stamp[1])
    rest = text[stamp.end() :]
    beside = f"{stamp[1][: day.start()]} {stamp[1][day.end() :]}" if day else ""
    if day is None or not all(map(_TIME.fullmatch, _WORD.findall(beside))):
        return "", text
    if not rest.strip() or rest[0] == "(" or _LOGS.match(rest) or _STAMPED_LINE.search(rest):
        return "", text
    return day[0], rest


def told_with_day(text: str, day: str) -> str:
    """Words that name a day by how far off it is, behind the day on which they were said."""
    if not day or not _RELATIVE.search(text) or _STAMP.match(text):
        return text
    return f"[{day}] {text}"


def carried(days: Mapping[int, str]) -> list[tuple[int, str]]:
    """Days that hold until the next one is told, in order: programs stamp the first message of each. One day alone may
    be that of its message only."""
    return sorted(days.items()) if len(set(days.values())) > 1 else []


def day_before(number: int, days: Sequence[tuple[int, str]]) -> str:
    """The day of the last message that tells one, up to a number."""
    place = bisect_right(days, number, key=itemgetter(0))
    return days[place - 1][1] if place else ""


_MONTH = (
    r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|fév|fev|avr|juin|juil|aoû|déc"
    r"|gen|mag|giu|lug|set|ott|янв|фев|мар|апр|ма[йя]|июн|июл|авг|сен|окт|ноя|дек)[^\W\d_]{0,9}\.?"
)
_STAMP = lazy_regex(rf"[\[(]([^\[\]()\n]{{6,{STAMP_CHARS}}})[\])][ \t]*")
_DAY = lazy_regex(
    rf"\b\d{{4}}-\d\d-\d\d(?!\d)|\b\d{{4}}/\d\d?/\d\d?\b|\b\d\d?[./]\d\d?[./]\d{{2,4}}\b"
    rf"|\b\d\d?(?:st|nd|rd|th|\.)?[ -](?:de )?{_MONTH}(?:,| de)?[ -]\d{{4}}\b"
    rf"|\b{_MONTH}[ -]\d\d?(?:st|nd|rd|th)?,?[ -]\d{{4}}\b|\d{{4}}年\d\d?月\d\d?日|\d{{4}}년 ?\d\d?월 ?\d\d?일",
    re.IGNORECASE,
)
_WORD = lazy_regex(r"[^\W_]+")
_TIME = lazy_regex(
    r"T?\d{1,2}(?:[apAP][mM]|h|T|Z)?|\d{3,6}Z?|[ap]m|[ap]|m|at|on|um|uhr|h|à|às|las|alle|le|el|il|den|am|в|z|utc|gmt|ces?t"
    r"|[ecmp][sd]t|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|mo|di|mi|do|fr|sa|so|(?:lun|mar|mer|jeu|ven|sam|dim|mié|jue|vie|sáb|dom|seg|ter|qua|qui|sex|gio|sab)[^\W\d_]{0,8}"
    r"|пн|вт|ср|чт|пт|сб|вс|星期.|周.|[月火水木金土日](?:曜日)?|[월화수목금토일](?:요일)?|\d{1,2}[时点時시](?:\d{1,2}[分분])?",
    re.IGNORECASE,
)
"""Words that stand beside a date where nothing but the time is told: no title of a file or of a picture."""
_LOGS = lazy_regex(r"\W{0,3}(?:(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|[\w.-]{1,60}\[\d+\])")
_STAMPED_LINE = lazy_regex(rf"^[\[(][^\[\]()\n]{{0,20}}\d\d[^\[\]()\n]{{0,{STAMP_CHARS}}}[\])]", re.MULTILINE)
"""Further lines of the kind: a log or a chat that the user passes on."""
_RELATIVE = lazy_regex(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:last|next|this|past|coming|previous)[ ](?:few[ ]|two[ ]|couple[ ]of[ ])?(?:mornings?|afternoons?|evenings?"
    r"|nights?|days?|weeks?|weekends?|months?|years?|spring|summer|autumn|fall|winter|(?:mon|tues?|wed|thurs?|fri|sat|sun"
    r"|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\w{0,8})"
    r"|in[ ](?:an?|two|three|\d{1,3})[ ](?:hours?|days?|weeks?|months?)"
    r"|gestern|heute|vorgestern|übermorgen|morgen[ ](?:früh|abend|um)|(?:letzte|nächste|diese|kommende)\w{0,2}[ ]\w+"
    r"|vor[ ]\w+[ ](?:tagen|wochen|monaten|jahren)|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|hier|aujourd['’]hui|demain|il[ ]y[ ]a[ ]\w+[ ](?:jours?|semaines?|mois|ans)|derni[eè]re?|prochaine?"
    r"|ayer|anoche|hoy|mañana|pasad[ao]|próxim[ao]|hace[ ]\w+[ ](?:días?|semanas?|meses|años?)"
    r"|ontem|hoje|amanhã|há[ ]\w+[ ](?:dias?|semanas?|meses|anos?)|ieri|oggi|domani|scors[ao]|prossim[ao])\b"
    r"|\b(?:вчера|сегодня|завтра|прошл|следующ|назад\b)|[昨今明后前]天|[上下][周週月个個]|[今昨]晚|昨日|今日|明日|先週|来週|今週"
    r"|先月|来月|어제|오늘|내일|지난|다음[ ]?주|이번[ ]?주",
    re.IGNORECASE | re.VERBOSE,
)
