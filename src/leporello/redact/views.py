r"""A text as it is meant, with the way back: JSON's `\u0070assword`, lines that a backslash joins, words of a command.

unescaped('{"a": "pass\\u003dx"}')   ->   a view whose text is '{"a": "pass=x"}'
view.origin(span)                       ->   the same place in the text itself
"""

from __future__ import annotations

import base64
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from leporello.lazy_regex import lazy_regex
from leporello.redact.spans import SecretSpan
from leporello.text_features.rare import RarePattern


@dataclass(frozen=True)
class View:
    """A part of a text with what a pattern finds written otherwise, each as `plain` says."""

    source: str
    start: int
    end: int
    pattern: re.Pattern[str]
    plain: str | Callable[[re.Match[str]], str]
    text: str
    """As it reads then."""

    @property
    def is_only_reading(self) -> bool:
        """From the text's beginning on, with a number before each line or with colours: it reads in no other way."""
        return self.start == 0 and (
            _NUMBERED.match(self.source) is not None or _COLOURED.search(self.source) is not None
        )

    @property
    def is_code(self) -> bool:
        """One run of base64 or hexadecimal digits: wherever in it a secret is, all of it is masked."""
        return self.pattern is _ENCODED

    def origin(self, span: SecretSpan) -> SecretSpan:
        """The same place in the text."""
        starts, origins = self._pieces
        first = bisect_right(starts, span.start) - 1
        last = bisect_right(starts, span.end - 1) - 1
        start, _, same = origins[first]
        start += span.start - starts[first] if same else 0
        last_start, end, same = origins[last]
        end = last_start + span.end - starts[last] if same else end
        return SecretSpan(start, end, span.kind)

    @cached_property
    def _pieces(self) -> tuple[list[int], list[tuple[int, int, bool]]]:
        """Where each piece starts in the view; where it starts and ends in the text, and whether it is the same there.

        Worked out when a secret was found: most texts have none.
        """
        starts: list[int] = []
        origins: list[tuple[int, int, bool]] = []
        length, position = 0, self.start
        for found in self.pattern.finditer(self.source, self.start, self.end):
            first, last = found.span()
            if first > position:
                starts.append(length)
                origins.append((position, first, True))
                length += first - position
            if written := self.plain if isinstance(self.plain, str) else self.plain(found):
                starts.append(length)
                origins.append((first, last, False))
                length += len(written)
            position = last
        starts.append(length)
        origins.append((position, self.end, True))
        return starts, origins


_OTHER_LETTERS = "\uff0d\uff0e\uff10-\uff19\uff1d\uff21-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff"
_INVISIBLE = (
    "\x00\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U000e0000-\U000e0fff"
)
_ALIKE = str.maketrans(
    "агеорсухіјѕԁԛԝһкмтнвАВЕКМНОРСТУХІЈЅοαρνκτιυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "areopcyxijsdqwhkmthbABEKMHOPCTYXIJSoapvktiuABEZHIKMNOPTYX",
)
"""Letters of other alphabets that look like ours; inside a word of ours they are meant so."""
_ALIKES = "".join(map(chr, _ALIKE))


def _encoded(word: bytes) -> Iterator[str]:
    """What a word looks like inside a text in base64, which depends on where it begins, and in hexadecimal digits."""
    yield word.hex()
    for before in range(3):
        whole = base64.b64encode(bytes(before) + word).decode().rstrip("=")
        yield whole[-(-8 * before // 6) : 8 * (before + len(word)) // 6].lower()


_ENCODED_WORDS = frozenset(
    form
    for word in "passw PASSW secret SECRET token TOKEN api_key API_KEY apikey sk- sk-ant ghp_ glpat xox AKIA".split()
    for form in _encoded(word.encode())
    if len(form) >= 4
)
"""One of these stands in a text in which a secret is encoded."""
HIDING = _ENCODED_WORDS | frozenset(
    (
        "%3",
        "%4",
        "%5",
        "%6",
        "%7",
        "\x00",
        "\x1b[",
        "\u0430",
        *"\uff1d\uff50\uff53\uff4b\uff54\u00ad\u200b\u200c\u200e\u2060\ufeff",
    )
)
"""One of these stands in a text that hides a telling name."""
_DISGUISED = lazy_regex(
    rf"(?P<letter>[{_OTHER_LETTERS}])|[{_INVISIBLE}]|%(?:25){{0,3}}(?P<percent>[2-7][0-9a-fA-F])"
    rf"|(?P<alike>(?<=[A-Za-z])[{_ALIKES}]{{1,20}}|[{_ALIKES}]{{1,20}}(?=[A-Za-z]))"
)
_ENCODED = lazy_regex(
    r"(?<![A-Za-z0-9+/_-])(?:(?P<hex>(?:[0-9a-fA-F]{2}){12,}+)(?![A-Za-z0-9+/_=-])"
    r"|(?P<base64>[A-Za-z0-9+/_-]{20,}+)={0,2}(?![A-Za-z0-9+/_=-]))"
)
_LINES = bytes(code if code >= 32 or code in b"\t\r" else 10 for code in range(256))
"""Bytes of UTF-8 with each control character as the end of a line: records of binary formats are set apart by them."""
# Each branch of a pattern begins with a sign of its own: that makes it quick to pass over all others.
_ESCAPE = lazy_regex(
    r"""\\(?:u(?P<code>[0-9a-fA-F]{4})|(?:x|U000000|u\{)(?P<short>[2-7][0-9a-fA-F])\}?|(?P<octal>(?:0[4-7]|1[0-7])[0-7])
      |(?P<sign>["'/\\nrt=_:])|(?P<glue>\r?\n[ \t]{0,40}))
    | &(?:(?P<entity>quot|amp|lt|gt|apos|equals|colon|nbsp|commat|sol|lowbar)|\#(?:x(?P<hexed>[2-7][0-9a-fA-F])
      |(?P<number>3[2-9]|[4-9]\d|1[01]\d|12[0-6])));
    | =(?<=\w=)\r?\n(?=\w)
    | "(?<=\w")["'](?=\w)
    | '(?<=\w')["'](?=\w)
    | "[ \t]{0,8}(?:[+.&][ \t]{0,8}(?:_?\r?\n[ \t]{0,40})?|\\?\r?\n[ \t]{0,40}(?:[+.&][ \t]{0,8})?)[fbru]?"
    | '[ \t]{0,8}(?:[+.&][ \t]{0,8}(?:_?\r?\n[ \t]{0,40})?|\\?\r?\n[ \t]{0,40}(?:[+.&][ \t]{0,8})?)[fbru]?' """,
    re.VERBOSE,
)
_OTHER_ESCAPE = RarePattern(
    lazy_regex(
        r"""\\(?:u[0-9a-fA-F{]|U000000|x[2-7]|[01][0-7]{2}|[=_:]|\r?\n)|&(?:[a-z]{2,6}|#x?[0-9a-fA-F]{2,3});|=\r?\n"""
        r"""|\w["']{2}\w|["'][ \t]{0,8}(?:[+.&][ \t]{0,8}"""
        r"""(?:_?\r?\n[ \t]{0,40})?|\\?\r?\n[ \t]{0,40}(?:[+.&][ \t]{0,8})?)[fbru]?["']"""
    )
)
"""Those of `_ESCAPE` that are no sign behind a backslash."""
_GLUED = lazy_regex(r""""(?:[ \t]{0,8}(?:\r?\n|[+.&])|["']\w)|'(?:[ \t]{0,8}(?:\r?\n|[+.&])|["']\w)|=\r?\n\w""")
_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}
_COMMON = {f"\\{sign}": _SIGNS.get(sign, sign) for sign in "\"'/\\nrt"}
_ENTITIES = dict(zip("quot amp lt gt apos equals colon nbsp commat sol lowbar".split(), "\"&<>'=: @/_", strict=True))
_STRING = r"""(?:"(?:[^"\\\n]|\\.){0,400}+"|'(?:[^'\\\n]|\\.){0,400}+')"""
_ARGUMENTS = lazy_regex(rf"""\[\s{{0,80}}{_STRING}(?:\s{{0,80}},\s{{0,80}}{_STRING}){{1,200}}+""")
_BETWEEN = lazy_regex(r"""["']\s{0,80},\s{0,80}["']""")
_CELLS = lazy_regex(
    r"<(?:(?P<row>/t(?:[dh]>\s{0,40}</t)?r>(?:(?:\s{0,40}</?t(?:head|body)>){0,2}\s{0,40}<tr>\s{0,40}(?:<t[dh]>)?)?"
    r"|tr>\s{0,40}<t[dh]>)|(?P<cell>/t[dh]>\s{0,40}<t[dh]>)"
    r"|/?(?:b|strong|i|em|u|code|kbd|tt|pre|span|font|mark)(?:[ ][^<>\n]{0,80})?>)"
)
_INSERT = lazy_regex(
    r"""insert\s{1,8}into\s{1,8}[\w."`]{1,80}\s{0,8}\(|\)\s{0,8}values\s{0,8}\(|\)\s{0,8},\s{0,8}\(|\)\s{0,8};""",
    re.IGNORECASE,
)


_STRUNG = tuple(
    lazy_regex(
        rf"""\\(?:u(?P<code>[0-9a-fA-F]{{4}})|(?P<sign>["'/\\nrt]))
        | {quote}\s{{0,8}}:\s{{0,8}}(?:(?P<value>(?:[\[{{]\s{{0,80}}){{0,2}}{quote})|(?=[\d\[]))
        | (?P<end>{quote})\s{{0,8}}(?:[\}}\]]|,\s{{0,80}}{quote}?)
        | (?P<begin>[{{\[])\s{{0,80}}{quote}""",
        re.VERBOSE,
    )
    for quote in "\"'"
)
_IS_STRUNG = lazy_regex(r"""\s{0,8}[\[{]\s{0,80}(?P<quote>["'])""")
_DECORATION = r"""(?:
      [ \t]{0,8}\d{1,6}(?:[→│|\t]|[ ][|│]|:(?!\d))                      # a line's number, as tools show files
    | [+-](?![+-]|[ ]\S)                                               # diff
    | (?:>[ ]?){1,3}
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,12}[ ](?:\[?[A-Za-z]{4,8}\]?:?[ ])?(?:\[[\w.-]{1,40}\]:?[ ])?
    | [\w./@+-]{1,120}+(?::\d{1,6}:|[ ]{1,20}[|│][ ])                    # grep, compose
    )"""
_ORDER = r"""(?:
      (?:\x1b\[|\x9b)[0-?]{0,40}[@-~]
    | (?:\\{1,4}(?:e|033|x1b|u001b)|\^\[)\[[0-9;]{1,16}m                      # a colour that is written down
    | \x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)
    | \x1b[()*+][A-Za-z0-9]
    )"""
"""What a terminal is told between the letters."""
_DECORATED = lazy_regex(rf"^{_DECORATION} | {_ORDER}", re.VERBOSE | re.MULTILINE)
"""What tools put before each line of a text that they show, and the colours they show it in."""
_BLOCK = lazy_regex(rf"\n{_DECORATION}[^\n]*+(?:\n{_DECORATION}[^\n]*+)*+", re.VERBOSE)
_LINE = lazy_regex(rf"\n{_DECORATION}", re.VERBOSE)
_COLOURED = lazy_regex(r"\x1b|\x9b|\\(?:e|033|x1b|u001b)\[[0-9;]{1,16}m|\^\[\[[0-9;]{1,16}m")
_NUMBERED = lazy_regex(r"[ \t]{0,8}\d{1,6}[→│|\t]")
_LITERAL = tuple(lazy_regex(rf"{quote}(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in "\"'")
_FIRST, _LAST = 300, 600
"""So much of both ends of a long string is read beside what stands around it; its lines are read as they are anyway."""


def strung(text: str) -> Iterator[View]:
    """JSON with each of its strings as lines of their own: `{"the pin is": "..."}` is what a name and a value say."""
    opened = _IS_STRUNG.match(text) if text[:8].lstrip()[:1] in ("{", "[") else None
    if opened is None:
        return
    single = opened["quote"] == "'"
    start = 0
    for literal in _LITERAL[single].finditer(text):
        if literal.end() - literal.start() > 2 * _LAST:
            yield from _rewritten(text, start, literal.start() + _FIRST, _STRUNG[single], _laid_out)
            start = literal.end() - _LAST
    yield from _rewritten(text, start, len(text), _STRUNG[single], _laid_out)


def undecorated(text: str) -> Iterator[View]:
    """Lines of a text without the numbers, signs, names of files and times that stand before them."""
    if _COLOURED.search(text):
        yield from _rewritten(text, 0, len(text), _DECORATED, "")
        return
    for block in _BLOCK.finditer(f"\n{text}"):
        written = _LINE.sub("\n", block[0])[1:]
        yield View(text, block.start(), block.end() - 1, _DECORATED, "", written)


def unescaped(text: str, words: set[str]) -> Iterator[View]:
    """The text without escapes, if it has any. `words` are those that stand in it in small letters."""
    if "\\" in text or "&" in text or _GLUED.search(text):
        if _is_plainly_escaped(text):
            written = text
            for escape, sign in _COMMON.items():
                written = written.replace(escape, sign)
            if written != text:
                yield View(text, 0, len(text), _ESCAPE, _plain, written)
        else:
            yield from _rewritten(text, 0, len(text), _ESCAPE, _plain)
    if not words.isdisjoint(HIDING):
        yield from _rewritten(text, 0, len(text), _DISGUISED, _undisguised)
    if not words.isdisjoint(_ENCODED_WORDS):
        for code in _ENCODED.finditer(text):
            if (written := _decoded(code)) != code[0]:
                yield View(text, *code.span(), _ENCODED, _decoded, written)


def _is_plainly_escaped(text: str) -> bool:
    """Whether each escape of a text is one of the common ones, and none touches another: JSON, mostly."""
    return "\\\\" not in text and not _OTHER_ESCAPE.may_match(text)


def argument_lists(text: str) -> Iterator[View]:
    """Each list of quoted words as the one line they are: `-p` in one announces what stands in the next."""
    if '["' not in text and "['" not in text and "[\n" not in text:
        return
    for found in _ARGUMENTS.finditer(text):
        yield from _rewritten(text, found.start(), found.end() - 1, _BETWEEN, " ")


def tables(text: str, lowered: str) -> Iterator[View]:
    """The text with its tables, HTML or SQL, as rows of cells."""
    if "</" in text:
        yield from _rewritten(
            text, 0, len(text), _CELLS, lambda found: "\n" if found["row"] else " | " if found["cell"] else ""
        )
    if "insert" in lowered and "values" in lowered:
        yield from _rewritten(text, 0, len(text), _INSERT, "\n")


def _rewritten(
    text: str, start: int, end: int, pattern: re.Pattern[str], plain: str | Callable[[re.Match[str]], str]
) -> Iterator[View]:
    # No pattern looks beyond the part it is given: the strings and lists that are read in part end where it ends.
    written, count = pattern.subn(plain, text[start:end] if start or end < len(text) else text)
    if count:
        yield View(text, start, end, pattern, plain, written)


def _plain(found: re.Match[str]) -> str:
    common = _COMMON.get(found[0])
    if common is not None:
        return common
    for name, base in (("code", 16), ("short", 16), ("octal", 8), ("hexed", 16), ("number", 10)):
        if found[name]:
            return chr(int(found[name], base))
    if found["entity"]:
        return _ENTITIES[found["entity"]]
    sign = found["sign"]
    return _SIGNS.get(sign, sign) if sign else ""


def _laid_out(found: re.Match[str]) -> str:
    if found["code"]:
        return chr(int(found["code"], 16))
    if found["sign"]:
        return _SIGNS.get(found["sign"], found["sign"])
    if found["end"] or found["begin"]:
        return "\n"
    return ":\n" if found["value"] else ": "


def _decoded(found: re.Match[str]) -> str:
    """The text behind base64 or hexadecimal digits; what is no text stays as it is."""
    try:
        if found["hex"]:
            return bytes.fromhex(found["hex"]).translate(_LINES).decode()
        code = found["base64"].replace("-", "+").replace("_", "/")
        return base64.b64decode(code + "=" * (-len(code) % 4)).translate(_LINES).decode()
    except ValueError:
        return found[0]


def _undisguised(found: re.Match[str]) -> str:
    """Letters of full width, bold ones, percent codes and look-alikes are letters; what is not seen is not there."""
    if found["letter"]:
        return unicodedata.normalize("NFKC", found["letter"])
    if found["alike"]:
        return found["alike"].translate(_ALIKE)
    return chr(int(found["percent"], 16)) if found["percent"] else ""
