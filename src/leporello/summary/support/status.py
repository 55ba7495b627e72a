"""Has it happened? What a sentence says about the state of things: done, planned, plainly still to come, doubted."""

from __future__ import annotations

import re
from enum import StrEnum

from leporello.summary.support.lexicon import past_forms


class Status(StrEnum):
    """Whether what is said has happened."""

    DONE = "done"
    PLANNED = "planned"
    AHEAD = "ahead"
    """Plainly still to come, not only wanted or intended."""
    DOUBTED = "doubted"


def _any(english: str, chinese: str) -> re.Pattern[str]:
    """One pattern of the words in a block, a line at a time, and of some Chinese ones."""
    return re.compile(rf"\b(?:{'|'.join(english.split(chr(10))[1:-1]).replace('    ', '')})\b|{chinese}", re.IGNORECASE)


_PLANNED = _any(
    r"""
    will|'ll|won't|shall|would|should|must|i'd
    going to|gonna|about to|yet to|to do|todo|to be \w+ed
    (?:plan(?:s|ned)?|intend(?:s|ed)?|want(?:s|ed)?|ask(?:s|ed)?|needs?|has|have) to
    let me|let's|lets|please|wants?|asked for
    next(?: steps?)?|pending|later|tomorrow|soon|upcoming|scheduled|planned|remain(?:s|ing)|not yet|still (?:open|to)
    proposed?|suggest(?:s|ed)?
    """,
    "将要?|会|计划|打算|准备|即将|待|下一步|需要|应该|想要|希望|要求|请|还没|尚未|未来",
)
_AHEAD = _any(
    r"""
    will|'ll|going to|about to|yet to|to be \w+ed|plans? (?:is|are)? ?to|scheduled (?:to|for)|due to be
    still running|still in progress|in progress|ongoing|underway|under way|gave up|given up|in vain
    unfinished|half[- ]done|halfway
    (?:began|begun|started|tried|attempted) to|without success|abandoned
    (?:still )?(?:has|have|needs?) to be
    still (?:to|has to|needs to)
    next|tomorrow|upcoming
    """,
    "将要?|即将|待|下一步|尚未|还没",
)
_DOUBTED = _any(
    r"""
    might|maybe|perhaps|possibly|probably|presumably|apparently|likely
    unsure|not sure|unclear|could be|seems? to|may (?:be|have)
    """,
    "可能|也许|或许|大概|似乎|不确定",
)
_DONE = _any(
    r"""
    was|were|has been|have been|had|done|already|finished|completed?
    (?:has|have) \w+ed
    now \w+s
    """,
    r"已经?|了(?=[，。、；！\s]|$)|完成|✓|✅",
)
_PAST = re.compile(r"\b[a-z]{2,}ed\b", re.IGNORECASE)
_NOT_PAST = frozenset(
    "need feed seed speed embed indeed exceed proceed succeed bed red led shed based named called".split()
)


def statuses_of(text: str) -> frozenset[Status]:
    """Everything a sentence says about whether something happened."""
    found = {
        status
        for status, pattern in ((Status.PLANNED, _PLANNED), (Status.AHEAD, _AHEAD), (Status.DOUBTED, _DOUBTED))
        if pattern.search(text)
    }
    lowered = text.casefold()
    past = set(_PAST.findall(lowered)) - _NOT_PAST
    if past or _DONE.search(text) or not past_forms().isdisjoint(lowered.split()):
        found.add(Status.DONE)
    return frozenset(found)
