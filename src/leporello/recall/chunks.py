"""A message cut into chunks of short lines, what each line looks like, and an index over the lines of a conversation.

Besides which line holds which word the index knows the shape of the conversation: which chunk a line belongs to, which
call a result answers, and which *step* (an assistant message with its calls and their results, or one message) it is
part of. It is in memory and grows message by message; adding one costs what it is long, however much is there already.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cache
from typing import Any

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.things import things_in
from leporello.messages import calls_of, is_result, parse_json, result_id, role_of, text_of
from leporello.recall.base import shows_again
from leporello.redact.messages import Given, given_after, masked
from leporello.text_features.words import index_words


class LineFeature(IntFlag):
    PLACE = auto()
    """A file with a line number."""
    PATH = auto()
    COMMIT = auto()
    ERROR = auto()
    NUMBER = auto()
    AMOUNT = auto()
    """A number with its unit."""
    TALLY = auto()
    """The closing line of a test run, a diff, a count."""
    ADDRESS = auto()
    VERSION = auto()
    COLOUR = auto()
    DATE = auto()
    DEFINITION = auto()
    NAME = auto()
    """A name written as code writes it: camelCase or snake_case."""
    QUOTED = auto()
    REASON = auto()
    TEST = auto()
    COMMAND = auto()
    FLAG = auto()
    RULE = auto()
    STANDING = auto()
    """What holds whenever it comes up: an instruction or a preference."""


_EXTENSIONS = (
    "bash|c|cc|cfg|conf|cpp|cs|css|csv|env|go|gradle|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|log|lua|md|mjs|php|"
    "pl|proto|ps1|py|pyi|rb|rs|rst|scala|sh|sql|svelte|swift|toml|ts|tsx|txt|vue|xml|yaml|yml|zsh"
)
_UNITS = (
    r"%|ms|s|secs?|seconds?|min|minutes?|h|hours?|days?|weeks?|lines?|files?|tokens?|bytes|[KMGT]i?B|chars?|characters?|"
    r"words?|errors?|warnings?|passed|failed|tests?|total|usages?|times|insertions?|deletions?|items?|entries|rows?|"
    r"columns?|messages?|calls?|requests?|retries|attempts?|points?|px|commits?|matches|occurrences|steps?|users?|issues?"
)
# Only whether a line holds the sign matters, so a name is tried once, from the start of its run of characters.
_PATTERNS: tuple[tuple[LineFeature, re.Pattern[str]], ...] = (
    (
        LineFeature.PLACE,
        lazy_regex(
            r"(?<![\w./-])[\w./-]+\.[A-Za-z]\w{0,5}(?::\d+|[\"']?, line \d+|#L\d+|\(\d+[,)])|\bline \d+|^\s*\d+[:→|-]"
        ),
    ),
    (LineFeature.PATH, lazy_regex(rf"[\w.@~-]/[\w./@-]|(?<![\w-])-*+\w[\w-]*+\.(?:{_EXTENSIONS})\b")),
    (LineFeature.COMMIT, lazy_regex(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9]{7}\b")),
    (
        LineFeature.ERROR,
        lazy_regex(
            r"error|fail|panic|cannot|can't|could ?n[o']t|undefined|exception|fatal|not found|refused|denied|traceback|"
            r"invalid|unable|unexpected|mismatch|no such|missing|expected|must be|does ?n[o']t|outside|already exists|"
            r"unknown|warning|conflict|rejected|forbidden|unauthori[sz]ed|timed? ?out|abort|illegal|not allowed|"
            r"错误|失败|异常|无法|找不到",
            re.IGNORECASE,
        ),
    ),
    (LineFeature.NUMBER, lazy_regex(r"\d")),
    (LineFeature.AMOUNT, lazy_regex(rf"\b\d[\d,.]{{0,40}}\s?(?:{_UNITS})(?!\w)", re.IGNORECASE)),
    (
        LineFeature.TALLY,
        lazy_regex(
            r"files? changed|insertions?\(|\d (?:passed|failed|errors?|passing|failing|skipped)\b|^\s*\d+ total\b|"
            r"^(?:ok|FAIL|PASS|Tests?|Suites?|Ran|Total)\b[:\s]|\bin \d+\.\d+ ?s|^real\s|^\s*\d+\s+[\w./~-]+$",
            re.IGNORECASE,
        ),
    ),
    (
        LineFeature.ADDRESS,
        lazy_regex(r"https?://|\b\d+\.\d+\.\d+\.\d+\b|\blocalhost\b|:\d{4,5}\b|(?<![\w.-])[.-]*+\w[\w.-]*+@[\w-]+\.\w"),
    ),
    (LineFeature.VERSION, lazy_regex(r"\bv?\d+\.\d+\.\d+")),
    (LineFeature.COLOUR, lazy_regex(r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b|\brgba?\(", re.IGNORECASE)),
    (
        LineFeature.DATE,
        lazy_regex(r"\d{4}-\d\d-\d\d|\b\d\d?:\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d"),
    ),
    (
        LineFeature.DEFINITION,
        lazy_regex(r"\b(?:func|def|class|type|const|interface|struct|function|fn|enum|export|var|let)\b"),
    ),
    (LineFeature.NAME, lazy_regex(r"\b[A-Za-z]+[a-z0-9][A-Z]\w*|\b\w+_\w+\b")),
    (LineFeature.QUOTED, lazy_regex(r"[`\"“]\S")),
    (
        LineFeature.REASON,
        lazy_regex(
            r"\b(?:because|since|so that|due to|therefore|reason|otherwise|which means|rather than|instead|so it|avoid|"
            r"makes|would|should|need|better|simpler|cleaner|that's why|the (?:problem|issue)|turns out|means that)\b|"
            r"因为|所以|由于|原因",
            re.IGNORECASE,
        ),
    ),
    (LineFeature.TEST, lazy_regex(r"\b[Tt]est|_test|\bTest[A-Z]|\bspec\b|FAIL|PASS|测试")),
    (
        LineFeature.COMMAND,
        lazy_regex(
            r"^\s*(?:command|cmd|script): |^\s*[$>] |\b(?:git|npm|npx|pnpm|yarn|go|python3?|pip|cargo|make|docker|"
            r"kubectl|curl|uv|pytest|mvn|gradle) +[\w-]"
        ),
    ),
    (LineFeature.FLAG, lazy_regex(r"(?<![\w-])--[a-z]")),
    (
        LineFeature.RULE,
        lazy_regex(
            r"\b(?:must|never|always|do ?n[o']t|should|only|please|make sure|be sure|instead|prefer|want|need|use|"
            r"let's|no need)\b|不要|必须|只能|总是|请",
            re.IGNORECASE,
        ),
    ),
    (
        LineFeature.STANDING,
        lazy_regex(
            r"\b(?:always|never|prefer|whenever|every time|from now on|when I ask|immer|niemals|bevorzuge|toujours|"
            r"jamais|préfère|siempre|nunca|prefiero|sempre|prefiro|preferisco)\b|всегда|никогда|предпочитаю|总是|从不|以后|いつも|"
            r"必ず|항상|절대",
            re.IGNORECASE,
        ),
    ),
)


ANY = sum(int(sign) for sign, _ in _PATTERNS)


@cache
def _searches(wanted: int) -> tuple[tuple[int, Callable[[str], object]], ...]:
    return tuple((int(sign), pattern.search) for sign, pattern in _PATTERNS if sign & wanted)


def line_features(line: str, wanted: int = ANY) -> int:
    """Which of the wanted signs the line carries, as the bits of `Sign` (plain integers: a search tests thousands)."""
    found = 0
    for sign, search in _searches(wanted):
        if search(line):
            found |= sign
    return found


LONGEST_LINE = 240
SPOKEN_LINE = 50
"""Of what people and models say, sentences are lines of their own; shorter ones stay with the next."""
_DEEPEST = 20
_SENTENCE = lazy_regex(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_DATA_URI = lazy_regex(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=_-]*")
# Longer than any identifier: an encoded file, which says nothing to a reader.
_BLOB = lazy_regex(r"[A-Za-z0-9+/=_-]{400,}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one message, or one tool call of it, as lines."""

    role: str
    tool: str
    """The tool that was called or gave the result; empty for plain text."""
    is_call: bool
    call: int
    """Which call of the message this is; 0 for its text."""
    lines: tuple[str, ...]


def chunks_of(message: Mapping[str, Any], tool: str = "") -> list[Chunk]:
    """All passages of a message; `tool` names the tool whose result it is. Passages without text are left out."""
    role = role_of(message)
    text = text_of(message)
    if is_result(message):
        text = _inside_json(text)
        tool = tool or str(message.get("name") or "")
    lines = lines_of(text) if is_result(message) else lines_of(text, SPOKEN_LINE)
    found = [Chunk(role, tool, False, 0, tuple(lines))]
    for call in calls_of(message):
        value = parse_json(call.arguments)
        body = call.arguments if value is None else "\n".join(_named_texts(value))
        found.append(Chunk(role, call.name, True, call.index, tuple(lines_of(body)) or (call.name,)))
    return [passage for passage in found if passage.lines]


def lines_of(text: str, enough: int = LONGEST_LINE) -> Iterator[str]:
    """Short lines with something in them, cut at ends of sentences once they are long enough; no encoded files."""
    if len(text) > LONGEST_LINE:
        if "base64," in text:
            text = _DATA_URI.sub(" ", text)
        text = _BLOB.sub(" ", text)
    for line in text.splitlines():
        line = line.strip()
        if len(line) <= enough:
            if line:
                yield line
        else:
            yield from _sentences(line, enough)


def _sentences(line: str, enough: int) -> Iterator[str]:
    """A long line as pieces that end where sentences end, else at a blank, else anywhere."""
    piece = ""
    for sentence in _SENTENCE.split(line):
        if piece and (len(piece) >= enough or len(piece) + 1 + len(sentence) > LONGEST_LINE):
            yield piece
            piece = ""
        while len(sentence) > LONGEST_LINE:
            if piece:
                yield piece
                piece = ""
            # At a blank, else behind a comma (JSON without blanks), else anywhere.
            cut = sentence.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE)
            cut = cut if cut >= 0 else sentence.rfind(",", LONGEST_LINE // 2, LONGEST_LINE) + 1 or LONGEST_LINE
            yield sentence[:cut]
            sentence = sentence[cut:].lstrip()
        piece = f"{piece} {sentence}" if piece else sentence
    if piece.strip():
        yield piece


def _inside_json(text: str) -> str:
    """The texts inside a result that is JSON with text packed into it; any other text, plain JSON too, as it is."""
    if "\\" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    value = parse_json(text)
    return text if value is None else "\n".join(_named_texts(value))


def _named_texts(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST or value is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _named_texts(item, str(key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _named_texts(item, name, depth + 1)
    else:
        yield f"{name}: {value}" if name else str(value)


# --- the index -------------------------------------------------------------------------------------------------------

NAMING = ("user", "assistant")
"""Whose lines are found by the things they name too, whatever they call them: nothing else says what is so."""
APART = 4
"""Steps further away than this say nothing about each other."""


class MessageOrigin(Struct, frozen=True):
    """Which conversation a message is of, and when it was said; empty where there is only one, in memory."""

    conversation: str = ""
    at: float | None = None


HERE = MessageOrigin()
LEAST_SAID = 3
"""A name that fewer messages begin with is no speaker."""
_SPEAKER = lazy_regex(r"(?:\[[^\]]{0,60}\] )?([A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,2}): ")
_NOTHING_KNOWN = (0, 0)
Shorten = Callable[[Chunk], Chunk]
"""What of a passage is taken in."""


class ChunkEntry(Struct, frozen=True):
    """Where a passage stands in the collection."""

    passage: Chunk
    message: int
    origin: MessageOrigin
    step: int
    first: int
    """Number of its first line; lines are counted through the whole collection."""

    @property
    def stop(self) -> int:
        """One past its last line."""
        return self.first + len(self.passage.lines)


class MemoryIndex:
    """Lines of many messages with their words. Messages are added in the order of the conversation."""

    def __init__(self) -> None:
        self.entries: list[ChunkEntry] = []
        self.partners: dict[int, int] = {}
        """The entry of a call for the entry of its result, and the other way round."""
        self.steps: list[list[int]] = []
        """The entries of each step."""
        self.lines: list[str] = []
        self.entry_of: list[int] = []
        """For each line the number of its entry."""
        self.lengths: list[int] = []
        """For each line how many words it has."""
        self.repeated: list[bool] = []
        """For each line whether it stood in an earlier place already."""
        self.postings: dict[str, list[int]] = {}
        """For each word, and each thing that a user names, the lines that hold it, in order."""
        self.spread: dict[str, int] = {}
        """For each word how many entries hold it."""
        self._said: dict[str, list[int]] = {}
        """For each name (as words) the entries that it stands before: `Ann: I'm here`, or a message's `name`."""
        self._spoken = 0
        self._signs: list[tuple[int, int]] = []
        """For each line the signs that were looked for, and those of them that it carries."""
        self._seen: set[str] = set()
        self._given = Given.NOTHING
        self._waiting: dict[str, deque[tuple[str, int | None]]] = {}

    def add(
        self, number: int, message: Mapping[str, Any], origin: MessageOrigin = HERE, shorten: Shorten | None = None
    ) -> None:
        """Take in the next message, secrets masked; `number` is its id in the log."""
        message, self._given = masked(dict(message), self._given), given_after(dict(message), self._given)
        tool, call_entry = "", None
        if is_result(message):
            queue = self._waiting.get(result_id(message))
            if queue:
                tool, call_entry = queue.popleft()
            if not self.steps:
                self.steps.append([])
        else:
            self.steps.append([])
            self._waiting = defaultdict(deque)
        calls: dict[int, int] = {}
        for passage in chunks_of(message, tool):
            if shows_again(passage.tool):
                continue
            place = self._take(number, shorten(passage) if shorten else passage, origin)
            if passage.is_call:
                calls[passage.call] = place
            elif call_entry is not None:
                self.partners[place] = call_entry
                self.partners[call_entry] = place
            else:
                self._note_speaker(message, passage, place)
        for call in calls_of(message):
            self._waiting[call.id or call.name].append((call.name, calls.get(call.index)))

    def _note_speaker(self, message: Mapping[str, Any], passage: Chunk, place: int) -> None:
        if passage.role in ("user", "assistant"):
            self._spoken += 1
            labelled = _SPEAKER.match(passage.lines[0])
            name = message.get("name") or (labelled[1] if labelled else "")
            if name:
                self._said.setdefault(" ".join(index_words(str(name))), []).append(place)

    def speakers(self) -> dict[str, list[int]]:
        """Entries by the name of who said them, in a conversation of named people; else nothing."""
        known = {name: places for name, places in self._said.items() if len(places) >= LEAST_SAID}
        return known if 2 * sum(map(len, known.values())) >= self._spoken else {}

    def part(self) -> None:
        """What comes next doesn't stand beside what is there: messages between them are missing."""
        self.steps.extend([] for _ in range(APART))
        self._waiting = {}

    def _take(self, number: int, passage: Chunk, origin: MessageOrigin) -> int:
        place = len(self.entries)
        self.entries.append(ChunkEntry(passage, number, origin, len(self.steps) - 1, len(self.lines)))
        self.steps[-1].append(place)
        postings, in_passage = self.postings, set()
        for line in passage.lines:
            words = index_words(line)
            at = len(self.lines)
            self.lines.append(line)
            self.entry_of.append(place)
            self.lengths.append(len(words))
            key = line.casefold()
            self.repeated.append(key in self._seen)
            self._seen.add(key)
            distinct = set(words)
            if passage.role in NAMING and not passage.is_call:
                distinct |= things_in(line)
            in_passage |= distinct
            for word in distinct:
                held = postings.get(word)
                if held is None:
                    postings[word] = [at]
                else:
                    held.append(at)
        for word in in_passage:
            self.spread[word] = self.spread.get(word, 0) + 1
        return place

    def signs(self, first: int, stop: int, wanted: int) -> list[int]:
        """Which of the wanted signs the lines from `first` to before `stop` carry; worked out when first asked."""
        if not wanted:
            return [0] * (stop - first)
        known = self._signs
        if stop > len(known):
            known.extend([_NOTHING_KNOWN] * (len(self.lines) - len(known)))
        shown = []
        for line in range(first, stop):
            looked_for, carried = known[line]
            if wanted & ~looked_for:
                carried |= line_features(self.lines[line], wanted & ~looked_for)
                known[line] = (wanted | looked_for, carried)
            shown.append(carried & wanted)
        return shown
