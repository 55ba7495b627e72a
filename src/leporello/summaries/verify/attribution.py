"""Who said it and who did it: claims about speakers and about work, against the turns and the calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from leporello.summaries.handoff import HandoffLine
from leporello.summaries.verify.contradiction import Passage
from leporello.summaries.verify.evidence import Deed, Evidence, fold
from leporello.summaries.verify.lexicon import ClaimStatus, root, sides_of, words_of
from leporello.summaries.verify.reading import ELLIPSIS, QUOTED, Reading, Token, read

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
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def rightly_named(self, line: HandoffLine) -> bool:
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

    def only_a_tool(self, line: HandoffLine) -> bool:
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


_ACTS: dict[str, frozenset[str]] = {
    "edit": frozenset(
        map(root, "edit modify change update patch rewrite alter adjust touch fix 修改 编辑 更新 更改".split())
    ),
    "read": frozenset(map(root, "read look view inspect open examine review 查看 阅读 读取".split())),
    "delete": frozenset(map(root, "delete remove erase rename move archive 删除 移除 重命名".split())),
    "run": frozenset(map(root, "run execute invoke 运行 执行".split())),
}
_WORKS = {"edit": ("edit",), "read": ("read", "edit"), "delete": ("delete",)}
OUTCOMES = frozenset(side.axis for word in ("succeed", "work") for side in sides_of(root(word)))
"""The questions of success or failure."""
ACTED = frozenset().union(*_ACTS.values(), *map(words_of, OUTCOMES))
"""Words for acts and their outcomes: a call that bears a claim out explains them."""
_EXIT_CODE = re.compile(r"(?:exit (?:code |status )?|退出码 ?)(\d+)")
MOST_WORDS = 6
"""A claim of more words is about more than the act itself."""


def done(claim: Reading, deeds: Sequence[Deed], passages: Sequence[Passage]) -> bool | None:
    """Whether the calls that were made bear a claim out; None when it is about something else."""
    # What a command says is not said of it.
    context = read(QUOTED.sub(" ", claim.text)) if claim.quotes else claim
    acts = [act for act, words in _ACTS.items() if _speaks_of(context, words)]
    if not acts and any(deed.command == target for target in _targets(claim, "run") for deed in deeds):
        acts = ["run"]
    if len(acts) != 1 or len(context.content) > MOST_WORDS or not _targets(claim, acts[0]):
        return None
    act = acts[0]
    if act == "delete":
        return _deleted(claim, context, deeds)
    made = [deed for deed in deeds if _concerns(deed, claim, act)]
    if ClaimStatus.AHEAD in context.statuses or any(
        token.negated and not _tells_outcome(token) for token in context.tokens
    ):
        return False if any(not deed.failed for deed in made) else None
    if ClaimStatus.DONE not in context.statuses and not any(_tells_outcome(token) for token in context.content):
        return None
    if made:
        return _right_outcome(context, made)
    if not any(_is(deed, act) for deed in deeds) or any(_tells_it(passage, claim, act) for passage in passages):
        return None
    return False


def _deleted(claim: Reading, frame: Reading, deeds: Sequence[Deed]) -> bool | None:
    """Whether a file is gone; None when the calls don't tell, or when something within it is meant."""
    target = _targets(claim, "delete")[0]
    name = target.rsplit("/", 1)[-1]
    if len(frame.content) > 1 or any(name in deed.command for deed in deeds):
        return None
    edited = any(_concerns(deed, claim, "edit") for deed in deeds)
    return False if edited and not any(deed.work == "delete" and deed.path.endswith(target) for deed in deeds) else None


def _right_outcome(claim: Reading, made: Sequence[Deed]) -> bool | None:
    """Whether one of the calls ended as the claim says; None when it doesn't say."""
    outcomes = {facet.side.side ^ facet.negated for facet in claim.facets if facet.side.axis in OUTCOMES}
    if len(outcomes) != 1:
        return None if outcomes else True
    failed = outcomes == {1}
    code = _EXIT_CODE.search(claim.text)
    if code and failed != (code[1] != "0"):
        return False
    known = [deed.code for deed in made if deed.code is not None]
    if code and known:
        return int(code[1]) in known
    return any((known_code != 0) == failed for known_code in known) if known else None


def _tells_it(passage: Passage, claim: Reading, act: str) -> bool:
    """Whether somebody says that it was done."""
    reading = passage.reading
    if (
        passage.role not in ("user", "assistant")
        or ClaimStatus.DONE not in reading.statuses
        or ClaimStatus.AHEAD in reading.statuses
    ):
        return False
    return _speaks_of(reading, _ACTS[act]) and _targets(claim, act)[0] in reading.keys


def _tells_outcome(token: Token) -> bool:
    return any(side.axis in OUTCOMES for key in token.keys for side in sides_of(key))


def _speaks_of(reading: Reading, words: frozenset[str]) -> bool:
    return any(key in words for token in reading.content for key in token.keys)


def _targets(claim: Reading, act: str) -> list[str]:
    """The one file or command that a claim is about."""
    if act == "run":
        return [fold(quote) for quote in claim.quotes if " " in quote][:1]
    paths = [token.key for token in claim.names if "/" in token.key]
    return paths if len(paths) == 1 else []


def _is(deed: Deed, act: str) -> bool:
    return bool(deed.command) if act == "run" else deed.work in _WORKS[act]


def _concerns(deed: Deed, claim: Reading, act: str) -> bool:
    """Whether a call did this act on the thing a claim names."""
    target = _targets(claim, act)[0]
    if act == "run":
        return deed.command == target
    return _is(deed, act) and (deed.path == target or deed.path.endswith("/" + target.removeprefix("./")))
