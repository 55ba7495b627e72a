"""Whether a command may run or a file may be written: by policy, by allow-list, or by asking a person."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from leporello.tools.base import ApprovalRequest, Verdict
from leporello.tools.shell_words import simple_commands

_WILD = set("*?[")


class Mode(StrEnum):
    """What happens to a request that the allow-list does not cover."""

    ASK = "ask"
    AUTO = "auto"
    DENY = "deny"


class Decision(StrEnum):
    """A person's answer."""

    YES = "yes"
    ALWAYS = "always"
    """Yes, and the same again in this conversation: this exact command, or every write of this tool."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision, with words for the model if the person has any."""

    decision: Decision
    note: str = ""


class PolicyApprover:
    """Applies one policy, and remembers what a person allowed for the rest of the conversation."""

    def __init__(
        self, mode: Mode, allow: Sequence[str] = (), ask: Callable[[ApprovalRequest], Answer] | None = None
    ) -> None:
        self._mode = mode
        self._allow = tuple(allow)
        self._ask = ask
        self._remembered: set[tuple[str, str]] = set()

    def check(self, request: ApprovalRequest) -> Verdict:
        """Yes or no, with the reason for the model."""
        if self._mode is Mode.AUTO or self._is_listed(request) or _memory_key(request) in self._remembered:
            return Verdict(True)
        if self._mode is Mode.DENY:
            return Verdict(False, "the settings refuse it (tools.approval is deny). Find a way without it.")
        if self._ask is None:
            return Verdict(
                False,
                "it needs the user's approval and nobody can be asked here. Say what you wanted to do; the user can "
                "set tools.approval to auto or add it to tools.allow.",
            )
        try:
            answer = self._ask(request)
        except EOFError:
            return Verdict(False, "the user could not be asked (input has ended).")
        return self._apply(request, answer)

    def _apply(self, request: ApprovalRequest, answer: Answer) -> Verdict:
        if answer.decision is Decision.NO:
            note = f" They say: {answer.note.strip()}" if answer.note.strip() else ""
            return Verdict(False, f"the user declined.{note}")
        if answer.decision is Decision.ALWAYS:
            self._remembered.add(_memory_key(request))
        return Verdict(True)

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
