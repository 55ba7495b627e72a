"""When a later sentence of the user ends an earlier rule: taken back, allowed after all, or another value instead.

Of two rules that contradict each other the later one stands. Ending a rule wrongly is worse than keeping an old one
beside a new one, so every test asks for the same subject: names and paths must agree, and a sentence about a part
("don't lint generated files") is an exception, not the end of the whole.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger import rule_withdrawal, rules
from leporello.ledger.language import language_of
from leporello.ledger.rules import RuleKind
from leporello.text_features.words import STOP_WORDS, stem

_I = re.IGNORECASE
_READ_HERE = frozenset(("en", "zh"))
"""Languages whose words are known here; others are read by their signs alone."""
# One start per run of name characters: a run that holds no name from its first character holds none from a later one.
_NAME = lazy_regex(r"`[^`]+`|\"[^\"]+\"|(?<![\w./:@-])[^\W_]*+[./_:@-][\w./:@-]*\w|(?<![A-Za-z_])[A-Za-z_]*+\d[\w.]*")
_WORD = lazy_regex(r"[A-Za-z][A-Za-z'+#]+|[\u3400-\u9fff]+")
_LETTERS = lazy_regex(r"[a-z]+")
_CLAUSE_END = lazy_regex(r"[,.;，。；](?:\s|$)")
_DIGITS = lazy_regex(r"\d+(?:\.\d+)*")
_HAN = lazy_regex(r"[\u3400-\u9fff]+")
_LATIN_IN_HAN = lazy_regex(r"[A-Za-z][\w./-]+")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}

_MANNER = """
    please never always ever must should shall again any anymore more longer now fine okay allowed allow permitted
    permit acceptable rule rules limit constraint requirement restriction format forget drop ignore lift scratch
    mind need needs necessary required require used use using instead rather changed change actually correction
    second thought decision decided let lets sure ensure keep only after before first from on every all each whole
    entire that this you your want don't dont not can't cannot won't make prefer avoid stop leave remember may can
    free go ahead think like directly anything everything something whatever thing things time else really just
    also too ask asking me us our we i'd i'll let's it's that's ok yes no back take call name new be there here end
    you're we're they're i'm
    ended story history matter apply applies valid force restrict most least writable editable unlocked unfrozen
"""
"""Words that say how something is ordered or allowed, not what it is about."""
_COMMON = STOP_WORDS | frozenset(_MANNER.split()) | {stem(word) for word in _MANNER.split()} | frozenset(_NUMBER_WORDS)
_HAN_MANNER = lazy_regex(
    "不要|不用再|不用|不得|不能|不准|不许|不可以|不再|必须|禁止|务必|严禁|请勿|请|始终|总是|永远|一定要|一定|以后|今后|从现在开始"
    "|从现在起|现在|可以|允许|了|的|都|所有|每个|每次|任何|直接|使用|用|先|再|之前|之后|在|里|把|就|要|取消|限制|规则|忽略|作废|需要"
    "|改成|改为|换成|应该|还是|我们|统一|优先|只能|只|别|也|和|与|吧|啊|呢"
)
_SAME_ACT = {
    stem(word): group.split()[0]
    for group in (
        "edit touch change modify alter write update",
        "delete remove erase",
        "run execute",
        "deploy release ship publish",
    )
    for word in group.split()
}

_BAN = lazy_regex(
    r"\b(?:never|do not|don'?t|dont|must not|mustn'?t|may not|should not|shouldn'?t|shall not|not to|avoid|stop|no"
    r"|without|refrain from|under no circumstances|hold off|quit)\b"
    r"|不要|别|禁止|不得|不准|不许|严禁|请勿|勿|不能|不可以?|避免|停止",
    _I,
)
_NOT_A_BAN = lazy_regex(r"^\W*no[,.!]?\s+(?!\w+s\b)|\bwithout\b", _I)
_CLOSED = lazy_regex(
    r"\b(?:off[- ]limits|read-only|frozen|forbidden|prohibited|protected|out of scope|not allowed|only|ask|wait|at most"
    r"|under \d|within \d|no more than|limit\w*)\b|只|不超过|最多",
    _I,
)
"""Other ways to close something than a ban: an approval opens it again."""
_LIFTS = lazy_regex(
    r"\b(?:now|again|any ?more|any longer|no longer|from (?:now|here) on|after all|in (?:the )?future|henceforth|always"
    r"|allowed|permitted|acceptable|lifted|fine to|okay to|ok to|feel free|no need|outside|elsewhere|anywhere|too)\b"
    r"|现在|以后|今后|从现在|允许|不用再|不再|取消|可以.{0,2000}了",
    _I,
)
"""What makes an approval a general one: it changes what holds from here on, and not only answers a question."""
_ADDS = lazy_regex(
    r"(?:^|\b(?:always|please|must|should|to)\s+)"
    r"(?:(?:support|test|document|include|cover|handle|translate|export|maintain)\b|keep (?:the|all|both)\b)",
    _I,
)
"""Orders of which several stand side by side: supporting one version does not end the support of another."""
_ASSENT = lazy_regex(r"\W*(?:yes|yeah|yep|yup|ok|okay|sure|fine|alright|all right|please do|good)\b|[好行嗯]", _I)
_BEYOND = frozenset(map(stem, ("outside", "elsewhere", "anywhere")))
_HAS_SUBJECT = lazy_regex(r"\W*(?:the|all|our|my|every|each|these|those)\b", _I)
_SCOPE = lazy_regex(
    r"\b(?:in|for|inside|within|when|while|during|across|except|outside|under(?! \d))\s+"
    r"((?:(?:the|this|that|these|those|all|any|our|my|your|new)\s+)*[\w`./-]+(?:\s+[\w`./-]+)?)",
    _I,
)
_UNWANTED = lazy_regex(
    r"(?:\binstead of|\brather than|\b(?:and|but) not|,\s*not|\bover|\bno longer|\bnot(?= [\w`./:-]+[.!]?$)"
    r"|而不是|，不是|不是|[，,]\s*(?:不要|别)用)"
    r"\s*(?:with |on |in |the |a |用)?([\w`./:-]+)",
    _I,
)

_ALTERNATIVES = (
    "tabs|spaces",
    "npm|pnpm|yarn|bun",
    "pip|uv|poetry|conda|pipenv",
    "pytest|unittest|nose",
    "jest|vitest|mocha",
    "black|yapf|autopep8",
    "snake_case|camelcase|pascalcase|kebab-case",
    "single|double",
    "english|german|french|spanish|chinese|japanese|italian|portuguese|russian|korean|dutch|中文|英文|英语|日语|德语",
    "light|dark",
    "rebase|merge|squash",
    "sqlite|postgresql|postgres|mysql|mariadb|mongodb",
    "json|yaml|toml|xml|csv",
    "rest|graphql|grpc",
    "sync|async|synchronous|asynchronous",
    "utc|local",
    "short|long|brief|verbose|detailed",
    "british|american",
    "javascript|typescript",
    "python|go|rust|java|ruby|kotlin",
    "react|vue|svelte|angular",
    "staging|production",
    "public|private",
    "ascending|descending",
)
_SETS: dict[str, int] = {
    stem(member): number for number, group in enumerate(_ALTERNATIVES) for member in group.split("|")
}


class Subject(Struct, frozen=True):
    """What a sentence is about."""

    words: frozenset[str]
    """Plain words without manner: stems, and pairs of Chinese characters."""
    names: frozenset[str]
    """Paths, identifiers, quoted pieces."""
    numbers: frozenset[str]
    members: frozenset[str]
    """Words wanted out of a set of alternatives, such as tabs and spaces."""
    scope: frozenset[str]
    banned: frozenset[str]
    """What stands directly behind a ban."""
    unwanted: frozenset[str]
    """Values named as not wanted: "X, not Y", "X instead of Y"."""

    @property
    def all(self) -> frozenset[str]:
        return self.words | self.names | self.numbers | self.members

    @property
    def frame(self) -> frozenset[str]:
        """What stays when the values are taken out."""
        return self.words | self.names


@lru_cache(maxsize=16_384)
def subject(sentence: str) -> Subject:
    text = sentence.replace("’", "'")
    unwanted = frozenset(
        form for value in _UNWANTED.findall(text) for form in (_plain(value), _canonical(_plain(value)))
    )
    numbers = set(_DIGITS.findall(text)) - unwanted
    numbers |= {_NUMBER_WORDS[word] for word in _LETTERS.findall(text.casefold()) if word in _NUMBER_WORDS}
    names = set(map(_plain, _NAME.findall(text)))
    rest = _NAME.sub(" ", text)
    if _HAN.search(text):
        names |= set(map(_plain, _LATIN_IN_HAN.findall(rest)))
        rest = _LATIN_IN_HAN.sub(" ", rest)
    names -= numbers | unwanted | {""}
    words = set(_words(rest)) - unwanted
    members = {word for word in words | names if word in _SETS}
    scope = {word for piece in _SCOPE.findall(text) for word in (*_words(piece), *map(_plain, _NAME.findall(piece)))}
    return Subject(
        words=frozenset(words - members),
        names=frozenset(names - members),
        numbers=frozenset(numbers),
        members=frozenset(members),
        scope=frozenset(scope - members - numbers),
        banned=_banned(text),
        unwanted=unwanted,
    )


def _plain(name: str) -> str:
    return name.strip("`\"'.,:;-").casefold()


def _canonical(word: str) -> str:
    root = stem(word)
    return _SAME_ACT.get(root, root)


def _words(text: str) -> list[str]:
    found = []
    for word in _WORD.findall(text):
        if _HAN.match(word):
            for run in _HAN_MANNER.sub(" ", word).split():
                found.extend([run] if len(run) == 1 else [run[k : k + 2] for k in range(len(run) - 1)])
        elif len(word) > 2 or word.isupper():
            lowered = word.casefold()
            if lowered in _SAME_ACT or _canonical(lowered) != stem(lowered):
                found.append(_canonical(lowered))
            elif lowered not in _COMMON and stem(lowered) not in _COMMON:
                found.append(stem(lowered))
    return found


def _banned(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _BAN.finditer(text):
        rest = _CLAUSE_END.split(text[match.end() :], maxsplit=1)[0][:80]
        after = _words(rest)
        found.update(after[:2] if _HAN.search(match.group()) else after[:1])
        if not after:
            found.update(map(_plain, _NAME.findall(rest)[:1]))
        if _HAN.search(match.group()):
            found.update(map(_plain, _LATIN_IN_HAN.findall(rest)[:1]))
    return frozenset(found)


def ends(earlier: str, later: str) -> bool:
    """Whether a later sentence takes an earlier rule back, allows what it forbade, or says the opposite."""
    if not _READ_HERE.issuperset((language_of(earlier), language_of(later))):
        return rule_withdrawal.takes_back(earlier, later)
    said = rules.read(later)
    old, new = subject(earlier), subject(later)
    if not new.all or _other_names(old, new) or _other_words(old, new):
        return False
    if said.revokes:
        return _covers(old, new, 0.6) or _covers(new, old, 0.75)
    if said.kind is RuleKind.APPROVAL or rules.permits(later):
        if _bans(later) or not _is_general(old, new, later):
            return False
        closed = bool(old.banned & new.all) or (not old.banned and _CLOSED.search(earlier) is not None)
        return closed and _covers(old, new, 0.6)
    if said.rule and _bans(earlier) != _bans(later):
        forbidden = old.banned | new.banned
        repeated = new.unwanted & old.all
        return bool(forbidden & old.all & new.all) and _covers(old, new, 0.75) and not new.scope - old.all | repeated
    return False


def _is_general(old: Subject, new: Subject, later: str) -> bool:
    """Whether an approval lifts the rule; consent to one thing or to a part of what is forbidden leaves it as it is."""
    if _HAN.search(later):
        # Pairs of characters differ with every particle: they can't tell a part from the whole.
        return _LIFTS.search(later) is not None
    if new.words - old.all - _BEYOND:
        return False
    if _LIFTS.search(later):
        return _covers(new, old, 0.6)
    return len(old.all) > 1 and old.all <= new.all and not _ASSENT.match(later)


def replaces(earlier: str, later: str) -> bool:
    """Whether a later rule gives another value for the same thing: other number, other tool, other name."""
    old, new = subject(earlier), subject(later)
    if _bans(earlier):
        # A ban is not replaced by another ban, nor by a sentence that says the same in other words ("X, not Y").
        return False
    if new.unwanted & (old.all | old.members):
        return bool(new.frame & old.frame) or not (old.words - new.unwanted)
    if not (old.numbers and new.numbers) and not (old.members and new.members):
        return False
    if _bans(later) or _other_names(old, new) or old.scope - new.all or new.scope - old.all:
        return False
    if _adds(earlier) or _adds(later):
        return False
    if old.numbers and new.numbers and not old.numbers & new.numbers:
        same = _same_frame(old.words, new.words) and not _other_words(old, new)
        return old.names == new.names and bool(old.words) and same
    if _other_member(old, new):
        if _HAS_SUBJECT.match(later) and not _same_frame(old.frame, new.frame):
            return False
        return not old.frame or not new.frame or _same_frame(old.frame, new.frame)
    return False


@lru_cache(maxsize=16_384)
def _adds(text: str) -> bool:
    return _ADDS.search(text) is not None


def _other_member(old: Subject, new: Subject) -> bool:
    """Whether the two want different members of one set."""
    for number in {_SETS[member] for member in old.members} & {_SETS[member] for member in new.members}:
        if not any(_SETS[member] == number for member in old.members & new.members):
            return True
    return False


@lru_cache(maxsize=16_384)
def _bans(text: str) -> bool:
    return any(not _NOT_A_BAN.match(text, match.start()) for match in _BAN.finditer(text))


def _other_names(old: Subject, new: Subject) -> bool:
    """Whether both name things and none in common: then they speak of different things."""
    return bool(old.names and new.names and not old.names & new.names)


def _other_words(old: Subject, new: Subject) -> bool:
    """Whether each has a word where the other has another: one frame around two things, "print X" and "print Y".

    Pairs of Chinese characters overlap and differ with every particle, so they say nothing here.
    """
    one = {word for word in old.words - new.all - new.unwanted if word.isascii()}
    other = {word for word in new.words - old.all - old.unwanted if word.isascii()}
    return bool(one and other)


def _covers(old: Subject, new: Subject, share: float) -> bool:
    """Whether most of what the new one speaks of is in the old one."""
    return len((old.all | old.unwanted) & new.all) >= max(1, share * len(new.all))


def _same_frame(one: frozenset[str], other: frozenset[str]) -> bool:
    smaller = min(len(one), len(other))
    return smaller > 0 and len(one & other) >= max(1, 0.75 * smaller)
