"""Recognises a model that goes round in circles: calls of this turn are made again and bring what they brought."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Self

from msgspec import Struct, field

from leporello.lazy_regex import lazy_regex
from leporello.messages import ToolCall, parse_json
from leporello.tools.base import ToolResult

TELL_AFTER = 2  # repeats in a row after which the model is told
STOP_AFTER = 3  # repeats after that, before the turn is ended
WAITED_SECONDS = 5.0  # a call that took so long and did not fail was a wait for something, not a circle
MOST_SEEN = 2_000
ALIKE = 0.5  # what a call counts that is only alike: the same but for numbers, or with other arguments the same failure
LEAST_TOLD = 12  # letters a failure must have to be known again by its words alone; `(no output)` says nothing
_BLANKS = lazy_regex(r"(?:\\[nrt]|\s)+")
_NUMBERED = lazy_regex(r"[^\W\d]{0,40}\d[\w.:,+-]*")
_WORDS = lazy_regex(r"[^\W\d_]{2,}")
_COMMENT = lazy_regex(r"(?:(?<=\s)|(?<=\"))#[^\"\\]*")
_ASSIGNED = lazy_regex(
    r"(?<![^\s\"';&|(])[A-Za-z_]\w{0,60}=(?:[^\s\"'\\;&|]|\\\"[^\"\\]{0,80}\\\"|'[^']{0,80}'){0,80}(?=\s)"
)
"""A variable that is set for a command."""
_IDLE = lazy_regex(r"(?:\s*(?:\w+=\S*\s+)*(?:echo|printf|sleep|true|:)(?:[ \t][^;|&<>$`\n]*)?(?:&&|;|\n|$))+")
"""A command that only says what it was given, or waits."""
_TEMPORARY = lazy_regex(r"/(?:var/)?tmp/[^\s'\":,)]+|\btmp[\w.]{4,}")
# What a clock, a process table or a generator of ids says differs from one run to the next.
_NOISE = lazy_regex(
    r"\b(?:\d{4}-\d\d-\d\d[T ]?)?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d{4}-\d\d-\d\d|\b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b"
    r"|\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|secs?|seconds?|minutes?|min)\b|\b0x[0-9a-f]{4,}"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\bpid[ =:]{1,2}\d+"
    r"|\b(?=[a-z_-]{0,30}\d)[\w-]{16,}",
    re.IGNORECASE,
)


class Repeats(Struct):
    """The calls of one turn. A new call, or an old one with a new result, ends a row of repeats."""

    _seen: set[str] = field(default_factory=set)
    in_a_row: float = 0
    told: bool = False

    def note(self, call: ToolCall, result: ToolResult, seconds: float) -> bool:
        """Take in one call; whether it was a repeat."""
        same, *alike = _digests(call, result)
        known, near = same in self._seen, not self._seen.isdisjoint(alike)
        if len(self._seen) < MOST_SEEN:
            self._seen |= {same, *alike}
        if (seconds >= WAITED_SECONDS and not _failed(result)) or not (known or near):
            self.in_a_row, self.told = 0, False
            return False
        self.in_a_row += 1 if known else ALIKE
        return known

    def advice(self) -> str:
        """What the model is told, once in a row of repeats; empty otherwise."""
        if self.told or self.in_a_row < TELL_AFTER:
            return ""
        self.told = True
        return (
            "The last calls repeated earlier ones and brought the same. Repeating them will not help: "
            f"do something else, or say what is in the way. After {STOP_AFTER} more the turn is stopped."
        )

    @property
    def too_many(self) -> bool:
        return self.in_a_row >= TELL_AFTER + STOP_AFTER

    def as_dict(self) -> dict[str, Any]:
        return {"seen": sorted(self._seen), "in_a_row": self.in_a_row, "told": self.told}

    @classmethod
    def from_dict(cls, kept: Any) -> Self:
        """From `as_dict`; a fresh count for anything else."""
        if not isinstance(kept, dict) or not isinstance(kept.get("seen"), list):
            return cls()
        row = kept.get("in_a_row")
        return cls(set(map(str, kept["seen"])), row if isinstance(row, int | float) else 0, bool(kept.get("told")))


def _failed(result: ToolResult) -> bool:
    return result.is_error or bool(result.details.get("exit_code"))


def _digests(call: ToolCall, result: ToolResult) -> list[str]:
    """Of the call with its result, then of all that are alike.

    A result is its lines in any order, without times, durations, ids and temporary names; that of a failure without
    numbers of any kind. Successful calls are alike with the same arguments and other numbers; failures with the same
    arguments whatever they say, with other variables and the same words, and with the same words whatever was called,
    which is left out of them.
    Comments of a command say nothing about what it does; one that does nothing is like all others that do nothing.
    """
    given = parse_json(call.arguments)
    is_idle = isinstance(given, dict) and _IDLE.fullmatch(str(given.get("command", "")))
    arguments = json.dumps(given, sort_keys=True) if isinstance(given, dict) else call.arguments
    arguments = _BLANKS.sub(" ", _COMMENT.sub("", arguments)).replace(' "', '"')
    # Further lines of the status tell of other things, such as background jobs.
    text = result.status.partition("\n")[0] + "\n" + result.text
    bare = _lines(_NUMBERED.sub("0", _TEMPORARY.sub("0", text)))
    if not _failed(result):
        exact = _lines(_NOISE.sub("0", _TEMPORARY.sub("0", text)))
        alike = [_hash("idle")] if is_idle else [_hash(call.name, arguments, bare, "alike")]
        return [_hash(call.name, arguments, exact), *alike]
    told = set(_WORDS.findall(bare)) - set(_WORDS.findall(f"{call.name} {arguments} exit code"))
    alike = [_hash("", *sorted(told))] if sum(map(len, told)) >= LEAST_TOLD else []
    given_again = _NUMBERED.sub("0", arguments)
    alike.append(_hash(call.name, _ASSIGNED.sub("", given_again), bare, "assigned"))
    return [_hash(call.name, given_again, bare), _hash(call.name, given_again, "failed"), *alike]


def _lines(text: str) -> str:
    return "\n".join(sorted({_BLANKS.sub(" ", line).strip() for line in text.splitlines()}))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
