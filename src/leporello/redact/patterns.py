"""Secrets known by their own shape: tokens, key blocks, passwords in addresses, vendors' key formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import redact_secret

from leporello.redact.values import PLACEHOLDER, is_literal, is_opaque_literal


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """One secret: code points start..end of the text, and what kind it is. Never the secret itself."""

    start: int
    end: int
    kind: str


def merge(text: str, spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """In order and without overlap; what is a placeholder already, or nothing, is left out."""
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not text[span.start : span.end].replace(PLACEHOLDER, "").strip():
            continue
        last = merged[-1] if merged else None
        if last is not None and span.start < last.end:
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged


def lowered_of(text: str) -> str:
    """The text in small letters, with every character at its old place."""
    lowered = text.lower()
    # One letter (the dotted capital I) becomes two in small; nothing ever becomes fewer.
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "I").lower()


def matches(pattern: re.Pattern[str], text: str, word: str, searched: str) -> Iterator[re.Match[str]]:
    """What the pattern matches from each place of a word in `searched` (the text, or the text in small letters).

    Places inside an earlier match are passed over: they were read.
    """
    place = searched.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match is not None:
            yield match
        place = searched.find(word, max(place + len(word), match.end() if match else 0))


PIECE = 32_768
OVERLAP = 1_024
"""Longer than the vendors' keys: one that a cut between pieces goes through is seen whole in the next piece."""
_TOKEN_START = "eyJ"
_MANY_STARTS = 64
# Guesses by the name of a variable take ordinary code along; of a private key we keep the frame.
_OURS = ("contextual_secret", "private_key")
_SURROGATE = re.compile("[\ud800-\udfff]")


def library_spans(text: str) -> Iterator[SecretSpan]:
    """What the library would mask, without what our own rules do better."""
    for offset, piece in _pieces(text):
        for finding in redact_secret.scan(_scannable(piece)):
            if finding.action != "warn" and finding.type not in _OURS:
                yield SecretSpan(offset + finding.start, offset + finding.end, finding.type)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while True:
        end = start + PIECE
        if end >= len(text):
            yield start, text[start:]
            return
        line_end = text.rfind("\n", start + PIECE // 2, end)
        if line_end >= 0:
            yield start, text[start : line_end + 1]
            start = line_end + 1
        else:
            yield start, text[start:end]
            start = end - OVERLAP


def _scannable(piece: str) -> str:
    if piece.count(_TOKEN_START) > _MANY_STARTS:
        piece = piece.replace(_TOKEN_START, "eyX")
    try:
        piece.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", piece)
    return piece


def _anything(value: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Shape:
    """One rule: where `word` stands (in small letters), `pattern` is tried from there; group 1 is the secret."""

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = _anything
    behind: str = ""
    """A word that must stand on the same line within a few hundred characters before."""


# Formats that the library does not know. Each starts with letters that nothing else starts with.
_VENDOR_KEYS: dict[str, str] = {
    "sk-": r"(?:proj|svcacct|admin|ant|or-v1)-[A-Za-z0-9_-]{20,}+",  # OpenAI, Anthropic, OpenRouter
    "ya29.": r"[A-Za-z0-9_-]{20,}+",  # Google, access
    "1//0": r"[A-Za-z0-9_-]{30,}+",  # Google, refresh
    "AKIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS; the library leaves out the ones used in manuals
    "sq0": r"(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+",  # Square
    "ntn_": r"[A-Za-z0-9]{40,}+",  # Notion
    "figd_": r"[A-Za-z0-9_-]{30,}+",  # Figma
    "pat": r"[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])",  # Airtable
    "sntrys_": r"[A-Za-z0-9_+/=-]{30,}+",  # Sentry
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{50,}+",
    "pscale_": r"(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}+",  # PlanetScale
    "sb_secret_": r"[A-Za-z0-9_-]{20,}+",  # Supabase
    "HRKU-": r"[A-Za-z0-9_-]{30,}+",  # Heroku
    "nfp_": r"[A-Za-z0-9]{30,}+",  # Netlify
    "sl.": r"(?:u\.)?[A-Za-z0-9_-]{100,}+",  # Dropbox
    "EAA": r"[A-Za-z0-9]{80,}+",  # Facebook
    "glpat-": r"[A-Za-z0-9_.-]{20,}+",  # GitLab
    "xox": r"[abeoprs]-[A-Za-z0-9-]{20,}+",  # Slack
    "key-": r"[a-f0-9]{32}(?![A-Za-z0-9])",  # Mailgun
}
_VENDOR_PATTERNS = {
    word: re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}{rest}") for word, rest in _VENDOR_KEYS.items()
}

# One start per run of token characters, so that a text made of nothing but starts is read once.
_WEB_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*+")

_SCHEMES = r"(?i:bearer|basic|token|digest|apikey|aws4-hmac-sha256)"
_QUOTE = r"""\\{0,3}["']?"""

_SHAPES: tuple[Shape, ...] = (
    Shape(
        "webhook",
        ("hooks.slack.com/",),
        re.compile(r"[\w.]{1,100}/(?:services|workflows)/([A-Za-z0-9_/-]{20,200}+)", re.I),
    ),
    Shape("webhook", ("/api/webhooks/",), re.compile(r"/api/webhooks/\d{5,25}/([A-Za-z0-9_-]{20,200}+)", re.I)),
    Shape(
        "authorization",
        ("authorization",),
        re.compile(
            rf"authorization{_QUOTE}[ \t]{{0,3}}[:=,][ \t]{{0,3}}{_QUOTE}"
            rf"(?:{_SCHEMES}[ \t]{{1,3}})?([A-Za-z0-9._~+/=:|-]{{6,4096}}+)",
            re.I,
        ),
        is_opaque_literal,
    ),
    Shape(
        "bearer", ("bearer",), re.compile(r"bearer[ \t]{1,3}([A-Za-z0-9._~+/=|-]{8,4096}+)", re.I), is_opaque_literal
    ),
    # scheme://user:password@host: the last @ before a slash ends the password.
    Shape(
        "address", ("://",), re.compile(r"""://[^\s/:@'"<>`]{0,128}:([^\s/'"<>`]{1,256})@(?=[\w\[.$%{-])"""), is_literal
    ),
    Shape(
        "signature",
        ("sig=", "signature=", "security-token=", "accountkey=", "sharedaccesskey="),
        re.compile(r"[a-z-]{1,64}=([A-Za-z0-9%+/=_-]{16,1024}+)", re.I),
        is_opaque_literal,
    ),
    Shape(
        "command",
        (" -u", " --user"),
        re.compile(r"""\s(?:-u|--user)[ =]?["']?[^\s:"'$]{1,128}:([^\s"']{1,256})"""),
        is_literal,
        behind="curl",
    ),
    Shape("command", ("sshpass -p",), re.compile(r"""sshpass -p\s{0,2}["']?([^\s"']{2,128}+)"""), is_literal),
    Shape("command", (" -p",), re.compile(r"""\s-p["']?([^\s"'$-][^\s"']{2,128}+)"""), is_literal, behind="mysql"),
    Shape("login", ("password ",), re.compile(r"password\s{1,4}(\S{1,256}+)"), is_literal, behind="login "),
    Shape(
        "sql",
        ("identified by", "with password", "encrypted password", "set password"),
        re.compile(
            r"""[a-z]{1,64}\s{1,64}(?:by|password)\s{0,2}=?\s{0,2}(?:'([^'\n]{1,256})'|"([^"\n]{1,256})")""", re.I
        ),
        is_literal,
    ),
    Shape(
        "markup",
        ("password>", "passwd>", "passphrase>", "secret>", "apikey>", "api-key>", "token>"),
        re.compile(r"(?<![\s<])[a-z-]{1,64}>([^<>\s]{1,512})</|(?<=<)[a-z-]{1,64}>([^<>\s]{1,512})</", re.I),
        is_literal,
    ),
)

_COOKIE = re.compile(r"""cookie\\{0,3}["']?[ \t]{0,3}:[ \t]{0,3}([^\n]{1,4096})""", re.IGNORECASE)
_COOKIE_VALUE = re.compile(r"""([\w.-]{1,64})=([^;\s"'\\]{4,1024})""")
_COOKIE_NAME = re.compile(r"sess|sid$|csrf|xsrf|token|auth|jwt|remember|login|secret|key$", re.IGNORECASE)
_LONG_COOKIE = 16

_KEY_START = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?)-----")
_KEY_LINES = re.compile(r"""(?:(?:\s|\\[nr]|["'+>|,]|\d+→)*+[A-Za-z0-9+/=]{16,}+)*+""")
_LONGEST_KEY = 20_000
_LONGEST_COMMAND = 400


def shape_spans(text: str, lowered: str) -> Iterator[SecretSpan]:
    """Everything recognisable by itself. `lowered` is the text in small letters."""
    for word, pattern in _VENDOR_PATTERNS.items():
        for match in matches(pattern, text, word, text):
            yield SecretSpan(*match.span(), "vendor_key")
    for match in matches(_WEB_TOKEN, text, "eyJ", text):
        yield SecretSpan(*match.span(), "web_token")
    for shape in _SHAPES:
        for word in shape.words:
            for match in matches(shape.pattern, text, word, lowered):
                if _is_secret(lowered, shape, match):
                    yield SecretSpan(*match.span(match.lastindex or 0), shape.kind)
    yield from _key_blocks(text)
    yield from _cookies(text, lowered)


def _is_secret(lowered: str, shape: Shape, match: re.Match[str]) -> bool:
    if not shape.accepts(match[match.lastindex or 0]):
        return False
    return not shape.behind or _stands_behind(lowered, shape.behind, match.start())


def _stands_behind(lowered: str, word: str, place: int) -> bool:
    start = max(0, place - _LONGEST_COMMAND)
    start = max(start, lowered.rfind("\n", start, place))
    return lowered.find(word, start, place) >= 0


def _key_blocks(text: str) -> Iterator[SecretSpan]:
    done = 0
    for match in matches(_KEY_START, text, "-----BEGIN ", text):
        start = match.end()
        if start < done:
            continue
        done = text.find(f"-----END {match[1]}-----", start, start + _LONGEST_KEY)
        if done < 0:
            # Cut off: what still looks like lines of a key belongs to it.
            lines = _KEY_LINES.match(text, start, start + _LONGEST_KEY)
            done = lines.end() if lines else start
        if done > start:
            yield SecretSpan(start, done, "private_key")


def _cookies(text: str, lowered: str) -> Iterator[SecretSpan]:
    for header in matches(_COOKIE, text, "cookie", lowered):
        for match in _COOKIE_VALUE.finditer(text, *header.span(1)):
            if _is_cookie_secret(match[1], match[2]):
                yield SecretSpan(*match.span(2), "cookie")


def _is_cookie_secret(name: str, value: str) -> bool:
    """A session's cookie may be short; of others only what looks generated counts."""
    if len(value) >= _LONG_COOKIE and is_opaque_literal(value):
        return True
    return _COOKIE_NAME.search(name) is not None and is_literal(value) and not value.isalpha()
