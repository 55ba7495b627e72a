"""What a test may ask of a compacted list: does it hold a text, who spoke last, what did it cut, what did it lift.

Each function looks at messages only, so the same questions can be put to any engine's result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from leporello.compaction.assemble import STUB
from leporello.compaction.prune import OMITTED_KEY
from leporello.compaction.view import is_opening, join_neighbours, number_messages
from leporello.ledger.units import CUT_MARK
from leporello.messages import Message, calls_of, encode_json, is_result, parse_json, role_of, text_of
from leporello.summaries.fold import ViewFold, read_fold
from leporello.turns import iter_groups, open_group

_SPACES = re.compile(r"\s+")
_POINTER = re.compile(r"\[(?>[^\n]*?(?:kept as m\d|same output as m\d|output cleared))[^\n]*\]\Z")


def plain(text: str) -> str:
    """Case and white space folded; a lone surrogate, which no output can carry, is a question mark."""
    return _SPACES.sub(" ", text.encode("utf-8", "replace").decode("utf-8")).strip().casefold()


def context_text(messages: Sequence[Message]) -> str:
    """Everything readable in a list, folded; JSON string escapes in tool results and arguments are decoded."""
    return plain("\n".join(piece for message in messages for piece in _readable(message)))


def _readable(message: Message) -> Iterator[str]:
    text = text_of(message)
    yield text
    if is_result(message):
        yield from _strings(text)
    for call in calls_of(message):
        yield call.name
        yield from _strings(call.arguments)


def _strings(text: str) -> Iterator[str]:
    """The strings inside a JSON text, or the text itself."""
    value = parse_json(text)
    stack = [value]
    found = False
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend([*item.keys(), *item.values()])
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str):
            found = True
            yield item
    if not found:
        yield text


def cut_points(messages: Sequence[Message]) -> list[int]:
    """Indices at which a list may be cut: never between a call and its results."""
    return [group.start for group in iter_groups(messages)] + [len(messages)]


def holds(messages: Sequence[Message], text: str) -> bool:
    """Whether a text occurs in a list."""
    return plain(text) in context_text(messages)


def fold_in(messages: Sequence[Message]) -> tuple[int, ViewFold] | None:
    """The fold of a list and where it stands."""
    for index, message in enumerate(messages):
        fold = read_fold(message)
        if fold is not None:
            return index, fold
    return None


def newest_user(messages: Sequence[Message]) -> int | None:
    """Where the newest message of the user stands; folds and our opening line don't count."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if role_of(message) == "user" and read_fold(message) is None and not is_opening(message):
            return index
    return None


def newest_request(messages: Sequence[Message]) -> bytes | None:
    """The newest user message as bytes."""
    index = newest_user(messages)
    return None if index is None else encode_json(messages[index])


def same_newest_request(before: Sequence[Message], after: Sequence[Message]) -> bool:
    """Whether the newest user message is what it was; neighbouring ones may be the one they are sent as."""
    joined = [line.message for line in join_neighbours(number_messages(list(before)))]
    return newest_request(after) in (newest_request(before), newest_request(joined))


def open_tail(messages: Sequence[Message]) -> bytes:
    """The work in progress at the end of a list, as bytes."""
    group = open_group(messages)
    return b"" if group is None else encode_json(list(messages[group.start :]))


def invented_texts(before: Sequence[Message], after: Sequence[Message]) -> list[str]:
    """Texts of the new list that are neither an original's, nor a visible cut of one, nor a pointer or stub.

    Folds are left out: they are summaries and say so. User messages that are neighbours, or became it because what
    stood between them was folded, may be shown as one.
    """
    originals = [*map(text_of, before), *_joined_neighbours(before)]
    known = set(originals)
    users = [text_of(message) for message in before if role_of(message) == "user" and text_of(message)]
    return [
        text
        for text in (text_of(message) for message in after if read_fold(message) is None and not is_opening(message))
        if text not in known
        and text != STUB
        and not _POINTER.fullmatch(text)
        and not any(is_cut_of(text, original) for original in originals)
        and not _is_row_of(text, users)
    ]


def _joined_neighbours(messages: Sequence[Message]) -> Iterator[str]:
    """The texts of all rows of neighbouring user messages, as they are shown as one."""
    for first, message in enumerate(messages):
        if role_of(message) != "user":
            continue
        for last in range(first + 1, len(messages)):
            if role_of(messages[last]) != "user":
                break
            yield text_of(join_neighbours(number_messages(messages[first : last + 1]))[0].message)


def _is_row_of(text: str, users: Sequence[str]) -> bool:
    """Whether a text is some of these, whole and in order, the last one maybe cut."""
    for place, first in enumerate(users):
        for gap in ("\n\n", "\n"):
            if text.startswith(first + gap):
                rest, later = text[len(first + gap) :], users[place + 1 :]
                if any(is_cut_of(rest, other) for other in later) or _is_row_of(rest, later):
                    return True
    return False


def is_cut_of(text: str, original: str) -> bool:
    """Whether a text is made of pieces of the original, in order, with visible cut marks between them."""
    position = 0
    pieces = text.split(CUT_MARK.strip())
    if len(pieces) < 2:
        return text == original
    for piece in pieces:
        found = original.find(piece.strip(), position)
        if found < 0:
            return False
        position = found + len(piece.strip())
    return True


def invented_arguments(before: Sequence[Message], after: Sequence[Message]) -> list[str]:
    """Argument texts of the new list that are not JSON, or hold a value that no original call had.

    What was left out may be named only beside the values, under a key of its own that no tool knows.
    """
    originals = [call.arguments for message in before for call in calls_of(message)]
    values: dict[str, list[object]] = {}
    for parsed in map(_object, originals):
        for key, value in (parsed or {}).items():
            values.setdefault(key, []).append(value)
    written = [call.arguments for message in after for call in calls_of(message)]
    return [text for text in written if not _is_honest(text, set(originals), values)]


def _is_honest(text: str, originals: set[str], values: dict[str, list[object]]) -> bool:
    parsed = _object(text)
    if text in originals:
        return not text.strip() or parsed is not None or parse_json(text) is not None or text.strip() == "null"
    if parsed is None:
        return False
    if set(parsed) == {"invalid_json"}:
        return parsed["invalid_json"] in originals
    return all(key == OMITTED_KEY or value in values.get(key, []) for key, value in parsed.items())


def _object(text: str) -> dict[str, object] | None:
    """A JSON object, lone surrogates included, which faster parsers replace."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
