"""Secrets as people say them: "the password is ...", "pass: ...", "the PIN is ...", also in other languages.

In a sentence any word may follow "password is", so a value counts only when it looks chosen as a password: letters
mixed with digits or signs. What is masked is masked whole, up to the next blank, and further while the words go on
looking like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.redact.patterns import SecretSpan, matches
from leporello.redact.values import is_chosen, is_literal, is_opaque_literal, is_pass_phrase, is_phrase_word, is_strange

_WORDS = ("pass", "kennwort", "wachtwoord", "senha")
_FOREIGN_WORDS = ("contraseña", "парол", "密码", "口令", "パスワード", "비밀번호")
_KEY_WORDS = (" key", " token")

_QUALIFIER = r"(?:[ ](?:for|of|on|für|pour|de|para|для)(?:[ ][\w.@/-]{1,40}){1,4}?)?"
_SAYS = (
    r"[ \t]{1,2}(?:is|was|to|will[ ]be|(?:is|was)[ ](?:now|still)|ist|lautet|est|es|é|è|это|—|-)[ \t]{0,2}:?[ \t]{1,2}"
    r"|[ \t]?(?:是|为|は)[ \t]?"
)
_NAME = re.compile(
    rf"""(?:
      (?P<phrase>pass[ -]?phrase)
    | (?<![\w-])(?P<short>pass)(?![\w-])
    | pass(?:w(?:or)?ds?|code|wort|e)(?!\w) | kennwort | wachtwoord | senha
    | contraseña | парол[ьяю] | 密码 | 口令 | パスワード | 비밀번호
    )["'*_]{{0,3}}
    (?:
      {_QUALIFIER} (?: (?P<colon>[ \t\u00a0]{{0,2}}[:：][ \t*]{{0,4}}) | (?P<says>{_SAYS}) )
    | (?P<space>[ \t]{{1,2}})
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(r"""(?P<open>["'`])(?P<value>[^"'`\n\\]{3,200}+)(?P=open)""")
_TOKEN = re.compile(r"""[^\s"'`<>\\]{3,256}+""")
_TOKEN_AFTER_COLON = re.compile(r"""[^\s"'`<>\\,;]{3,256}+""")
_NEXT_TOKEN = re.compile(r"""[ ]([^\s"'`<>\\,;:=()\[\]{}/-][^\s"'`<>\\,;:=()\[\]{}]{1,64}+)(?=[\s.,;]|$)""")
_NEXT_WORD = re.compile(r"[ ]?([^\W\d_]{2,24}+)(?=[\s.,;]|$)")
_USER_BEFORE = re.compile(
    r"(?:user(?:name)?|login|account|e-?mail)[ :=]{1,3}\S{1,64}[ ]?(?:,|/|&|and|with)?[ ]?(?:the[ ])?$", re.IGNORECASE
)
_PIN = re.compile(
    r"""(?<![A-Za-z0-9])pin(?:[ ](?:code|number))?["']?(?:[ ](?:is|was)[ ]:?|[ ]{0,2}[:=][ ]{0,2})["']?"""
    r"""(\d{4,12})(?![\w.-]*\w)""",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?:(?<=api)|(?<=auth)|(?<=access)|(?<=secret))[ ](?:key|token)(?P<link>[ ](?:is|was)[ ]?:?|[ ]?[:=])?[ ]{1,2}"
    r"(?P<value>[A-Za-z0-9_+/=.~-]{16,512}+)",
    re.IGNORECASE,
)
_GENERATED_PART = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}")
_ENDING = ".,;:!?)]}*"
_MOST_TOKENS = 8
_PHRASE_WORDS = 3


def spoken_spans(text: str, lowered: str) -> Iterator[SecretSpan]:
    """Values that a sentence calls a password, a PIN or a key. `lowered` is the text in small letters."""
    for word in _WORDS if text.isascii() else (*_WORDS, *_FOREIGN_WORDS):
        for name in matches(_NAME, text, word, lowered):
            span = _value_of(text, name)
            if span is not None:
                yield span
    for found in matches(_PIN, text, "pin", lowered):
        yield SecretSpan(*found.span(1), "pin")
    for word in _KEY_WORDS:
        for found in matches(_KEY, text, word, lowered):
            value = found["value"].rstrip(_ENDING)
            if is_opaque_literal(value) and (found["link"] or _GENERATED_PART.search(value)):
                yield SecretSpan(found.start("value"), found.start("value") + len(value), "spoken")


def _value_of(text: str, name: re.Match[str]) -> SecretSpan | None:
    start = name.end()
    if name["space"] is not None:
        return _after_blank(text, name)
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        value = quoted["value"]
        secret = is_pass_phrase(value) if " " in value.strip() else is_chosen(value)
        return SecretSpan(*quoted.span("value"), "spoken") if secret else None
    if name["phrase"] is not None:
        end = _phrase_end(text, start)
        if end is not None:
            return SecretSpan(start, end, "spoken")
    token = (_TOKEN if name["colon"] is None else _TOKEN_AFTER_COLON).match(text, start)
    if token is None:
        return None
    value = token[0].rstrip(_ENDING)
    bare = value.lstrip("*")
    if not is_chosen(bare) or (name["short"] is not None and not _fits_short_name(name, bare)):
        return None
    start += len(value) - len(bare)
    end = token.start() + len(value)
    return SecretSpan(start, _run_end(text, end) if end == token.end() else end, "spoken")


def _fits_short_name(name: re.Match[str], value: str) -> bool:
    """`pass` is also what tests do and what is done with arguments."""
    says = (name["says"] or "").strip(" \t:").lower()
    return says in ("", "is", "was") and not (value.isidentifier() and "_" in value)


def _after_blank(text: str, name: re.Match[str]) -> SecretSpan | None:
    """`user bob and pass ...`, `password ...`: without a word between, the value itself must be telling."""
    token = _TOKEN.match(text, name.end())
    if token is None:
        return None
    value = token[0].rstrip(_ENDING)
    if name["short"] is None:
        secret = is_literal(value) and is_strange(value)
    else:
        secret = is_chosen(value) and _USER_BEFORE.search(text, max(0, name.start() - 90), name.start()) is not None
    return SecretSpan(token.start(), token.start() + len(value), "spoken") if secret else None


def _run_end(text: str, end: int) -> int:
    """Where a password of several pieces ends: `p@ss w0rd` is one."""
    for _ in range(_MOST_TOKENS):
        token = _NEXT_TOKEN.match(text, end)
        if token is None or not is_chosen(token[1].rstrip(_ENDING)):
            break
        end = token.start(1) + len(token[1].rstrip(_ENDING))
    return end


def _phrase_end(text: str, start: int) -> int | None:
    """Where a pass phrase ends that stands without quotes: several words that no sentence is made of."""
    end, count = start, 0
    while count < _MOST_TOKENS * 3:
        word = _NEXT_WORD.match(text, end)
        if word is None or not is_phrase_word(word[1], first=count == 0):
            break
        end, count = word.end(1), count + 1
    return end if count >= _PHRASE_WORDS else None
