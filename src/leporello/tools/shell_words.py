"""Splits a shell line into its simple commands, or says that it can't be sure.

Used to compare commands with an allow-list, so it understands little on purpose: words, quotes, escapes, `;`, `&&`,
`||`, pipes, newlines, and throwing output away. Everything that could run or write something else (substitutions,
variables, groups, redirections into files, assignments, background jobs, shell keywords) gives None: then a person is
asked.
"""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"&&|\|\|?|;|\n")
_HARMLESS_REDIRECT = re.compile(
    r"(?:[012]?>>?[ \t]*/dev/null|&>[ \t]*/dev/null|[12]?>&[12]|<[ \t]*/dev/null)(?=[\s;|&]|$)",
)
_DOUBLE_QUOTED_ESCAPES = '$`"\\'
_ACTIVE = set("$`(){}<>&!")
_NOT_A_COMMAND = set("*?[]~=")
_KEYWORD = re.compile(
    r"if|then|else|elif|fi|case|esac|for|select|while|until|do|done|in|function|time|coproc|\[\[|\]\]"
)


def simple_commands(line: str) -> list[list[str]] | None:
    """The words of each simple command, as the shell would see them; None when that is not certain."""
    return _Scanner(line).commands()


class _Unsure(Exception):
    """The line does something that is not understood here."""


class _Scanner:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._word: str | None = None
        self._word_is_plain = True
        self._words: list[str] = []
        self._commands: list[list[str]] = []

    def commands(self) -> list[list[str]] | None:
        try:
            while self._at < len(self._line):
                self._step()
            self._end_command()
        except _Unsure:
            return None
        return self._commands or None

    def _step(self) -> None:
        char = self._line[self._at]
        redirect = _HARMLESS_REDIRECT.match(self._line, self._at)
        separator = _SEPARATOR.match(self._line, self._at)
        if redirect and (self._word is None or char in "<>&"):
            self._end_word()
            self._at = redirect.end()
        elif separator:
            self._end_command()
            self._at = separator.end()
        elif char in " \t":
            self._end_word()
            self._at += 1
        elif char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escaped()
        elif self._is_active(char):
            raise _Unsure
        else:
            if char in _NOT_A_COMMAND:
                self._word_is_plain = False
            self._add(char)
            self._at += 1

    def _is_active(self, char: str) -> bool:
        # A comment begins only at the start of a word; odd blanks and control characters are never needed.
        return char in _ACTIVE or (char == "#" and self._word is None) or not char.isprintable()

    def _single_quoted(self) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            raise _Unsure
        self._add(self._line[self._at + 1 : end])
        self._at = end + 1

    def _double_quoted(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._line):
            char = self._line[self._at]
            if char == '"':
                self._at += 1
                return
            if char in "$`":
                raise _Unsure
            if char == "\\" and self._at + 1 < len(self._line):
                following = self._line[self._at + 1]
                if following in _DOUBLE_QUOTED_ESCAPES:
                    char = following
                    self._at += 1
                elif following == "\n":
                    self._at += 2
                    continue
            self._add(char)
            self._at += 1
        raise _Unsure

    def _escaped(self) -> None:
        if self._at + 1 >= len(self._line):
            raise _Unsure
        following = self._line[self._at + 1]
        if following != "\n":
            self._add(following)
        self._at += 2

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is None:
            return
        first = not self._words
        if first and (not self._word or not self._word_is_plain or _KEYWORD.fullmatch(self._word)):
            raise _Unsure
        self._words.append(self._word)
        self._word = None
        self._word_is_plain = True

    def _end_command(self) -> None:
        self._end_word()
        if self._words:
            self._commands.append(self._words)
        self._words = []
