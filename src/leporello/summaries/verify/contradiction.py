"""Does a passage say the contrary of a claim? Opposites, negation, what has happened yet, and who does what to whom.

Each test looks at passages that speak of the same thing as the claim. A passage that agrees clears the claim; only
when all that bears on it disagrees, the claim is contradicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leporello.summaries.verify.lexicon import ClaimStatus, synonyms_of
from leporello.summaries.verify.reading import Facet, Reading, Token, is_hash

NEAR = 7
"""How many words apart two words may stand and still belong together."""
ANCHORS = 3


@dataclass(frozen=True, slots=True)
class Passage:
    """A segment that speaks of the same thing as a claim; `share` is how much of the claim it covers."""

    share: float
    role: str
    reading: Reading


TakingSides = Callable[[int], Sequence[Reading]]
"""For an axis of opposites: all that gives one of its answers."""


def contradicted(claim: Reading, passages: Sequence[Passage]) -> str:
    """Why the passages contradict the claim; empty when they don't."""
    checks: tuple[tuple[str, Callable[[Reading, Sequence[Passage]], bool]], ...] = (
        ("negation", _negation),
        ("absence", _absence),
        ("roles", _exchanged),
        ("status", at_odds),
    )
    for name, check in checks:
        if check(claim, passages):
            return name
    return ""


# --- opposites -------------------------------------------------------------------------------------------------------


def opposed(claim: Reading, taking_sides: TakingSides) -> bool:
    """Whether a claim gives another answer to a question than what stands nearest to the same words."""
    for facet in claim.facets:
        anchors = _anchors(claim, facet.position)
        agree, differ = NEAR * 10, NEAR * 10
        for reading in taking_sides(facet.side.axis):
            for other in reading.facets:
                if other.side.axis != facet.side.axis:
                    continue
                distance = _distance(reading, other.position, anchors)
                if _agree(facet, other):
                    agree = min(agree, distance)
                else:
                    differ = min(differ, distance)
        if differ <= NEAR and differ < agree:
            return True
    return False


def _agree(one: Facet, other: Facet) -> bool:
    if one.side.sides == 2:
        return _answer(one) == _answer(other)
    if one.side.side == other.side.side:
        return one.negated == other.negated
    return one.negated != other.negated


def _answer(facet: Facet) -> int:
    return 1 - facet.side.side if facet.negated else facet.side.side


def _anchors(reading: Reading, position: int) -> frozenset[str]:
    """The keys of the nearest words that say what a word is about."""
    found: list[str] = []
    own = set(reading.tokens[position].keys)
    start = max((k + 1 for k in range(position) if reading.tokens[k].boundary), default=0)
    end = next((k for k in range(position, len(reading.tokens)) if reading.tokens[k].boundary), len(reading.tokens))
    clause = [place for place in range(start, end) if place != position and _says(reading.tokens[place])]
    places = range(start, end) if clause else range(len(reading.tokens))
    for place in sorted(places, key=lambda place: abs(place - position)):
        token = reading.tokens[place]
        if place == position or not _says(token) or own & set(token.keys):
            continue
        found.append(token.key)
        if len(found) == ANCHORS:
            break
    return frozenset(found)


def _says(token: Token) -> bool:
    return token.content or token.name or (bool(token.keys) and token.key[:1].isdigit())


def _distance(reading: Reading, position: int, anchors: frozenset[str]) -> int:
    """How near a word stands to one of the anchors; far away when none is there."""
    best = NEAR * 10
    for place, token in enumerate(reading.tokens):
        if place != position and any(key in anchors or anchors & synonyms_of(key) for key in token.keys[:1]):
            best = min(best, abs(place - position))
    return best


# --- negation --------------------------------------------------------------------------------------------------------


def _negation(claim: Reading, passages: Sequence[Passage]) -> bool:
    for token in claim.tokens:
        if not (token.content or token.name) or not token.keys:
            continue
        agree = differ = False
        for passage in passages:
            for other in passage.reading.tokens:
                if not _same_word(token, other):
                    continue
                if other.negated == token.negated:
                    agree = True
                else:
                    differ = True
        if differ and not agree:
            return True
    return False


def _absence(claim: Reading, passages: Sequence[Passage]) -> bool:
    """Whether a claim denies something that no passage denies: that something is not so needs a source as well."""
    if not any(token.negated for token in claim.tokens):
        return False
    return not any(_denies(passage.reading) for passage in passages)


def _denies(reading: Reading) -> bool:
    if any(token.negated for token in reading.tokens):
        return True
    return any(facet.side.sides == 2 and facet.side.side == 1 for facet in reading.facets)


def _same_word(one: Token, other: Token) -> bool:
    if not (other.content or other.name) or not other.keys:
        return False
    return one.key == other.key or other.key in synonyms_of(one.key)


# --- has it happened? ------------------------------------------------------------------------------------------------


def at_odds(claim: Reading, passages: Sequence[Passage]) -> bool:
    """Whether a claim calls done what is only planned everywhere, or still to come what is done, or a guess a fact."""
    claimed = claim.statuses
    if ClaimStatus.AHEAD in claimed and all(passage.role in ("call", "tool") for passage in passages):
        return True
    told = [_told(passage) for passage in passages]
    if not told or any(status is None for status in told):
        return False
    if ClaimStatus.DOUBTED not in claimed and all(status is ClaimStatus.DOUBTED for status in told):
        return True
    if ClaimStatus.PLANNED in claimed:
        return all(status is ClaimStatus.DONE for status in told)
    if ClaimStatus.DONE in claimed:
        return all(status is ClaimStatus.PLANNED for status in told)
    return False


def _told(passage: Passage) -> ClaimStatus | None:
    statuses = passage.reading.statuses
    if passage.role == "call":
        return None
    if ClaimStatus.DOUBTED in statuses:
        return ClaimStatus.DOUBTED
    if ClaimStatus.PLANNED in statuses:
        return ClaimStatus.PLANNED
    if ClaimStatus.DONE in statuses:
        return ClaimStatus.DONE
    return ClaimStatus.PLANNED if passage.role == "user" and _is_request(passage.reading) else None


def _is_request(reading: Reading) -> bool:
    """A sentence of the user that begins with a bare verb."""
    first = next((token for token in reading.tokens if token.keys), None)
    return first is not None and first.content and first.text[:1].isupper() and not first.text.endswith("s")


# --- something else in its place -------------------------------------------------------------------------------------

ALIKE = 0.66
LEAST_SHARED = 3


def substituted(claim: Reading, passages: Sequence[Passage]) -> bool:
    """Whether the claim says of one thing what passages in the same words say of another one of its kind."""
    for kind, mine in _things(claim).items():
        for thing in mine:
            rest = _telling(claim) - {thing}
            alike = [
                p
                for p in passages
                if _shared(rest, p.reading) >= max(min(LEAST_SHARED, len(rest) - 1), 1, ALIKE * len(rest))
            ]
            told = [_things(passage.reading).get(kind, frozenset()) for passage in alike]
            if not told or not all(told):
                continue
            if any(_one_thing(thing, other) for others in told for other in others):
                continue
            if any(not any(_one_thing(other, known) for known in mine) for others in told for other in others):
                return True
    return False


def _telling(reading: Reading) -> set[str]:
    """Words, names and numbers."""
    return {token.key for token in reading.tokens if token.content or token.name or token.key[:1].isdigit()}


def _shared(words: set[str], reading: Reading) -> int:
    known = _telling(reading)
    return sum(word in known or bool(synonyms_of(word) & known) for word in words)


def _things(reading: Reading) -> dict[str, frozenset[str]]:
    """The names of a sentence by kind."""
    things: dict[str, set[str]] = {}
    for token in reading.names:
        things.setdefault(_kind(token.key), set()).add(token.key)
    return {kind: frozenset(names) for kind, names in things.items()}


def _kind(name: str) -> str:
    if "/" in name:
        return "path"
    if name.startswith("-"):
        return "flag"
    if is_hash(name):
        return "hash"
    return "symbol" if name[:1].isalpha() or name[:1] == "_" else "other"


def _one_thing(one: str, other: str) -> bool:
    return one == other or one.endswith(other) or other.endswith(one) or one.startswith(other) or other.startswith(one)


# --- who does what to whom -------------------------------------------------------------------------------------------

_MARKERS = frozenset(
    "from to into onto before after than by instead over with on in under as for of not via until because".split()
)


def _exchanged(claim: Reading, passages: Sequence[Passage]) -> bool:
    """Whether two things of the claim have changed places: from A to B, told as from B to A."""
    mine = _roles(claim)
    for passage in passages:
        theirs = _roles(passage.reading)
        known = passage.reading.keys
        for marker, things in mine.items():
            others = theirs.get(marker)
            if not others or things & others:
                continue
            if things <= known and others <= claim.keys:
                return not any(things & _roles(other.reading).get(marker, frozenset()) for other in passages)
    return False


def _roles(reading: Reading) -> dict[str, frozenset[str]]:
    """For each small word that gives a role: the thing behind it."""
    roles: dict[str, set[str]] = {}
    waiting = ""
    for token in reading.tokens:
        lowered = token.text.casefold()
        if token.boundary:
            waiting = ""
        elif lowered in _MARKERS:
            waiting = lowered
        elif waiting and (token.content or token.name) and token.key:
            roles.setdefault(waiting, set()).add(token.key)
            waiting = ""
    return {marker: frozenset(things) for marker, things in roles.items()}
