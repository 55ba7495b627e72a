"""What a provider's error means, read from its status and body, and the exception that carries it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from msgspec import Struct, field

from leporello.errors import Cancelled, ConfigError, ProviderError
from leporello.lazy_regex import lazy_regex
from leporello.providers import error_rules as rules
from leporello.providers.error_rules import ErrorKind, SizePattern
from leporello.redact import redact

MAX_DEPTH = 8
MAX_TEXT = 20_000  # an error page can be long; what matters stands at its beginning

# Some servers write `Message` and `Code`.
_CODE_KEYS = ("code", "type", "status", "reason", "error_code", "omlx_code", "name", "errortype", "__type")
_TEXT_KEYS = (
    "message",
    "msg",
    "errormessage",
    "status_msg",
    "error_msg",
    "error_message",
    "detail",
    "details",
    "raw",
    "traceback",
    "param",
)
_NUMBER_KEYS = ("n_ctx", "n_prompt_tokens", "retry_after")
# Words that every refusal of that API carries: they say nothing about the cause.
_EMPTY_CODES = frozenset(("", "none", "null", "error", "invalid_request_error", "badrequest", "badrequesterror"))
_TITLE = lazy_regex(r"<title>(.{0,2000}?)</title>", re.IGNORECASE | re.DOTALL)
_FIRST_BRACE = lazy_regex(r"[{\[]")


class ErrorFacts(Struct):
    """Everything a body of any shape states, in one place."""

    codes: set[str] = field(default_factory=set)
    """Machine-readable codes and types, lower case, without the ones that say nothing."""
    texts: list[str] = field(default_factory=list)
    """All readable texts in original case. Later is deeper: a router's own words come first and say least."""
    numbers: dict[str, float] = field(default_factory=dict)
    retry_delay: str = ""
    """Google's `retryDelay`, such as `34s`."""

    @classmethod
    def read(cls, body: Any) -> ErrorFacts:
        facts = cls()
        if isinstance(body, bytes | bytearray):
            body = bytes(body[:MAX_TEXT]).decode("utf-8", "replace")
        facts._visit(body, 0)
        facts.codes -= _EMPTY_CODES
        facts.texts = list(dict.fromkeys(reversed(facts.texts)))
        return facts

    @property
    def text(self) -> str:
        """All texts, innermost first, joined by newlines."""
        return "\n".join(self.texts)[:MAX_TEXT]

    @property
    def message(self) -> str:
        """The most specific sentence that a person can read: not JSON, not a page."""
        plain = (text for text in self.texts if not text.startswith(("{", "[", "<")))
        titles = (title[1].strip() for text in self.texts if (title := _TITLE.search(text)))
        return next(chain(plain, titles, self.texts), "")

    def _visit(self, value: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            self._visit_text(value, depth)
        elif isinstance(value, list):
            for item in value[:20]:
                self._visit(item, depth + 1)
        elif isinstance(value, Mapping):
            self._visit_object(value, depth)

    def _visit_object(self, raw: Mapping[str, Any], depth: int) -> None:
        value = {str(key).lower(): inner for key, inner in raw.items()}
        for key in _CODE_KEYS:
            code = value.get(key)
            if isinstance(code, str | int) and not isinstance(code, bool):
                self.codes.add(str(code).strip().lower())
        told = value.get("base_resp")
        if isinstance(told, Mapping):
            self.codes.add(f"minimax-{told.get('status_code')}")
        for key in _NUMBER_KEYS:
            number = value.get(key)
            if isinstance(number, int | float) and not isinstance(number, bool):
                self.numbers[key] = number
        delay = value.get("retrydelay")
        if isinstance(delay, str):
            self.retry_delay = delay
        for key in _TEXT_KEYS:
            text = value.get(key)
            if isinstance(text, str) and (key != "param" or " " in text):
                self._visit_text(text, depth)
        for key, inner in value.items():
            if isinstance(inner, list | Mapping) or (isinstance(inner, str) and key == "error"):
                self._visit(inner, depth + 1)

    def _visit_text(self, text: str, depth: int) -> None:
        text = text[:MAX_TEXT]
        if text.strip():
            self.texts.append(text.strip())
        inner = _body_inside(text)
        if inner:
            self._visit(inner, depth + 1)


def _body_inside(text: str) -> Any:
    """A JSON body within a text: `... - b'{"error": ...}'` and `{"type": ...}. Received Model Group=...`."""
    start = _FIRST_BRACE.search(text)
    if start is None or '"' not in text:
        return None
    try:
        return json.JSONDecoder(strict=False).raw_decode(text[start.start() :].replace("\\n", "\n"))[0]
    except (ValueError, RecursionError):
        return None


SHOWN = 400


@dataclass(frozen=True, slots=True)
class ErrorVerdict:
    """What one failed call means. Token counts are the provider's own; None where it said nothing."""

    kind: ErrorKind
    cause: str = ""
    """A finer word: `stale_thinking`, `missing_thinking`, `tool_search`, `memory`, `connection`, `timeout`,
    `stream_cut`."""
    stated_limit: int | None = None
    """The window (or the largest input) the provider stated; the only thing that may shrink the recorded one."""
    requested: int | None = None
    """Input tokens as the provider counted them."""
    requested_output: int | None = None
    allowed_output: int | None = None
    """The largest `max_tokens` that passes: the stated cap, or what the input leaves of the window."""
    retry_after: float | None = None
    status: int | None = None
    code: str = ""
    message: str = ""
    """The provider's own sentence, shortened, keys masked."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may pass a little later."""
        return self.kind in (ErrorKind.TRANSIENT, ErrorKind.RATE_LIMIT)

    @property
    def foldable(self) -> bool:
        """Whether a smaller conversation is the cure."""
        return self.kind in (ErrorKind.INPUT_OVERFLOW, ErrorKind.PAYLOAD_TOO_LARGE)


class CallFailed(ProviderError):
    """A call to a model failed; `verdict` says what that means."""

    def __init__(self, verdict: ErrorVerdict, provider: str = "", model: str = "", partial: str = "") -> None:
        where = " ".join(word for word in (provider, model) if word)
        super().__init__(f"{where}: {_sentence(verdict)}" if where else _sentence(verdict))
        self.verdict = verdict
        self.partial = partial
        """Text that was already streamed to the user before the failure."""


class CallCancelled(Cancelled, ProviderError):
    """The call was cancelled by the caller; nothing of the answer is kept."""


class ClientMissing(ConfigError, ProviderError):
    """The package with the official client is not installed; the text says how to get it."""


def is_refused(wire: Mapping[str, Any]) -> bool:
    """Whether an answer with status 200 says in MiniMax's own field that the request failed."""
    told = wire.get("base_resp")
    return isinstance(told, Mapping) and bool(told.get("status_code")) and not wire.get("choices")


VAGUE = (None, ErrorKind.TRANSIENT, ErrorKind.MALFORMED)
"""What some servers call everything (`api_error`, `server_error`, invalid parameters): words beat it."""


def classify(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None, *, now: float | None = None
) -> ErrorVerdict:
    """Judge an error by its body first and its status last. `now` (epoch seconds) is for dates in `retry-after`."""
    facts = ErrorFacts.read(body)
    text = facts.text
    sized = _sized(facts, text)
    kind, code, cause = _judge(facts, text, sized)
    if sized is None and kind in VAGUE and not cause and status not in rules.NEVER_OVERFLOW:
        sized = _by_words(text)
        kind = None if sized else kind
    verdict = ErrorVerdict(
        kind or (sized.kind if sized else _by_status(status, facts)),
        cause,
        status=status,
        code=code,
        message=_shown(facts.message),
        retry_after=_retry_after(facts, text, headers or {}, now),
    )
    if sized is None or kind not in (ErrorKind.INPUT_OVERFLOW, ErrorKind.OUTPUT_CAP, None):
        return verdict
    # Numbers beat the code: `context_length_exceeded` also comes when 64 tokens ask for 8,192 more.
    return replace(
        verdict,
        kind=sized.kind,
        stated_limit=sized.stated_limit,
        requested=sized.requested,
        requested_output=sized.requested_output,
        allowed_output=sized.allowed_output,
    )


def _judge(facts: ErrorFacts, text: str, sized: ErrorVerdict | None) -> tuple[ErrorKind | None, str, str]:
    """Kind, code and cause by what the body says; no kind where only its numbers or the status can tell."""
    for phrase in rules.OVERRIDES:
        if phrase.pattern.search(text):
            return phrase.kind, "", phrase.cause
    named = next((code for code in (*rules.CODES, *rules.CATALOGUE) if code in facts.codes), "")
    decided = rules.CODES[named][0] if named in rules.CODES else rules.CATALOGUE.get(named)
    if decided not in VAGUE:
        return decided, named, ""
    if sized is not None:
        return None, named, ""
    for phrase in rules.PHRASES:
        if phrase.pattern.search(text):
            return phrase.kind, "", phrase.cause
    return decided, named, ""


def _by_words(text: str) -> ErrorVerdict | None:
    """An overflow that no line of the tables knows; of two numbers the smaller one is the limit."""
    for sentence in rules.SENTENCE_END.split(text):
        told = all(words.search(sentence) for words in rules.OVERFLOW_WORDS) or rules.OVERFLOW_ELSEWHERE.search(
            sentence
        )
        if told and not rules.OTHER_LIMITS.search(sentence):
            counts = sorted({_number(found[0]) for found in rules.COUNT.finditer(sentence)})
            limit, used = counts if len(counts) == 2 else (None, None)
            return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, stated_limit=limit, requested=used)
    return None


def _by_status(status: int | None, facts: ErrorFacts) -> ErrorKind:
    if status is None or status < 400:
        # Inside a stream or a 200: some bodies carry the status that should have been sent.
        status = next((int(code) for code in facts.codes if code.isdigit() and 400 <= int(code) < 600), None)
    if status is None or (status == 400 and not facts.texts and not facts.codes):
        return ErrorKind.UNKNOWN
    return ErrorKind.TRANSIENT if status >= 500 else rules.STATUSES.get(status, ErrorKind.UNKNOWN)


def _sized(facts: ErrorFacts, text: str) -> ErrorVerdict | None:
    """The verdict that the numbers prove, or None when the body states none."""
    limit, used = facts.numbers.get("n_ctx"), facts.numbers.get("n_prompt_tokens")
    if limit:
        return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, stated_limit=int(limit), requested=int(used) if used else None)
    if (found := _first(rules.OUTPUT_CAPS, text)) is not None:
        return ErrorVerdict(ErrorKind.OUTPUT_CAP, requested_output=found.get("output"), allowed_output=found.get("cap"))
    if (found := _first(rules.SUMS, text)) is not None:
        return _split(found["limit"], found.get("input"), found["output"], found.get("least", 0))
    breakdown = rules.BREAKDOWN.search(text)
    if breakdown:
        return _breakdown(breakdown)
    if (found := _first(rules.INPUTS, text)) is not None:
        return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, stated_limit=found.get("limit"), requested=found.get("input"))
    return None


def _first(patterns: Sequence[SizePattern], text: str) -> dict[str, int] | None:
    for rule in patterns:
        found = rule.pattern.search(text)
        if found:
            return {name: _number(value) for name, value in found.groupdict().items()}
    return None


def _breakdown(found: re.Match[str]) -> ErrorVerdict:
    used = asked = 0
    for part in rules.BREAKDOWN_PART.finditer(found["parts"]):
        if any(word in part["what"].lower() for word in rules.OUTPUT_WORDS):
            asked += _number(part["count"])
        else:
            used += _number(part["count"])
    return _split(_number(found["limit"]), used or _number(found["total"]), asked)


def _split(limit: int, used: int | None, asked: int, least: int = 0) -> ErrorVerdict:
    """Input and asked output against a window: it is an overflow only when the input alone doesn't fit."""
    if (used or least) >= limit:
        return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, "", limit, used or least, asked)
    allowed = limit - used if used is not None else None
    return ErrorVerdict(ErrorKind.OUTPUT_CAP, "", limit, used, asked, allowed)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


_IN_TEXT = lazy_regex(
    r"(?:try again in|retry after) ((?:\d+(?:\.\d+)?\s*(?:ms|seconds?|s|minutes?|m|hours?|h)\s*)+)", re.I
)
_SPAN = lazy_regex(r"(\d{1,30}(?:\.\d{1,30})?)\s{0,30}(ms|s|m|h)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _retry_after(facts: ErrorFacts, text: str, headers: Mapping[str, str], now: float | None) -> float | None:
    """Seconds to wait: headers first, then what the body says."""
    lowered = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = lowered.get(name, "").strip()
        try:
            return max(0.0, float(value) * factor)
        except ValueError:
            date = _date(value)
            if date is not None and now is not None:
                return max(0.0, date - now)
    if facts.retry_delay:
        return _seconds(facts.retry_delay)
    if "retry_after" in facts.numbers:
        return max(0.0, facts.numbers["retry_after"])
    found = _IN_TEXT.search(text)
    return _seconds(found[1]) if found else None


def _seconds(text: str) -> float | None:
    spans = _SPAN.findall(text)
    return sum(float(count) * _UNITS[unit.lower()] for count, unit in spans) if spans else None


def _date(value: str) -> float | None:
    if not value:
        return None
    # Servers rarely give a date, and the module is slow to load.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


_KEY = lazy_regex(r"(?i)(api key provided: )\S+|\b(sk|fk|gsk|xai)-[\w*-]{8,}")


def _shown(message: str) -> str:
    plain = redact(_KEY.sub(lambda found: (found[1] or "") + "[REDACTED]", " ".join(message.split())))
    return plain if len(plain) <= SHOWN else plain[: SHOWN - 1] + "…"


_SENTENCES = {
    ErrorKind.INPUT_OVERFLOW: "the request is larger than the model's window",
    ErrorKind.OUTPUT_CAP: "the answer's limit (max_tokens) is larger than the endpoint allows",
    ErrorKind.PAYLOAD_TOO_LARGE: "the request is larger than the endpoint takes",
    ErrorKind.RATE_LIMIT: "the provider's rate limit is reached",
    ErrorKind.AUTH: "the provider refused the key. Check the key and the endpoint it belongs to",
    ErrorKind.QUOTA: "the account has no credit or quota left. Top it up or use another provider",
    ErrorKind.TRANSIENT: "the provider failed for the moment",
    ErrorKind.CONTENT_POLICY: "the provider's content policy blocked it",
    ErrorKind.MALFORMED: "the provider refused the request's form",
    ErrorKind.UNKNOWN: "the call failed for a reason the provider did not name",
}


def _sentence(verdict: ErrorVerdict) -> str:
    status = f" (status {verdict.status})" if verdict.status else ""
    said = f" It said: {verdict.message}" if verdict.message else ""
    return f"{_SENTENCES[verdict.kind]}{status}.{said}"
