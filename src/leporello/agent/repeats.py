"""Recognises a model that goes round in circles: calls of this turn are made again and bring what they brought.

Two counts. Repeats in a row are the quick sign: the same call, or one alike, with the same result. One under a new
number (the next port, the next file), a look at what is still under way, and the first check after each change count
little: honest work does that. The other asks only whether calls still bring anything that is not known yet, whatever
they are: a search under ever new words, pages behind the last one, a file that is written anew with the same text. It
takes longer, and what waits costs it little.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Self

from msgspec import Struct, field

from leporello.agent.polls import asks_state, is_under_way
from leporello.lazy_regex import lazy_regex
from leporello.messages import ToolCall, parse_json
from leporello.tools.base import ToolResult

TELL_AFTER = 2  # repeats in a row after which the model is told
STOP_AFTER = 3  # repeats after that, before the turn is ended
WAITED_SECONDS = 5.0  # a call that took so long and did not fail, or slept, was a wait for something, not a circle
MOST_SEEN, MOST_WORDS, MOST_FAILING = 4_000, 50, 200
STALE_TELL, STALE_STOP = 30.0, 36.0  # calls without news: so many until the model is told, and until the turn is ended
STALE_WAIT = 0.5  # what a wait counts that brought nothing new
STALE_WORDS = 0.5  # a call with words of its own that succeeded, and said only what others had said
STALE_FAILURE = 0.5  # the same failure after something was changed
STALE_NUMBERS = 0.25  # only numbers were new, or the same call was made again and brought something else
STALE_COUNTED = 1.0  # the first check after a change that only counted a number up, and it brought what it had brought
KEEP_STALE = 10.0  # a count from which on it is worth storing
ALIKE = 0.5  # what a call counts that is only alike: the same but for numbers, or with other arguments the same failure
SWEPT = 0.1  # the same call under a new number, as when ports or files are gone through one by one
MOVED = 0.1  # the same call, and a number in what it brought went on by more than a count of the calls would
POLLED = 0.2  # a look at something that is still under way
RECHECKED = 0.2  # the first time that a call is made again after something was changed: tests, linters, a restart
SLOW = 0.25  # a call that took long and brought the same, though it waited for nothing: an agent that is asked again
FUTILE_TELL, FUTILE_STOP = 12, 16  # the same failures of one call, whatever stands between, while nothing is changed
LEAST_NEW = 2  # words that a failure must have beyond those of earlier ones to be another
LEAST_TOLD = 12  # letters a failure must have to be known again by its words alone; `(no output)` says nothing
_BLANKS = lazy_regex(r"(?:\\[nrt]|\s)+")
_NUMBERED = lazy_regex(r"[^\W\d]{0,40}\d[\w.:,+-]*")
_WORDS = lazy_regex(r"[^\W\d_]{2,}")
LONGEST_WORD = 16  # of letters; what is longer was drawn at random, or stands beside others that are not
_NUMBERS = lazy_regex(r"\d{1,15}")
_COMMENT = lazy_regex(r"(?:(?<=\s)|(?<=\"))#[^\"\\]*")
_ASSIGNED = lazy_regex(
    r"(?<![^\s\"';&|(])[A-Za-z_]\w{0,60}=(?:[^\s\"'\\;&|]|\\\"[^\"\\]{0,80}\\\"|'[^']{0,80}'){0,80}(?=\s)"
)
"""A variable that is set for a command."""
_IDLE = lazy_regex(r"(?:\s*(?:\w+=\S*\s+)*(?:echo|printf|sleep|true|:)(?:[ \t][^;|&<>$`\n]*)?(?:&&|;|\n|$))+")
"""A command that only says what it was given, or waits."""
_SLEEPS = lazy_regex(r"(?<![\w-])(?:sleep|Start-Sleep|until)\b")
"""A command that waits before it looks: what it finds may still be a failure."""
_CHANGES = lazy_regex(
    r">(?!&)|\b(?:sed -i|perl -p?i|mv|cp|rm|ln|tee|patch|chmod|chown|mkdir|touch|kill|export|unset|npm|pip|apt|brew"
    r"|bisect|cherry-pick|revert|commit|cargo add|make|install|checkout|switch|reset|restore"
    r"|merge|rebase|pull|apply|stash|restart|up|run|exec)\b"
)
"""Words of commands that may change what fails."""
_SILENT = ("", "(no output)")
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


class _Digests(Struct, frozen=True):
    """What a call is known by."""

    asked: str
    """The call alone; of one that writes a file, the tool and the file."""
    form: str
    """The call, whatever its numbers."""
    same: str
    """The call with its result."""
    alike: tuple[str, ...]
    words: str
    """What it brought, without what it was given: the words."""
    numbers: str
    """The same with its numbers; those that count what was given are given too."""
    is_echo: bool
    """It said something, and nothing but what it was given."""
    waits: bool
    """It slept, asked for a state or told one: what it took long for came from elsewhere."""
    writes: bool
    may_change: bool
    """It changed a file, or it is a command that may have."""
    is_silent: bool
    failed: bool
    under_way: bool
    """It looked at something that goes on, or is not there yet."""
    told: tuple[int, ...]
    """All numbers in what it said."""
    complaint: tuple[str, ...]
    """The words of a failure, each for itself: one that is new among known ones is a name, no news."""

    @property
    def all(self) -> tuple[str, ...]:
        return (self.asked, self.form, self.same, *self.alike, self.words, self.numbers, *self.complaint)


class Repeats(Struct):
    """The calls of one turn. A new call, or an old one with a new result, ends a row of repeats; news the stale row."""

    _seen: dict[str, None] = field(default_factory=dict)
    in_a_row: float = 0
    told: bool = False
    stale: float = 0
    futile: dict[str, int] = field(default_factory=dict)
    """How often each call failed in the same way since a file was changed."""
    _last: str = ""
    _waited: bool = False
    _changed: bool = False
    """Whether the last call changed a file."""
    _told: tuple[int, ...] = ()
    _polls: bool = False
    _since: dict[str, None] | None = None
    """The calls since something was changed last; None before that."""
    _owed: float = 0
    """What the next call counts if it brings what is known: then the change before it was an empty one."""

    def note(self, call: ToolCall, result: ToolResult, seconds: float) -> bool:
        """Take in one call; whether it was a repeat."""
        found = _digests(call, result, seconds)
        is_wait = not found.failed or found.under_way or _SLEEPS.search(call.arguments) is not None
        waited = seconds >= WAITED_SECONDS and is_wait
        known, near = found.same in self._seen, any(digest in self._seen for digest in found.alike)
        is_news = self._is_news(found)
        is_swept = found.form in self._seen and found.asked not in self._seen
        share = self._share(found, known, is_swept, waited)
        self._count_stale(found, is_news, waited, known, is_swept)
        self._count_futile(found, waited)
        self._note_change(found, known)
        self._owed = STALE_COUNTED if self._only_counts_up(found, known) else 0
        self._remember(found)
        self._last, self._waited, self._changed = found.asked, waited, found.writes and is_news
        self._told = found.told
        if (waited and (found.waits or not known)) or not (known or near):
            self.in_a_row, self.told = 0, self.told and (self.stale >= STALE_TELL or self._most_futile >= FUTILE_TELL)
            return False
        self._polls = found.under_way
        self.in_a_row += share
        return known

    def _share(self, found: _Digests, known: bool, is_swept: bool, waited: bool) -> float:
        """What a call counts in a row of repeats, if it is one."""
        if is_swept:
            return SWEPT
        if found.under_way:
            return POLLED
        if self._is_recheck(found):
            return RECHECKED
        if waited:
            return SLOW
        if known or found.asked == self._last:
            steps = (abs(new - old) for new, old in zip(found.told, self._told, strict=False))
            moved = not known and not found.failed and len(found.told) == len(self._told) and max(steps, default=0) > 1
            return MOVED if moved else 1 if known else ALIKE
        return ALIKE

    @property
    def _most_futile(self) -> int:
        return max(self.futile.values(), default=0)

    def _count_futile(self, found: _Digests, waited: bool) -> None:
        """One failing call among ever new ones that bring something: nothing is done about the failure."""
        if found.may_change or waited:
            # Who waits between two tries does something about it.
            self.futile.clear()
        elif found.failed:
            self.futile[found.same] = self.futile.pop(found.same, 0) + 1
            if len(self.futile) > MOST_FAILING:
                del self.futile[next(iter(self.futile))]

    def _is_recheck(self, found: _Digests) -> bool:
        return self._since is not None and found.asked not in self._since

    def _note_change(self, found: _Digests, known: bool) -> None:
        """What is changed in a way that it was not before may change what any call brings."""
        if found.may_change and not known:
            self._since = {found.asked: None}
        elif self._since is not None:
            self._since[found.asked] = None
            if len(self._since) > MOST_FAILING:
                del self._since[next(iter(self._since))]

    def _only_counts_up(self, found: _Digests, known: bool) -> bool:
        """A change that was made before with another number. A file that a tool has not written yet is a new one."""
        is_new_file = found.writes and found.asked not in self._seen
        return found.may_change and not known and found.form in self._seen and not is_new_file

    def _is_news(self, found: _Digests) -> bool:
        new = sum(word not in self._seen for word in found.complaint)
        return found.words not in self._seen and (not found.complaint or new >= LEAST_NEW)

    def _count_stale(self, found: _Digests, is_news: bool, waited: bool, known: bool, is_swept: bool) -> None:
        if is_news and (waited or found.asked != self._last):
            # What is written is no news by itself; it may bring some.
            self.stale = self.stale if found.writes else 0
        elif (self._changed or (known and self._is_recheck(found))) and not found.writes and not is_news:
            self.stale += STALE_FAILURE if found.failed else self._owed
        elif waited:
            self.stale += STALE_WAIT
        elif self._waited and known:  # what was waited for; the wait has been counted
            pass
        elif is_news or found.numbers not in self._seen:
            self.stale += STALE_NUMBERS
        elif (
            found.under_way
            or (is_swept and not found.is_echo)
            or not (found.failed or found.is_echo or found.form in self._seen)
        ):
            self.stale += STALE_WORDS
        else:
            self.stale += 1

    def _remember(self, found: _Digests) -> None:
        self._seen |= dict.fromkeys(found.all)
        while len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]

    def advice(self) -> str:
        """What the model is told, once in a row of repeats; empty otherwise."""
        is_futile = self._most_futile >= FUTILE_TELL
        if self.told or (self.in_a_row < TELL_AFTER and self.stale < STALE_TELL and not is_futile):
            return ""
        self.told = True
        if is_futile:
            return (
                f"One of these calls has failed {self._most_futile} times in the same way, and nothing was changed in "
                "between. Calling it again will not help: change what it complains of, or say what is in the way. "
                "After a few more the turn is stopped."
            )
        if self._polls and self.in_a_row >= TELL_AFTER:
            return (
                "What these calls look at is still under way. Wait between two looks (sleep for a while in the same "
                "command), or do something else meanwhile. After some more without a wait the turn is stopped."
            )
        if self.in_a_row < TELL_AFTER:
            return (
                "For many calls nothing has come that was not known already. Going on like this will not help: "
                "do something else, or say what is in the way. After a few more the turn is stopped."
            )
        return (
            "The last calls repeated earlier ones and brought the same. Repeating them will not help: "
            f"do something else, or say what is in the way. After {STOP_AFTER} more the turn is stopped."
        )

    @property
    def worth_keeping(self) -> bool:
        return self.in_a_row > 0 or self.stale >= KEEP_STALE or self._most_futile > 1

    @property
    def too_many(self) -> bool:
        if self.in_a_row >= TELL_AFTER + STOP_AFTER or self.stale >= STALE_STOP:
            return True
        return self._most_futile >= FUTILE_STOP

    def as_dict(self) -> dict[str, Any]:
        return {
            "seen": list(self._seen),
            "in_a_row": self.in_a_row,
            "told": self.told,
            "stale": self.stale,
            "futile": self.futile,
            "last": self._last,
            "waited": self._waited,
            "changed": self._changed,
            "told_numbers": list(self._told),
            "polls": self._polls,
            "owed": self._owed,
            "since": None if self._since is None else list(self._since),
        }

    @classmethod
    def from_dict(cls, kept: Any) -> Self:
        """From `as_dict`; a fresh count for anything else."""
        if not isinstance(kept, dict) or not isinstance(kept.get("seen"), list):
            return cls()
        row, stale, owed = (
            count if isinstance(count := kept.get(name), int | float) else 0 for name in ("in_a_row", "stale", "owed")
        )
        seen, last = dict.fromkeys(map(str, kept["seen"])), str(kept.get("last", ""))
        waited, changed, polls = (bool(kept.get(name)) for name in ("waited", "changed", "polls"))
        failing = kept.get("futile")
        futile = {str(k): n for k, n in failing.items() if isinstance(n, int)} if isinstance(failing, dict) else {}
        numbers = kept.get("told_numbers")
        told = tuple(n for n in numbers if isinstance(n, int)) if isinstance(numbers, list) else ()
        made = kept.get("since")
        since = dict.fromkeys(map(str, made)) if isinstance(made, list) else None
        return cls(seen, row, bool(kept.get("told")), stale, futile, last, waited, changed, told, polls, since, owed)


def _failed(result: ToolResult) -> bool:
    return result.is_error or bool(result.details.get("exit_code"))


def _digests(call: ToolCall, result: ToolResult, seconds: float) -> _Digests:
    """Of the call, of the call with its result and of all that are alike, and of what is new in it.

    A result is its lines in any order, without times, durations, ids and temporary names; that of a failure without
    numbers of any kind. Successful calls are alike with the same arguments and other numbers; failures with the same
    arguments whatever they say, with other variables and the same words, and with the same words whatever was called,
    which is left out of them.
    Comments of a command say nothing about what it does; one that does nothing is like all others that do nothing.
    """
    given = parse_json(call.arguments)
    is_idle = isinstance(given, dict) and _IDLE.fullmatch(str(given.get("command", "")))
    arguments = json.dumps(given, sort_keys=True, ensure_ascii=False) if isinstance(given, dict) else call.arguments
    arguments = _BLANKS.sub(" ", _COMMENT.sub("", arguments)).replace(' "', '"')
    # Further lines of the status tell of other things, such as background jobs.
    text = _TEMPORARY.sub("0", result.status.partition("\n")[0] + "\n" + result.text)
    bare, form = _lines(_NUMBERED.sub("0", text)), _NUMBERED.sub("0", arguments)
    if not _failed(result):
        same = _hash(call.name, arguments, _lines(_NOISE.sub("0", text)))
        alike = [_hash("idle")] if is_idle else [_hash(call.name, arguments, bare, "alike")]
    else:
        same = _hash(call.name, arguments, bare)
        told = set(_WORDS.findall(bare)) - set(_WORDS.findall(f"{call.name} {arguments} exit code"))
        alike = [_hash("", *sorted(told))] if sum(map(len, told)) >= LEAST_TOLD else []
        alike.append(_hash(call.name, _ASSIGNED.sub("", form), bare, "assigned"))
        alike += [_hash(call.name, form, bare), _hash(call.name, form, "failed")]
    words, numbers = (
        _wrote(given, arguments, form) if _is_write(result) else _brought(text, bare, f"{call.name} {arguments}")
    )
    path = str(given.get("path", "")) if isinstance(given, dict) and _is_write(result) else ""
    under_way = not _is_write(result) and is_under_way(call, result, failed=_failed(result), seconds=seconds)
    return _Digests(
        asked=_hash(call.name, path or arguments),
        form=_hash(call.name, form, "form"),
        same=same,
        alike=tuple(alike),
        words=_hash("words", *sorted(words)),
        numbers=_hash("numbers", *sorted(words), "", *sorted(numbers)),
        is_echo=not words and _WORDS.search(result.text) is not None and not _is_write(result),
        waits=under_way or _SLEEPS.search(call.arguments) is not None or asks_state(call),
        writes=_is_write(result),
        may_change=not _failed(result) and (_is_write(result) or _CHANGES.search(arguments) is not None),
        is_silent=result.text.strip() in _SILENT,
        failed=_failed(result),
        under_way=under_way,
        told=tuple(map(int, _NUMBERS.findall(_NOISE.sub("", text))[:MOST_WORDS])),
        complaint=tuple(sorted(f"!{word}" for word in words)[:MOST_WORDS]) if _failed(result) else (),
    )


def _is_write(result: ToolResult) -> bool:
    """Whether a tool says that it changed a file."""
    # A command has an exit code; its bytes are those that it printed.
    told = result.details
    has_changed = "exit_code" not in told and ("bytes" in told or "paths" in told or told.get("changed") is True)
    return has_changed and not _failed(result)


def _wrote(given: Any, arguments: str, form: str) -> tuple[set[str], set[str]]:
    """Words and numbers that a file got. The same text in a file of another name is no news."""
    content = given.get("content") if isinstance(given, dict) else None
    text = _NUMBERED.sub("0", content) if isinstance(content, str) else form
    return set(_WORDS.findall(text)), set(_NUMBERS.findall(arguments))


def _brought(text: str, bare: str, given: str) -> tuple[set[str], set[str]]:
    """Words and numbers of a result that the call did not hold itself. The page after the given one is no news."""
    counted = {number + step for number in map(int, _NUMBERS.findall(given)) for step in (-1, 0, 1)}
    numbers = {number for number in _NUMBERS.findall(_NOISE.sub("0", text)) if int(number) not in counted}
    words = {word for word in _WORDS.findall(bare) if len(word) < LONGEST_WORD}
    return words - set(_WORDS.findall(f"{given} exit code")), numbers


def _lines(text: str) -> str:
    return "\n".join(sorted({_BLANKS.sub(" ", line).strip() for line in text.splitlines()}))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
