"""`PASSWORD=...`, `"api_key": "..."`, `--token ...`: a telling name, a separator, and a value.

The name decides how much a value must look like a secret: anything literal counts behind `password`, only an opaque
string counts behind `token`, because that word has many honest uses in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from leporello.redact.spans import SecretSpan
from leporello.redact.values import (
    is_code,
    is_filler,
    is_number,
    is_opaque,
    is_plain_word,
    is_reference,
    is_variable_like,
)

# At least one of these stands in every text that the pattern below can match.
_HINTS = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "密", "口令")


class Strength(IntEnum):
    """How surely a name announces a secret."""

    TOKEN = 1
    KEY = 2
    PASSWORD = 3


_NAME = r"""
    (?P<password>passw(?:or)?d|passphrase|passcode|pwd|(?<=[_.\-a-z])pass|密码|口令)
  | (?P<key>
      (?:api|access|account|secret|signing|encryption|master|shared|storage|subscription|webhook|hmac|jwt|deploy|admin
        |service|license|private|auth|client|consumer|application|app)[_\-. ]?(?:secret[_\-. ]?)?(?:access[_\-. ]?)?key
      |(?:access|auth|refresh|api|bot|session|bearer|id|oauth|personal|private|deploy|app|service|client|security|login
        |registration|registry|user|github|gitlab|slack|npm|hf|vault)[_\-. ]?token
      |(?:client|app|shared|consumer|webhook|oauth|jwt|session|cookie|signing|api|totp|otp)[_\-. ]?secret|密钥)
  | (?P<token>secret|token|credentials?|(?<=["'_])auth)
"""
_SUFFIX = (
    r"(?:[_\-]?(?:\d{1,3}|old|new|prod(?:uction)?|stag(?:ing|e)|dev|test|live|value|plain|raw|b64|base64|default"
    r"|admin|root))?"
)
_SEPARATOR = r"""
    (?P<quote>\\{0,3}["'`]\]?|\])?                       # closes the name: "password":   ['password'] =
    (?:
      (?P<annotated>\s{0,2}:\s{0,2}[\w.\[\]| ]{1,40}=\s{0,4})   # password: str = "..."
    | (?P<sign>\s{0,8}(?:=>|:=|==|=|：|:)\s{0,8})
    | (?P<says>\s{1,2}(?:is|was)\s{0,2}:?\s{1,2}|是\s?|为\s?)
    | (?P<space>\s{1,4})
    )
"""
_VALUE = r"""
    [fbruFBRU]{0,2}
    (?:(?P<open>\\{0,3}(?:["`]|'))(?P<inside>(?:(?!(?P=open))[^\n]){1,1024}+)(?P=open)
    | (?P<bare>[^\s"'`,;&<>\\]{1,1024}+))
"""
_ASSIGNMENT = re.compile(f"(?:{_NAME}){_SUFFIX}{_SEPARATOR}{_VALUE}", re.VERBOSE | re.IGNORECASE)


def assignment_spans(text: str) -> Iterator[SecretSpan]:
    """Values that are given to a telling name."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return
    for match in _ASSIGNMENT.finditer(text):
        if match["space"] is not None and not _is_flag(text, match):
            continue
        if match["inside"] is not None:
            if _is_quoted_secret(match):
                yield SecretSpan(*match.span("inside"), "assignment")
        elif _is_bare_secret(text, match):
            yield SecretSpan(*_bare_span(match), "assignment")


def _strength(match: re.Match[str]) -> Strength:
    if match["password"]:
        return Strength.PASSWORD
    return Strength.KEY if match["key"] else Strength.TOKEN


def _is_flag(text: str, match: re.Match[str]) -> bool:
    """`--password x`, `--db-password x`, and `ENV DB_PASSWORD x` of container files."""
    start = _name_start(text, match.start())
    before = text[start : match.start()]
    return before.startswith("--") or text[max(0, start - 4) : start] == "ENV "


def _name_start(text: str, position: int) -> int:
    start = position
    while start > 0 and position - start < 64 and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return start


def _is_quoted_secret(match: re.Match[str]) -> bool:
    value, strength = match["inside"].strip(), _strength(match)
    if is_reference(value) or (match["says"] is not None and not is_opaque(value)):
        return False
    if " " in value:
        # A sentence about passwords is common in code; a pass phrase in clear is rare and named as such.
        return "phrase" in match[0].lower()[:24]
    if strength is Strength.PASSWORD:
        return not is_filler(value)
    if is_filler(value) or is_code(value):
        return False
    if strength is Strength.KEY:
        return len(value) >= 6 and not is_number(value) and not _is_identifier_of_words(value)
    return is_opaque(value)


def _is_identifier_of_words(value: str) -> bool:
    return (
        len(value) < 40 and all(is_plain_word(part) for part in re.split(r"[-_.:/ ]", value)) and not is_opaque(value)
    )


def _is_bare_secret(text: str, match: re.Match[str]) -> bool:
    value, strength = match["bare"], _strength(match)
    sign = match["sign"] or match["annotated"] or " "
    start = _name_start(text, match.start())
    name = text[start : match.start("bare")].rstrip(" \t:=\"'")
    shell = _is_shell_name(name) and sign.strip() in ("=", ":")
    if is_reference(value) or is_filler(value) or value.strip("()[]{}.") == "":
        return False
    if is_code(value) and not (shell and sign == "=" and is_opaque(value) and "." not in value):
        return False
    value = value.rstrip(")]}.:!?*")
    if is_reference(value) or value.lower() == name.lower():
        return False
    if strength is Strength.PASSWORD:
        return _is_bare_password(text, match, value, shell)
    if shell and sign == "=" and strength is Strength.KEY:
        return len(value) >= 4 and not is_number(value)
    return is_opaque(value)


def _is_shell_name(name: str) -> bool:
    return name.isupper() and ("_" in name or name in ("PASSWORD", "PASSWD", "PWD", "SECRET", "TOKEN"))


def _is_bare_password(text: str, match: re.Match[str], value: str, shell: bool) -> bool:
    sign = match["sign"]
    if match["says"] is not None or match["annotated"] is not None:
        return is_opaque(value)
    if sign is None:  # a flag: --password x
        return not value.startswith("-")
    if shell:
        return not value.startswith("/") or sign != "="
    if is_variable_like(value):
        return False
    if sign == "=":
        return not (_is_argument(text, match) and value.isidentifier())
    if is_plain_word(value):
        return _is_settings_line(text, match) and value.islower() and len(value) > 3
    return not is_number(value) or len(value) >= 6


def _is_argument(text: str, match: re.Match[str]) -> bool:
    """`f(password=pw)`: what follows the value ends an argument."""
    rest = text[match.end() : match.end() + 1]
    return match["bare"].endswith((")", "]", "}")) or rest == ","


def _is_settings_line(text: str, match: re.Match[str]) -> bool:
    """The assignment fills its line, as in a YAML file."""
    start = _name_start(text, match.start())
    line_start = text.rfind("\n", max(0, start - 80), start) + 1
    rest = text[match.end() : match.end() + 1]
    return not text[line_start:start].strip(" \t-") and rest in ("", "\n", "\r")


def _bare_span(match: re.Match[str]) -> tuple[int, int]:
    start, end = match.span("bare")
    return start, end - (len(match["bare"]) - len(match["bare"].rstrip(")]}")))
