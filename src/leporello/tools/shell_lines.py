"""Reads a shell line as the shell would, as far as that is certain: its simple commands, word by word."""

from __future__ import annotations

import glob
import itertools
import re
import shutil

from leporello.lazy_regex import lazy_regex

_HARMLESS_REDIRECT = lazy_regex(r"(?:(?:[012]?>>?|&>)[ \t]*/dev/null|[12]?>&[12]|<[ \t]*/dev/null)(?=[\s;|&]|$)")
_TOKEN = lazy_regex(
    r"""(?P<separator>&&|\|\|?|;|\n)|(?P<blank>[ \t])"""
    r"""|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)"|\\(?P<escaped>.)|(?P<plain>[^$`(){}<>&!'"\\])""",
    re.DOTALL,
)
_ESCAPE_IN_QUOTES = lazy_regex(r"""\\([$`"\\])|\\\n""")
_NOT_A_COMMAND = set("*?[]~=")
_KEYWORD = lazy_regex(
    r"if|then|else|elif|fi|case|esac|for|select|while|until|do|done|in|function|time|coproc|\[\[|\]\]"
)
_LIVE = set("*?[")


class Word(str):
    """One word as a program would get it. `pattern` is what the shell puts file names for; empty when it does not."""

    __slots__ = ("pattern",)
    pattern: str

    def __new__(cls, text: str, pattern: str = "") -> Word:
        word = super().__new__(cls, text)
        word.pattern = pattern
        return word


def bash() -> str | None:
    """The shell that lines are run by where there is one; elsewhere it is the system's `sh`."""
    return shutil.which("bash")


def simple_commands(line: str) -> list[list[Word]] | None:
    """The words of each simple command, as the shell would see them; None when that is not certain."""
    tokens = _tokens(line)
    if tokens is None:
        return None
    commands: list[list[Word]] = []
    words: list[Word] = []
    pieces: list[tuple[str, str]] = []
    for kind, text in (*tokens, ("separator", "")):
        if kind not in ("blank", "separator"):
            pieces.append((kind, text))
            continue
        if pieces:
            word = _word(pieces)
            if not words and not _can_be_command(pieces, word):
                return None
            words.append(word)
            pieces = []
        if kind == "separator" and words:
            commands.append(words)
            words = []
    return commands or None


def _word(pieces: list[tuple[str, str]]) -> Word:
    text = "".join(piece for _, piece in pieces)
    if text.startswith("~") and next(kind for kind, piece in pieces if piece) != "plain":
        # Not the home folder but a file of that name; whoever reads the word can't see the quotes.
        pieces, text = [("plain", "./"), *pieces], "./" + text
    if not any(kind == "plain" and piece in _LIVE for kind, piece in pieces):
        return Word(text)
    return Word(text, "".join(piece if kind == "plain" else glob.escape(piece) for kind, piece in pieces))


def _can_be_command(pieces: list[tuple[str, str]], word: str) -> bool:
    odd = any(kind == "plain" and piece in _NOT_A_COMMAND for kind, piece in pieces)
    return bool(word) and not odd and not _KEYWORD.fullmatch(word)


def _tokens(line: str) -> list[tuple[str, str]] | None:
    """Kind and text of each piece of a line; None when one does more than name a command or an argument."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(line):
        in_word = bool(found) and found[-1][0] not in ("blank", "separator")
        redirect = _HARMLESS_REDIRECT.match(line, at) if not in_word or line[at] in "<>&" else None
        if redirect and ((line[at] == "&" and not bash()) or (in_word and _is_number(found))):
            # Other shells start what stands before `&>` in the background; of `10>` the number is no word.
            return None
        token = redirect or _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        kind = token.lastgroup or "blank"
        text = token[kind] if token.lastgroup else ""
        if kind == "plain" and (not text.isprintable() or (text == "#" and not in_word)):
            # A comment begins only at the start of a word; odd blanks and control characters are never needed.
            return None
        if text == "~" and found and found[-1] in (("plain", "="), ("plain", ":")):
            # Some shells put the home folder there, too.
            return None
        if kind == "double":
            text = _ESCAPE_IN_QUOTES.sub(r"\1", text)
        if not (kind == "escaped" and text == "\n"):
            found.append((kind, text))
    return found


def _is_number(found: list[tuple[str, str]]) -> bool:
    """Whether the word at the end is one."""
    word = itertools.takewhile(lambda piece: piece[0] not in ("blank", "separator"), reversed(found))
    return all(kind == "plain" and text.isdigit() for kind, text in word)
