"""What a line looks like, whatever it says: a place in a file, an error, a commit id, an amount.

Questions often say what kind of thing they ask for (`which file and line`, `how long did it take`). A line that carries
such a thing is a better answer than one that merely shares a word with the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntFlag, auto
from functools import cache


class Sign(IntFlag):
    """Kinds of things a line may carry."""

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
_PATTERNS: tuple[tuple[Sign, re.Pattern[str]], ...] = (
    (
        Sign.PLACE,
        re.compile(
            r"(?<![\w./-])[\w./-]+\.[A-Za-z]\w{0,5}(?::\d+|[\"']?, line \d+|#L\d+|\(\d+[,)])|\bline \d+|^\s*\d+[:→|-]"
        ),
    ),
    (Sign.PATH, re.compile(rf"[\w.@~-]/[\w./@-]|(?<![\w-])-*+\w[\w-]*+\.(?:{_EXTENSIONS})\b")),
    (Sign.COMMIT, re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9]{7}\b")),
    (
        Sign.ERROR,
        re.compile(
            r"error|fail|panic|cannot|can't|could ?n[o']t|undefined|exception|fatal|not found|refused|denied|traceback|"
            r"invalid|unable|unexpected|mismatch|no such|missing|expected|must be|does ?n[o']t|outside|already exists|"
            r"unknown|warning|conflict|rejected|forbidden|unauthori[sz]ed|timed? ?out|abort|illegal|not allowed|"
            r"错误|失败|异常|无法|找不到",
            re.IGNORECASE,
        ),
    ),
    (Sign.NUMBER, re.compile(r"\d")),
    (Sign.AMOUNT, re.compile(rf"\b\d[\d,.]{{0,40}}\s?(?:{_UNITS})(?!\w)", re.IGNORECASE)),
    (
        Sign.TALLY,
        re.compile(
            r"files? changed|insertions?\(|\d (?:passed|failed|errors?|passing|failing|skipped)\b|^\s*\d+ total\b|"
            r"^(?:ok|FAIL|PASS|Tests?|Suites?|Ran|Total)\b[:\s]|\bin \d+\.\d+ ?s|^real\s|^\s*\d+\s+[\w./~-]+$",
            re.IGNORECASE,
        ),
    ),
    (
        Sign.ADDRESS,
        re.compile(r"https?://|\b\d+\.\d+\.\d+\.\d+\b|\blocalhost\b|:\d{4,5}\b|(?<![\w.-])[.-]*+\w[\w.-]*+@[\w-]+\.\w"),
    ),
    (Sign.VERSION, re.compile(r"\bv?\d+\.\d+\.\d+")),
    (Sign.COLOUR, re.compile(r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b|\brgba?\(", re.IGNORECASE)),
    (
        Sign.DATE,
        re.compile(r"\d{4}-\d\d-\d\d|\b\d\d?:\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d"),
    ),
    (
        Sign.DEFINITION,
        re.compile(r"\b(?:func|def|class|type|const|interface|struct|function|fn|enum|export|var|let)\b"),
    ),
    (Sign.NAME, re.compile(r"\b[A-Za-z]+[a-z0-9][A-Z]\w*|\b\w+_\w+\b")),
    (Sign.QUOTED, re.compile(r"[`\"“]\S")),
    (
        Sign.REASON,
        re.compile(
            r"\b(?:because|since|so that|due to|therefore|reason|otherwise|which means|rather than|instead|so it|avoid|"
            r"makes|would|should|need|better|simpler|cleaner|that's why|the (?:problem|issue)|turns out|means that)\b|"
            r"因为|所以|由于|原因",
            re.IGNORECASE,
        ),
    ),
    (Sign.TEST, re.compile(r"\b[Tt]est|_test|\bTest[A-Z]|\bspec\b|FAIL|PASS|测试")),
    (
        Sign.COMMAND,
        re.compile(
            r"^\s*(?:command|cmd|script): |^\s*[$>] |\b(?:git|npm|npx|pnpm|yarn|go|python3?|pip|cargo|make|docker|"
            r"kubectl|curl|uv|pytest|mvn|gradle) +[\w-]"
        ),
    ),
    (Sign.FLAG, re.compile(r"(?<![\w-])--[a-z]")),
    (
        Sign.RULE,
        re.compile(
            r"\b(?:must|never|always|do ?n[o']t|should|only|please|make sure|be sure|instead|prefer|want|need|use|"
            r"let's|no need)\b|不要|必须|只能|总是|请",
            re.IGNORECASE,
        ),
    ),
)


ANY = sum(int(sign) for sign, _ in _PATTERNS)
"""All signs."""


@cache
def _searches(wanted: int) -> tuple[tuple[int, Callable[[str], object]], ...]:
    return tuple((int(sign), pattern.search) for sign, pattern in _PATTERNS if sign & wanted)


def signs_of(line: str, wanted: int = ANY) -> int:
    """Which of the wanted signs the line carries, as the bits of `Sign` (plain integers: a search tests thousands)."""
    found = 0
    for sign, search in _searches(wanted):
        if search(line):
            found |= sign
    return found
