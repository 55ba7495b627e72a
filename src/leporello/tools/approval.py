"""Whether a command may run or a file may be written: by policy, by allow-list, or by asking a person."""

from __future__ import annotations

import fnmatch
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from leporello.deprecation import renamed_names
from leporello.tools.base import ApprovalRequest, ApprovalVerdict
from leporello.tools.confine import OBEYED, only_looks
from leporello.tools.harmless import OWN_CODE, Word, is_harmless, simple_commands

_WILD = set("*?[")
_MOVES = frozenset(("cd", "pushd", "popd"))


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


class ApprovalAnswer(Struct, frozen=True):
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
        self._remembered: set[tuple[str, ...]] = set()

    def check(self, request: ApprovalRequest) -> ApprovalVerdict:
        """Yes or no, with the reason for the model."""
        if self._mode is ApprovalMode.AUTO or self._is_listed(request) or _key(request) in self._remembered:
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

    def _is_listed(self, request: ApprovalRequest) -> bool:
        if request.command and covers(self._allow, request.command, request.folder, request.may_read):
            return True
        return request.tool in self._allow and not _is_obeyed(request)

    def _apply(self, request: ApprovalRequest, answer: ApprovalAnswer) -> ApprovalVerdict:
        if answer.decision is Decision.NO:
            note = f" They say: {answer.note.strip()}" if answer.note.strip() else ""
            return ApprovalVerdict(False, f"the user declined.{note}")
        if answer.decision is Decision.ALWAYS:
            self._remembered.add(_key(request))
        return ApprovalVerdict(True)


def _is_obeyed(request: ApprovalRequest) -> bool:
    return any(part.casefold() in OBEYED for path in request.writes for part in path.parts)


def _key(request: ApprovalRequest) -> tuple[str, ...]:
    """What `always` is remembered for: this command in this folder, or every write of a tool that is not obeyed."""
    if request.command:
        return request.tool, request.title
    return (request.tool, *map(str, request.writes)) if _is_obeyed(request) else (request.tool,)


def covers(allow: Sequence[str], command: str, folder: Path, may_read: Callable[[Path], bool]) -> bool:
    """Whether every simple command of the line is covered by some entry, run in `folder`."""
    commands = simple_commands(command)
    if commands is None or (len(commands) > 1 and any(words[0] in _MOVES for words in commands)):
        # After a change of folder its paths would mean others.
        return False
    return all(_covered(allow, words, folder, may_read) for words in commands)


def _covered(allow: Sequence[str], words: Sequence[Word], folder: Path, may_read: Callable[[Path], bool]) -> bool:
    harmless = is_harmless(words, folder, may_read)
    if harmless and words[0] == "git" and not only_looks(folder, may_read):
        return False
    if harmless and words[0] not in OWN_CODE and _is_ours(words[0], may_read):
        return False
    if harmless:
        return any(_begins(entry, words) for entry in allow)
    return any(
        _is_listed(entry, words, lambda word: harmless is None and may_read(folder / os.path.expanduser(word)))
        for entry in allow
    )


def _is_ours(name: str, may_read: Callable[[Path], bool]) -> bool:
    """Whether the path leads to a program in a folder where tools work: it may be anything."""
    found = shutil.which(name)
    return found is not None and may_read(Path(found).parent)


def _begins(entry: str, words: Sequence[str]) -> bool:
    """For a command that can do no harm: the entry is its beginning, or a pattern over all of it."""
    if not _WILD & set(entry):
        beginning = _words(entry)
        return bool(beginning) and list(words[: len(beginning)]) == beginning
    line = shlex.join(words)
    return fnmatch.fnmatchcase(line, entry) or (entry.endswith(" *") and line == entry[:-2])


def _is_listed(entry: str, words: Sequence[Word], fits: Callable[[str], bool]) -> bool:
    """For any other command: word for word. A pattern stands for one word that is no flag and leads nowhere else."""
    listed = _words(entry)
    if len(listed) != len(words) or any(word.pattern for word in words):
        return False
    plain = ((said, word) for said, word in zip(listed, words, strict=True) if said != word)
    return listed[0] == words[0] and all(
        fnmatch.fnmatchcase(word, said) and not word.startswith("-") and fits(word) for said, word in plain
    )


def _words(entry: str) -> list[str]:
    try:
        return shlex.split(entry)
    except ValueError:
        return []


if not TYPE_CHECKING:  # type checkers should refuse the old name
    __getattr__ = renamed_names(__name__)
