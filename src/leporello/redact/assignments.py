"""`PASSWORD=...`, `"api_key": "..."`, `<key>token</key><string>...`: a telling name, a link, and a value.

The link may be any that a language of code, settings or markup has, and may go over a line end. The further it is from
a plain assignment, the more the value itself has to look like a secret. Names that head a column are read in `columns`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.redact.names import Strength, is_shell_name, strength_of
from leporello.redact.spans import SecretSpan
from leporello.redact.values import (
    is_chosen,
    is_code,
    is_file_name,
    is_filler,
    is_label,
    is_made_of_words,
    is_name_like,
    is_number,
    is_one_time_code,
    is_opaque,
    is_opaque_literal,
    is_pass_phrase,
    is_plain_word,
    is_reference,
    is_term,
    is_type_name,
    is_variable_like,
    is_worded,
)

_REST_OF_NAME = lazy_regex(r"[\w.-]{0,40}")
_NAME_LENGTH = 64
_TRIES = 16

_CLOSED = r"""(?:\\{0,3}["'`]\]?|\]|\*\*?|__)?"""
_LINKS = lazy_regex(
    rf"""{_CLOSED}
    (?:
      (?P<attribute>(?:[ \t]{{0,4}}[=:](?=[ \t]{{0,4}}[\r\n{{]))?[ \t\r\n,]{{0,20}}(?:\{{[ \t\r\n]{{0,20}})?
        (?:["']?(?:[Tt]ype|[Dd]escription|sensitive)["']?[ \t]{{0,8}}[=:][ \t]{{0,4}}
           [^\n,]{{1,80}}[\r\n,][ \t\r\n]{{0,20}}){{0,3}}
        ["']?(?:(?:Parameter)?[Vv]alue|default)["']?[ \t]{{0,8}}[=:][ \t]{{0,4}})  # "name": "PASSWORD", "value":
    | [ \t]{{0,2}}:[ \t]{{0,2}}[A-Za-z_&*\[][\w.\[\]|&*' ]{{1,40}}=[ \t]{{0,4}}                # password: &str = "..."
    | [ \t]{{0,8}}(?:=>|:=|=|:)[ \t]{{0,8}}(?P<list>[\[(]\s{{0,40}}(?=["'`]))              # passwords = ["..."]
    | [ \t]{{0,8}}(?:=>|:=|=|:)[ \t]{{0,8}}(?P<made>(?:new[ ])?(?:\[\]byte|Some|Just|bytes|str|[Bb]uffer\.from
        |(?:String|Secret\w{{0,8}})(?:::(?:from|new)|\.valueOf)?|password)\([ \t]{{0,4}}(?=["'`]))  # = []byte("...")
    | (?P<call>[({{][ \t]{{0,4}}(?=["'`]))                                                       # setPassword("...")
    | (?P<typed>[ ][Aa]s[ ]\w{{1,20}}[ ]=[ ]{{1,4}})                                            # pwd As String = "..."
    | [ \t]{{0,8}}(?P<sign>=>|:=|:-|==|=|：|:|(?:\|\||\?\??)=)(?:\*\*|__)?[ \t]{{0,32}}
      (?:(?:!!(?:str|binary)|&\w{{1,32}})[ ]|@(?="))?
      (?P<below>(?:[|>][+-]?[ \t]{{0,2}}|\(|\\)?\r?\n[ \t]{{0,40}})?
    | (?:[ \t\r\n]{{0,20}},[ \t\r\n]{{0,20}}|\)?[ \t]{{0,4}}(?:\?[:?]|\|\||or[ ])[ \t]{{0,4}})
      (?P<argument>(?=\\{{0,3}}["'`]))  # define('PASSWORD', '...'), getenv(..) ?: '...'
    | (?P<element>[ \t\r\n]{{0,20}}/?>[ \t\r\n]{{0,20}}(?:<[Vv]alue>[ \t\r\n]{{0,20}})?         # <entry key="password">
        | </[\w:.-]{{1,24}}>[ \t\r\n]{{0,20}}<[a-zA-Z][\w:.-]{{0,24}}>[ \t\r\n]{{0,20}}
        | [ ][\w:-]{{1,24}}=["'][^"'\n<>]{{0,60}}["']>[ \t\r\n]{{0,20}})
    | [ \t]{{0,20}}(?P<cell>\||\t|\.{{3,60}})[ \t]{{0,20}}
    | (?P<space>[ \t]{{1,4}})
    )""",
    re.VERBOSE,
)
_QUOTED = lazy_regex(r"""[fbruFBRU]{0,2}(?P<open>\\{0,3}["'`])(?P<value>(?:(?!(?P=open))[^\n]){1,65536}+)(?P=open)""")
_BRACKETED = lazy_regex(
    r"""(?P<open>%?[qQ]{1,2}[({\[<|/!~]|\[={0,4}\[)(?P<value>[^\s,(){}\[\]<>|/!~]{3,256}+)[)}\]>|/!~]"""
)
"""Strings in the brackets of Perl, Ruby and Lua: `q(...)`, `%q{...}`, `[[...]]`."""
_BARE = lazy_regex(r"""(?P<value>(?:[^\s"'`,;&<>\\]++|&(?![\w.%\[\]-]{0,64}[=;]|&|\s|$)){1,65536}+)""")
"""Up to the next field of a query; any other `&` is a letter like others."""
_FOLDED = lazy_regex(r"""(?P<value>[^\s"'`]{1,4096}+(?:\r?\n[ \t]{1,40}[^\s"'`:]{1,4096}+(?=\s{0,4}(?:\n|$)))++)""")
"""Lines below a YAML name, each of them one word; all of them, or each reading of the text would mask some more."""
_GOES_ON = lazy_regex(r"[ ][A-Za-z]{2,24}[ .,]")
"""The sentence does: `password: step-2 of the wizard`."""
_LEAST_DRAWN = 24
_NO_PASS = lazy_regex(r"\d{1,3}(?!\w)|[/~.]")
"""A count of tests, a directory."""
_FAR = ("below", "argument", "attribute", "element", "cell", "list", "made", "call")
_NEXT_ITEM = lazy_regex(r"""\\{0,3}["'`]\s{0,8},\s{0,80}\\{0,3}["'`](?P<value>[^\s"'`\\]{4,4096}+)(?=\\{0,3}["'`])""")
_MOST_ITEMS = 100
_ASKING = lazy_regex(r"(?:^|[._])(?:get|fetch|read|load|find|is|has|need|ask|prompt|reset|forgot)", re.IGNORECASE)
"""What `getPassword("...")` is given is where it stands, not what it is."""
_DEFINING = lazy_regex(r"(?:\(\s?(?:setq|def\w{0,10})|(?<![\w.])set)[ ]$")
_WORD_BEFORE = lazy_regex(r"(?<![A-Za-z])([A-Za-z]{2,16})[ ]$")


class _Assignment(Struct, frozen=True):
    text: str
    name_start: int
    name: str
    strength: Strength
    link: re.Match[str]
    value: str
    start: int
    quoted: bool

    @property
    def end(self) -> int:
        return self.start + len(self.value)

    @property
    def sign(self) -> str:
        return self.link["sign"] or ""

    @property
    def is_tight(self) -> bool:
        """No blanks around the sign, as shells and queries demand."""
        return self.link[0] == self.sign

    @property
    def is_far(self) -> bool:
        """Name and value are not joined by a sign on one line."""
        return any(self.link[kind] is not None for kind in _FAR)

    @property
    def follower(self) -> str:
        return self.text[self.end : self.end + 1]


def assignment_spans(text: str, hints: Iterable[int]) -> Iterator[SecretSpan]:
    """Values that are given to a telling name. `hints` are the places where one may be."""
    done = 0
    run_end, tries = 0, 0
    for hint in hints:
        if hint < done:
            continue
        found = _take_apart(text, hint)
        if found is None:
            continue
        done = found.start
        if _is_secret(found):
            end = _secret_end(found)
            yield SecretSpan(found.start, end, "assignment")
            if found.link["list"] is not None:
                yield from _further_items(found)
            done = end
        elif found.start < run_end:
            tries += 1
            # `key=key=key=...`: the same long run again and again. Enough.
            done = run_end if tries > _TRIES else done
        else:
            run_end, tries = found.end, 0


def _further_items(found: _Assignment) -> Iterator[SecretSpan]:
    end = found.end
    for _ in range(_MOST_ITEMS):
        item = _NEXT_ITEM.match(found.text, end)
        if item is None:
            return
        end = item.end("value")
        if is_opaque(item["value"]) or is_chosen(item["value"]):
            yield SecretSpan(*item.span("value"), "assignment")


def _secret_end(found: _Assignment) -> int:
    if found.quoted:
        return found.end
    return found.start + len(found.value.rstrip(")]}"))


def _take_apart(text: str, place: int) -> _Assignment | None:
    start, name_end = name_around(text, place)
    link = _LINKS.match(text, name_end)
    if link is None:
        return None
    name = text[start:name_end]
    strength = strength_of(name)
    if strength is None or (strength is Strength.TOKEN and not strength_of(f"{_word_before(text, start)}_{name}")):
        return None
    if link["space"] is not None and not _is_given_behind_blank(text, start, link.end(), name, strength):
        return None
    if link["call"] is not None and (strength is Strength.TOKEN or _ASKING.search(name)):
        return None
    if link["sign"] == ":" and text[max(0, start - 1) : start] == ":":  # a:b:secret:c
        return None
    if link["sign"] != "=" and name.lower() == "pass" and not _is_beside_user(text, start):  # what tests do
        return None
    if name.lower() in ("pass", "pwd", "oldpwd") and _NO_PASS.match(text, link.end()):
        return None
    is_block = link["below"] is not None and link["below"][:1] in ("|", ">")
    behind = link.end()
    value = (_DEFAULT.match(text, behind) if "${" in text[behind : behind + 6] else None) or _QUOTED.match(text, behind)
    value = value or (_FOLDED.match(text, link.end()) if is_block else None)
    if value is None and strength is Strength.PASSWORD and link["sign"] and link["below"] is None:
        value = _bare_phrase(text, start, link.end())
    value = value or _BRACKETED.match(text, link.end()) or _BARE.match(text, link.end())
    if value is None:
        return None
    quoted = not {"open", "phrase"}.isdisjoint(value.re.groupindex)
    return _Assignment(text, start, name.lstrip("-"), strength, link, value["value"], value.start("value"), quoted)


_DEFAULT = lazy_regex(r"""\\{0,3}["']?\$\{\w{1,64}:[-=](?P<value>[^\s"'`$\\{}]{4,4096}+)\}""")
"""`${JWT:-...}`: the default of a variable."""
_REST_OF_LINE = lazy_regex(r"(?P<phrase>)(?P<value>[a-z]{3,16}(?:[ ][a-z]{2,16}){1,7})(?=[ \t]{0,8}\r?(?:\n|$))")


def _bare_phrase(text: str, start: int, place: int) -> re.Match[str] | None:
    """Several words that fill the rest of the line, in settings that name a user beside it."""
    rest = _REST_OF_LINE.match(text, place)
    return rest if rest is not None and _is_beside_user(text, start) else None


def name_around(text: str, place: int) -> tuple[int, int]:
    """Where the name begins and ends that a place stands in."""
    end = _REST_OF_NAME.match(text, place).end()  # type: ignore[union-attr]  # it matches the empty text too
    start = place
    while start > 0 and place - start < _NAME_LENGTH and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return start, end


def _word_before(text: str, start: int) -> str:
    found = _WORD_BEFORE.search(text, max(0, start - 24), start)
    return found[1].lower() if found else ""


DIRECTIVES = frozenset(("requirepass", "masterauth", "bindpw", "rootpw"))
_DEFINES = ("ENV ", "etx ", "#define ", "set -x ", "set -gx ", "set -Ux ", "fig set ", "-secret ")


def _is_flag(text: str, start: int, name: str) -> bool:
    """`--db-password x`, `-storepass x`, `requirepass x`, `ENV DB_PASSWORD x` of container files and their like."""
    if name.startswith("-") or name in DIRECTIVES:
        return True
    if text[max(0, start - 1) : start] == ":" and text[start + len(name) : start + len(name) + 2] == ' "':
        return True
    if _DEFINING.search(text, max(0, start - 16), start) and text[start + len(name) : start + len(name) + 2] == ' "':
        return True
    return text[max(0, start - 8) : start].endswith(_DEFINES)


_READ_ELSEWHERE = lazy_regex(r"[_-]stdin$", re.IGNORECASE)
"""A flag behind which no value stands."""


def _is_given_behind_blank(text: str, start: int, place: int, name: str, strength: Strength) -> bool:
    """Whether a value may stand behind a name and a blank: that of a flag or a directive, or one in quotation marks."""
    if _READ_ELSEWHERE.search(name):
        return False
    return (
        _is_flag(text, start, name)
        or _is_named_key(name, strength)
        or _is_quoted_beside(text, start, place, strength)
        or ends_its_line(text, place, name, strength)
    )


_DIRECTIVE_VALUE = lazy_regex(
    r"(?:\d[ ])?((?=[^\s\"'\\]*\d)(?=[^\s\"'\\]*[A-Z])(?=[^\s\"'\\]*[a-z])[^\s\"'\\=(){}<>,;]{8,128}+)"
    r"(?=[ \t]{0,8}(?:\r?\n|\\{1,4}[nr\"']|[\"']|$))"
)


def ends_its_line(text: str, place: int, name: str, strength: Strength) -> bool:
    """`pre-shared-key Xk29f0aa81`: the last word of a directive, drawn, behind a name of several parts."""
    if strength < Strength.KEY or "-" not in name.replace("_", "-").strip("-"):
        return False
    value = _DIRECTIVE_VALUE.match(text, place)
    if value is None or is_file_name(value[1]):
        return False
    if strength is not Strength.PASSWORD and is_type_name(value[1]):  # people choose passwords that read so
        return False
    return is_chosen(value[1]) or is_opaque_literal(value[1])


_BEFORE_BESIDE = lazy_regex(r"[ \t@-]*|[ \t]*\(def\w{0,10}[ ]\**")


def _is_quoted_beside(text: str, start: int, place: int, strength: Strength) -> bool:
    """`@db_password "..."`, `password "..."` of settings without signs."""
    before = text[text.rfind("\n", max(0, start - _BESIDE), start) + 1 : start]
    if (
        _BEFORE_BESIDE.fullmatch(before) is None
        or strength is not Strength.PASSWORD
        or (quoted := _QUOTED.match(text, place)) is None
    ):
        return False
    return is_opaque(quoted["value"]) or is_chosen(quoted["value"])


_SECTION_OR_USER = lazy_regex(
    r"""(?im)^[ \t]{0,20}(?:\[[\w. :/-]{1,60}\]"""
    r"""|[-"']{0,2}\s?[\w.-]{0,20}(?:user(?:name)?|login|host(?:name)?|server|e-?mail|from)["']?[ \t]{0,8}[:=]"""
    r"""|(?:smtp|mail|db|database|ftp|imap|mysql|redis|auth)["']?:)"""
)
_BESIDE = 160


def _is_beside_user(text: str, start: int) -> bool:
    """Whether the name stands in settings: a user, a host or the head of a section is on one of the lines around it."""
    begin = text.rfind("\n", max(0, start - _BESIDE), start) + 1
    if text[begin:start].strip(" \t-\"'"):
        return False
    begin = text.find("\n", max(0, begin - _BESIDE), begin) + 1 if begin > _BESIDE else 0
    end = text.find("\n\n", start, start + _BESIDE)
    return _SECTION_OR_USER.search(text, begin, end if end > 0 else start + _BESIDE) is not None


def _is_named_key(name: str, strength: Strength) -> bool:
    """`AWS_SECRET_ACCESS_KEY x`: the sign was left out, the name says enough."""
    return strength is Strength.KEY and "_" in name


def _is_secret(found: _Assignment) -> bool:
    if "\n" in found.value:
        value = "".join(found.value.split())
        return is_opaque(value) or (found.strength is Strength.PASSWORD and is_chosen(value))
    if found.strength is Strength.PIN:
        return not found.is_far and found.link["space"] is None and _is_pin(found)
    if found.is_far and not _looks_given(found):
        return False
    return _is_quoted_secret(found) if found.quoted else _is_bare_secret(found)


def _is_pin(found: _Assignment) -> bool:
    value = found.value.rstrip(")]}.")
    if found.name.lower().endswith(("cvv", "cvc", "cvv2", "cvc2")):
        return value.isdigit() and len(value) in (3, 4)
    return is_one_time_code(value) and not is_reference(value) and not is_filler(value)


def _looks_given(found: _Assignment) -> bool:
    """Between name and value stands more than a sign: a word there is a description, a type, the next field."""
    value = found.value.strip()
    given = is_opaque(value) or (found.strength is Strength.PASSWORD and (is_chosen(value) or is_worded(value)))
    if not given or is_term(value) or is_file_name(value):
        return False
    if found.quoted or found.link["element"] is not None:
        return found.link["element"] is None or found.text[found.end : found.end + 40].lstrip()[:1] in ("<", "")
    if found.link["cell"] is not None:
        return found.text[found.end : found.end + 40].lstrip(" \t")[:1] in ("|", "\n", "\r", "\t", "")
    return found.follower in ("", "\n", "\r", "'", '"', "`", ")")


def _is_quoted_secret(found: _Assignment) -> bool:
    value = found.value.strip()
    if is_reference(value):
        return False
    if " " in value:
        # A sentence about passwords is common in code; a pass phrase in clear is rare.
        return "phrase" in found.name.lower() or (found.strength is Strength.PASSWORD and is_pass_phrase(value))
    if is_filler(value) or (found.name.lower() == "key" and ":" in value):  # of a cache
        return False
    if found.strength is Strength.PASSWORD:
        return not is_label(value)
    if is_code(value):
        return False
    if found.strength is Strength.KEY:
        return len(value) >= 6 and not is_number(value) and not is_made_of_words(value)
    return is_opaque(value)


def _is_bare_secret(found: _Assignment) -> bool:
    value = found.value
    shell = is_shell_name(found.name) and found.sign in ("=", ":", ":-")
    if is_reference(value) or is_filler(value) or value[0] in "{[(" or value.startswith(("./", "../", "~/")):
        return False
    if found.link[0] == ":" and value[0] == "?":  # ${DB_PASSWORD:?is not set}
        return False
    drawn = value.rpartition(".")[2]  # Of a key with dots only this is no word of code.
    is_key = (shell and found.is_tight and drawn == value) or (len(drawn) >= _LEAST_DRAWN and drawn.isalnum())
    if is_code(value) and not (is_key and is_opaque(drawn)):
        return False
    value = value.rstrip(")]}.:!?*")
    if not value or is_reference(value) or value.lower() == found.name.lower():
        return False
    if found.name.lower() == "key":  # of a map, a cache, a table: only what is drawn at random
        return is_opaque(value) and value.isalnum() and value.lower() != value != value.upper()
    if found.strength is Strength.PASSWORD:
        return not is_label(value) and _is_bare_password(found, value, shell)
    if shell and found.is_tight and found.strength is Strength.KEY:
        return len(value) >= 4 and not is_number(value)
    if (shell or (found.is_tight and found.sign == "=")) and found.strength is Strength.KEY and is_worded(value):
        return not _is_argument(found)
    return is_opaque(value)


def _is_bare_password(found: _Assignment, value: str, shell: bool) -> bool:
    if not found.sign:  # a flag, or an annotated name
        return not value.startswith("-") and (found.link["space"] is not None or is_opaque(value) or found.is_far)
    if shell:
        return not value.startswith("/")
    if is_variable_like(value):
        return False
    if found.is_tight and found.sign == "=":
        return not (_is_argument(found) and value.isidentifier() and not is_opaque(value))
    if is_plain_word(value):
        if not _fills_its_line(found):
            return False
        if is_name_like(value) and _is_beside_user(found.text, found.name_start):
            return True
        return value.islower() and value.isascii() and len(value) > 3
    if is_made_of_words(value) and not is_worded(value) and _GOES_ON.match(found.text, found.end):
        return False
    return not is_number(value) or len(value) >= 6


def _is_argument(found: _Assignment) -> bool:
    """`f(password=pw)`: what follows the value ends an argument."""
    return found.value.endswith((")", "]", "}")) or found.follower == ","


def _fills_its_line(found: _Assignment) -> bool:
    """The assignment stands alone on its line, as in a YAML file."""
    line_start = found.text.rfind("\n", max(0, found.name_start - 80), found.name_start) + 1
    before = found.text[line_start : found.name_start]
    return not before.strip(" \t-") and found.follower in ("", "\n", "\r")
