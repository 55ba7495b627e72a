"""Standing rules in what the user says: constraints, preferences, corrections, approvals, and what takes them back.

Only the user's own words are looked at; text from tools or web pages can never become a rule. Detection is by phrasing,
in English and Chinese; structure (quotation, code) is skipped, so that a pasted log is not read as an order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_I = re.IGNORECASE

_RULE = re.compile(
    r"\b(?:never|always|don'?t|do not|must(?: not|n'?t)?|mustn't|should(?:n'?t| not)?|shall not|avoid|make sure|ensure|be sure"
    r"|only (?:use|touch|change|edit|modify|run|when|if|after)|no (?:new|more|need to|longer)|without (?:asking|touching|changing)"
    r"|prefer|stick (?:to|with)|keep (?:it|the|all|every|using|to)|leave .{1,40} alone|from now on|every time|whenever|under no"
    r"|required?|has to|have to|needs? to be|off[- ]limits|forbidden|not allowed|prohibited|ask (?:me )?(?:before|first)"
    r"|before (?:you )?(?:commit|push|deploy|merge|delet)\w*|use (?:only )?\S+ (?:instead|for|not)|instead of|rather than"
    r"|at most|at least|no more than|limit(?:ed)? to|strictly|exactly|important(?:ly)?|remember(?: that| to)?|note that"
    r"|only ever|no \w+ in (?:the|any|our)|be careful|careful with|i'?d (?:be happier|rather|prefer|like)|you (?:may|can) not|is not to be|are not to|stop (?:using|doing|adding)|please use|i want you to|i'd like you to)\b"
    r"|(?:不要|别再?|必须|禁止|务必|不得|不能|不可以?|应该|一定要|总是|永远|始终|只(?:能|用|改|允许)|避免|请(?:用|使用|勿|保持|确保)|记住|注意"
    r"|今后|以后都?|每次|优先(?:使用)?|统一(?:使用|用)|保持|不准|严禁|先问我|无需|不需要|小心)"
    # A few words each of other languages users write in; structure (who said it, where) needs none of them.
    r"|\b(?:niemals|immer|nicht|darfst|muss|müssen|bitte kein\w*|nunca|siempre|jamás|debes?|evita|jamais|toujours|ne .{1,30} pas|doit"
    r"|никогда|всегда|нельзя|не надо|должен|обязательно)\b|絶対に|必ず|しないで|してはいけ|禁止|ないでください|항상|절대|하지 마",
    _I,
)
_REVOKE = re.compile(
    r"\b(?:never ?mind|forget (?:about )?(?:that|the|what i said)|scratch that|drop (?:that|the) (?:rule|requirement|constraint)"
    r"|no longer (?:need|required?|necessary|applies)|you (?:can|may) (?:now )?(?:again|ignore)|ignore (?:that|my|the) (?:rule|earlier|previous)"
    r"|(?:i )?(?:changed|change) my mind|revert that (?:rule|decision)|lift(?:ed)? the|it'?s (?:ok|okay|fine) (?:now )?to"
    r"|you'?re allowed to|that rule)\b|(?:不用再|取消(?:这条|之前|刚才)|可以不用|忽略(?:之前|刚才)|不再需要|之前说的.*(?:作废|不算))",
    _I,
)
_CANCEL = re.compile(
    r"^\W*(?:stop|cancel|abort|never ?mind|forget it|leave it|that'?s (?:all|enough)|停|取消|算了|不用了|停止)\W*(?:it|that|this|now|here|everything|work(?:ing)?|please|for now|吧|了)?\W*$",
    _I,
)
_QUESTION = re.compile(r"[?？]\s*$")
_CODE_LIKE = re.compile(r"^\s*(?:[>|$#]|```|\+|at |File \"|\d{4}-\d\d-\d\d|\[\w+\]|<)|[{};]\s*$|^\s*\w+\(.*\)\s*$")
MAX_RULE_CHARS = 600


@dataclass(frozen=True, slots=True)
class Said:
    """How a sentence of the user reads."""

    rule: bool
    revokes: bool
    question: bool


def read(sentence: str) -> Said:
    """Whether a sentence of the user states a rule, takes one back, or asks something."""
    if len(sentence) > MAX_RULE_CHARS or _CODE_LIKE.search(sentence):
        return Said(False, False, False)
    question = bool(_QUESTION.search(sentence))
    return Said(bool(_RULE.search(sentence)) and not question, bool(_REVOKE.search(sentence)), question)


def is_cancel(text: str) -> bool:
    """Whether a whole user message only says stop."""
    return len(text) < 80 and bool(_CANCEL.match(text.strip()))


_WORD = re.compile(r"[A-Za-z_][\w./-]{2,}|[\u4e00-\u9fff]{2}")
_COMMON = frozenset(
    "the and for that this with you your not don never always must should please use using instead rule from now can may will"
    " are was were have has had any all but when then than into onto out our its it's let make sure keep only before after".split()
)


def topic(sentence: str) -> frozenset[str]:
    """The words that say what a rule is about."""
    words = {word.casefold().strip("./-") for word in _WORD.findall(sentence)}
    return frozenset(word for word in words if word not in _COMMON)


def same_topic(one: str, other: str) -> bool:
    """Whether two sentences speak of the same thing: at least two thirds of the shorter one's words are shared."""
    a, b = topic(one), topic(other)
    smaller = min(len(a), len(b))
    return smaller > 0 and len(a & b) >= max(1, (2 * smaller + 2) // 3)
