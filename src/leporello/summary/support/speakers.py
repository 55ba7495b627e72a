"""Who said it? Claims that name a speaker, and sections that belong to one, against who said these words.

Many words of a claim turn up everywhere in a long session. What counts is how much of it one speaker said in one
message, compared with the others: a sentence of the assistant is not the user's because the user used its words, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from leporello.summary.handoff import Line
from leporello.summary.support.evidence import Evidence
from leporello.summary.support.reading import ELLIPSIS, Reading, read

BACKED_SHARE = 0.6
FOREIGN_SHARE = 0.9
"""Of a claim that cites only messages of somebody else, more must be found in the words of whom it names."""
NOT_LESS_THAN_OTHERS = 0.85
SPEAKERS = ("user", "assistant", "tool")


def _claims(subject: str, verbs: str, more: str) -> re.Pattern[str]:
    joined = "|".join(verbs.split())
    return re.compile(rf"\b(?:the )?{subject} (?:\w+ )?(?:{joined})\b|{more}", re.IGNORECASE)


_USER = _claims(
    "user(?:'s)?",
    """
    asks? asked wants? wanted requests? requested says? said decides decided prefers? preferred told needs? needed
    reports? reported forbids forbade insists? insisted approves approved rejects rejected confirms? confirmed
    instructs? instructed chose chooses likes? demands? demanded requires? required agreed rule request decision
    preference wish
    """,
    r"\b(?:asked|requested|decided|said|wanted|approved) (?:for )?by the user\b"
    r"|用户(?:要求|希望|说|想|决定|拒绝|同意|报告|提出|确认|禁止|偏好)",
)
_USER_DID = re.compile(
    r"\b(?:the )?user (?:has |had |have )?(?:\w+ly )?(?!is\b|was\b|'s)[a-z]+(?:ed|s)?\b", re.IGNORECASE
)
"""Whatever the user is said to have done, the user must have told."""
_ASSISTANT = _claims(
    "(?:assistant|agent|ai|model)",
    """
    asks? asked wants? wanted says? said decides decided proposes proposed suggests? suggested reports? reported forbids
    forbade recommends? recommended explains? explained concluded promised offered announced claimed
    """,
    "助手(?:说|建议|提出|认为|决定)",
)
_TOOL = _claims(
    "(?:tool|tests?|command|build|compiler|linter|logs?|page|web page|server|terminal)(?: output| run| log)?",
    "asks? asked wants? says? said reports? reported prints printed shows showed forbids states stated returned",
    "(?:日志|输出|页面)(?:说|显示|要求)",
)


_NAMED = (("user", _USER), ("user", _USER_DID), ("assistant", _ASSISTANT), ("tool", _TOOL))
_FRAME = re.compile(
    r"(?<![\w/.-])(?:the )?(?:user|assistant|agent)(?![\w/.-])(?:'s)?"
    r"(?: (?:has |have |had )?(?:asks?|asked|wants?|wanted|requests?|requested|says|said|reports?|reported|told|wrote"
    r")\b)?(?: (?:for|that|to)\b)?:?|用户(?:要求|希望|说|想|报告|提出)?[：:]?|助手(?:说|提出)?[：:]?",
    re.IGNORECASE,
)


def without_speaker(text: str) -> str:
    """A claim without the words that say whose it is, which `Speakers` judges; approval and the like are more."""
    return _FRAME.sub(" ", text, count=1)


class Speakers:
    """Looks up who said what."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def rightly_named(self, line: Line) -> bool:
        """Whether the speaker that a line names said it; lines that name nobody are right."""
        for role, pattern in _NAMED:
            if pattern.search(line.text):
                return self.said_by(role, pattern.sub(" ", line.text), line.sources)
        return True

    def said_by(self, role: str, text: str, sources: Collection[int]) -> bool:
        """Whether one role said what a text says: in one message or around the cited ones, and nobody else more so."""
        claim = read(text)
        pieces = [piece for quote in claim.quotes if " " in quote for piece in ELLIPSIS.split(quote) if piece]
        if not all(self.evidence.says(piece, self.evidence.numbers, role) for piece in pieces):
            return False
        repeated = self.evidence.repeated(text.strip(" :,-"))
        if repeated and all(segment.role != role for segment in repeated):
            return False
        shares = self.shares(claim, sources, role)
        own = not sources or any(self.evidence.roles.get(number) in (role, "program") for number in sources)
        least = BACKED_SHARE if own else FOREIGN_SHARE
        return shares[role] >= least and shares[role] >= NOT_LESS_THAN_OTHERS * max(shares.values())

    def only_a_tool(self, line: Line) -> bool:
        """Whether a line comes from a tool's output more than from anybody's words."""
        shares = self.shares(read(line.text), line.sources)
        return shares["tool"] >= BACKED_SHARE and shares["tool"] > max(shares["user"], shares["assistant"])

    def shares(self, claim: Reading, sources: Collection[int], role: str = "") -> dict[str, float]:
        """How much of a claim each speaker said in one message; `role` may have said it in all around the sources."""
        keys = {token.key for token in claim.tokens if (token.name or token.content) and token.key}
        cited = set(self.evidence.region(sources))
        shares = {}
        for speaker in SPEAKERS:
            said: Counter[int] = Counter()
            near = 0
            for key in keys:
                numbers = {segment.number for segment in self.evidence.said(key, speaker)}
                said.update(numbers)
                near += not cited.isdisjoint(numbers)
            most = max(near if speaker == role else 0, max(said.values(), default=0))
            shares[speaker] = most / len(keys) if keys else 0.0
        return shares
