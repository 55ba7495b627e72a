"""What a provider's error means, read from its status and body, and the exception that carries it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from leporello.errors import Cancelled, ConfigError, ProviderError
from leporello.providers.error_rules import (
    BREAKDOWN,
    BREAKDOWN_PART,
    CATALOGUE,
    CODES,
    INPUTS,
    OUTPUT_CAPS,
    OUTPUT_WORDS,
    OVERRIDES,
    PHRASES,
    STATUSES,
    SUMS,
    ErrorKind,
    SizePattern,
)
from leporello.redact import redact

MAX_DEPTH = 8
MAX_TEXT = 20_000
"""An error page can be long; what matters stands at its beginning."""

_CODE_KEYS = ("code", "type", "status", "reason", "error_code", "omlx_code", "name", "errorType", "__type")
_TEXT_KEYS = ("message", "msg", "errorMessage", "status_msg", "detail", "details", "raw", "param")
_NUMBER_KEYS = ("n_ctx", "n_prompt_tokens", "retry_after")
# Words that every refusal of that API carries: they say nothing about the cause.
_EMPTY_CODES = frozenset(("", "none", "null", "error", "invalid_request_error", "badrequest", "badrequesterror"))


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Everything a body states, in one place."""

    codes: frozenset[str]
    """Machine-readable codes and types, lower case, without the ones that say nothing."""
    text: str
    """All readable text, innermost first, joined by newlines; original case."""
    numbers: Mapping[str, float]
    retry_delay: str
    """Google's `retryDelay`, such as `34s`."""
    message: str
    """The most specific sentence, for people."""


def read_body(body: Any) -> ErrorFacts:
    """Collect the facts of a body of any shape."""
    found = _Found()
    _visit(_decoded(body), found, 0)
    # Later is deeper: a router's own words come first in its body and say least.
    texts = list(dict.fromkeys(reversed(found.texts)))
    return ErrorFacts(
        codes=frozenset(code for code in found.codes if code not in _EMPTY_CODES),
        text="\n".join(texts)[:MAX_TEXT],
        numbers=found.numbers,
        retry_delay=found.retry_delay,
        message=_message(texts),
    )


class _Found:
    __slots__ = ("codes", "numbers", "retry_delay", "texts")

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.texts: list[str] = []
        self.numbers: dict[str, float] = {}
        self.retry_delay = ""


def _decoded(body: Any) -> Any:
    if isinstance(body, bytes | bytearray):
        body = bytes(body[:MAX_TEXT]).decode("utf-8", "replace")
    return body


def _visit(value: Any, found: _Found, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        _visit_text(value, found, depth)
    elif isinstance(value, list):
        for item in value[:20]:
            _visit(item, found, depth + 1)
    elif isinstance(value, Mapping):
        _visit_object(value, found, depth)


def _visit_object(value: Mapping[str, Any], found: _Found, depth: int) -> None:
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, str | int) and not isinstance(code, bool):
            found.codes.append(str(code).strip().lower())
    for key in _NUMBER_KEYS:
        number = value.get(key)
        if isinstance(number, int | float) and not isinstance(number, bool):
            found.numbers[key] = number
    delay = value.get("retryDelay")
    if isinstance(delay, str):
        found.retry_delay = delay
    for key in _TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str) and (key != "param" or " " in text):
            _visit_text(text, found, depth)
    for key, inner in value.items():
        if isinstance(inner, list | Mapping) or (isinstance(inner, str) and key == "error"):
            _visit(inner, found, depth + 1)


def _visit_text(text: str, found: _Found, depth: int) -> None:
    text = text[:MAX_TEXT]
    if text.strip():
        found.texts.append(text.strip())
    for inner in _bodies_inside(text):
        _visit(inner, found, depth + 1)


_TITLE = re.compile(r"<title>(.{0,2000}?)</title>", re.IGNORECASE | re.DOTALL)
_FIRST_BRACE = re.compile(r"[{\[]")


def _bodies_inside(text: str) -> Iterator[Any]:
    """A JSON body within a text: `... - b'{"error": ...}'` and `{"type": ...}. Received Model Group=...`."""
    start = _FIRST_BRACE.search(text)
    if start is None or '"' not in text:
        return
    candidate = text[start.start() :].replace("\\n", "\n")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(candidate)
    except (ValueError, RecursionError):
        return
    if isinstance(value, list | dict) and value:
        yield value


def _message(texts: list[str]) -> str:
    """The first text that a person can read: not JSON, not a page."""
    for text in texts:
        if not text.startswith(("{", "[", "<")):
            return text
    for text in texts:
        title = _TITLE.search(text)
        if title:
            return title[1].strip()
    return texts[0] if texts else ""


SHOWN = 400


@dataclass(frozen=True, slots=True)
class ErrorVerdict:
    """What one failed call means. Token counts are the provider's own; None where it said nothing."""

    kind: ErrorKind
    cause: str = ""
    """A finer word: `stale_thinking`, `missing_thinking`, `memory`, `connection`, `timeout`, `stream_cut`."""
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


def classify(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None, *, now: float | None = None
) -> ErrorVerdict:
    """Judge an error by its body first and its status last. `now` (epoch seconds) is for dates in `retry-after`."""
    facts = read_body(body)
    kind, code, cause = _judge(facts)
    sized = _sized(facts) if kind in (ErrorKind.INPUT_OVERFLOW, ErrorKind.OUTPUT_CAP, None) else None
    verdict = ErrorVerdict(
        kind or (sized.kind if sized else _by_status(status, facts)),
        cause,
        status=status,
        code=code,
        message=_shown(facts.message),
        retry_after=_retry_after(facts, headers or {}, now),
    )
    if sized is None:
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


def _judge(facts: ErrorFacts) -> tuple[ErrorKind | None, str, str]:
    for phrase in OVERRIDES:
        if phrase.pattern.search(facts.text):
            return phrase.kind, "", phrase.cause
    known = [code for code in CODES if code in facts.codes]
    if known:
        return CODES[known[0]][0], known[0], ""
    listed = [code for code in CATALOGUE if code in facts.codes]
    # `api_error` is what some servers call everything: words beat it.
    decided = CATALOGUE[listed[0]] if listed else None
    if decided not in (None, ErrorKind.TRANSIENT):
        return decided, listed[0], ""
    if _sized(facts) is not None:
        return None, listed[0] if listed else "", ""
    for phrase in PHRASES:
        if phrase.pattern.search(facts.text):
            return phrase.kind, "", phrase.cause
    return decided, listed[0] if listed else "", ""


def _by_status(status: int | None, facts: ErrorFacts) -> ErrorKind:
    if status is None or status < 400:
        # Inside a stream or a 200: some bodies carry the status that should have been sent.
        stated = [int(code) for code in facts.codes if code.isdigit() and 400 <= int(code) < 600]
        status = stated[0] if stated else None
    if status is None:
        return ErrorKind.UNKNOWN
    if status >= 500:
        return ErrorKind.TRANSIENT
    if status == 400 and not facts.text and not facts.codes:
        return ErrorKind.UNKNOWN
    return STATUSES.get(status, ErrorKind.UNKNOWN)


def _sized(facts: ErrorFacts) -> ErrorVerdict | None:
    """The verdict that the numbers prove, or None when the body states none."""
    limit, used = facts.numbers.get("n_ctx"), facts.numbers.get("n_prompt_tokens")
    if limit:
        return _overflow(int(limit), int(used) if used else None)
    for caps in OUTPUT_CAPS:
        found = caps.pattern.search(facts.text)
        if found:
            return ErrorVerdict(
                ErrorKind.OUTPUT_CAP, requested_output=_group(found, "output"), allowed_output=_group(found, "cap")
            )
    for sums in SUMS:
        found = sums.pattern.search(facts.text)
        if found:
            return _sum(sums, found)
    found = BREAKDOWN.search(facts.text)
    if found:
        return _breakdown(found)
    for inputs in INPUTS:
        found = inputs.pattern.search(facts.text)
        if found:
            return _overflow(_group(found, "limit"), _group(found, "input"))
    return None


def _overflow(limit: int | None, used: int | None) -> ErrorVerdict:
    return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, stated_limit=limit, requested=used)


def _sum(rule: SizePattern, found: re.Match[str]) -> ErrorVerdict:
    limit, used, asked = (_group(found, name) or 0 for name in ("limit", "input", "output"))
    return _split(limit, used, asked, floor=rule.floor)


def _breakdown(found: re.Match[str]) -> ErrorVerdict:
    used = asked = 0
    for part in BREAKDOWN_PART.finditer(found["parts"]):
        if any(word in part["what"].lower() for word in OUTPUT_WORDS):
            asked += _number(part["count"])
        else:
            used += _number(part["count"])
    return _split(_number(found["limit"]), used or _number(found["total"]), asked)


def _split(limit: int, used: int, asked: int, floor: bool = False) -> ErrorVerdict:
    """Input and asked output against a window: it is an overflow only when the input alone doesn't fit."""
    if used >= limit:
        return ErrorVerdict(ErrorKind.INPUT_OVERFLOW, "", limit, used, asked)
    return ErrorVerdict(
        ErrorKind.OUTPUT_CAP,
        stated_limit=limit,
        requested=None if floor else used,
        requested_output=asked,
        allowed_output=None if floor else limit - used,
    )


def _group(found: re.Match[str], name: str) -> int | None:
    value = found.groupdict().get(name)
    return _number(value) if value else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


_IN_TEXT = re.compile(
    r"(?:try again in|retry after) ((?:\d+(?:\.\d+)?\s*(?:ms|seconds?|s|minutes?|m|hours?|h)\s*)+)", re.I
)
_SPAN = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s{0,30}(ms|s|m|h)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _retry_after(facts: ErrorFacts, headers: Mapping[str, str], now: float | None) -> float | None:
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
    found = _IN_TEXT.search(facts.text)
    return _seconds(found[1]) if found else None


def _seconds(text: str) -> float | None:
    spans = _SPAN.findall(text)
    return sum(float(count) * _UNITS[unit.lower()] for count, unit in spans) if spans else None


def _date(value: str) -> float | None:
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


_KEY = re.compile(r"(?i)(api key provided: )\S+|\b(sk|fk|gsk|xai)-[\w*-]{8,}")


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
