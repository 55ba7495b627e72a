"""The facts of one message, its media among them, read when it arrives; and lines of summaries nobody vouches for."""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import (
    UNKNOWN_CALL,
    CallFacts,
    RecordFacts,
    describe_masked,
    ended,
    looks_failed,
    records_of,
    result_text,
)
from leporello.ledger.days import split_stamp
from leporello.ledger.file_views import shows_files
from leporello.ledger.importance import Source, Vocabulary, score_units
from leporello.ledger.pasted import pasted_sentences
from leporello.ledger.quoted import is_mostly_quoted, prose
from leporello.ledger.rule_phrases import CODE_LIKE
from leporello.ledger.rules import LONG_QUOTE, read
from leporello.ledger.units import ERROR, PLACE, lines_of, placed_sentences, sentences_of
from leporello.ledger.user_text import carries_output, strip_injected
from leporello.messages import Message, Part, PartKind, ToolCall, is_result, parts_of, role_of, text_of
from leporello.redact import redact

NAME_CHARS = 120
_MEDIA = (PartKind.IMAGE, PartKind.AUDIO, PartKind.FILE)
_DATA_URL = lazy_regex(r"data:([\w.+/-]{0,100})(?:;[\w=-]{1,40}){0,4},")
_DATA_KEYS = ("data", "file_data", "url", "image_url")
_NAME_KEYS = ("filename", "name", "title", "file_id")
_TYPE_KEYS = ("media_type", "mime_type", "format")


def media_of(message: Message) -> tuple[str, ...]:
    """What each picture, document or recording of a message is."""
    if isinstance(message.get("content"), str):
        return ()
    return tuple(told(part) for part in parts_of(message) if part.kind in _MEDIA)


def told(part: Part) -> str:
    """A part in a few words; of bytes that are not in the message, where they are."""
    fields = dict(_fields(part.raw))
    name = next((redact(fields[key])[:NAME_CHARS] for key in _NAME_KEYS if fields.get(key)), "")
    kind = next((fields[key] for key in _TYPE_KEYS if fields.get(key)), "")
    data = next((fields[key] for key in _DATA_KEYS if fields.get(key)), "")
    words = [part.kind.value, *([f"“{name}”"] if name else [])]
    match = _DATA_URL.match(data)
    if match is None and "://" in data[:12]:
        return ", ".join([*words, f"at {redact(data)[:NAME_CHARS]}"])
    body = data[match.end() :] if match else data
    kind = match[1] if match and match[1] else kind
    content = _bytes(body)
    size = f"{max(1, len(content) // 1024):,} KB" if content else ""
    digest = f"sha256 {hashlib.sha256(content).hexdigest()[:12]}" if content else ""
    return ", ".join(filter(None, [*words, kind, size, digest]))


def _bytes(body: str) -> bytes:
    try:
        return b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return body.encode("utf-8", "replace")


def _fields(raw: Any) -> Iterator[tuple[str, str]]:
    """The texts of a part, of the inner objects too; the outermost come last and win."""
    if not isinstance(raw, Mapping):
        return
    for value in raw.values():
        yield from _fields(value)
    yield from ((key, value) for key, value in raw.items() if isinstance(value, str))


REMINDER = "<system-reminder>"
_REMINDERS = lazy_regex(rf"{REMINDER}(?s:.){{0,4000}}?</system-reminder>")
"""What a host tells its model beside an output: no part of it, and an order in it is not for whoever reads the fold."""
UNITS_PER_RESULT = 48
UNITS_PER_TEXT = 240
ROLES = ("user", "assistant", "tool")


class UnitFacts(msgspec.Struct, frozen=True, gc=False):
    """A piece of a message, where it stands among the others, and how much it tells for what it costs.

    There are dozens for each message: they are made in C, and left out by the collector.
    """

    text: str
    position: int
    score: float


@dataclass(frozen=True, slots=True)
class MessageFacts:
    role: str
    """`user`, `assistant`, `tool`, or empty for messages that are never quoted (instructions, folds)."""
    units: tuple[UnitFacts, ...] = ()
    answers: CallFacts | None = None
    """For a result: the call it answers."""
    ended: str = ""
    failed: bool = False
    media: tuple[str, ...] = ()
    """Images, documents and sound in it, in a few words."""
    records: tuple[RecordFacts, ...] = ()
    """For a result: what it says of things that have an id."""
    quoted: tuple[int, ...] = ()
    """The places of pieces that a user only pasted: nobody says what they say."""
    day: str = ""
    """The day that it begins with."""


def extract(message: Message, vocabulary: Vocabulary, answers: ToolCall | None = None) -> MessageFacts:
    """The facts of a message without secrets (`redact.messages.masked`); `answers` is the call a result belongs to."""
    role = "tool" if is_result(message) else role_of(message)
    if role not in ROLES:
        return MessageFacts("")
    if role == "tool":
        return _result_facts(message, vocabulary, describe_masked(answers) if answers else UNKNOWN_CALL)
    text = storable(text_of(message))
    if role == "user":
        said = strip_injected(text)
        if not said.strip() and carries_output(text):
            return _result_facts(message, vocabulary, UNKNOWN_CALL)
        text = said
    day, text = split_stamp(text)
    units = placed_sentences(text)[:UNITS_PER_TEXT]
    source = Source(role, len(text), units[-1][1] + 1 if units else 0)
    quoted = _quoted(text, units) if role == "user" else ()
    # An order that somebody else gives is shown as a quotation.
    units = [
        (f"> {said}" if place in quoted and said[0] != ">" and read(said, small_talk=False).rule else said, place)
        for said, place in units
    ]
    return MessageFacts(role, scored_units(vocabulary, source, units), media=media_of(message), quoted=quoted, day=day)


def _quoted(text: str, units: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """The places of what a user pasted: code, logs, and what somebody else wrote."""
    said_himself = prose(text)
    own = set(sentences_of(LONG_QUOTE.sub(" ", said_himself))) - pasted_sentences(text, said_himself)
    return tuple(place for said, place in units if said not in own or CODE_LIKE.search(said) or is_mostly_quoted(said))


def _result_facts(message: Message, vocabulary: Vocabulary, call: CallFacts) -> MessageFacts:
    text = storable(result_text(message))
    if REMINDER in text:
        text = _REMINDERS.sub("", text)
    failed = looks_failed(text)
    lines = result_lines(text, call)
    scores = score_units(vocabulary, Source("tool", len(text), len(lines), call.work), lines)
    best: Sequence[int] = range(len(lines))
    if len(lines) > UNITS_PER_RESULT:
        # Of lines with one score the first come first, in this order too.
        best = sorted(sorted(best, key=scores.__getitem__, reverse=True)[:UNITS_PER_RESULT])
    return MessageFacts(
        role="tool",
        units=tuple(UnitFacts(*lines[place], scores[place]) for place in best),
        answers=call,
        ended=ended(message, text),
        failed=failed,
        media=media_of(message),
        records=() if failed else records_of(text, call),
    )


LONGEST_SHOWN = 1_000
"""Characters of a result that shows what can be looked up again, beyond which its lines are not read."""
_ABSENT = "No such file or directory"
_END_CHARS = 1_000
_ENDS_BADLY = lazy_regex(
    r"^.{0,80}?\b(?:FATAL|ERROR|CRITICAL|PANIC)\b|^Traceback |^(?:panic|fatal|error): |core dumped|\bKilled$",
    re.MULTILINE,
)
"""How the end of a log or of a run sounds that went wrong; it stands far behind where other failures are told."""


def shown_facts(message: Message, answers: ToolCall) -> MessageFacts | None:
    """The facts of a long result that shows files or history as they are; None for all others, which are read.

    Half of what agents are given is such text. Hardly a line of it tells enough to stand in a fold, and all of it can
    be looked up where it stands: nothing is quoted from it, and its words are not counted (decision 0067).
    """
    if len(text_of(message)) <= LONGEST_SHOWN:
        return None
    call = describe_masked(answers)
    text = storable(result_text(message))
    if not shows_files(call) or len(text) <= LONGEST_SHOWN or _goes_wrong(text):
        return None
    return MessageFacts("tool", answers=call, ended=ended(message, text), media=media_of(message))


def _goes_wrong(text: str) -> bool:
    return _ABSENT in text or looks_failed(text) or _ENDS_BADLY.search(text, max(0, len(text) - _END_CHARS)) is not None


def result_lines(text: str, call: CallFacts) -> list[tuple[str, int]]:
    """The lines of an output, with their places. Of an edit that went well only what sounds wrong: all else stands in
    the call, or in the file."""
    lines = lines_of(text)
    if not call.edits or call.command or looks_failed(text):
        return lines
    return [(line, place) for line, place in lines if ERROR.search(line) and not PLACE.match(line)]


def scored_units(vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]) -> tuple[UnitFacts, ...]:
    """The pieces of one message with their scores; its words are counted into the vocabulary."""
    scores = score_units(vocabulary, source, units)
    return tuple(UnitFacts(text, position, score) for (text, position), score in zip(units, scores, strict=True))


def storable(text: str) -> str:
    """The text with lone surrogates replaced: facts are kept as UTF-8; the message itself keeps its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


class EarlierLine(Struct, frozen=True):
    section: str
    role: str
    """Whose words it says it is, by which it is weighed against other quotations; empty for a plain statement."""
    unit: UnitFacts
    is_rule: bool = False
    """Whether it says it is a rule: what the user takes back is no longer carried on."""

    @property
    def text(self) -> str:
        return self.unit.text


def earlier_line(
    vocabulary: Vocabulary, section: str, role: str, text: str, position: int, *, is_rule: bool = False
) -> EarlierLine:
    """The line with its score among other quotations."""
    units = scored_units(vocabulary, Source(role, len(text), 1), [(text, 0)]) if role else ()
    return EarlierLine(section, role, UnitFacts(text, position, units[0].score if units else 0.0), is_rule)
