"""The place in a file that comes closest to lines which are not in it: what makes "not found" a useful answer."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from leporello.tools.marks import cut_mark

_CANDIDATES = 5
_FILE_LINES = 50_000
_WANTED_LINES = 60
_SHOWN_LINES = 12
_SHOWN_CHARS = 200
_GOOD_ENOUGH = 0.5


def nearest_text(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """A sentence that shows the most similar lines with their numbers and says how they differ, if it is plain."""
    found = nearest(lines, wanted)
    if found is None:
        return "Nothing in the file is similar; read it again."
    size = min(len(wanted), _SHOWN_LINES)
    place = lines[found : found + size]
    rows = "\n".join(f"{found + k + 1}\t{_shorten(line)}" for k, line in enumerate(place))
    return f"{_difference(lines[found : found + len(wanted)], wanted)}The nearest lines are:\n{rows}"


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Index where the most similar lines begin; None when nothing is similar."""
    wanted = list(wanted[:_WANTED_LINES])
    if not wanted or not lines or len(lines) > _FILE_LINES:
        return None
    scored = _rough_scores(lines, wanted)
    target = "\n".join(line.strip() for line in wanted)
    best, place = 0.0, None
    for _, at in scored[:_CANDIDATES]:
        there = "\n".join(line.strip() for line in lines[at : at + len(wanted)])
        score = difflib.SequenceMatcher(None, there[:4_000], target[:4_000], autojunk=False).ratio()
        if score > best:
            best, place = score, at
    return place if best >= _GOOD_ENOUGH else None


def _rough_scores(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[float, int]]:
    """Windows of the file by how many words they share with what is wanted: linear in the size of the file."""
    target = Counter(word for line in wanted for word in line.split())
    per_line = [Counter(word for word in line.split() if word in target) for line in lines]
    running: Counter[str] = Counter()
    scores: list[tuple[float, int]] = []
    for at, words in enumerate(per_line):
        running.update(words)
        if at >= len(wanted):
            running.subtract(per_line[at - len(wanted)])
        start = max(0, at - len(wanted) + 1)
        scores.append((-sum(min(count, target[word]) for word, count in running.items() if count > 0), start))
    return sorted(set(scores))


def _difference(there: Sequence[str], wanted: Sequence[str]) -> str:
    if [line.split() for line in there] == [line.split() for line in wanted]:
        return "Only blanks or indentation differ. "
    if all(_starts_with_number(line) for line in wanted if line.strip()):
        return "The text seems to include the line numbers of read_file; leave them out. "
    return ""


def _starts_with_number(line: str) -> bool:
    number, tab, _ = line.partition("\t")
    return bool(tab) and number.strip().isdigit()


def _shorten(line: str) -> str:
    if len(line) <= _SHOWN_CHARS:
        return line
    return line[:_SHOWN_CHARS] + cut_mark(f"{len(line) - _SHOWN_CHARS:,} more characters")
