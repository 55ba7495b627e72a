"""Is a claim nearly, or plainly, what one or two sentences of the turns say? Every difference counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from leporello.summaries.verify.evidence import Evidence, Segment, fold
from leporello.summaries.verify.lexicon import (
    ClaimStatus,
    has_synonyms,
    in_other_script,
    is_general,
    root,
    sides_of,
    synonyms_of,
)
from leporello.summaries.verify.nearest import holds_name
from leporello.summaries.verify.numbers import free_figures
from leporello.summaries.verify.reading import DOUBTING, NEGATORS, Figure, Reading, Token, any_same, read, same

ALIKE = 0.7
MOVED = 0.85
NEARLY_AS_ALIKE = 0.93
LEAST_WORDS = 4
MOST_WORDS = 150


def faithful(claim: Reading, passages: Sequence[Reading]) -> bool | None:
    """Whether a claim repeats a passage without a difference that matters; None when it repeats none."""
    mine = _words(claim)
    if not LEAST_WORDS <= len(mine) <= MOST_WORDS:
        return None
    compared = []
    for passage in passages:
        theirs = _spoken_of(passage, claim)
        if not len(mine) / 3 <= len(theirs) <= MOST_WORDS:
            continue
        matcher = SequenceMatcher(None, [word.key for word in theirs], [word.key for word in mine], autojunk=False)
        in_order = sum(block.size for block in matcher.get_matching_blocks())
        in_all = sum((Counter(word.key for word in mine) & Counter(word.key for word in theirs)).values())
        if in_order >= ALIKE * len(mine) or in_all >= MOVED * len(mine):
            compared.append((in_all / len(mine), matcher, theirs, passage))
    if not compared:
        return None
    best = max(share for share, *_ in compared)
    alike = [entry for entry in compared if entry[0] >= NEARLY_AS_ALIKE * best]
    return any(not _matters(matcher, theirs, mine, passage, claim) for _, matcher, theirs, passage in alike)


def _words(reading: Reading) -> list[Token]:
    return [token for token in reading.tokens if token.keys]


def _spoken_of(passage: Reading, claim: Reading) -> list[Token]:
    """The words of those sentences of a passage that share something with the claim."""
    sentences: list[list[Token]] = [[]]
    for token in passage.tokens:
        if token.boundary and token.text in _ENDS:
            sentences.append([])
        elif token.keys:
            sentences[-1].append(token)
    if len(sentences) == 1:
        return sentences[0]
    known = {token.key for token in claim.tokens if token.content or token.name}
    return [word for sentence in sentences if any(word.key in known for word in sentence) for word in sentence]


_ENDS = frozenset(".!?。！？\n")


def _matters(
    matcher: SequenceMatcher[str], theirs: list[Token], mine: list[Token], passage: Reading, claim: Reading
) -> bool:
    gone: list[Token] = []
    come: list[Token] = []
    for tag, start, stop, begin, end in matcher.get_opcodes():
        if tag == "equal" or (tag == "delete" and stop == len(theirs) and theirs[start].text.casefold() in _JOINS):
            # A clause that follows may be left out.
            continue
        old, new = theirs[start:stop], mine[begin:end]
        if tag == "replace" and _replaced(old, _not_moved(new, old, passage), passage, claim):
            return True
        gone.extend(old)
        come.extend(new)
    # What is moved is gone in one place and comes in another; what is left has really changed.
    lost, gained = _difference(gone, come), _difference(come, gone)
    if _turned(lost, gained) or _rescaled(lost, gained) or _changed(lost, gained, passage, claim):
        return True
    old, new = [word for word in lost if word.content], [word for word in gained if word.content]
    whole = len(mine) - len(gained) >= ALIKE * len(theirs)
    return whole and len(old) == len(new) == 1 and _replaced(old, new, passage, claim)


def _not_moved(new: list[Token], old: list[Token], passage: Reading) -> list[Token]:
    """The words of a longer piece that don't stand elsewhere in the passage: those were only moved."""
    if len(new) == len(old) == 1:
        return new
    known = {token.key for token in passage.tokens}
    return [word for word in new if word.key not in known]


def _replaced(old: list[Token], new: list[Token], passage: Reading, claim: Reading) -> bool:
    """Whether a word has become another one that changes the meaning."""
    for word in new:
        if any(word.key == other.key or word.key in synonyms_of(other.key) for other in old):
            continue
        if _changed(old, [word], passage, claim):
            return True
        others = [other for other in old if other.content and other.text.isascii() == word.text.isascii()]
        if len(old) == len(new) and word.content and others and _tells_apart(word, others, claim):
            return True
    return False


def _tells_apart(word: Token, others: list[Token], claim: Reading) -> bool:
    """Whether one word for another makes a difference: nouns do, words of a trade, and those known not to be alike.

    Verbs and qualities have more names than any list knows, so an unknown one may mean the same.
    """
    if _has_particle(word, claim):
        return False
    if _is_noun(word, claim) or word.text.isupper():
        return True
    return any(all(test(one.key) for one in (word, *others)) for test in (_is_special, has_synonyms))


def _has_particle(word: Token, reading: Reading) -> bool:
    """Whether a word is a verb of two words, as "take out": it means what neither of them says."""
    following = next((token for token in reading.tokens if token.start > word.start), None)
    return following is not None and following.text.casefold() in _PARTICLES


_PARTICLES = frozenset("out up off away back down with".split())


def _is_special(key: str) -> bool:
    return not is_general(key) and len(key) > 2


def _is_noun(word: Token, reading: Reading) -> bool:
    """Whether a word is the last of a group behind an article or a preposition: "the nightly import", "of rows"."""
    words = [token for token in reading.tokens if token.keys or token.boundary]
    place = next(k for k, token in enumerate(words) if token.start == word.start)
    following = words[place + 1] if place + 1 < len(words) else None
    if word.text.endswith("ing") or (following is not None and (following.content or following.name)):
        return False
    before = [token for token in words[:place] if not token.content][-1:]
    return bool(before) and before[0].text.casefold() in _BEFORE_NOUNS


_BEFORE_NOUNS = frozenset(
    (
        "the a an this that these those its my our your their his her each every any no same "
        "of from in on for with as into at by about under over onto"
    ).split()
)


def _changed(old: list[Token], new: list[Token], passage: Reading, claim: Reading) -> bool:
    """Whether an opposite, another name or another number has come for what was there."""
    for word in new:
        for other in old:
            if _opposites(word.key, other.key) or _other_number(word, other, passage, claim):
                return True
            if word.name and other.name and not _one_name(word.key, other.key):
                return True
    return False


def _difference(words: list[Token], others: list[Token]) -> list[Token]:
    left = Counter(other.key for other in others)
    kept = []
    for word in words:
        if left[word.key]:
            left[word.key] -= 1
        else:
            kept.append(word)
    return kept


def _opposites(one: str, other: str) -> bool:
    if one in (f"un{other}", f"non{other}") or other in (f"un{one}", f"non{one}"):
        return True
    others = sides_of(other)
    return any(a.axis == b.axis and a.side != b.side for a in sides_of(one) for b in others)


def _one_name(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one) or one.startswith(other) or other.startswith(one)


def _other_number(word: Token, other: Token, passage: Reading, claim: Reading) -> bool:
    mine, theirs = _figure(word, claim), _figure(other, passage)
    return mine is not None and theirs is not None and not same(mine, theirs)


def _figure(word: Token, reading: Reading) -> Figure | None:
    return next((figure for figure in reading.figures if figure.start <= word.start < figure.end), None)


def _turned(lost: list[Token], gained: list[Token]) -> bool:
    """Whether a negation went or came, or a doubt or a condition went."""
    if _marks(lost, NEGATORS) != _marks(gained, NEGATORS):
        return True
    return any(_marks(lost, marks) > _marks(gained, marks) for marks in (DOUBTING, _CONDITIONS))


_JOINS = frozenset("and so which but because while".split())
_CONDITIONS = frozenset(("if", "unless"))
_SCALES = tuple(
    frozenset(line.split())
    for line in (
        "all every each both some several few many most any none only half hardly",
        "first second third fourth fifth last next previous",
        "once twice thrice again",
        "again first",
        "now still already yet formerly previously currently recently soon later earlier always never often sometimes",
        "must may should shall can could might will would need needs",
        "today yesterday tomorrow morning evening week month year",
    )
)
"""Little words that place something among others of its kind: one for another changes what is said."""


def _rescaled(lost: list[Token], gained: list[Token]) -> bool:
    for scale in _SCALES:
        old = {word.text.casefold() for word in lost} & scale
        new = {word.text.casefold() for word in gained} & scale
        if old and new and not any(root(b) in synonyms_of(root(a)) for a in old for b in new):
            return True
    return False


def _marks(words: list[Token], marks: frozenset[str]) -> int:
    return sum(
        word.text.casefold().replace("’", "'") in marks or (marks is NEGATORS and word.denying) for word in words
    )


_MARKS = NEGATORS | frozenset(
    """
    after again all any before both could each if many may might more most must off once only should since some still
    under until while will without would yet over because unless always
    """.split()
)
"""Small words that change what is said."""
_OF_TOOLS = frozenset(map(root, "test run suite result command file commit error exit code output".split()))
"""What a claim may call the things that tools deal with."""
MOST_SOURCES = 2
LEAST_ADDED = 2
"""Words that a second sentence must account for: a single one may have been put in the place of another. Tools print a
name here and a number there, so one of these is enough."""


def telling(claim: Reading) -> list[Token]:
    """The words, names, numbers and small words of a claim that must be accounted for."""
    return [token for token in claim.tokens if _must_be_told(token, claim)]


def unaccounted(claim: Reading, left: list[Token], segments: Sequence[Segment], evidence: Evidence) -> list[str]:
    """The words of a claim, of those given, that the best one or two segments don't account for."""
    chosen: list[Segment] = []
    for _ in range(MOST_SOURCES):
        beside = [s for s in segments if not chosen or (s is not chosen[0] and _together(s, chosen[0], evidence))]
        rated = [(_left(left, claim, segment, evidence), segment) for segment in beside]
        if not rated:
            break
        rest, best = min(rated, key=lambda entry: len(entry[0]))
        added = [token for token in left if token not in rest]
        if chosen and len(added) < (LEAST_ADDED if best.role not in _OF_CALLS or _only_words(added) else 1):
            break
        left = rest
        chosen.append(best)
        if not left:
            break
    if not chosen:
        return ["everything"] if claim.content else []
    if not left and _unlike(claim, chosen):
        return ["status"]
    return [token.text for token in left]


def _must_be_told(token: Token, claim: Reading) -> bool:
    if token.text.casefold() == "all" and claim.text[token.start + 4 : token.start + 5].isdigit():
        # Whether a number is all there is, is judged with the numbers.
        return False
    return bool(token.keys) and (
        token.name or token.content or token.key[:1].isdigit() or token.text.casefold() in _MARKS
    )


def _only_words(tokens: Sequence[Token]) -> bool:
    return all(token.content for token in tokens)


def _together(one: Segment, other: Segment, evidence: Evidence) -> bool:
    """Whether two segments are parts of one message, or of a call and its results."""
    return one.number == other.number or (
        one.role in _OF_CALLS and other.role in _OF_CALLS and one.number in evidence.groups((other.number,))
    )


_OF_CALLS = ("call", "tool")


def _left(tokens: Sequence[Token], claim: Reading, segment: Segment, evidence: Evidence) -> list[Token]:
    """The words that a segment doesn't account for."""
    source = read(segment.text)
    known = {key for token in source.tokens for key in token.keys}
    given = _OF_TOOLS | evidence.called(segment.number) if segment.role in _OF_CALLS else frozenset()
    text = fold(segment.text)
    denies = any(token.negated or token.text.casefold() in NEGATORS for token in source.tokens)
    return [
        token
        for token in tokens
        if not (
            token.key in given
            or (denies and token.text.casefold() in NEGATORS)
            or _told(token, claim, source, known, text)
        )
    ]


def _told(token: Token, claim: Reading, source: Reading, known: set[str], text: str) -> bool:
    if token.name:
        return holds_name(token.text, (text,)) or token.key in known
    figure = next((f for f in free_figures(claim) if f.start <= token.start < f.end), None)
    if figure is not None:
        return any_same(figure, source.figures)
    return all(key in known or not known.isdisjoint(synonyms_of(key) | in_other_script(key)) for key in token.keys)


def _unlike(claim: Reading, segments: Sequence[Segment]) -> bool:
    """Whether a claim tells as a fact what its sources doubt or plan, or as a plan what they don't."""
    readings = [(segment.role, read(segment.text).statuses) for segment in segments]
    if ClaimStatus.DOUBTED not in claim.statuses and any(ClaimStatus.DOUBTED in statuses for _, statuses in readings):
        return True
    if ClaimStatus.PLANNED in claim.statuses:
        return not any(role == "user" or ClaimStatus.PLANNED in statuses for role, statuses in readings)
    if ClaimStatus.DONE in claim.statuses:
        return not any(role in ("tool", "call") or ClaimStatus.DONE in statuses for role, statuses in readings)
    return False
