"""Keeps secrets out of derived text: summaries, indexes, logs.

    redact('DB_PASSWORD=hunter2 make deploy')   ->   'DB_PASSWORD=[REDACTED] make deploy'

Five rules read a text: the vendors' key formats, the shapes of addresses, headers, commands and key files, names with
values in any syntax, columns of tables, and sentences. Each reads it a second time without its escapes. Ordinary code
that only *mentions* a password is left alone. Live tool arguments and results are never passed through here.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.redact.assignments import assignment_spans
from leporello.redact.columns import column_spans
from leporello.redact.given import answer_spans, printed_spans, shown_spans
from leporello.redact.names import HINTS
from leporello.redact.prefilter import may_hold_secret, words_in
from leporello.redact.prose import spoken_spans
from leporello.redact.shapes import shape_spans
from leporello.redact.spans import PLACEHOLDER, SecretSpan, lowered_of, merge, places_of
from leporello.redact.values import is_opaque, is_plain_word
from leporello.redact.vendors import vendor_spans
from leporello.redact.views import View, argument_lists, strung, tables, undecorated, unescaped

__all__ = [
    "PLACEHOLDER",
    "Redaction",
    "SecretSpan",
    "redact",
    "redact_answer",
    "redact_counted",
    "redact_printed",
    "redact_spans",
]

_LINE = lazy_regex(r"[A-Za-z0-9+/=_-]{20,}+(?=[\"'`,;]{0,3}[ \t]{0,8}\r?(?:\n|$))")
_RUN = lazy_regex(r"[A-Za-z0-9+/=_-]++")
_LEAST_LONG = 32
_NEXT_LINE = lazy_regex(r"\r?\n[ \t>|]{0,40}(?P<more>[A-Za-z0-9+/=_-]{4,}+)(?=[\"'`,;]{0,3}[ \t]{0,8}\r?(?:\n|$))")
_DEEPEST = 3
"""JSON within JSON within JSON."""


class Redaction(Struct, frozen=True):
    text: str
    count: int


def redact(text: str) -> str:
    """The text with every secret replaced by `[REDACTED]`. Doing it twice changes nothing more."""
    return redact_counted(text).text


def redact_answer(text: str) -> str:
    """The text without secrets, and without what answers a question for one."""
    return redact(_replace(text, merge(text, answer_spans(text))))


def redact_printed(text: str) -> str:
    """The text without secrets, and without what a command printed that reads one."""
    return redact(_replace(text, merge(text, printed_spans(text))))


_LEAST_KNOWN = 64
_MOST_KNOWN = 32_768
_clean: set[bytes] = set()
"""Digests of texts without a secret: a message is read when it comes, when it is indexed, and whenever it is found."""


def redact_counted(text: str) -> Redaction:
    asked = text
    digest = _digest(text) if len(text) >= _LEAST_KNOWN else b""
    if digest in _clean:
        return Redaction(text, 0)
    count = 0
    # Taking one secret out can bring the words around it into a pattern of their own, so look again until nothing is
    # found. Each round turns text into placeholders for good, so this ends; a text without secrets is read once.
    while spans := redact_spans(text):
        count += len(spans)
        text = _replace(text, spans)
    if len(text) >= _LEAST_KNOWN:
        if len(_clean) >= _MOST_KNOWN:
            _clean.clear()
        _clean.add(digest if text is asked else _digest(text))
    return Redaction(text, count)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def redact_spans(text: str) -> list[SecretSpan]:
    """Where the secrets are: in order, not overlapping, placeholders excluded."""
    if not may_hold_secret(text):
        return []
    return merge(text, _whole(text, sorted(_found(text, 0, {}), key=lambda span: (span.start, -span.end))))


def _whole(text: str, spans: list[SecretSpan]) -> Iterator[SecretSpan]:
    """Each secret up to its very end; one that stands inside another is not followed again."""
    end = 0
    for span in spans:
        if span.end >= end:
            end = _wrapped_end(text, span)
            yield SecretSpan(span.start, end, span.kind)


_Harmless = dict[tuple[str, bool], int]
"""Texts in which nothing was found, as decorated or not, and how deep that was: several ways lead to the same view."""


def _found(text: str, depth: int, harmless: _Harmless, *, decorated: bool = True) -> Iterator[SecretSpan]:
    lowered = lowered_of(text)
    words = words_in(lowered)
    yield from vendor_spans(text, words)
    if words and decorated and depth < _DEEPEST:
        for view in undecorated(text):
            yield from _in_view(view, depth + 1, harmless, decorated=False)
            if view.is_only_reading:
                rest = _found(text[view.end :], depth, harmless) if view.end < len(text) else ()
                yield from (SecretSpan(span.start + view.end, span.end + view.end, span.kind) for span in rest)
                return
    if words:
        hints = places_of(words & HINTS, lowered)
        yield from shape_spans(text, lowered, words)
        yield from assignment_spans(text, hints)
        yield from column_spans(text, hints)
        yield from spoken_spans(text, lowered, words)
        if "\n" in text:
            yield from shown_spans(text)
        if depth == 0:
            for view in strung(text):
                yield from _in_view(view, 1, harmless, decorated=True)
    if depth < _DEEPEST:
        for view in (*argument_lists(text), *tables(text, lowered), *unescaped(text, words)):
            yield from _in_view(view, depth + 1, harmless, decorated=decorated)


def _in_view(view: View, depth: int, harmless: _Harmless, *, decorated: bool) -> list[SecretSpan]:
    known = harmless.get((view.text, decorated))
    # Deeper down less is read, but for decorations at the deepest: there they are no longer taken away.
    if known is not None and (known <= depth < _DEEPEST or known == depth or (known < depth and not decorated)):
        return []
    found = _found(view.text, depth, harmless, decorated=decorated)
    spans = [view.origin(span) for span in islice(found, 1 if view.is_code else None)]
    if not spans:
        harmless[view.text, decorated] = depth
    return spans


def _wrapped_end(text: str, span: SecretSpan) -> int:
    """Where a long key ends that goes on behind what a rule looked at, or over the next lines."""
    end = span.end
    if end - span.start >= _LEAST_LONG and _RUN.match(text, end - 1):
        end = _RUN.match(text, end - 1).end()  # type: ignore[union-attr]  # it was asked just before
    line = _LINE.match(text, span.start)
    if line is None or line.end() != end:
        return end
    while following := _NEXT_LINE.match(text, end):
        if is_plain_word(following["more"]):
            break
        # Lines of one length are of one key, whatever a single one looks like.
        if len(following["more"]) != len(line[0]) and not is_opaque(following["more"].rjust(16, "0")):
            break
        end = following.end("more")
    return end


def _replace(text: str, spans: list[SecretSpan]) -> str:
    pieces = []
    position = 0
    for span in spans:
        pieces += [text[position : span.start], PLACEHOLDER]
        position = span.end
    pieces.append(text[position:])
    return "".join(pieces)
