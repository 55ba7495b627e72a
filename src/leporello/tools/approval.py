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

_HARMLESS_REDIRECT = re.compile(
    r"(?:[012]?>>?[ \t]*/dev/null|&>[ \t]*/dev/null|[12]?>&[12]|<[ \t]*/dev/null)(?=[\s;|&]|$)",
)
_TOKEN = re.compile(
    r"""(?P<separator>&&|\|\|?|;|\n)|(?P<blank>[ \t])"""
    r"""|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)"|\\(?P<escaped>.)|(?P<plain>[^$`(){}<>&!'"\\])""",
    re.DOTALL,
)
_ESCAPE_IN_QUOTES = re.compile(r"""\\([$`"\\])|\\\n""")
_NOT_A_COMMAND = set("*?[]~=")
_KEYWORD = re.compile(
    r"if|then|else|elif|fi|case|esac|for|select|while|until|do|done|in|function|time|coproc|\[\[|\]\]"
)
_WILD = set("*?[")


def simple_commands(line: str) -> list[list[str]] | None:
    """The words of each simple command, as the shell would see them; None when that is not certain."""
    tokens = _tokens(line)
    if tokens is None:
        return None
    commands: list[list[str]] = []
    words: list[str] = []
    word: str | None = None
    can_be_command = True
    for kind, text in (*tokens, ("separator", "")):
        if kind not in ("blank", "separator"):
            word = (word or "") + text
            can_be_command = can_be_command and not (kind == "plain" and text in _NOT_A_COMMAND)
            continue
        if word is not None:
            if not words and (not word or not can_be_command or _KEYWORD.fullmatch(word)):
                return None
            words.append(word)
            word, can_be_command = None, True
        if kind == "separator" and words:
            commands.append(words)
            words = []
    return commands or None


def _tokens(line: str) -> list[tuple[str, str]] | None:
    """Kind and text of each piece of a line; None when one does more than name a command or an argument."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(line):
        in_word = bool(found) and found[-1][0] not in ("blank", "separator")
        redirect = _HARMLESS_REDIRECT.match(line, at) if not in_word or line[at] in "<>&" else None
        token = redirect or _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        kind = token.lastgroup or "blank"
        text = token[kind] if token.lastgroup else ""
        if kind == "plain" and (not text.isprintable() or (text == "#" and not in_word)):
            # A comment begins only at the start of a word; odd blanks and control characters are never needed.
            return None
        if kind == "double":
            text = _ESCAPE_IN_QUOTES.sub(r"\1", text)
        if not (kind == "escaped" and text == "\n"):
            found.append((kind, text))
    return found


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
        listed = request.tool in self._allow or (bool(request.command) and covers(self._allow, request.command))
        if self._mode is ApprovalMode.AUTO or listed or (request.tool, request.command) in self._remembered:
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
            self._remembered.add((request.tool, request.command))
        return ApprovalVerdict(True)


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


if not TYPE_CHECKING:  # type checkers should refuse the old name
    __getattr__ = renamed_names(__name__)
