"""What a user's message brings along from somebody else, told by what introduces it and by how it is built.

A sentence introduces a text when it says that somebody wrote it or that it came from somewhere, or asks to work on it
without naming another place where it stands. What follows is foreign up to a question, to a request about it, or to
where its form ends: a letter with its signature, a chat or a log with its last such line.
"""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex
from leporello.ledger.introducing_words import (
    BARE,
    DEICTIC,
    FORWARD,
    GOT,
    GREETING,
    MAIL_HEAD,
    OURS,
    OWN_TITLE,
    POINTED,
    REPLY,
    SAID,
    SPOKEN_BY_US,
    TEXT,
    WORK,
    WORK_LAST,
)

SHORTEST = 16
FENCED = "\0"
"""Stands where a block of code or another's text was: what a line announced is over."""
_END = lazy_regex(r"(?<=[.!?:;…])\s+|(?<=[.!?:;…][\"”»])\s+|(?<=[。！？：])|(?<=的)，")
_ELSEWHERE = lazy_regex(
    r"\w/\w|/\w+/|\w\.(?:md|txt|pdf|docx?|py|html|csv|json|ya?ml)\b|\b(?:when|once|wenn|sobald|quand|cuando|quando|когда)\b"
)
"""The text stands in another place, or it comes later."""
_SPEAKER = lazy_regex(
    r"(?:[-*•–—][ ])?(?:\[?[\d./-]{0,10},?[ ]?\d{1,2}:\d\d(?::\d\d)?\]?[ ])?"
    r"(?P<who>[^\W\d][\w.'-]{0,20}(?:[ ][\w.'-]{1,20})?)[ ]?(?:[:：]|[ ][-–—]|>)[ ]?\S"
)
_LOGGED = lazy_regex(
    r"\[?(?:\d{4}[-/.]\d\d[-/.]\d\d|\d{1,2}:\d\d(?::\d\d)?\b)|\[?[A-ZÀ-Ý]{4,9}[\]: ]|[^\W\d]{2,12}[ ]\d{1,2}:\d\d$"
    r"|\[?(?:警告|信息|错误|情報|エラー|경고)[\] :：]"
)
_SETTING = lazy_regex(r"[ \t]{0,12}(?:-[ ])?[\w. -]{1,40}[:=](?:[ ]\S|$)|[ \t]{0,12}#|[ \t]{2,12}\S")
_QUOTES = lazy_regex(r"[>\"“„«「『]|§|(?:art|artikel|artículo|artigo|第)[ .]{0,2}\d", re.IGNORECASE)
_BULLET = lazy_regex(r"[-*•][ ]|\d{1,2}[.)][ ]")
_MOST_HEADING, _MOST_SIGNED, _MOST_LINES_SIGNED, _LEAST_SPOKEN, _POINTS_EARLY = 60, 45, 3, 3, 20


def without_introduced(text: str) -> str:
    """The text without what it introduces as another's."""
    if len(text) < SHORTEST:
        return text
    lines = text.split("\n")
    foreign = _chats(lines)
    shown: list[str] = []
    for place, line in enumerate(lines):
        if place in foreign:
            shown.append(FENCED)
            continue
        body = _introduced_below(lines, place, foreign)
        if body:
            foreign.update(body)
            shown.append(line)
        else:
            shown.extend(_own_sentences(line))
    return "\n".join(shown)


def _own_sentences(line: str) -> list[str]:
    """A line without the text that it introduces itself; each of its own sentences on a line then."""
    pieces = _END.split(line)
    for place, piece in enumerate(pieces[:-1]):
        if not _introduces_beside(piece, pieces[place + 1 :]):
            continue
        last = max((k for k, said in enumerate(pieces) if said.rstrip('"”»').endswith(("?", "？"))), default=-1)
        behind = pieces[last:] if last > place + 1 else []
        return [*pieces[: place + 1], FENCED, "", *behind]
    return [line]


def _introduces_beside(sentence: str, behind: list[str]) -> bool:
    """Whether a sentence introduces what stands behind it on its line."""
    bare = sentence.strip()
    if OWN_TITLE.search(bare) or _ELSEWHERE.search(bare):
        return False
    says, works, names = _says(bare), _works(bare), TEXT.search(bare) is not None
    if bare.endswith((":", "：")):
        return says or works or (names and DEICTIC.search(bare) is not None)
    if bare.endswith(("?", "？")) and names and POINTED.search(bare):
        return True
    if says or (names and works and DEICTIC.search(bare)) or (names and FORWARD.search(bare) and not OURS.search(bare)):
        return True
    if WORK.fullmatch(bare.rstrip(" .!。！")):
        return True
    # A question about it shows that it is not what the user says.
    asked = next(filter(None, map(str.strip, reversed(behind))), "").endswith(("?", "？"))
    return (
        asked
        and len(behind) > 1
        and names
        and (GOT.search(bare) or SAID.search(bare) or DEICTIC.search(bare)) is not None
    )


def _says(bare: str) -> bool:
    """Whether a sentence tells that somebody wrote, or that something arrived, and not what."""
    said = SAID.search(bare)
    ends = bare.endswith((":", "："))
    if said and not SPOKEN_BY_US.search(bare[: said.start()]):
        rest = bare[said.end() :].strip(" .:：!?？。，")
        return not rest or POINTED.search(rest) is not None or (len(rest) <= _MOST_SIGNED and ends)
    return GOT.search(bare) is not None and (POINTED.search(bare) is not None or ends)


def _works(bare: str) -> bool:
    return WORK.match(bare) is not None or WORK_LAST.search(bare) is not None


def _introduced_below(lines: list[str], place: int, foreign: set[int]) -> list[int]:
    """The places of the text that a line introduces below it."""
    bare = lines[place].strip()
    if not bare or place + 1 >= len(lines) or bare[0] in (">", FENCED) or lines[place][:1] in " \t":
        return []
    parts = _parts_below(lines, place)
    if parts and all(MAIL_HEAD.match(lines[k].strip()) for k in parts[0][:2]):
        return []
    if not parts or not _introduces_below(bare, lines, parts):
        return []
    formed = [index for index, part in enumerate(parts) if _is_formed([lines[k] for k in part])]
    if formed and formed[0] > 0 and not _is_titled(lines, parts[0]):
        # What has a form of its own is what was brought; between stands what the user says of it.
        parts = parts[formed[0] :]
    if any(lines[k].strip() == FENCED for k in parts[0]):
        return []
    body: list[int] = []
    first = lines[parts[0][0]].strip()
    shaped = _is_formed([lines[k] for k in parts[0]]) and not _begins_letter(first)
    for index, part in enumerate(parts):
        said = [lines[k].strip() for k in part]
        if _returns(said) and not (shaped and index == 0 and len(said) > 1):
            return body + _until_question(lines, part) if body or len(said) > 1 else body
        if index and (_is_signed(lines, parts[index - 1], index) or (shaped and not _is_formed(said))):
            return body
        body.extend(part)
        if index == 0 and not shaped and place + 1 == part[0]:
            return body
    return body


def _until_question(lines: list[str], part: list[int]) -> list[int]:
    """The lines of a paragraph before the question that ends it."""
    asks = next((k for k, place in enumerate(part) if _returns([lines[place].strip()])), len(part))
    return part[:asks]


def _introduces_below(bare: str, lines: list[str], parts: list[list[int]]) -> bool:
    """Whether a line introduces the paragraphs below it."""
    if OWN_TITLE.search(bare):
        return False
    pieces = [piece.strip() for piece in _END.split(bare) if piece.strip()]
    last = pieces[-1]
    if _ELSEWHERE.search(last):
        return False
    said = [lines[k].strip() for k in parts[0]]
    asked = any(_returns([lines[k].strip()]) for part in parts for k in part[part is parts[0] :])
    if any(_points(piece, sure=asked or _is_formed(said)) for piece in pieces):
        return True
    if _says(last) or (_works(last) and (TEXT.search(last) or POINTED.search(last) or _is_bare(last))):
        return True
    if GOT.search(last) and _begins_letter(said[0]):
        return True
    heading = len(bare) <= _MOST_HEADING and len(pieces) == 1 and bare[-1] not in ".!?。！？" and TEXT.search(bare)
    if not heading or _is_formed(said):
        return bool(heading)
    return asked and not OURS.search(bare)


def _points(sentence: str, *, sure: bool) -> bool:
    """Whether it points at a text, or at what somebody wrote; `sure` if that is seen below too."""
    points = DEICTIC.search(sentence)
    if not points or not TEXT.search(sentence):
        return points is not None and _says(sentence)
    if _says(sentence) or WORK.search(sentence[points.end() :]) or _works(sentence):
        return True
    return not OURS.search(sentence) and (
        (sure and points.start() < _POINTS_EARLY) or sentence[-1] in ":：" or FORWARD.search(sentence) is not None
    )


def _is_bare(sentence: str) -> bool:
    """Whether it asks for work and names nothing to work on: it must stand below."""
    work = WORK.match(sentence)
    return work is not None and BARE.fullmatch(sentence[work.end() :].rstrip(" .:!?。！：")) is not None


def _parts_below(lines: list[str], place: int) -> list[list[int]]:
    """The paragraphs below a line, as places of lines."""
    parts: list[list[int]] = [[]]
    for k in range(place + 1, len(lines)):
        if lines[k].strip():
            parts[-1].append(k)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _returns(said: list[str]) -> bool:
    """Whether the user speaks again: a question, or a request about what stands above."""
    return said[-1].endswith(("?", "？")) or REPLY.match(said[0]) is not None or (len(said) == 1 and _works(said[0]))


def _is_formed(said: list[str]) -> bool:
    """Whether lines have a form in which nobody speaks to an assistant: chat, log, settings, quotation, letter."""
    if _QUOTES.match(said[0].strip()) or _begins_letter(said[0].strip()):
        return True
    for form in (_SPEAKER, _LOGGED, _SETTING):
        if len(said) > 1 and 2 * sum(form.match(line) is not None for line in said) > len(said):
            return True
    return False


def _is_titled(lines: list[str], part: list[int]) -> bool:
    return (
        len(part) == 1 and len(lines[part[0]]) <= _MOST_HEADING and lines[part[0]].rstrip()[-1:] not in ".,;:!?。！？："
    )


def _begins_letter(line: str) -> bool:
    return GREETING.match(line) is not None


def _is_signed(lines: list[str], part: list[int], index: int) -> bool:
    """Whether a paragraph ends a letter: a few short lines without a sentence."""
    said = [lines[k].strip() for k in part]
    return (
        index > 1
        and len(said) <= _MOST_LINES_SIGNED
        and all(len(line) <= _MOST_SIGNED and line[-1] not in ".!?。！？:：" for line in said)
    )


def _chats(lines: list[str]) -> set[int]:
    """The places of lines of a chat: somebody speaks in several of them."""
    spoken = {place: said["who"] for place, line in enumerate(lines) if (said := _SPEAKER.match(line.strip()))}
    names = list(spoken.values())
    again = {name for name in names if names.count(name) > 1 and not OWN_TITLE.search(name)}
    if len(spoken) < _LEAST_SPOKEN or not again or len(set(names)) < 2:
        return set()
    return {place for place in spoken if {place - 1, place + 1} & spoken.keys()}
