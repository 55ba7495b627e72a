"""Units, the smallest pieces of a message that can be kept on their own, and what they look like.

Units are lines of output and sentences of prose; the patterns know the few shapes that a handoff asks for.
"""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex

_I = re.IGNORECASE

ERROR = lazy_regex(
    r"\b(?:errors?|fail(?:s|ed|ure|ures|ing)?|fatal|panic|exception|traceback|cannot|can't|couldn't|unable|undefined|denied"
    r"|refused|not found|no such|timed? ?out|invalid|unexpected|mismatch|abort(?:ed)?|missing|unknown|conflict|rejected"
    r"|killed|broken|(?-i:E[A-Z]{5,}|TS\d{4}))\b|\w(?:Error|Exception)\b|[✗✘❌]|错误|失败|异常|无法|エラー|失敗|ошибк",
    _I,
)
COMMITTED = lazy_regex(r"^\s*\[[\w./() -]+ [0-9a-f]{7,}\] |^[0-9a-f]{7,12} \S|^commit [0-9a-f]{40}")
FAILED_TEST = lazy_regex(r"^\s*(?:FAILED|FAIL|ERROR|--- FAIL:?|✗|✕|×|not ok)\s+\S+")
EXCEPTION = lazy_regex(
    r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit)\b:? |^panic: |^fatal: |^npm ERR|^error\b", _I
)
BROKEN_RUN = lazy_regex(
    r"^\s{0,12}(?:FAILED|FAIL|--- FAIL:?|✗|✕|not ok)\s+\S|\[build failed\]|\bERROR task failed\b|\bundefined: \w"
    r"|^\S{1,200}:\d{1,6}(?::\d{1,5})?:? (?:fatal |syntax )?error\b"
    r"|^\W{0,6}(?:\w{1,40}\.){0,6}\w{0,40}(?:Error|Exception): "
    r"|^error(?:\[E\d{4}\])?: |^panic: |^fatal: |^npm ERR|^make: \*\*\*|\b[1-9]\d{0,5} (?:failed|failures?)\b"
    r"|^\S{1,120}: (?:No module named \S{1,80}|(?:\S{1,80}: )?(?:command )?not found)$"
)
"""A line of a run that did not go well, whatever other lines say."""
ALL_PASSED = lazy_regex(r"\b[1-9]\d{0,6} passed\b")
SUMMARY_LINE = lazy_regex(
    r"\b\d+ files? changed|\b\d+ (?:passed|failed)\b|^ok\s+\S+\s|^Ran \d+|^Tests?:|^Total\b|^Found \d+", _I
)
GUESS = lazy_regex(
    r"\b(?:might|maybe|perhaps|probably|possibly|presumably|likely|seems?|appears?|suspect|guess|wonder|i bet|could be"
    r"|would explain|not sure|hypothes[ie]s)\b|可能|也许|大概|应该是",
    _I,
)
"""What the assistant only supposes."""
CHOICE = lazy_regex(
    r"\b(?:instead|rather than|decid(?:e|ed|ing)|decision|chose|chosen|prefer|deliberate(?:ly)?|on purpose|by design"
    r"|so (?:we|i)\b(?! (?:get|see|have to see))|we (?:keep|use|store|skip|drop|never))\b|决定|选择|采用|改用|而不是",
    _I,
)
"""What it settled, also where it says why."""
OFFER = lazy_regex(
    r"^[-*\d.\s]{0,9}(?:if (?:you|helpful|needed|not)|once you|to (?:resume|run|see|use|get)|tip\b|try\b|wait\b|`/)"
    r"|\b(?:let me|tell me|would you|could you|do you|did you|i can|can you|you can|please)\b"
    r"|\byou (?:should|may|might|see)\b|我可以|请",
    _I,
)
"""What is held out to the user, asked of them or tried: nothing is settled by it."""
INTENT = lazy_regex(
    r"^(?:\*\*)?(?:now,? |ok(?:ay)?[,.]? |good[,.!]? |great[,.!]? |perfect[,.!]? |excellent[,.!]? |then,? |finally,? )*"
    r"(?:let me|let['’]s|i['’]ll|i will|i need to|i['’]m going to|next,? i|first,? i|now i|我来|让我|接下来)\b",
    _I,
)
SAYS_WHY = lazy_regex(
    r"\b(?:so|because|since|instead|rather|but|not|needs|avoid|ensure)\b|因为|所以|但|以便|为了|而不是", _I
)
"""A reason or what it is not, behind what was announced: no call tells it."""
QUESTION = lazy_regex(r"[?？]\W*$")


PLACE = lazy_regex(r"^(?:[^\s:]{1,200}[:-])?\d{1,7}(?:[→\t:-]|$)", re.MULTILINE)
"""Where a line stands in a file, as agents and `grep` print it before the line: no word of it."""

CUT_MARK = " […] "
MAX_UNIT_CHARS = 420
MAX_LINES_READ = 6_000
"""A huge output is read at both ends; the middle of it is in the log and in the search index."""

_SENTENCE_END = lazy_regex(
    r"(?<=[.!?])(?<!\b[DM]r\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bProf\.)\s+(?=[\"'(`*A-Z0-9\u00c0-\u024f\u0400-\u04ff])|(?<=[。！？；])\s*"
)
_UNSPACED_ENDS = ("。", "！", "？", "；")
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
_RULE_CHARS = f"{_SPACES}-=_*#|+~.>`"
"""A line of nothing else is blank or draws a rule."""
_MARKUP_NOISE = lazy_regex(r"^</?[\w-]+>(?:</[\w-]+>)?$")


def lines_of(text: str) -> list[tuple[str, int]]:
    """The non-empty lines of tool output with their position."""
    lines = [line for line in text.split("\n") if line.strip(_RULE_CHARS)]
    half, behind = MAX_LINES_READ // 2, len(lines) - MAX_LINES_READ
    if behind > 0:
        lines = lines[:half] + lines[-half:]
    return [
        (
            line.strip() if len(line) <= MAX_UNIT_CHARS else clip(line.rstrip()).strip(),
            place if place < half or behind <= 0 else place + behind,
        )
        for place, line in enumerate(lines)
    ]


def sentences_of(text: str, limit: int = MAX_UNIT_CHARS) -> list[str]:
    """The sentences of prose: paragraphs and list items are split at sentence ends, code lines stay whole."""
    return [sentence for sentence, _ in placed_sentences(text, limit)]


def placed_sentences(text: str, limit: int = MAX_UNIT_CHARS) -> list[tuple[str, int]]:
    """Each sentence with its place: one more than the place before it on the same line, two more on the next line."""
    found: list[tuple[str, int]] = []
    place = 0
    for line in text.split("\n"):
        bare = line.strip()
        if not bare.strip(_RULE_CHARS) or (bare[0] == "<" and _MARKUP_NOISE.match(bare)):
            continue
        pieces = _SENTENCE_END.split(bare) if len(bare) > 60 else [bare]
        for piece in pieces:
            if piece and piece.strip():
                found.append((clip(piece.strip(), limit), place))
                # Whether a space stood behind it is not known: it is shown on a line of its own.
                place += 2 if piece.endswith(_UNSPACED_ENDS) else 1
        place += 1
    return found


def clip(text: str, limit: int = MAX_UNIT_CHARS) -> str:
    """The text itself, or its beginning and end around a visible cut mark."""
    if len(text) <= limit:
        return text
    room = limit - len(CUT_MARK)
    front = room * 2 // 3
    return text[:front].rstrip() + CUT_MARK + text[-(room - front) :].lstrip()
