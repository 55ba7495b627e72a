"""Secrets as people say them: "the password is ...", "use ... as the PIN", "密码是...", in a dozen languages.

One table of words (`names`) says what is spoken of; then the next few words are read. In a sentence any word may follow
"password is", so a value counts only when it looks chosen as a password: letters mixed with digits or signs. The
further away it stands, and the weaker the word, the stranger it must look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from enum import Enum
from itertools import islice

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.redact.names import CHANGED, CHANGES, KEYS, PASSWORDS, PINS, STEMS, TO
from leporello.redact.spans import SecretSpan, lowered_of, places_of
from leporello.redact.values import (
    is_chosen,
    is_code,
    is_dashed_phrase,
    is_file_name,
    is_hex_or_id,
    is_label,
    is_literal,
    is_opaque_literal,
    is_pass_phrase,
    is_phrase_word,
    is_strange,
    is_term,
    is_worded,
)
from leporello.text_features.rare import RarePattern

_CJK = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts that put no blank between a word and the next; Thai is one of them."""
_NAME = lazy_regex(
    rf"(?:(?P<pin>{PINS})|(?P<password>{PASSWORDS})|(?P<key>{KEYS}))"
    rf"(?:(?:s|es|en|-ul|nya|['’]\w{{1,4}}|i|y|ом|а|ам)(?![\w-]))?(?=[^\w-]|$|[{_CJK}]|-\s)"
)
_ANY_STEM = RarePattern(lazy_regex("|".join(map(re.escape, sorted(STEMS)))))
# What says "the next one is it". In scripts without blanks it ends a run of letters.
_IS = frozenset(
    (
        "is was be = to will are ist lautet war auf est es será era é è sarà это — – - := -> → => jest brzmi "
        "wynosi olarak heißt sera reads equals using changed set mit avec con com с на i is: was: "
        "är er je on en là adalah είναι este هي הוא היא है"
    ).split()
)
_SHORT_IS = frozenset(("is", "was", "=", "-", "—", "es", "ist", "est", "é", "è"))
_CJK_IS = lazy_regex(r"(?:คือ|是|为|為|成|了|到|は|が|を|는|은|를|을|가|이|으로|로)$")
_ADVERBS = frozenset(
    "now still currently jetzt nun maintenant ahora agora adesso ora теперь сейчас teraz artık şimdi simply".split()
)
# What stands between a value and what it is: `... as the password`.
_AS = frozenset("as is als ist comme est como es é è come jako to это как olarak — - = # // <- ← -- <--".split())
_VERB_LAST = lazy_regex(r"[ ](?:(?:olarak|olmuştur|oldu|hai|är|dir)\b|है|हैं|ہے|です|だ|입니다|이야|예요|이에요)")
"""Behind a value in languages whose verb stands last."""
_CJK_AS = lazy_regex(r"は|が|を|是|为|作为|로|으로|을|를")
_STOPS = frozenset("\n。！？；")
_TOKEN = lazy_regex(
    rf"[{_CJK}]+|[^\s\"'`<>\\{_CJK}「」『』“”„«»，。；、！？（）：]+|[\"'`“”„«»「」『』：，。；、！？\n]"
)
_QUOTED = lazy_regex(
    r"""["'`“„«「『][ \u00a0\u202f]?(?P<value>[^"'`“”„»」』\n\\]{3,200}?)[ \u00a0\u202f]?["'`“”»」』]"""
)
_ESCAPED = lazy_regex(r"u[0-9a-f]{4}")
"""Of a letter, as JSON may write it: read where it is written out."""
_TRIM = ".,;:!?)]}*"
_LEAD = "*_(:=："
_SETTING_END = lazy_regex(r"[;,]|&(?=[\w-]{1,40}=)")
_TELLING = lazy_regex(r"[\d!@#$%^&*+?~|§€£\"'`“„«「『]|[a-z][A-Z][a-z]|[a-z]-[a-z]{2,16}-")
"""Without one of these there is no value: it spares most talk about passwords the closer look."""
_WINDOW, _BELOW_WINDOW, _BEFORE = 110, 200, 70
_MOST_WORDS, _NEAR = 9, 4
_BELOW = lazy_regex(
    r"""(?:[^\n:：.!?`"']{0,60}[:：][ \t*_]{0,4}\r?\n | [ ]for[ ][^\n:]{1,120}:[ \t]{0,4}\r?\n
    | [^\n.!?`"']{0,30}[ ](?:(?:below|follows|here)[.:]?|(?P<bare>is|are|was|to|ist|lautet|est|es|è|é))[ \t]{0,4}\r?\n
    | [ \t*_]{0,4}\r?\n[ \t]{0,8}[-=~]{3,40}[ \t]{0,4}\r?\n)
    (?:[ \t>|]{0,8}\r?\n){0,2}
    (?:[ \t>]{0,8}(?:```|~~~)[\w-]{0,12}[ \t]{0,4}\r?\n)?
    [ \t>]{0,40}(?:[-*][ ]|\d{1,2}[.)][ ])?[*`"']{0,3}
    (?P<value>[^\s"'`<>]{4,65536}+)
    (?=[*`"']{0,3}[ \t]{0,8}\r?(?:\n|$))""",
    re.VERBOSE,
)
_ANSWER = lazy_regex(
    r"""(?:[^\n.!?？]{0,60}[?？]["'”]?|(?P<label>[ \t*_]{0,4})(?=\r?\n)|[^\n.!?？:]{0,60}(?=\r?\n[\w-]{1,20}:[ ]))
    \s{1,8}(?:[\w-]{1,20}:[ ][a-z ,.!]{1,30}\r?\n)?(?:(?:```|~~~)[\w-]{0,12}\r?\n)?(?:[\w-]{1,20}:[ ]{1,2})?
    (?:(?:it['’]?s|it[ ]is|c['’]est|es[ ]ist|es|это)[ ](?:(?:still|now)[ ])?)?[*`"']{0,3}
    (?P<value>[^\s"'`<>]{4,512}+)(?=[*`"']{0,3}[ \t]{0,8}\r?(?:\n|$))""",
    re.VERBOSE | re.IGNORECASE,
)
_NEXT_CODE = lazy_regex(
    r"(?:\r?\n[ \t>]{0,8}(?:[-*][ ]|\d{1,2}[.)][ ])?[ \t]{0,4}|(?P<inline>[,;][ ]{0,2}|[ ]{1,4}(?:[/|][ ]|and[ ])?))"
    r"(?P<code>\d{3,6}[ ]\d{3,6}(?:[ ]\d{3,6}){0,2}|[A-Za-z0-9][A-Za-z0-9-]{5,40})(?=[ \t]{0,8}\r?(?:\n|$)|[,;. ])"
)
_CODE = lazy_regex(
    r"(?=[A-Za-z-]*\d)[A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,12}){1,5}$|\d{4,12}$|(?=[a-z]*\d)[a-z0-9]{8,16}$"
    r"|\d{3,6}(?:[ ]\d{3,6}){1,3}$|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,8}#?$"
)
_GROUPED = lazy_regex(r"\d{3,4}[ ]\d{3,4}(?:[ ]\d{3,4}){0,2}(?![\d%]|[.,]\d|[ ][A-Za-z]{3})")
"""`493 027`: digits as a telephone shows them."""
_BASE32 = lazy_regex(r"[A-Z2-7]{16,128}=*$")
_CARD_CODE = lazy_regex(r"\d{3,4}$")
_PIN = lazy_regex(r"(?:[A-Z]{1,3}-)?\d{4,12}#?$|\d{2,4}(?:-\d{2,4}){1,3}$")
_COUNTED = lazy_regex(r"[ ]\d{1,8}[ ](?!works|is\b|was\b)[a-z]{3,24}s\b")
"""So many of something: `pin 4711 packages`."""
_TYPED = lazy_regex(
    r"""(?:\b(?:enter|type|use|try)|now[ ]it['’]?s|(?:is|to)[ ]now|changed[ ]to)[ ]"""
    r"""[`"'“]?(?P<value>[^\s"'`“”<>\\]{6,128}+)"""
)
"""What is to be typed where a password is asked for, and what it was changed to."""
_CHANGED = lazy_regex(
    r"""[^\n.!?]{0,60}\b(?P<changed>changed|rotated|reset|updated|new)\b[^\n.!?]{0,20}"""
    r"""\b(?:it['’]?s|it[ ]is|to)[ ](?:now[ ])?[`"'“]?(?P<value>[^\s"'`“”<>\\]{6,128}+)"""
)
_TYPED_WHEN = lazy_regex(
    r"""\b(?:enter|type|use|try|put)[ ][`"'“]?(?P<value>[^\s"'`“”<>\\]{6,128}+)["'`”]?"""
    r"""[ ](?:when|if|as|for|at|in|into)[ ][^\n.!?]{0,40}$""",
    re.IGNORECASE,
)
_LISTED = lazy_regex(
    r"""[ \t>]{0,8}(?:[-*•][ ]|\d{1,2}[.)][ ])?["'`*]{0,3}[\w. /-]{1,40}["'`*]{0,3}[ ]?[:=→–][ ]{0,2}"""
    r"""["'`*]{0,3}(?P<value>[^\s"'`<>,]{4,65536}+)["'`*,]{0,3}[ \t]{0,8}(?=\r?(?:\n|$))"""
)
_HEADING = lazy_regex(r"[ \t*_]{0,4}[:：][ \t*_]{0,4}\r?\n")
_USER_BEFORE = lazy_regex(
    r"(?:(?:user(?:name)?|login|account|e-?mail)[ :=]{1,3}(?:is[ ])?\S{1,64}"
    r"|[\w.+-]{1,64}@[\w-]{1,40}\.[\w.-]{2,40})\s{0,8}(?:,|/|&|and|with)?[ ]?(?:the[ ])?$",
    re.IGNORECASE,
)
_USE = lazy_regex(
    r"\b(?:us(?:e|ing|ed|a|ar|e[zm]|ando)|try|enter|type|gebruik|benutz\w{1,3}|nimm|nehmt|verwende\w{0,2}|utilis\w{1,3}"
    r"|utiliz\w{1,4}|usá|użyj\w{0,3}|используй\w{0,2}|użyć|använd|bruk|brug|mets|pon|prueba|probier\w{0,2})[ ]"
    r"(?:(?:the|this|het|dit|das|dieses|le|ce|la|el|esta?|a|o|lo|det)[ ])?(?:[\w-]{2,16}[ ])?$",
    re.IGNORECASE,
)
"""`use the password ...`: what is to be used stands next, and is no kind of password."""
_GENERATED_PART = lazy_regex(r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}")
_NEXT_PIECE = lazy_regex(r"""[ ]([^\s"'`<>\\,;:=()\[\]{}/-][^\s"'`<>\\,;:=()\[\]{}]{1,64}+)(?=[\s.,;]|$)""")
_NEXT_WORD = lazy_regex(r"[ ]?([^\W\d_]{2,24}+)(?=[\s.,;]|$)")
_BRACKETED = lazy_regex(r"\([^()]{6,128}+\)[.,;:!?]?$")
_PLACE = lazy_regex(r"[/.]\w{1,40}:\d{1,6}:")
"""`src/app.py:7:`"""
_CALL = lazy_regex(r"[(\[{]")
_END = lazy_regex(r"[.!?;{}\[\]]")
_DESCRIBES = lazy_regex(
    r"(?:ed|ing|ive|able|ible|al|ory|ent|ect|ong|eak|ort|er|able|word|phrase|key|text|hash)$", re.IGNORECASE
)
_COLONS = frozenset(":=：")
_BEFORE_COLON = frozenset(" \t*_:：")
_QUOTES = frozenset("\"'`“”„«»「」『』")
_MOST_PIECES, _PHRASE_WORDS, _MOST_CODES = 8, 3, 20


class _Said(Enum):
    PASSWORD = "password"
    KEY = "key"
    PIN = "pin"


class _Name(Struct, frozen=True):
    start: int
    end: int
    said: _Said
    word: str


def spoken_spans(text: str, lowered: str, words: set[str]) -> Iterator[SecretSpan]:
    """Values that a sentence calls a password, a PIN or a key. `words` are those that stand there."""
    done = 0
    for name in _names(text, lowered, words):
        if name.start < done:
            continue
        found = None
        if "phrase" in name.word or _TELLING.search(text, name.end, name.end + _BELOW_WINDOW):
            found = (
                _below(text, name)
                or _quoted_next(text, name)
                or _after(text, name)
                or _answered(text, name)
                or _typed(text, name, name.end)
            )
            yield from _listed(text, name)
        if found is None and _TELLING.search(text, max(0, name.start - _BEFORE), name.start):
            found = _before(text, name)
        if found is not None:
            yield found
            done = found.end
            if (changed := _typed(text, name, done)) is not None:
                yield changed
                done = changed.end
        if name.said is _Said.PIN and (found is not None or name.word.endswith("s")):
            yield from _codes(text, found.end if found is not None else name.end)


def names_in(text: str) -> Iterator[str]:
    """What a text calls passwords, keys and PINs."""
    lowered = lowered_of(text)
    if _ANY_STEM.may_match(lowered):
        yield from (name.word for name in _names(text, lowered, STEMS))


def name_at(lowered: str, place: int) -> re.Match[str] | None:
    """The name that begins at a place of a text in small letters."""
    return _NAME.match(lowered, place)


COMPOUNDED = ("passwort", "kennwort", "wachtwoord", "lösenord", "passord", "adgangskode", "salasana")
"""Words that end longer ones: `Datenbankpasswort`."""


def _names(text: str, lowered: str, words: Set[str]) -> Iterator[_Name]:
    done = 0
    for place in places_of(words & STEMS, lowered):
        if place < done or (place > 0 and _is_inside_word(text, place)):
            continue
        name = name_at(lowered, place)
        if name is not None and name[0] != "passes":
            done = name.end()
            yield _Name(place, done, _Said(name.lastgroup), name[0])


def _is_inside_word(text: str, place: int) -> bool:
    """The word is the end of another one. Scripts without blanks know no such thing."""
    before = text[place - 1]
    if before == "-" and text[place].isupper():  # WLAN-Passwort
        return False
    if before.isalpha() and text.startswith(COMPOUNDED, place):
        return False
    return (before.isalnum() or before in "_-.$/@#:+={") and text[place] < "\u3000" and before < "\u3000"


def _below(text: str, name: _Name) -> SecretSpan | None:
    """`The password is:`, and the value alone on one of the next lines, perhaps in a block of code."""
    found = _BELOW.match(text, name.end)
    if found is None:
        return None
    value = found["value"].rstrip(_TRIM)
    # Without a colon the line may just go on.
    if is_file_name(value) or not (is_strange(value) if found["bare"] else _is_said(value, name, linked=True)):
        return None
    start = found.start("value")
    return SecretSpan(start, start + len(value), "spoken")


def _quoted_next(text: str, name: _Name) -> SecretSpan | None:
    """`use password "..."`"""
    quoted = _QUOTED.match(text, name.end + 1) if text[name.end : name.end + 1] == " " else None
    if quoted is None or name.said is not _Said.PASSWORD or not is_chosen(quoted["value"]):
        return None
    return SecretSpan(*quoted.span("value"), "spoken")


def _answered(text: str, name: _Name) -> SecretSpan | None:
    """A question and its answer, or a label and the value below it, in one text."""
    found = _ANSWER.match(text, name.end)
    if found is None:
        return None
    value = found["value"].rstrip(_TRIM)
    labelled = found["label"] is not None
    if labelled and text[: name.start].rpartition("\n")[2].strip(" \t*_#-"):
        return None
    if is_file_name(value) or not (is_strange(value) if labelled else _is_said(value, name, linked=True)):
        return None
    return SecretSpan(found.start("value"), found.start("value") + len(value), "spoken")


def _typed(text: str, name: _Name, start: int) -> SecretSpan | None:
    """`... asks for the password, just enter ...`, `... but now it's ...`: further on in the line."""
    if name.said is not _Said.PASSWORD:
        return None
    line_end = text.find("\n", start, start + _WINDOW)
    line_end = line_end if line_end >= 0 else start + _WINDOW
    found = _TYPED.search(text, start, line_end) or _CHANGED.match(text, start, line_end)
    if found is None:
        return None
    value = found["value"].rstrip(_TRIM)
    if not (is_chosen(value) if "changed" in found.re.groupindex else _is_typed(value)):
        return None
    return SecretSpan(found.start("value"), found.start("value") + len(value), "spoken")


def _is_typed(value: str) -> bool:
    """Nothing but the verb says that it is one: more than a name with a number at its end."""
    digits = sum(map(str.isdigit, value))
    return (
        is_chosen(value) and not is_file_name(value) and (digits > 1 or is_strange(value)) and not _CALL.search(value)
    )


def _listed(text: str, name: _Name) -> Iterator[SecretSpan]:
    """`API keys:` and, below it, what each is for with its value."""
    if name.said is _Said.PIN or text[name.end : name.end + 1] not in _BEFORE_COLON:
        return
    heading = _HEADING.match(text, name.end)
    place = heading.end() if heading is not None else -1
    for _ in range(_MOST_CODES if place >= 0 else 0):
        row = _LISTED.match(text, place)
        if row is None or not (is_strange(row["value"]) or is_opaque_literal(row["value"])):
            return
        yield SecretSpan(*row.span("value"), "spoken")
        place = text.find("\n", row.end(), row.end() + 2) + 1 or len(text)


def _codes(text: str, end: int) -> Iterator[SecretSpan]:
    """Further codes of a list, one a line."""
    for _ in range(_MOST_CODES):
        following = _NEXT_CODE.match(text, end)
        if following is None or _CODE.match(following["code"]) is None:
            return
        end = following.end("code")
        yield SecretSpan(*following.span("code"), "spoken")


def _after(text: str, name: _Name) -> SecretSpan | None:
    signed = paired = False
    before = ""
    linked = name.said is _Said.PASSWORD and name.word.endswith(("'s", "’s"))
    count = 0
    for token in islice(_TOKEN.finditer(text, name.end, name.end + _WINDOW), _MOST_WORDS):
        word = token[0]
        if word in _STOPS or (text[token.start() - 1] == "\\" and _ESCAPED.match(word)):
            return None
        if linked and (quoted := _QUOTED.match(text, token.start())) is not None:
            return SecretSpan(*quoted.span("value"), "spoken") if _is_said_quoted(quoted["value"], name) else None
        if word in _QUOTES:
            continue
        if word in _COLONS or (paired and word in _AND) or (count == 0 and word == "," and name.said is _Said.PIN):
            linked, signed, paired = True, word in _COLONS, False
            continue
        if count == 0:
            signed = signed or word[0] in ":=："
            linked = linked or signed or _is_bracketed(word)
        bare = word.lstrip(_lead(name, near=count == 0 or linked))
        start = token.start() + len(word) - len(bare)
        value = (_SETTING_END.split(bare, maxsplit=1)[0] if signed or name.said is _Said.PIN else bare).rstrip(_TRIM)
        end = _end_of_several(text, start, name, linked, first=count == 0) if value else None
        if end is not None:
            return SecretSpan(start, end, "spoken")
        if value and not is_file_name(value) and _is_at(text, name, value, linked, count):
            end = start + len(value)
            return SecretSpan(start, _run_end(text, end) if linked and end == token.end() else end, "spoken")
        count += 1
        if not value and _END.search(word):
            return None
        if value:
            if word.endswith((".", "!", "?", ";")):
                return None
            paired = linked and _is_user_and_password(name)
            was_changed = count == 1 and word in TO and _follows(CHANGES, text, name)
            linked = _links(word, name, linked) or was_changed or (word in TO and CHANGED.match(before) is not None)
            signed = linked and word.endswith((":", "="))
            before = word
    return None


def _lead(name: _Name, *, near: bool) -> str:
    """Signs that may stand before a value."""
    return (_LEAD if near else "*_(") + ("[" if name.said is _Said.PIN else "")


def _end_of_several(text: str, start: int, name: _Name, linked: bool, *, first: bool) -> int | None:
    """Where a pass phrase ends, or digits that are set apart in groups."""
    if linked and "phrase" in name.word and (end := _phrase_end(text, start)) is not None:
        return end
    if name.said is _Said.KEY or not (linked or (first and name.said is _Said.PIN)):
        return None
    code = _GROUPED.match(text, start)
    return code.end() if code is not None else None


def _is_said_quoted(value: str, name: _Name) -> bool:
    if " " in value:
        return name.said is _Said.PASSWORD and is_pass_phrase(value)
    return _is_said(value, name, linked=True) or _is_quoted_word(value, name)


_AND = frozenset("/ | & + and und et y e i и".split())


def _is_user_and_password(name: _Name) -> bool:
    """`creds: bob / ...`: what is announced are two things."""
    return name.said is _Said.PASSWORD and name.word.startswith(("cred", "zugangs", "identifiants"))


def _is_bracketed(word: str) -> bool:
    """`the secret (...)`"""
    return _BRACKETED.match(word) is not None and is_strange(word.strip("().,;:!?"))


def _links(word: str, name: _Name, linked: bool) -> bool:
    """Whether the word says that the next one is the value."""
    lowered = word.lower()
    if name.word == "pass":
        return lowered in _SHORT_IS or (linked and lowered in _ADVERBS)
    return (
        lowered in _IS
        or word.endswith((":", "：", "="))
        or _CJK_IS.search(word) is not None
        or (linked and lowered in _ADVERBS)
    )


def _is_at(text: str, name: _Name, value: str, linked: bool, count: int) -> bool:
    """Whether a word so many words behind the name is what it speaks of."""
    if linked:
        return _is_said(value, name, linked=True)
    if name.word == "pass":
        return count == 0 and is_chosen(value) and _follows(_USER_BEFORE, text, name)
    is_password = count == 0 and name.said is _Said.PASSWORD and (is_chosen(value) or is_worded(value))
    if is_password and (
        _follows(_USER_BEFORE, text, name) or (_is_typed(value) and not is_term(value) and _follows(_USE, text, name))
    ):
        return True
    if count == 0 and _VERB_LAST.match(text, text.find(value, name.end) + len(value)):
        return _is_said(value, name, linked=True)
    if count == 0:
        return _is_said(value, name, linked=False) and not _COUNTED.match(text, name.end)
    return (
        name.said is not _Said.PIN
        and count <= _NEAR
        and "=" not in value
        and is_strange(value)
        and not _CALL.search(value)
        and not is_hex_or_id(value)
    )


def _is_quoted_word(value: str, name: _Name) -> bool:
    """A plain word in quotes is a password when it neither describes one nor names a field."""
    return (
        name.said is _Said.PASSWORD
        and name.word != "pass"
        and value.isalpha()
        and value.islower()
        and value.isascii()
        and is_literal(value)
        and not is_label(value)
        and is_phrase_word(value.lower(), first=True)
        and _DESCRIBES.search(value) is None
    )


def _follows(before: re.Pattern[str], text: str, name: _Name) -> bool:
    return before.search(text, max(0, name.start - 90), name.start) is not None


def _is_said(value: str, name: _Name, *, linked: bool) -> bool:
    if name.word in ("cvc", "cvv"):
        return _CARD_CODE.match(value) is not None
    if name.said is _Said.PIN:
        return (_PIN.match(value) is not None and (linked or not name.word.endswith("s"))) or (
            linked and _CODE.match(value) is not None
        )
    if name.word == "seed" and _BASE32.match(value):
        return linked
    if name.said is _Said.KEY:
        return (
            is_opaque_literal(value)
            and not (_CALL.search(value) or is_code(value))
            and (linked or _GENERATED_PART.search(value) is not None)
        )
    if name.word == "pass":
        return "_" not in value and "/" not in value and is_chosen(value)
    if linked:
        return is_chosen(value) or is_dashed_phrase(value) or is_worded(value)
    return is_literal(value) and is_strange(value) and value[0] not in ")]}"  # expect(password).toBe(...)


def _before(text: str, name: _Name) -> SecretSpan | None:
    """`Use ... as the password`: the value itself must be telling."""
    begin = max(0, name.start - _BEFORE)
    typed = _TYPED_WHEN.search(text, begin, name.start) if name.said is _Said.PASSWORD else None
    if typed is not None and _is_typed(typed["value"]):
        return SecretSpan(*typed.span("value"), "spoken")
    linked = False
    for token in reversed(list(_TOKEN.finditer(text, begin, name.start))[-_NEAR - 2 :]):
        word = token[0]
        if word in _STOPS or (token.start() == begin > 0) or word.endswith((".", ";", ":")):
            return None
        if word.endswith(("!", "?")) and not linked:
            return None
        bare = word.lstrip("*_(").rstrip(".,;:)]}*")
        telling = _PIN.match(bare) if name.said is _Said.PIN else is_strange(bare)
        if linked and telling and not is_hex_or_id(bare) and not is_file_name(bare) and not _PLACE.search(bare):
            start = token.start() + word.find(bare)
            return SecretSpan(start, start + len(bare), "spoken")
        linked = linked or word[0] == "(" or word.lower() in _AS or _CJK_AS.match(word) is not None
    return None


def _run_end(text: str, end: int) -> int:
    """Where a password of several pieces ends: `p@ss w0rd` is one."""
    for _ in range(_MOST_PIECES):
        token = _NEXT_PIECE.match(text, end)
        if token is None or not is_chosen(token[1].rstrip(_TRIM)):
            break
        end = token.start(1) + len(token[1].rstrip(_TRIM))
    return end


def _phrase_end(text: str, start: int) -> int | None:
    """Where a pass phrase ends that stands without quotes: several words that no sentence is made of."""
    end, count = start, 0
    while count < _MOST_PIECES * 3:
        word = _NEXT_WORD.match(text, end)
        if word is None or not is_phrase_word(word[1], first=count == 0):
            break
        end, count = word.end(1), count + 1
    return end if count >= _PHRASE_WORDS else None
