"""Claims about work that was done, against the calls that were made.

"src/a.py was modified" is true when a call edited it; "will be edited", "was not run" are false when one did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leporello.summary.support.contradiction import Passage
from leporello.summary.support.evidence import Deed, fold
from leporello.summary.support.lexicon import root, sides_of, words_of
from leporello.summary.support.reading import QUOTED, Reading, Token, read
from leporello.summary.support.status import Status

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
    frame = read(QUOTED.sub(" ", claim.text)) if claim.quotes else claim
    acts = [act for act, words in _ACTS.items() if _speaks_of(frame, words)]
    if not acts and any(deed.command == target for target in _targets(claim, "run") for deed in deeds):
        acts = ["run"]
    if len(acts) != 1 or len(frame.content) > MOST_WORDS or not _targets(claim, acts[0]):
        return None
    act = acts[0]
    if act == "delete":
        return _deleted(claim, frame, deeds)
    made = [deed for deed in deeds if _concerns(deed, claim, act)]
    if Status.AHEAD in frame.statuses or any(token.negated and not _tells_outcome(token) for token in frame.tokens):
        return False if any(not deed.failed for deed in made) else None
    if Status.DONE not in frame.statuses and not any(_tells_outcome(token) for token in frame.content):
        return None
    if made:
        return _right_outcome(frame, made)
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
        or Status.DONE not in reading.statuses
        or Status.AHEAD in reading.statuses
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
