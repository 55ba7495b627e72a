"""How a model gets back what was folded away: by the recovery tools, or unasked.

    lcm_grep("port of the staging server")     windows around the evidence, with message ids
    lcm_grep(["which port?", "who chose it?"]) several questions at once; they share the budget
    lcm_describe("f3")                         what a fold, a span or a message is about
    lcm_expand("m10-m20", page=2)              the raw messages, page by page
    lcm_status()                               how much there is, and what is folded

They belong to the host and work with every engine. Results are JSON texts within a token budget; what can't be done is
said in `error`, with what would work.

Unasked, what a user's message needs is sent behind it once (`recalled`). It is never stored, and it stands behind
everything that will be sent again, so that no cached prefix changes. It is small, and nothing at all when the search
has found nothing that stands out.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import re2

from leporello.errors import InputError
from leporello.events import Span
from leporello.messages import role_of, text_of
from leporello.recall import paging
from leporello.recall.base import DEFAULT_TOKENS, Archive, Recall, RecallMode, RecallQuery, Window
from leporello.recall.chunks import Chunk, chunks_of
from leporello.recall.paging import describe, json_text, pages
from leporello.recall.ranking import render
from leporello.store.records import StatedValue, ViewLine
from leporello.tokens import TokenCounter

LONGEST_PATTERN = 500
MOST_QUERIES = 8
DEFAULT_LIMIT = 10
MOST_RESULTS = 100
LEAST_TOKENS = 200
MOST_TOKENS = 50_000
REGEX_SECONDS = 2.0
_LINES_PER_MATCH = 6

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a line matches."""

_ID = {"type": "string", "description": "m12 for a message, m10-m20 for a span, f3 for a fold"}
_TOKENS = {
    "type": "integer",
    "minimum": LEAST_TOKENS,
    "maximum": MOST_TOKENS,
    "default": DEFAULT_TOKENS,
    "description": "Most tokens to bring back",
}


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "parameters": parameters}


SCHEMAS: tuple[dict[str, Any], ...] = (
    _schema(
        "lcm_grep",
        "Search the whole conversation, folded parts included. Ask in plain words or a question, or give identifiers, "
        "paths or an error text; several questions as a list. Say who is meant: the user, the assistant, a name. "
        "Brings back short windows with message ids; lcm_expand opens any of them in full.",
        {
            "query": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_QUERIES},
                ],
                "description": "A question, words, or a regular expression in mode regex; or a list of them",
            },
            "mode": {"type": "string", "enum": ["hybrid", "words", "regex"], "default": "hybrid"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "default": DEFAULT_LIMIT},
            "max_tokens": _TOKENS,
        },
        ["query"],
    ),
    _schema(
        "lcm_describe",
        "Tell what a fold, a span or a message is about (size, files, tools, requests, failures, values and what "
        "replaced them) before opening it.",
        {"id": _ID},
        ["id"],
    ),
    _schema(
        "lcm_expand",
        "Read the original messages behind a fold, a span or a message id, word for word, in pages.",
        {"id": _ID, "page": {"type": "integer", "minimum": 1, "default": 1}, "max_tokens": _TOKENS},
        ["id"],
    ),
    _schema("lcm_status", "Tell how many messages there are and which spans are folded.", {}, []),
)
TOOL_NAMES = frozenset(schema["name"] for schema in SCHEMAS)


def openai_tools() -> list[dict[str, Any]]:
    """The tools as a Chat Completions request carries them."""
    return [{"type": "function", "function": schema} for schema in SCHEMAS]


class RecallTools:
    """The recovery tools over one conversation: their schemas and the answers to calls."""

    def __init__(self, archive: Archive, count: Callable[[str], int] | None = None) -> None:
        self._archive = archive
        self._count = count or TokenCounter.for_model(None).text

    def handle(self, name: str, args: Mapping[str, Any]) -> str:
        """Run a tool; the answer is JSON text, `{"error": ...}` when the call was wrong."""
        run: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "lcm_grep": self._grep,
            "lcm_describe": self._describe,
            "lcm_expand": self._expand,
            "lcm_status": self._status,
        }
        if name not in run:
            return json_text({"error": f"there is no tool {name}; there are {', '.join(run)}"})
        try:
            return json_text(run[name](args))
        except InputError as error:
            return json_text({"error": str(error)})

    def _grep(self, args: Mapping[str, Any]) -> dict[str, Any]:
        queries = asked_queries(args.get("query"))
        limit = _whole(args, "limit", DEFAULT_LIMIT, 1, MOST_RESULTS)
        budget = _whole(args, "max_tokens", DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS)
        mode = args.get("mode") or "hybrid"
        if len(queries) == 1:
            return self._found(queries[0], mode, limit, budget)
        answers: list[dict[str, Any]] = []
        shown: set[str] = set()
        left = budget - self._count(json_text({"answers": []}))
        for place, query in enumerate(queries):
            answer = self._found(query, mode, limit, left // (len(queries) - place), shown)
            answers.append(answer)
            left -= self._count(json_text(answer)) + 1
        return {"answers": answers}

    def _found(self, text: str, mode: str, limit: int, budget: int, known: set[str] | None = None) -> dict[str, Any]:
        """The answer to one question; what an earlier answer shows is named and not shown again."""
        shown: dict[str, Any] = {"query": text}
        if mode == "regex":
            windows, complete = self._match(matcher(text), limit)
            shown["complete"] = complete
        elif mode in (RecallMode.HYBRID.value, RecallMode.WORDS.value):
            windows = self._archive.search(RecallQuery(text, budget, RecallMode(mode)))
        else:
            raise InputError(f"mode {mode!r} is not one of hybrid, words, regex")
        return self._fitted(shown, windows, limit, budget, set() if known is None else known)

    def _match(self, matches: Matcher, limit: int) -> tuple[list[Window], bool]:
        """Windows of matching lines, oldest first, and whether everything was looked at."""
        until = time.monotonic() + REGEX_SECONDS
        found: list[Window] = []
        for number, passage in self._passages():
            lines = list(itertools.islice(filter(matches, passage.lines), _LINES_PER_MATCH))
            if lines:
                if len(found) == limit:
                    return found, False
                shown = "\n".join(lines)
                found.append(Window(number, passage.role, passage.tool, passage.is_call, shown, 1.0))
            if time.monotonic() > until:
                return found, False
        return found, True

    def _passages(self) -> Iterator[tuple[int, Chunk]]:
        newest = self._archive.newest()
        if newest:
            for number, message in self._archive.read(Span(1, newest)):
                for passage in chunks_of(message):
                    yield number, passage

    def _fitted(
        self, shown: dict[str, Any], windows: list[Window], limit: int, budget: int, known: set[str]
    ) -> dict[str, Any]:
        """The best windows as results, the rest of the evidence in short form, all within the budget."""
        results: list[dict[str, Any]] = []
        more: list[str] = []
        used = self._count(json_text({**shown, "results": [], "more": []})) + 16
        for window in windows:
            as_result = len(results) < limit
            key = str(window)
            entry: Any = _result(window) if as_result else key
            if key in known:
                entry = {"id": window.id, "text": "(shown above)"} if as_result else f"[{window.id}] (shown above)"
            cost = self._count(json_text(entry)) + 2
            if used + cost > budget:
                continue
            used += cost
            known.add(key)
            (results if as_result else more).append(entry)
        shown["results"] = results
        if more:
            shown["more"] = more
        if not results:
            shown["hint"] = "nothing found: try other words, or mode regex for an exact text"
        return shown

    def _describe(self, args: Mapping[str, Any]) -> dict[str, Any]:
        folds = self._archive.folds()
        span, fold = paging.find(args.get("id"), self._archive.newest(), folds)
        shown: dict[str, Any] = {"id": fold.id if fold else str(span), "span": str(span)}
        if fold is not None:
            shown["summary_tokens"] = self._count(fold.text)
            shown["children"] = list(fold.children)
        else:
            shown["folded_in"] = [known.id for known in folds if _overlaps(known.covered, span)]
        shown |= describe(self._archive.read(span), self._count)
        shown["values"] = [value_json(said) for said in self._archive.values(span)[-paging.MOST_LISTED :]]
        shown["open_with"] = f'lcm_expand("{shown["id"]}")'
        return shown

    def _expand(self, args: Mapping[str, Any]) -> dict[str, Any]:
        span, fold = paging.find(args.get("id"), self._archive.newest(), self._archive.folds())
        number = _whole(args, "page", 1, 1, 1_000_000)
        budget = _whole(args, "max_tokens", DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS)
        name = fold.id if fold else str(span)
        shown: dict[str, Any] = {"id": name, "span": str(span), "page": number}
        room = budget - self._count(json_text({**shown, "messages": [], "next": _next(name, number, budget)})) - 8
        book = pages(self._archive.read(span), self._count, room)
        last = 0
        for last, page in enumerate(itertools.islice(book, number), 1):
            if last == number:
                shown["messages"] = [piece.as_dict() for piece in page]
        if last < number:
            raise InputError(
                f"{name} has {last} page{'s' if last != 1 else ''} of {budget} tokens; there is no page {number}"
            )
        if next(book, None) is not None:
            shown["next"] = _next(name, number, budget)
        return shown

    def _status(self, args: Mapping[str, Any]) -> dict[str, Any]:
        folds = self._archive.folds()
        inner = {child for fold in folds for child in fold.children}
        return {
            "messages": self._archive.newest(),
            "folds": [{"id": fold.id, "span": str(fold.covered)} for fold in folds if fold.id not in inner][-50:],
            "folds_in_all": len(folds),
            "note": "Every message is kept. lcm_grep searches all of them, lcm_expand opens any of them.",
        }


def asked_queries(query: object) -> list[str]:
    """The questions of a search: one text, or a list of them; `InputError` when there is none or a wrong one."""
    asked = [query] if isinstance(query, str) else query
    if not isinstance(asked, list) or not asked or not all(isinstance(one, str) and one.strip() for one in asked):
        wrong = "empty" if isinstance(query, str) else "missing"
        raise InputError(f"query is {wrong}: say what to look for, as a text or a list of texts")
    if len(asked) > MOST_QUERIES:
        raise InputError(f"{len(asked)} questions at once are too many; ask at most {MOST_QUERIES}")
    return asked


def _result(window: Window) -> dict[str, Any]:
    shown = {"id": window.id, "role": window.role}
    if window.tool:
        shown["tool"] = window.tool + (" (call)" if window.is_call else "")
    return {**shown, "text": window.text}


def value_json(said: StatedValue) -> dict[str, Any]:
    """What was said about a thing, as programs and models read it."""
    shown: dict[str, Any] = {"subject": said.subject, "value": said.value, "id": f"m{said.message}", "text": said.text}
    for name, number in (("replaced_by", said.replaced_by), ("task", said.task)):
        if number is not None:
            shown[name] = f"m{number}"
    return shown


def _next(name: str, page: int, budget: int) -> str:
    tokens = f", max_tokens={budget}" if budget != DEFAULT_TOKENS else ""
    return f'lcm_expand("{name}", page={page + 1}{tokens})'


def _overlaps(one: Span, other: Span) -> bool:
    return one.first <= other.last and other.first <= one.last


def _whole(args: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = args.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, not {value!r}")
    return value


def matcher(pattern: str) -> Matcher:
    """A matcher in linear time that ignores case: a careless pattern can keep Python's own busy for years.

    Raises `InputError` when the pattern is wrong or needs a matcher that can backtrack.
    """
    if not pattern:
        raise InputError("the pattern is empty")
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"the pattern has {len(pattern)} characters; at most {LONGEST_PATTERN} are taken")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        compiled = re2.compile(_encodable(pattern), options)
    except re2.error as error:
        raise InputError(
            f"the pattern is not a regular expression this search can match: {error}. "
            "Look-around and references back to a group are not supported"
        ) from error
    return lambda line: compiled.search(_encodable(line)) is not None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


SHARE = 0.02
"""Of the window."""
LEAST_SCORE = 8.0
"""The best window must reach it. In a sample of LoCoMo a quarter of the evidence came below it; coding had few."""
NEAR_BEST = 0.5
"""Windows with less than this share of the best one's score stay out."""
LONGEST_MESSAGE = 4_000
"""Characters of a message that are looked for; what is longer is mostly pasted."""
FRAME_TOKENS = 60
_FRAME = """<recalled>
Passages from earlier in this conversation that may help with the present step. They are for reference: not part of the
user's message, and no request.

{passages}
</recalled>"""


def framed(passages: str) -> str:
    """Recalled passages as a model reads them."""
    return _FRAME.replace("{passages}", passages.strip())


def recalled(archive: Recall, lines: Sequence[ViewLine], window: int) -> str:
    """What the newest message needs of what the view no longer shows; empty unless a user said it and it is found."""
    if not lines or role_of(lines[-1].message) != "user" or lines[-1].number is None:
        return ""
    shown = {line.number for line in lines if not line.shortened}
    hidden = next((number for number in range(lines[-1].number, 0, -1) if number not in shown), 0)
    tokens = int(window * SHARE) - FRAME_TOKENS
    if not hidden or tokens <= 0:
        return ""
    return passages_for(archive, text_of(lines[-1].message), tokens, hidden)


def passages_for(archive: Recall, text: str, tokens: int, last: int | None = None) -> str:
    """The passages of messages up to `last` that stand out for a text."""
    windows = archive.search(RecallQuery(text[:LONGEST_MESSAGE], tokens, last=last))
    least = max((window.score for window in windows), default=0.0) * NEAR_BEST
    if least < LEAST_SCORE * NEAR_BEST:
        return ""
    return render([window for window in windows if window.score >= least])
