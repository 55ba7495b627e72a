"""Values below a telling head: in tables of Markdown and terminals, and in CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from leporello.lazy_regex import lazy_regex
from leporello.redact.names import Strength, strength_of
from leporello.redact.spans import SecretSpan
from leporello.redact.values import (
    is_chosen,
    is_file_name,
    is_filler,
    is_label,
    is_one_time_code,
    is_opaque_literal,
    is_reference,
    is_term,
    is_worded,
)

_RULE = lazy_regex(r"[-|+: =]{3,}$")
_LONGEST_HEAD, _LONGEST_ROW, _MOST_ROWS = 400, 4_000, 1_000
_SEPARATORS = "|\t;,"
_ALIGNED = lazy_regex(r"[^ \t]{1,200}+(?:[ ][^ \t]{1,200}+){0,20}")


def column_spans(text: str, hints: Iterable[int]) -> Iterator[SecretSpan]:
    """Values under a telling head. `hints` are the places where one may be."""
    if "\n" not in text:
        return
    done = 0
    for hint in hints:
        if hint < done:
            continue
        start = text.rfind("\n", max(0, hint - _LONGEST_HEAD), hint) + 1
        end = text.find("\n", hint, hint + _LONGEST_HEAD)
        if end < 0:
            done = hint + _LONGEST_HEAD // 2
            continue
        done = end
        head = text[start:end]
        separator = next((sign for sign in (*_SEPARATORS, "  ") if sign in head.strip(" ")), None)
        if separator is None:
            continue
        cells = [cell for cell, _ in _cells(head, separator)]
        names = [strength_of("_".join(cell.split()).strip("*`\"'_")) for cell in cells]
        if any(names) and sum(1 for cell in cells if cell.strip()) > 1:
            yield from _rows(text, end + 1, separator, names)


def is_rule(row: str) -> bool:
    """Whether a row only draws a line."""
    return _RULE.match(row) is not None


def _cells(row: str, separator: str) -> list[tuple[str, int]]:
    """Each cell of a row, and where it begins. Columns may also be set apart by blanks alone."""
    if separator == "  ":
        return [(cell[0], cell.start()) for cell in _ALIGNED.finditer(row)]
    cells = row.split(separator)
    return list(zip(cells, accumulate((len(cell) + 1 for cell in cells), initial=0), strict=False))


def _rows(text: str, start: int, separator: str, names: list[Strength | None]) -> Iterator[SecretSpan]:
    found: list[list[tuple[int, str]]] = [[] for _ in names]
    for _ in range(_MOST_ROWS):
        end = text.find("\n", start, start + _LONGEST_ROW)
        row = text[start : end if end >= 0 else start + _LONGEST_ROW].rstrip("\r")
        cells = _cells(row, separator)
        if not is_rule(row.strip()):
            if len(cells) != len(names):
                break
            for column, (cell, place) in zip(found, cells, strict=True):
                value = cell.strip().strip("\"'`*")
                column.append((start + place + cell.find(value), value))
        if end < 0:
            break
        start = end + 1
    for strength, column in zip(names, found, strict=True):
        yield from _column_secrets(column, strength) if strength is not None else ()


def _column_secrets(column: list[tuple[int, str]], strength: Strength) -> Iterator[SecretSpan]:
    """Where one cell of a column is a password, its other words are too, but for those that say that there is none."""
    secret = [_is_cell_secret(value, strength) for _, value in column]
    all_are = any(secret) and strength is Strength.PASSWORD
    for (place, value), is_one in zip(column, secret, strict=True):
        if is_one or (all_are and _is_cell_word(value)):
            yield SecretSpan(place, place + len(value), "column")


def _is_cell_word(value: str) -> bool:
    plain = value.replace("-", "").replace("_", "")
    return (
        len(value) > 3 and plain.isalnum() and not is_reference(value) and not is_filler(value) and not is_label(value)
    )


def _is_cell_secret(value: str, strength: Strength) -> bool:
    if " " in value or is_term(value) or is_file_name(value):
        return False
    if not any(character.isdigit() for character in value):
        return False
    if strength is Strength.PIN:
        return is_one_time_code(value)
    return is_chosen(value) or is_worded(value) if strength is Strength.PASSWORD else is_opaque_literal(value)
