"""Secrets known by the shape of what is around them: addresses, headers, commands, key blocks, password files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.lazy_regex import lazy_regex
from leporello.redact.code_shapes import CODE_SHAPES
from leporello.redact.shape_table import TEXT_SHAPES, Shape
from leporello.redact.spans import SecretSpan, matches
from leporello.redact.values import is_chosen, is_literal, is_opaque_literal

_COOKIE = lazy_regex(r"""cookie\\{0,3}["']?[ \t]{0,3}[:=,( ][ \t]{0,3}([^\n]{1,4096})""", re.IGNORECASE)
_COOKIE_VALUE = lazy_regex(r"""([\w.-]{1,64})=([^;\s"'\\]{4,1024})""")
_COOKIE_NAME = lazy_regex(r"sess|sid$|csrf|xsrf|token|auth|jwt|remember|login|secret|key$", re.IGNORECASE)
_LONG_COOKIE = 16

_FEED = lazy_regex(
    r"""<<<[ ]?["']?(?P<string>[^\s"'$]{4,256})"""
    r"""|<<-?[ ]?["']?\w{1,20}["']?[^\n]{0,120}\n[ \t]{0,40}(?:[a-z_][\w-]{0,31}:)?(?P<row>\S{4,256})(?=\r?\n)"""
)
FED = ("pass", "cryptsetup", "token", "secret", "login", "auth", "-stdin", "cred", "key", "sudo -s")
_KEY_START = lazy_regex(r"-----BEGIN ([A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?)-----")
_KEY_LINES = lazy_regex(r"""(?:(?:\s|\\[nr]|["'+>|,]|\d+→)*+[A-Za-z0-9+/=]{16,}+)*+""")
_LONGEST_KEY = 65_536
_LONGEST_COMMAND = 400
_KUBE_SECRET = lazy_regex(r"""(?m)^[ \t"$-]{0,40}kind"?:[ ]"?Secret\b""")
_KUBE_DATA = lazy_regex(
    r"""(?m)^[ \t]{0,40}"?(?:data|stringData)"?:[ ]?\{?[ \t]{0,8}\r?\n"""
    r"""((?:[ \t]{1,40}[^\s:]{1,253}:[ ][^\n]{1,65536}\n?){1,200})"""
)
_KUBE_ROW = lazy_regex(r"""(?m)^[ \t]{1,40}[^\s:]{1,253}:[ ]["']?([^\s"',|>][^\s"',]{2,65536})""")
_KEY_END = lazy_regex(r"-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = lazy_regex(
    r"""(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{16,}+(?:\\n)?["',]{0,2}\s{0,4}$|(?:^|\s)[A-Za-z0-9+/=]{4,16}={0,2}\s{0,4}$"""
)
_MOST_KEY_LINES, _LONGEST_KEY_LINE = 1_000, 200

SHAPES = (*TEXT_SHAPES, *CODE_SHAPES)
SHAPE_WORDS = frozenset(
    (
        "secret",
        "-decryption",
        "-----begin ",
        "-----end ",
        "cookie",
        "<<",
        *("openssl rand", "pwgen", "genkey", "genpsk"),
        *(word for shape in SHAPES for word in shape.words),
    )
)
"""Each shape begins with one of these, in small letters."""


BY_WORD = {word: tuple(shape for shape in SHAPES if word in shape.words) for shape in SHAPES for word in shape.words}


def shape_spans(text: str, lowered: str, words: set[str]) -> Iterator[SecretSpan]:
    """Everything recognisable by what is around it. `words` are those that stand in the text in small letters."""
    for word in sorted(BY_WORD.keys() & words):
        for shape in BY_WORD[word]:
            for match in matches(shape.pattern, text, word, lowered):
                if _is_secret(lowered, shape, match):
                    yield SecretSpan(*match.span(match.lastindex or 0), shape.kind)
    if "-----begin " in words or "-----end " in words:
        yield from _key_blocks(text)
    if "secret" in words and _KUBE_SECRET.search(text):
        yield from _kube_data(text)
    if "<<" in words:
        yield from _fed(text, lowered)
    if "cookie" in words:
        yield from _cookies(text, lowered)


def _is_secret(lowered: str, shape: Shape, match: re.Match[str]) -> bool:
    if not shape.accepts(match[match.lastindex or 0]):
        return False
    return not shape.behind or _stands_behind(lowered, shape, match)


def _stands_behind(lowered: str, shape: Shape, match: re.Match[str]) -> bool:
    place = match.start()
    start = max(0, place - _LONGEST_COMMAND)
    if not shape.lines:
        start = max(start, lowered.rfind("\n", start, place))
    if not any(lowered.find(word, start, place + 1) >= 0 for word in shape.behind):
        return False
    return shape.named is None or shape.named.search(match.string, start, place) is not None


def _fed(text: str, lowered: str) -> Iterator[SecretSpan]:
    """What a line about secrets is fed with: `login --password-stdin <<< ...`, `cat > token.txt <<EOF`."""
    for found in matches(_FEED, text, "<<", text):
        start = max(text.rfind("\n", max(0, found.start() - _LONGEST_COMMAND), found.start()) + 1, 0)
        line = lowered[start : max(found.start(), text.find("\n", found.start()))]
        value = found["string"] or found["row"]
        if any(word in line for word in FED) and (is_chosen(value) or is_opaque_literal(value)):
            yield SecretSpan(*found.span("string" if found["string"] else "row"), "heredoc")


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
    for match in matches(_KEY_END, text, "-----END ", text):
        start = _first_key_line(text, match.start()) if match.start() > done else match.start()
        if start < match.start():
            yield SecretSpan(start, match.start(), "private_key")


def _kube_data(text: str) -> Iterator[SecretSpan]:
    """The values of a Kubernetes Secret, whatever they are called."""
    for block in _KUBE_DATA.finditer(text):
        for row in _KUBE_ROW.finditer(text, *block.span(1)):
            if is_literal(row[1]):
                yield SecretSpan(*row.span(1), "kubernetes")


def _first_key_line(text: str, end: int) -> int:
    """Where the lines of a key begin whose first line was cut off."""
    start = end
    for _ in range(_MOST_KEY_LINES):
        before = text.rfind("\n", max(0, start - _LONGEST_KEY_LINE), max(0, start - 1)) + 1
        line = _KEY_LINE.search(text, before, start)
        if line is None or (before == 0 and start > _LONGEST_KEY_LINE):
            break
        start = before
    return start


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
