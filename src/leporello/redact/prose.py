"""Secrets as people say them: "the password is ...", "use ... as the PIN", "密码是...", in a dozen languages.

One table of words (`names`) says what is spoken of; then the next few words are read. In a sentence any word may follow
"password is", so a value counts only when it looks chosen as a password: letters mixed with digits or signs. The
further away it stands, and the weaker the word, the stranger it must look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from leporello.lazy_regex import lazy_regex
from leporello.redact.names import CHANGED, CHANGES, TO
from leporello.redact.spans import SecretSpan
from leporello.redact.spoken_names import CJK, Said, SpokenName, spoken_names
from leporello.redact.spoken_values import (
    CALL,
    PIN,
    SPOKEN_CODE,
    TRIM,
    end_of_several,
    is_said,
    is_said_quoted,
    is_typed,
    run_end,
)
from leporello.redact.values import (
    is_chosen,
    is_file_name,
    is_hex_or_id,
    is_opaque_literal,
    is_standard,
    is_strange,
    is_term,
    is_worded,
)

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
_TOKEN = lazy_regex(rf"[{CJK}]+|[^\s\"'`<>\\{CJK}「」『』“”„«»，。；、！？（）：]+|[\"'`“”„«»「」『』：，。；、！？\n]")
_QUOTED = lazy_regex(
    r"""["'`“„«「『][ \u00a0\u202f]?(?P<value>[^"'`“”„»」』\n\\]{3,200}?)[ \u00a0\u202f]?["'`“”»」』]"""
)
_ESCAPED = lazy_regex(r"u[0-9a-f]{4}")
"""Of a letter, as JSON may write it: read where it is written out."""
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
_BUTTON = lazy_regex(r"(?:Click|Klick)2[A-Z][a-z]{1,20}$")
"""`Forgot your password? Click2Reset`"""
_NEXT_CODE = lazy_regex(
    r"(?:\r?\n[ \t>]{0,8}(?:[-*][ ]|\d{1,2}[.)][ ])?[ \t]{0,4}|(?P<inline>[,;][ ]{0,2}|[ ]{1,4}(?:[/|][ ]|and[ ])?))"
    r"(?P<code>\d{3,6}[ ]\d{3,6}(?:[ ]\d{3,6}){0,2}|[A-Za-z0-9][A-Za-z0-9-]{5,40})(?=[ \t]{0,8}\r?(?:\n|$)|[,;. ])"
)
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
_WITHOUT_VERB = ("şifresi", "şifremiz", "şifrem", "parolası", "parolamız", "parolam")
_BRACKETED = lazy_regex(r"\([^()]{6,128}+\)[.,;:!?]?$")
_PLACE = lazy_regex(r"[/.]\w{1,40}:\d{1,6}:")
"""`src/app.py:7:`"""
_END = lazy_regex(r"[.!?;{}\[\]]")
_COLONS = frozenset(":=：")
_BEFORE_COLON = frozenset(" \t*_:：")
_QUOTES = frozenset("\"'`“”„«»「」『』")
_MOST_CODES = 20


def spoken_spans(text: str, lowered: str, words: set[str]) -> Iterator[SecretSpan]:
    """Values that a sentence calls a password, a PIN or a key. `words` are those that stand there."""
    done = 0
    for name in spoken_names(text, lowered, words):
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
        if name.said is Said.PIN and (found is not None or name.word.endswith("s")):
            yield from _codes(text, found.end if found is not None else name.end)


def _below(text: str, name: SpokenName) -> SecretSpan | None:
    """`The password is:`, and the value alone on one of the next lines, perhaps in a block of code."""
    found = _BELOW.match(text, name.end)
    if found is None:
        return None
    value = found["value"].rstrip(TRIM)
    # Without a colon the line may just go on.
    if is_file_name(value) or not (is_strange(value) if found["bare"] else is_said(value, name, linked=True)):
        return None
    start = found.start("value")
    return SecretSpan(start, start + len(value), "spoken")


def _quoted_next(text: str, name: SpokenName) -> SecretSpan | None:
    """`use password "..."`"""
    quoted = _QUOTED.match(text, name.end + 1) if text[name.end : name.end + 1] == " " else None
    if quoted is None or name.said is not Said.PASSWORD or not is_chosen(quoted["value"]):
        return None
    return SecretSpan(*quoted.span("value"), "spoken")


def _answered(text: str, name: SpokenName) -> SecretSpan | None:
    """A question and its answer, or a label and the value below it, in one text."""
    found = _ANSWER.match(text, name.end)
    if found is None:
        return None
    value = found["value"].rstrip(TRIM)
    if _BUTTON.match(value):
        return None
    labelled = found["label"] is not None
    if labelled and text[: name.start].rpartition("\n")[2].strip(" \t*_#-"):
        return None
    if is_file_name(value) or not (is_strange(value) if labelled else is_said(value, name, linked=True)):
        return None
    return SecretSpan(found.start("value"), found.start("value") + len(value), "spoken")


def _typed(text: str, name: SpokenName, start: int) -> SecretSpan | None:
    """`... asks for the password, just enter ...`, `... but now it's ...`: further on in the line."""
    if name.said is not Said.PASSWORD:
        return None
    line_end = text.find("\n", start, start + _WINDOW)
    line_end = line_end if line_end >= 0 else start + _WINDOW
    found = _TYPED.search(text, start, line_end) or _CHANGED.match(text, start, line_end)
    if found is None:
        return None
    value = found["value"].rstrip(TRIM)
    if not (is_chosen(value) if "changed" in found.re.groupindex else is_typed(value)):
        return None
    return SecretSpan(found.start("value"), found.start("value") + len(value), "spoken")


def _listed(text: str, name: SpokenName) -> Iterator[SecretSpan]:
    """`API keys:` and, below it, what each is for with its value."""
    if name.said is Said.PIN or text[name.end : name.end + 1] not in _BEFORE_COLON:
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
        if following is None or SPOKEN_CODE.match(following["code"]) is None:
            return
        end = following.end("code")
        yield SecretSpan(*following.span("code"), "spoken")


def _after(text: str, name: SpokenName) -> SecretSpan | None:
    signed = paired = False
    before = ""
    linked = name.said is Said.PASSWORD and name.word.endswith(("'s", "’s"))
    count = 0
    for token in islice(_TOKEN.finditer(text, name.end, name.end + _WINDOW), _MOST_WORDS):
        word = token[0]
        if word in _STOPS or (text[token.start() - 1] == "\\" and _ESCAPED.match(word)):
            return None
        if linked and (quoted := _QUOTED.match(text, token.start())) is not None:
            return SecretSpan(*quoted.span("value"), "spoken") if is_said_quoted(quoted["value"], name) else None
        if word in _QUOTES:
            continue
        if word in _COLONS or (paired and word in _AND) or (count == 0 and word == "," and name.said is Said.PIN):
            linked, signed, paired = True, word in _COLONS, False
            continue
        if count == 0:
            signed = signed or word[0] in ":=："
            linked = linked or signed or _is_bracketed(word)
        bare = word.lstrip(_lead(name, near=count == 0 or linked))
        start = token.start() + len(word) - len(bare)
        value = (_SETTING_END.split(bare, maxsplit=1)[0] if signed or name.said is Said.PIN else bare).rstrip(TRIM)
        end = end_of_several(text, start, name, linked, first=count == 0) if value else None
        if end is not None:
            return SecretSpan(start, end, "spoken")
        if value and not is_file_name(value) and _is_at(text, name, value, linked, count):
            end = start + len(value)
            return SecretSpan(start, run_end(text, end) if linked and end == token.end() else end, "spoken")
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


def _lead(name: SpokenName, *, near: bool) -> str:
    """Signs that may stand before a value."""
    return (_LEAD if near else "*_(") + ("[" if name.said is Said.PIN else "")


_AND = frozenset("/ | & + and und et y e i и".split())


def _is_user_and_password(name: SpokenName) -> bool:
    """`creds: bob / ...`: what is announced are two things."""
    return name.said is Said.PASSWORD and name.word.startswith(("cred", "zugangs", "identifiants"))


def _is_bracketed(word: str) -> bool:
    """`the secret (...)`"""
    return _BRACKETED.match(word) is not None and is_strange(word.strip("().,;:!?"))


def _links(word: str, name: SpokenName, linked: bool) -> bool:
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


def _is_at(text: str, name: SpokenName, value: str, linked: bool, count: int) -> bool:
    """Whether a word so many words behind the name is what it speaks of."""
    if linked:
        return is_said(value, name, linked=True)
    if name.word == "pass":
        return count == 0 and is_chosen(value) and _follows(_USER_BEFORE, text, name)
    is_password = count == 0 and name.said is Said.PASSWORD and (is_chosen(value) or is_worded(value))
    if is_password and _follows(_USER_BEFORE, text, name):
        return True
    if is_standard(value):
        return False
    if is_password and is_typed(value) and not is_term(value) and _is_told_by_place(text, name, value):
        return True
    if count == 0 and _VERB_LAST.match(text, text.find(value, name.end) + len(value)):
        return is_said(value, name, linked=True)
    if count == 0:
        return is_said(value, name, linked=False) and not _COUNTED.match(text, name.end)
    return (
        name.said is not Said.PIN
        and count <= _NEAR
        and "=" not in value
        and is_strange(value)
        and not CALL.search(value)
        and not is_hex_or_id(value)
    )


def _is_told_by_place(text: str, name: SpokenName, value: str) -> bool:
    """`use the password ...`, `parolası ...` in languages without a verb for it, and a line of these two alone."""
    if _follows(_USE, text, name) or name.word.endswith(_WITHOUT_VERB):
        return True
    before = text[max(0, name.start - _BEFORE) : name.start].rpartition("\n")[2]
    end = name.end + 1 + len(value)
    return not before.strip() and text[end : end + 1] in ("", "\n", "\r")


def _follows(before: re.Pattern[str], text: str, name: SpokenName) -> bool:
    return before.search(text, max(0, name.start - 90), name.start) is not None


def _before(text: str, name: SpokenName) -> SecretSpan | None:
    """`Use ... as the password`: the value itself must be telling."""
    begin = max(0, name.start - _BEFORE)
    typed = _TYPED_WHEN.search(text, begin, name.start) if name.said is Said.PASSWORD else None
    if typed is not None and is_typed(typed["value"]):
        return SecretSpan(*typed.span("value"), "spoken")
    linked = False
    for token in reversed(list(_TOKEN.finditer(text, begin, name.start))[-_NEAR - 2 :]):
        word = token[0]
        if word in _STOPS or (token.start() == begin > 0) or word.endswith((".", ";", ":")):
            return None
        if word.endswith(("!", "?")) and not linked:
            return None
        bare = word.lstrip("*_(").rstrip(".,;:)]}*")
        telling = PIN.match(bare) if name.said is Said.PIN else is_strange(bare)
        if linked and telling and not is_hex_or_id(bare) and not is_file_name(bare) and not _PLACE.search(bare):
            start = token.start() + word.find(bare)
            return SecretSpan(start, start + len(bare), "spoken")
        linked = linked or word[0] == "(" or word.lower() in _AS or _CJK_AS.match(word) is not None
    return None
