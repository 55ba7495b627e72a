"""Secrets known by their own shape or by the words directly around them: tokens, key blocks, passwords in addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from leporello.redact.spans import SecretSpan
from leporello.redact.values import is_opaque, is_reference

# Formats that the library does not know. Each starts with letters that nothing else starts with.
_PREFIXED = re.compile(
    r"""(?<![A-Za-z0-9_])(?:
      sk-(?:svcacct|admin|None)-[A-Za-z0-9_-]{20,}+       # OpenAI service accounts
    | sk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{20,}+
    | ya29\.[A-Za-z0-9_-]{20,}+                           # Google OAuth access
    | 1//0[A-Za-z0-9_-]{30,}+                             # Google OAuth refresh
    | AKIA[A-Z0-9]{16}(?![A-Za-z0-9])
    | sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+              # Square
    | ntn_[A-Za-z0-9]{40,}+                               # Notion
    | figd_[A-Za-z0-9_-]{30,}+                            # Figma
    | pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}+                  # Airtable
    | sntrys_[A-Za-z0-9_+/=-]{30,}+                       # Sentry
    | AGE-SECRET-KEY-1[A-Z0-9]{50,}+
    | pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}+        # PlanetScale
    | sb_secret_[A-Za-z0-9_-]{20,}+                       # Supabase
    | HRKU-[A-Za-z0-9_-]{30,}+                            # Heroku
    | nfp_[A-Za-z0-9]{30,}+                               # Netlify
    | sl\.(?:u\.)?[A-Za-z0-9_-]{100,}+                    # Dropbox
    | EAA[A-Za-z0-9]{80,}+                                # Facebook
    | gl(?:pat|ptt|dt|rt|cbt|soat|ft)-[A-Za-z0-9_.-]{20,}+  # GitLab
    | xox[abeoprs]-[A-Za-z0-9-]{20,}+                     # Slack
    | key-[a-f0-9]{32}(?![A-Za-z0-9])                     # Mailgun
    | M[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+  # Discord bots
    )""",
    re.VERBOSE,
)

_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)/|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{5,25}/)"
    r"([A-Za-z0-9_/-]{20,200}+)"
)

# One start per run of token characters, so that a text made of nothing but starts is read once.
_WEB_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*+")

_HEADER = re.compile(
    r"""(?i:authorization)\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?
        (?:(?i:bearer|basic|token|digest|apikey|aws4-hmac-sha256)\s+)?
        (?P<value>[A-Za-z0-9._~+/=:|-]{6,4096}+)""",
    re.VERBOSE,
)
_BEARER = re.compile(r"\b(?i:bearer)\s{1,3}(?P<value>[A-Za-z0-9._~+/=|-]{8,4096}+)")

_ADDRESS = re.compile(
    r"""[A-Za-z][A-Za-z0-9+.-]{1,30}://      # scheme
        [^\s/:@'"<>`]{0,128}:                # user, may be missing
        (?P<value>[^\s/'"<>`]{1,256})        # password; the last @ ends it
        @(?=[\w\[.$%{-])""",
    re.VERBOSE,
)
# Signatures and keys in the query of an address, or in a list of assignments with semicolons.
_SIGNED = re.compile(
    r"""(?:[?&;]|^)(?i:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|sharedaccesskey|accountkey)
        =(?P<value>[A-Za-z0-9%+/=_-]{16,1024}+)""",
    re.VERBOSE | re.MULTILINE,
)
_COMMAND_USER = re.compile(
    r"""\bcurl\b[^\n|;&]{0,512}?\s(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,128}:(?P<value>[^\s"']{1,256})"""
)
_COMMAND_PASSWORD = re.compile(
    r"""\b(?:sshpass\s+-p\s{0,2}|mysql(?:dump|admin)?\b[^\n|;&]{0,256}?\s-p)(?P<value>["']?[^\s"'$-][^\s"']{2,128}+)"""
)
_LOGIN = re.compile(r"\blogin\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<value>\S{1,256}+)")
_SQL = re.compile(
    r"""(?i:\bidentified\s+by|\bwith\s+(?:encrypted\s+)?password|\bset\s+password\s*=)\s+
                  (?P<value>'[^'\n]{1,256}'|"[^"\n]{1,256}")""",
    re.VERBOSE,
)
_MARKUP = re.compile(
    r"<([\w:.-]{0,64}?(?i:password|passwd|passphrase|secret|api-?key|token))>(?P<value>[^<>\s]{1,512})</"
)
_COOKIE = re.compile(r"""(?i:\b(?:set-)?cookie)\\{0,3}["']?\s{0,3}:\s{0,3}(?P<line>[^\n]{1,4096})""")
_COOKIE_VALUE = re.compile(r"""[\w.-]{1,64}=(?P<value>[^;\s"'\\]{16,1024})""")

_KEY_START = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?)-----")
_KEY_LINES = re.compile(r"""(?:(?:\s|\\[nr]|["'+>|,]|[\d]+→)*+[A-Za-z0-9+/=]{16,}+)*+""")
_LONGEST_KEY = 20_000


def shape_spans(text: str) -> Iterator[SecretSpan]:
    """Everything recognisable by itself."""
    lowered = text.lower()
    for match in _PREFIXED.finditer(text):
        yield SecretSpan(match.start(), match.end(), "vendor_key")
    if "eyJ" in text:
        for match in _WEB_TOKEN.finditer(text):
            yield SecretSpan(match.start(), match.end(), "web_token")
    if "PRIVATE KEY" in text:
        yield from _key_blocks(text)
    for words, pattern, kind, accepts in _RULES:
        if any(word in lowered for word in words):
            for match in pattern.finditer(text):
                start, end = match.span("value" if "value" in pattern.groupindex else 1)
                if accepts(text[start:end]):
                    yield SecretSpan(start, end, kind)
    if "cookie" in lowered:
        yield from _cookies(text)


def _is_literal(value: str) -> bool:
    return not is_reference(value)


def _is_opaque_literal(value: str) -> bool:
    return not is_reference(value) and is_opaque(value)


def _is_any(value: str) -> bool:
    return True


_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], str, Callable[[str], bool]], ...] = (
    # words of which one must occur (in small letters), pattern, kind, what its value must be
    (("hooks.slack.com", "discord"), _WEBHOOK, "webhook", _is_any),
    (("authorization",), _HEADER, "authorization", _is_opaque_literal),
    (("bearer",), _BEARER, "bearer_token", _is_opaque_literal),
    (("://",), _ADDRESS, "address_password", _is_literal),
    (("sig", "accountkey", "sharedaccesskey", "token="), _SIGNED, "signature", _is_opaque_literal),
    (("curl",), _COMMAND_USER, "command_password", _is_literal),
    (("sshpass", "mysql"), _COMMAND_PASSWORD, "command_password", _is_literal),
    (("login",), _LOGIN, "login_password", _is_literal),
    (("identified", "password"), _SQL, "sql_password", _is_literal),
    (("</",), _MARKUP, "markup_value", _is_literal),
)


def _key_blocks(text: str) -> Iterator[SecretSpan]:
    position = 0
    while match := _KEY_START.search(text, position):
        start = match.end()
        closing = text.find(f"-----END {match['label']}-----", start, start + _LONGEST_KEY)
        if closing >= 0:
            position = end = closing
        else:
            # Cut off: what still looks like lines of a key belongs to it.
            lines = _KEY_LINES.match(text, start, start + _LONGEST_KEY)
            position = end = lines.end() if lines else start
        position = max(position, start)
        if end > start:
            yield SecretSpan(start, end, "private_key")


def _cookies(text: str) -> Iterator[SecretSpan]:
    for header in _COOKIE.finditer(text):
        for match in _COOKIE_VALUE.finditer(text, *header.span("line")):
            if is_opaque(match["value"]):
                yield SecretSpan(*match.span("value"), "cookie")
