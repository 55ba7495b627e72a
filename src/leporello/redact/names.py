"""Which names announce a secret, and how surely: `db_password`, `apiKey`, `client-secret`, but not `token_count`."""

from __future__ import annotations

import re
from enum import IntEnum


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
