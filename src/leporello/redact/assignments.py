"""`PASSWORD=...`, `"api_key": "..."`, `--token ...`: a name that announces a secret, a separator, and a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from leporello.redact.patterns import SecretSpan
from leporello.redact.values import (
    is_code,
    is_filler,
    is_made_of_words,
    is_number,
    is_opaque,
    is_pass_phrase,
    is_plain_word,
    is_reference,
    is_term,
    is_variable_like,
)


class Strength(IntEnum):
    """How much a value must look like a secret to be taken for one."""

    TOKEN = 1
    """`token`, `secret`, `auth`: honest words of code. Only an opaque value counts."""
    KEY = 2
    """`api_key`, `client_secret`, `accessToken`: any literal that is not made of words."""
    PASSWORD = 3
    """`password` and its kin: any literal."""


HINTS = ("pass", "pwd", "secret", "token", "key", "credential", "auth", "密码", "口令", "密钥")
"""One of these stands in every telling name."""

_ENDING = (
    r"(?:[_\-.]?(?:\d{1,3}|old|new|prod|production|staging|stage|dev|test|live|value|plain|raw|b64|base64|default|admin"
    r"|root))?"
)
_PASSWORD = re.compile(rf"(?:passw(?:or)?d|passphrase|passcode|pwd|(?<=.)[_\-.]pass|密码|口令){_ENDING}$")
_CAMEL_PASS = re.compile(r"[a-z]Pass$")
_KEY = re.compile(
    r"(?:(?:api|access|account|secret|signing|encryption|master|shared|storage|subscription|webhook|hmac|jwt|deploy"
    r"|admin|service|license|private|auth|client|consumer|application|app)[_\-.]?(?:secret[_\-.]?)?(?:access[_\-.]?)?key"
    r"|(?:access|auth|refresh|api|bot|session|bearer|id|oauth|personal|private|deploy|app|service|client|security|login"
    r"|registration|registry|user|github|gitlab|gh|slack|npm|hf|vault|discord|telegram)[_\-.]?(?:api[_\-.]?)?token"
    r"|(?:client|app|shared|consumer|webhook|oauth|jwt|session|cookie|signing|api|totp|otp)[_\-.]?secret"
    rf"|密钥){_ENDING}$"
)
_TOKEN = re.compile(rf"(?:secret|token|credentials?|_auth|^auth|_key){_ENDING}$")


def strength_of(name: str) -> Strength | None:
    """How surely a name announces a secret; None when it does not."""
    lowered = name.lower()
    if _PASSWORD.search(lowered) or _CAMEL_PASS.search(name):
        return Strength.PASSWORD
    if _KEY.search(lowered):
        return Strength.KEY
    return Strength.TOKEN if _TOKEN.search(lowered) else None


def is_shell_name(name: str) -> bool:
    """`DB_PASSWORD`: capitals throughout, as environment variables are written."""
    return name.isupper() and len(name) > 2


# A name with a hint in it. Tried on small letters, and only in texts where some hint occurs at all.
_HINT = re.compile("|".join(HINTS))
_REST_OF_NAME = re.compile(r"[\w.-]{0,40}")
_NAME_LENGTH = 64
_TRIES = 16

_SEPARATOR = re.compile(
    r"""(?:\\{0,3}["'`]\]?|\])?                                   # closes the name: "password":   ['password'] =
    (?:
      [\ \t]{0,2}:[\ \t]{0,2}[A-Za-z_][\w.\[\]| ]{1,40}=[\ \t]{0,4}           # password: str = "..."
    | [\ \t]{0,8}(?P<sign>=>|:=|:-|==|=|：|:)[\ \t]{0,8}
    | (?P<says>[\ \t]{1,2}(?:is|was)[\ \t]{0,2}:?[\ \t]{1,2}|是[\ \t]?|为[\ \t]?)
    | (?P<space>[\ \t]{1,4})
    )""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"""[fbruFBRU]{0,2}(?P<open>\\{0,3}["'`])(?P<value>(?:(?!(?P=open))[^\n]){1,1024}+)(?P=open)""")
_BARE = re.compile(r"""(?P<value>[^\s"'`,;&<>\\]{1,1024}+)""")


@dataclass(frozen=True, slots=True)
class _Assignment:
    text: str
    name_start: int
    name: str
    strength: Strength
    separator: re.Match[str]
    value: str
    start: int
    quoted: bool

    @property
    def end(self) -> int:
        return self.start + len(self.value)

    @property
    def sign(self) -> str:
        return self.separator["sign"] or ""

    @property
    def is_tight(self) -> bool:
        """No blanks around the sign, as shells and queries demand."""
        return self.separator[0] == self.sign

    @property
    def follower(self) -> str:
        return self.text[self.end : self.end + 1]


def assignment_spans(text: str, lowered: str) -> Iterator[SecretSpan]:
    """Values that are given to a telling name. `lowered` is the text in small letters."""
    if not any(hint in lowered for hint in HINTS):
        return
    done = 0
    run_end, tries = 0, 0
    for hint in _HINT.finditer(lowered):
        if hint.start() < done:
            continue
        found = _take_apart(text, hint.start())
        if found is None:
            continue
        done = found.start
        if _is_quoted_secret(found) if found.quoted else _is_bare_secret(found):
            # A sentence goes on behind its value; a setting ends with it.
            outside = ")]}" if found.separator["says"] is None else ")]}.:!?*"
            end = found.end if found.quoted else found.start + len(found.value.rstrip(outside))
            yield SecretSpan(found.start, end, "assignment")
            done = end
        elif found.start < run_end:
            tries += 1
            # `key=key=key=...`: the same long run again and again. Enough.
            done = run_end if tries > _TRIES else done
        else:
            run_end, tries = found.end, 0


def _take_apart(text: str, place: int) -> _Assignment | None:
    name_end = _REST_OF_NAME.match(text, place).end()  # type: ignore[union-attr]  # it matches the empty text too
    separator = _SEPARATOR.match(text, name_end)
    if separator is None:
        return None
    start = place
    while start > 0 and place - start < _NAME_LENGTH and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    name = text[start:name_end]
    strength = strength_of(name)
    if strength is None:
        return None
    if separator["space"] is not None and not _is_flag(text, start, name) and not _is_named_key(name, strength):
        return None
    value = _QUOTED.match(text, separator.end()) or _BARE.match(text, separator.end())
    if value is None:
        return None
    quoted = "open" in value.re.groupindex
    return _Assignment(text, start, name.lstrip("-"), strength, separator, value["value"], value.start("value"), quoted)


def _is_flag(text: str, start: int, name: str) -> bool:
    """`--db-password x`, and `ENV DB_PASSWORD x` of container files."""
    return name.startswith("--") or text[max(0, start - 4) : start] == "ENV "


def _is_named_key(name: str, strength: Strength) -> bool:
    """`AWS_SECRET_ACCESS_KEY x`: the sign was left out, the name says enough."""
    return strength is Strength.KEY and "_" in name and is_shell_name(name)


def _is_quoted_secret(found: _Assignment) -> bool:
    value = found.value.strip()
    if is_reference(value):
        return False
    if found.separator["says"] is not None:
        return is_opaque(value)
    if " " in value:
        # A sentence about passwords is common in code; a pass phrase in clear is rare.
        return "phrase" in found.name.lower() or (found.strength is Strength.PASSWORD and is_pass_phrase(value))
    if is_filler(value):
        return False
    if found.strength is Strength.PASSWORD:
        return True
    if is_code(value):
        return False
    if found.strength is Strength.KEY:
        return len(value) >= 6 and not is_number(value) and not is_made_of_words(value)
    return is_opaque(value)


def _is_bare_secret(found: _Assignment) -> bool:
    value = found.value
    shell = is_shell_name(found.name) and found.sign in ("=", ":", ":-")
    if is_reference(value) or is_filler(value) or value[0] in "{[(":
        return False
    if is_code(value) and not (shell and found.is_tight and is_opaque(value) and "." not in value):
        return False
    value = value.rstrip(")]}.:!?*")
    if not value or is_reference(value) or value.lower() == found.name.lower():
        return False
    if found.strength is Strength.PASSWORD:
        return _is_bare_password(found, value, shell)
    if shell and found.is_tight and found.strength is Strength.KEY:
        return len(value) >= 4 and not is_number(value)
    return is_opaque(value)


def _is_bare_password(found: _Assignment, value: str, shell: bool) -> bool:
    if found.separator["says"] is not None:
        return is_opaque(value) and not is_term(value)
    if not found.sign:  # a flag, or an annotated name
        return not value.startswith("-") and (found.separator["space"] is not None or is_opaque(value))
    if shell:
        return not value.startswith("/")
    if is_variable_like(value):
        return False
    if found.is_tight and found.sign == "=":
        return not (_is_argument(found) and value.isidentifier())
    if is_plain_word(value):
        return _fills_its_line(found) and value.islower() and len(value) > 3
    return not is_number(value) or len(value) >= 6


def _is_argument(found: _Assignment) -> bool:
    """`f(password=pw)`: what follows the value ends an argument."""
    return found.value.endswith((")", "]", "}")) or found.follower == ","


def _fills_its_line(found: _Assignment) -> bool:
    """The assignment stands alone on its line, as in a YAML file."""
    line_start = found.text.rfind("\n", max(0, found.name_start - 80), found.name_start) + 1
    before = found.text[line_start : found.name_start]
    return not before.strip(" \t-") and found.follower in ("", "\n", "\r")
