r"""Whether a text may hold a secret at all: one native reading tells for nearly every message that no rule can match.

The rules read a text up to four times, each time with other escapes, quotes and line decorations taken away (`views`),
though most texts only name a `file_path` or a `code`. Here each telling word is looked at once where it stands, and
wider than the rules do: without the value that must follow it, with blanks that may still be `", "` and quotes that may
still be escaped. A text whose letters change when it is read otherwise (`\u0070assword`, `pass<b>word</b>`) is never
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache, lru_cache

from leporello.lazy_regex import lazy_regex
from leporello.redact.assignments import DIRECTIVES, ends_its_line, name_around
from leporello.redact.columns import is_rule
from leporello.redact.formed_keys import holds_formed_key
from leporello.redact.given import reading
from leporello.redact.names import HINTS, STEMS, Strength, strength_of
from leporello.redact.shapes import BY_WORD, FED, SHAPE_WORDS
from leporello.redact.spans import Words, lowered_of, places_of
from leporello.redact.spoken_names import COMPOUNDED, name_at
from leporello.redact.vendors import VENDOR_WORDS
from leporello.redact.views import HIDING
from leporello.text_features.rare import loosened

_BETWEEN = r"(?:[\s\\\"',]|\\[nrt])*"
_ITEMS = rf"[\"']{_BETWEEN},{_BETWEEN}[\"']"
_BLANK = rf"(?:[ ]|{_ITEMS})"
"""A blank, or what stands between the words of a command that is written as a list."""
_GLUE = lazy_regex(
    r"\\{0,3}[\"'][ \t]{0,8}(?:[+.&][ \t]{0,8}|(?:[+.&][ \t]{0,8})?(?:_?\\{0,3}\r?\n|\\{1,3}[nr])"
    r"(?:[ \t]{0,8}\d{1,6}[^\w\"'\n]{1,4}|[+>-]{1,4})?[ \t]{0,40}(?:[+.&][ \t]{0,8})?)[fbru]?\\{0,3}[\"']"
)
"""Between two strings that are one, perhaps with a line's number."""
_HIDDEN = (
    r"\x00|\xc2\xad|\xcd\x8f|\xd8\x9c|\xe1\x85[\x9f\xa0]|\xe1\xa0[\x8b-\x8e]|\xe2\x80[\x8b-\x8f\xaa-\xae]"
    r"|\xe2\x81[\xa0-\xaf]|\xe3\x85\xa4|\xef\xb8[\x80-\x8f]|\xef\xbb\xbf|\xef\xbe\xa0|\xf3\xa0[\x80-\xbf][\x80-\xbf]"
)
"""What is not seen, in UTF-8."""
_ALIKE = r"(?:\xd0[\xb0-\xbf]|\xd1[\x80-\x9f]|\xd2\xbb|\xd4[\x81\x9b\x9d]|\xce[\xb1-\xbf]|\xcf[\x80-\x85])"
"""Small letters of other alphabets that look like ours."""
_REWRITTEN = {
    **{word: re.escape(word) for word in HIDING},
    "\x00": rf"[a-z0-9_-](?:{_HIDDEN})[a-z0-9_=:-]|\xf0\x9d[\x90-\x9f]",
    "\u0430": rf"[a-z]{_ALIKE}|{_ALIKE}[a-z]",
    "\x1b[": r"\x1b[\[\](]|\xc2\x9b|(?:\\{1,4}(?:e|033|x1b|u001b)|\^\[)\[[0-9;]{1,16}m",
    "%3": "%(?:25)*3[ad]",
    r"\u": r"\\u[0-9a-f{]|\\u000000|\\x[2-7][0-9a-f]|\\(?:0[4-7]|1[0-7])[0-7]|\\[/=_:]|\\\r?\n"
    r"|&(?:quot|amp|lt|gt|apos|equals|colon|nbsp|commat|sol|lowbar|#x?[0-9a-f]{2,3});|[a-z](?:''|\"\")[a-z]",
    "<b>": r"</?(?:b|strong|i|em|u|code|kbd|tt|pre|span|font|mark|t[dhr])[ >]",
    "\u017f": r"\xc4[\xb0\xb1]|\xc5\xbf|\xe2\x84\xaa",  # letters that pass for i, s and k where case does not matter
}
"""What stands in a text whose letters are others when it is read otherwise."""
_GLUED, _READS = "glued", "reads"
_ENDINGS = "old|new|prod|stag|dev|test|live|value|plain|raw|b64|base|default|admin|root|data|enc"
_ALWAYS = frozenset((*_REWRITTEN, *VENDOR_WORDS, _READS)) - {"s."}
_LITERAL = HINTS | STEMS | SHAPE_WORDS
_LOOSE = frozenset(word for word in _LITERAL if not {" ", '"', "'"}.isdisjoint(word))
"""Words that may be seen where a list or an escape stands for a blank or a quote in them."""
_KNOWN = (_LITERAL | HIDING | VENDOR_WORDS.keys()) - _LOOSE


@cache
def _seen() -> Words:
    patterns = {
        word: re.escape(word).replace('"', r"\\*\"").replace("'", r"\\*'").replace(r"\ ", _BLANK) for word in _LITERAL
    }
    patterns["_pat"] = rf"_pat(?:[^a-z]|s|{_ENDINGS})"  # no `file_path`
    patterns["://"] = r"://[^\s'\"<>`]*@"
    patterns[_READS] = reading().replace(r"[\s", r"[\s\\\"',")
    patterns[_GLUED] = loosened(_GLUE)
    return Words((), patterns | _REWRITTEN | VENDOR_WORDS | {"AC": "AC[0-9a-f]{32}"})


@lru_cache(maxsize=1)
def _seen_in(lowered: str) -> frozenset[str]:
    """What the automaton sees; a text is asked for twice in a row, by `may_hold_secret` and then by the rules."""
    return frozenset(_seen().of(f"{lowered}\n"))  # the automaton knows no end of a text


def words_in(lowered: str) -> set[str]:
    """The words of the rules that stand in a text in small letters."""
    words = _seen_in(lowered)
    return {word for word in words if word in _KNOWN or (word in _LOOSE and word in lowered)}


def may_hold_secret(text: str) -> bool:
    """False only where no rule finds anything, however the text is read."""
    lowered = lowered_of(text)
    words = _seen_in(lowered)
    # No word tells of these, and in the automaton their long runs of letters would cost a third of its time.
    if holds_formed_key(text):
        return True
    if not words:
        return False
    if _is_telling(text, lowered, words):
        return True
    if _GLUED not in words:
        return False
    joined = _GLUE.sub("", text)
    lowered = lowered_of(joined)
    return holds_formed_key(joined) or _is_telling(joined, lowered, _seen_in(lowered))


def _is_telling(text: str, lowered: str, words: Set[str]) -> bool:
    if not words.isdisjoint(_ALWAYS):
        return True
    return (
        any(_may_assign(text, place) for place in places_of(words & HINTS, lowered))
        or any(_may_speak(lowered, place) for place in places_of(words & STEMS, lowered))
        or any(_may_match(word, lowered) for word in words & BY_WORD.keys())
        or any(_OTHERS[word].search(lowered) for word in words & _OTHERS.keys())
        or ("s." in words and any(_VAULT.match(text, place) for place in places_of(("s.",), text)))
    )


_VAULT = lazy_regex(r"s\.(?:(?<![A-Za-z0-9_]s\.)|(?<=\\[nrt]s\.))[A-Za-z0-9]{24,26}(?![A-Za-z0-9_(\[.])")
_LINK = lazy_regex(
    r"[^\w.\- ]|[ ](?:\W|or[ ]|[Aa]s[ ]|(?i:value|default|type|description|sensitive)|[\w:-]{1,24}=[\"'\\]|$)|$"
)
_EQUALS = lazy_regex(r"[\\\"'`\]*_ \t]*+=")
_DEFINED = lazy_regex(r"(?:env|etx|define|set(?:[ ]-\w{1,3})?|setq|def\w{0,10}|-secret|:)[ ]?$", re.IGNORECASE)
_LINE_NUMBER = lazy_regex(r"[ \t]{0,8}\d{1,6}[→│|\t:][ \t]*+")
_SEPARATED = lazy_regex(r"[|\t;,]|[ ]{2}")
_LONGEST_HEAD, _LONGEST_ROW = 400, 4_001


def _may_assign(text: str, place: int) -> bool:
    """Whether the name around a place is a telling one that something may be given to, or that heads a column."""
    start, end = name_around(text, place)
    name = text[start:end]
    if name[:1] in ("n", "r", "t") and text[max(0, start - 1) : start] == "\\":
        name = name[1:]
    strength = strength_of(name) or strength_of(name.lstrip("-"))
    if strength is None:
        return "salt" in name.lower()
    if name.lstrip("-").lower() == "pass":  # what tests do, and Python
        return _EQUALS.match(text, end) is not None or _heads_column(text, place, end)
    if _LINK.match(text, end):
        return True
    return (
        name.startswith("-")
        or name in DIRECTIVES
        or (strength is Strength.KEY and "_" in name)
        or (text[end : end + 1] == " " and ends_its_line(text, end + 1, name, strength))
        or _DEFINED.search(text, max(0, start - 16), start) is not None
    )


def _heads_column(text: str, place: int, end: int) -> bool:
    start = max(0, place - _LONGEST_HEAD)
    start = text.rfind("\n", start, place) + 1 or start
    line_end = text.find("\n", end, end + _LONGEST_HEAD)
    if line_end < 0:
        return _SEPARATED.search(text, start, end + _LONGEST_HEAD) is not None  # its lines may still be escaped
    head, row = (_unnumbered(line) for line in text[start : line_end + _LONGEST_ROW].split("\n", 2)[:2])
    separator = _SEPARATED.search(head)
    if separator is None:
        return False
    return separator[0] == "  " or head.count(separator[0]) == row.count(separator[0]) or is_rule(row)


def _unnumbered(line: str) -> str:
    number = _LINE_NUMBER.match(line)
    return (line[number.end() :] if number else line).strip()


_LISTED_BLANK = lazy_regex(r"[\"'](?:[\s\\\"',]|\\[nrt]){2,80}+")
_ENDS_ITEM = lazy_regex(r"[^\W_]{1,20}+\\{0,3}[\"'](?:\s|\\[nrt])*,")
_GOES_ON = lazy_regex(
    r"pass(?:[ \t\r]|\\r)*+(?:(?:\n|\\n)(?:[ \t]*+\d{1,6}[→│|\t:])?(?:[ \t\r]|\\[rt])*+)++"
    r"(?:(?:async|def|class|return|except|elif|if|for|while|with|raise|import|from|assert)[ ]"
    r"|(?:else|try|finally):(?:[ \t\r]|\\r)*+(?:\n|\\n|$))"
)
"""Python's statement, and one that follows it."""


def _may_speak(lowered: str, place: int) -> bool:
    """Whether people's word for a secret stands there, perhaps as words of a list."""
    name = name_at(lowered, place)
    if name is not None:
        return name[0] != "passes" and not _is_inside_word(lowered, place) and not _GOES_ON.match(lowered, place)
    if lowered[place - 1 : place] not in ('"', "'") and _ENDS_ITEM.match(lowered, place) is None:
        return False
    plain = _LISTED_BLANK.sub(" ", lowered[max(0, place - 80) : place + 80])
    return any(name_at(plain, found) for found in range(len(plain)))


def _is_inside_word(text: str, place: int) -> bool:
    before, first = text[place - 1 : place], text[place]
    if first >= "\u3000" or before >= "\u3000" or text[max(0, place - 2) : place] in ("\\n", "\\r", "\\t"):
        return False
    if before.isalpha() and text.startswith(COMPOUNDED, place):
        return False
    return before.isalnum() or (before != "" and before in "_.$/@#={")


_FILLED = lazy_regex(r"\.(?:fill|type|send_?keys|press_sequentially|set_?value)\(")
_FILLING = lazy_regex(r"\w{4,8}\([ ]?\\*[\"'`][^\n\"'`]{0,60}(?:pass|pwd|otp|secret|token)")
_CLOSER: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("1. ", "1) "), lazy_regex(r"1[.)][ ][a-z]{3,8}(?:[ ,;]{1,3}\d|[ ,;]{0,2}[\r\n\\\"'<])")),
    "auth": lazy_regex(
        r"auth\w{0,12}(?:\s|\\[nrt]){0,4}[=(][ \t(]{0,6}(?:\\{0,3}[\"'][^\"'\n]{1,64}[\"']|[\r\n]|\\[nr])"
    ),
    "basic ": lazy_regex(r"basic[ ]{1,3}[a-z0-9+/]{8}"),
    'name="': lazy_regex(r"name=\"[\w.-]{0,40}(?:passw|passphrase|secret|token|api_?-?key|pwd)"),
    "string(": lazy_regex(r"string\(\d{1,6}\)[ ]\""),
    "value": lazy_regex(
        r"value\\?[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\?[\"']?[^\s\"',;{}<>\\]{4,256}\\?[\"']?,?(?:\s|\\[nrt]){0,40}"
        r"\\?[\"']?(?:name|key|id)\\?[\"']?[ \t]{0,3}[:=]"
    ),
    "identified ": lazy_regex(r"identified\s{1,64}(?:with|by|password)"),
    **dict.fromkeys(("type(", "value(", "fill(", "fill_in("), _FILLING),
    **dict.fromkeys(("user/", "username/", "login/"), lazy_regex(r"\w{4,8}/p")),
}
"""How a shape goes on behind one of its commonest words; the others are rare enough."""
_WITH: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("pass", "pwd", "otp", "secret", "token"), _FILLED),
    **dict.fromkeys(("card", "visa", "karte", "tarjeta", "carte"), lazy_regex(r"\d{4}(?:[ -]?\d{4}){2}[ -]?\d{2}")),
    **dict.fromkeys(("license", "licence", "serial", "lizenz"), lazy_regex(r"(?:[a-z0-9]{4,6}-){3}[a-z0-9]{4}")),
    **dict.fromkeys(
        ("echo ", "printf "),
        lazy_regex(r"-stdin|sudo|passwd|gpg|kinit|wg|create|login|cryptsetup|base64|pass|secret|token|key|cred"),
    ),
}
"""What must stand somewhere in the text beside a common word."""


def _may_match(word: str, lowered: str) -> bool:
    beside, closer = _WITH.get(word), _CLOSER.get(word)
    if beside is not None and beside.search(lowered) is None:
        return False
    if not any(
        not shape.behind or any(_longest(behind) in lowered for behind in shape.behind) for shape in BY_WORD[word]
    ):
        return False
    # A word that is not there as it is has blanks that are still those of a list.
    return closer is None or word not in lowered or any(closer.match(lowered, at) for at in places_of((word,), lowered))


_WORD = lazy_regex(r"\w+")


@cache
def _longest(words: str) -> str:
    longest: str = max(_WORD.findall(words), key=len)
    return longest


_OTHERS = {
    "secret": lazy_regex(r"kind\\*\"?:[ ]\\*\"?secret"),
    "<<": lazy_regex("|".join(map(re.escape, FED))),
    **{word: lazy_regex("") for word in ("-----begin ", "-----end ", "cookie")},
}
