"""The tokeniser remembers what it has seen and takes short ways; the plain way gives the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from leporello.text_features import words as quick
from leporello.text_features.words import SHORT_HASH, index_words, stem

_NAMES = st.from_regex(r"[a-zA-Z]{1,8}([_-]?[A-Z]?[a-z0-9]{1,6}){0,4}", fullmatch=True)
_NUMBERS = st.from_regex(r"v?[0-9]{1,6}(\.[0-9]{1,3}){0,3}[a-z%]{0,3}|[0-9]{1,3}(,[0-9]{3}){1,2}", fullmatch=True)
_HASHES = st.from_regex(r"[0-9a-f]{5,60}", fullmatch=True)
_MOMENTS = st.from_regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?[Zz]?", fullmatch=True
)
_LONG = st.sampled_from(["a" * 49, "x" * 97, "aB3" * 17, "f" * 129, "0" * 60, "Q7" * 30])
_PIECES = st.one_of(_NAMES, _NUMBERS, _HASHES, _MOMENTS, _LONG)
_JOINTS = st.sampled_from(
    ["/", ":", "::", ".", "_", "-", "--", "@", "\\", "\\n", "\\t", ",", "'", "'s", " ", ":\\", "//", ""]
)


@st.composite
def compounds(draw: st.DrawFn) -> str:
    """Paths, places, flags and other texts of several pieces."""
    pieces = draw(st.lists(st.tuples(_JOINTS, _PIECES), min_size=1, max_size=7))
    return "".join(joint + piece for joint, piece in pieces) + draw(_JOINTS)


@given(compounds(), compounds())
def test_the_quick_way_gives_the_words_of_the_plain_way(text: str, other: str) -> None:
    """Whether a text is seen for the first time or not, and whatever was seen before."""
    expected = plain_words(text)
    assert index_words(text) == expected
    index_words(other)
    assert index_words(text) == expected


@given(st.text(st.characters(codec="ascii"), max_size=200))
def test_on_any_ascii_text_too(text: str) -> None:
    assert index_words(text) == plain_words(text)


def plain_words(text: str) -> list[str]:
    """Every run taken apart from the beginning, as the description of the tokeniser says."""
    found: list[str] = []
    for run in quick._RUN.findall(quick._plain(text)):
        if run.isdigit():
            found.append(run)
            continue
        for raw in [run] if run.isalnum() else quick._COMPOUND.findall(run):
            found.extend(dict.fromkeys(_of_raw(raw)))
    return found


def _of_raw(raw: str) -> Iterator[str]:
    if raw[0] == "\\":
        return
    if raw[0] == "-":
        body = raw.lstrip("-")
        yield "_" + "_".join(_parts(body))
        yield from _of_compound(body)
    elif "," in raw:
        yield raw.replace(",", "")
    elif moment := quick._MOMENT.match(raw):
        yield "_".join(moment.groups()[:3])
        yield "_".join(moment.groups()[3:])
        yield "_".join(moment.groups()[3:5])
    elif "'" in raw:
        word, _, ending = raw.rpartition("'")
        yield from _of_compound(word + ending if ending == "t" else word)
    else:
        yield from _of_compound(raw)


def _of_compound(text: str) -> Iterator[str]:
    parts = _parts(text)
    if len(parts) > 1:
        yield from _pieces(text, 0)
    for part in [part for part in parts if len(part) > 1 or len(parts) == 1] or parts:
        yield from _of_part(part)


def _pieces(text: str, level: int) -> Iterator[str]:
    whole = "_".join(_parts(text))
    if len(whole) <= quick._LONGEST_WHOLE:
        yield whole
    for finer in range(level, len(quick._LEVELS)):
        pieces = [piece for piece in quick._LEVELS[finer].split(text) if piece]
        if len(pieces) < 2:
            continue
        if finer == 0 and pieces[-1].isdigit():
            yield "_".join([*_parts(pieces[-2]), pieces[-1]])
        for piece in pieces:
            if len(_parts(piece)) > 1:
                yield from _pieces(piece, finer + 1)
        return


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    for element in quick._LEVELS[0].split(text):
        if quick._NUMBER.match(element):
            parts.append(re.sub("[^a-z0-9]+", "_", element.lower()).strip("_"))
            continue
        for dotted in quick._LEVELS[1].split(element):
            for word in quick._LEVELS[2].split(dotted):
                parts.extend(_cases(word.replace(".", "_")))
    return parts


def _cases(word: str) -> list[str]:
    lowered = word.lower()
    if not word or (len(word) > quick._LONGEST_PART and not quick._HEX.match(word)):
        return []
    if word == lowered or word.isupper() or quick._HEX.match(lowered):
        return [lowered]
    return [] if quick._is_noise(word) else [part.lower() for part in quick._CASES.findall(word)]


def _of_part(part: str) -> list[str]:
    if number := quick._NUMBER.match(part.replace("_", ".")):
        value = number.group(1).replace(".", "_")
        return [value + number.group(2).rstrip("%"), value]
    if quick._HEX.match(part):
        return [part, part[:SHORT_HASH]]
    numbered = quick._NUMBERED.match(part)
    return [stem(part), stem(numbered.group(1))] if numbered else [stem(part)]
