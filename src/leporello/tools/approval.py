"""Whether a command may run or a file may be written: by policy, by allow-list, or by asking a person."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from leporello.deprecation import renamed_names
from leporello.tools.base import ApprovalRequest, ApprovalVerdict

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


_WILD = set("*?[")


class ApprovalMode(StrEnum):
    """What happens to a request that the allow-list does not cover."""

    ASK = "ask"
    AUTO = "auto"
    DENY = "deny"


class Decision(StrEnum):
    YES = "yes"
    ALWAYS = "always"
    """Yes, and the same again in this conversation: this exact command, or every write of this tool."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    decision: Decision
    note: str = ""


class PolicyApprover:
    """Applies one policy, and remembers what a person allowed for the rest of the conversation."""

    def __init__(
        self,
        mode: ApprovalMode,
        allow: Sequence[str] = (),
        ask: Callable[[ApprovalRequest], ApprovalAnswer] | None = None,
    ) -> None:
        self._mode = mode
        self._allow = tuple(allow)
        self._ask = ask
        self._remembered: set[tuple[str, str]] = set()

    def check(self, request: ApprovalRequest) -> ApprovalVerdict:
        """Yes or no, with the reason for the model."""
        if self._mode is ApprovalMode.AUTO or self._is_listed(request) or _memory_key(request) in self._remembered:
            return ApprovalVerdict(True)
        if self._mode is ApprovalMode.DENY:
            return ApprovalVerdict(False, "the settings refuse it (tools.approval is deny). Find a way without it.")
        if self._ask is None:
            return ApprovalVerdict(
                False,
                "it needs the user's approval and nobody can be asked here. Say what you wanted to do; the user can "
                "set tools.approval to auto or add it to tools.allow.",
            )
        try:
            answer = self._ask(request)
        except EOFError:
            return ApprovalVerdict(False, "the user could not be asked (input has ended).")
        return self._apply(request, answer)

    def _apply(self, request: ApprovalRequest, answer: ApprovalAnswer) -> ApprovalVerdict:
        if answer.decision is Decision.NO:
            note = f" They say: {answer.note.strip()}" if answer.note.strip() else ""
            return ApprovalVerdict(False, f"the user declined.{note}")
        if answer.decision is Decision.ALWAYS:
            self._remembered.add(_memory_key(request))
        return ApprovalVerdict(True)

    def _is_listed(self, request: ApprovalRequest) -> bool:
        if request.tool in self._allow:
            return True
        return bool(request.command) and covers(self._allow, request.command)


def covers(allow: Sequence[str], command: str) -> bool:
    """Whether every simple command of the line is covered by some entry."""
    commands = simple_commands(command)
    if commands is None:
        return False
    return all(any(_matches(entry, words) for entry in allow) for words in commands)


def _matches(entry: str, words: Sequence[str]) -> bool:
    if not _WILD & set(entry):
        try:
            beginning = shlex.split(entry)
        except ValueError:
            return False
        return bool(beginning) and list(words[: len(beginning)]) == beginning
    line = shlex.join(words)
    return fnmatch.fnmatchcase(line, entry) or (entry.endswith(" *") and line == entry[:-2])


def _memory_key(request: ApprovalRequest) -> tuple[str, str]:
    return request.tool, request.command


if not TYPE_CHECKING:  # type checkers should refuse the old name
    __getattr__ = renamed_names(__name__)
