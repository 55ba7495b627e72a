"""A message cut into chunks of short lines, and what each line looks like: an error, a commit id, an amount."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cache
from typing import Any

from leporello.messages import calls_of, is_result, parse_json, role_of, text_of


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
        re.compile(
            r"(?<![\w./-])[\w./-]+\.[A-Za-z]\w{0,5}(?::\d+|[\"']?, line \d+|#L\d+|\(\d+[,)])|\bline \d+|^\s*\d+[:→|-]"
        ),
    ),
    (LineFeature.PATH, re.compile(rf"[\w.@~-]/[\w./@-]|(?<![\w-])-*+\w[\w-]*+\.(?:{_EXTENSIONS})\b")),
    (LineFeature.COMMIT, re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9]{7}\b")),
    (
        LineFeature.ERROR,
        re.compile(
            r"error|fail|panic|cannot|can't|could ?n[o']t|undefined|exception|fatal|not found|refused|denied|traceback|"
            r"invalid|unable|unexpected|mismatch|no such|missing|expected|must be|does ?n[o']t|outside|already exists|"
            r"unknown|warning|conflict|rejected|forbidden|unauthori[sz]ed|timed? ?out|abort|illegal|not allowed|"
            r"错误|失败|异常|无法|找不到",
            re.IGNORECASE,
        ),
    ),
    (LineFeature.NUMBER, re.compile(r"\d")),
    (LineFeature.AMOUNT, re.compile(rf"\b\d[\d,.]{{0,40}}\s?(?:{_UNITS})(?!\w)", re.IGNORECASE)),
    (
        LineFeature.TALLY,
        re.compile(
            r"files? changed|insertions?\(|\d (?:passed|failed|errors?|passing|failing|skipped)\b|^\s*\d+ total\b|"
            r"^(?:ok|FAIL|PASS|Tests?|Suites?|Ran|Total)\b[:\s]|\bin \d+\.\d+ ?s|^real\s|^\s*\d+\s+[\w./~-]+$",
            re.IGNORECASE,
        ),
    ),
    (
        LineFeature.ADDRESS,
        re.compile(r"https?://|\b\d+\.\d+\.\d+\.\d+\b|\blocalhost\b|:\d{4,5}\b|(?<![\w.-])[.-]*+\w[\w.-]*+@[\w-]+\.\w"),
    ),
    (LineFeature.VERSION, re.compile(r"\bv?\d+\.\d+\.\d+")),
    (LineFeature.COLOUR, re.compile(r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b|\brgba?\(", re.IGNORECASE)),
    (
        LineFeature.DATE,
        re.compile(r"\d{4}-\d\d-\d\d|\b\d\d?:\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d"),
    ),
    (
        LineFeature.DEFINITION,
        re.compile(r"\b(?:func|def|class|type|const|interface|struct|function|fn|enum|export|var|let)\b"),
    ),
    (LineFeature.NAME, re.compile(r"\b[A-Za-z]+[a-z0-9][A-Z]\w*|\b\w+_\w+\b")),
    (LineFeature.QUOTED, re.compile(r"[`\"“]\S")),
    (
        LineFeature.REASON,
        re.compile(
            r"\b(?:because|since|so that|due to|therefore|reason|otherwise|which means|rather than|instead|so it|avoid|"
            r"makes|would|should|need|better|simpler|cleaner|that's why|the (?:problem|issue)|turns out|means that)\b|"
            r"因为|所以|由于|原因",
            re.IGNORECASE,
        ),
    ),
    (LineFeature.TEST, re.compile(r"\b[Tt]est|_test|\bTest[A-Z]|\bspec\b|FAIL|PASS|测试")),
    (
        LineFeature.COMMAND,
        re.compile(
            r"^\s*(?:command|cmd|script): |^\s*[$>] |\b(?:git|npm|npx|pnpm|yarn|go|python3?|pip|cargo|make|docker|"
            r"kubectl|curl|uv|pytest|mvn|gradle) +[\w-]"
        ),
    ),
    (LineFeature.FLAG, re.compile(r"(?<![\w-])--[a-z]")),
    (
        LineFeature.RULE,
        re.compile(
            r"\b(?:must|never|always|do ?n[o']t|should|only|please|make sure|be sure|instead|prefer|want|need|use|"
            r"let's|no need)\b|不要|必须|只能|总是|请",
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
_DEEPEST = 20
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_DATA_URI = re.compile(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=_-]*")
# Longer than any identifier: an encoded file, which says nothing to a reader.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}")


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
    found = [Chunk(role, tool, False, 0, tuple(lines_of(text)))]
    for call in calls_of(message):
        value = parse_json(call.arguments)
        body = call.arguments if value is None else "\n".join(_named_texts(value))
        found.append(Chunk(role, call.name, True, call.index, tuple(lines_of(body)) or (call.name,)))
    return [passage for passage in found if passage.lines]


def lines_of(text: str) -> Iterator[str]:
    """Short lines with something in them; encoded files are taken out."""
    if len(text) > LONGEST_LINE:
        if "base64," in text:
            text = _DATA_URI.sub(" ", text)
        text = _BLOB.sub(" ", text)
    for line in text.splitlines():
        line = line.strip()
        if len(line) <= LONGEST_LINE:
            if line:
                yield line
        else:
            yield from _sentences(line)


def _sentences(line: str) -> Iterator[str]:
    """A long line as pieces that end where sentences end, else at a blank, else anywhere."""
    piece = ""
    for sentence in _SENTENCE.split(line):
        if piece and len(piece) + 1 + len(sentence) > LONGEST_LINE:
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
