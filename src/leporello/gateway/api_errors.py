"""Errors as a client of each model API expects them, and JSON bodies for clients whatever a message holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from leporello.dialects import Dialect


def json_body(value: Any) -> bytes:
    """A value as JSON; what only the standard library can write is written by it."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return json.dumps(value, default=str).encode("ascii")


_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    431: "invalid_request_error",
    429: "rate_limit_error",
}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    415: "invalid_request_error",
    431: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class ApiError:
    """Something that went wrong, in words for the client."""

    status: int
    code: str
    message: str
    retry_after: float | None = None

    def body(self, dialect: Dialect | None = None) -> bytes:
        """The error in a dialect's shape; in OpenAI's, which our own API shares, when there is none."""
        return orjson.dumps(self._shape(dialect))

    def _shape(self, dialect: Dialect | None) -> dict[str, Any]:
        if dialect is Dialect.ANTHROPIC:
            kind = _ANTHROPIC_TYPES.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": self.message}}
        kind = _OPENAI_TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.code}}

    def event(self, dialect: Dialect) -> bytes:
        """The same inside a stream that has begun."""
        if dialect is Dialect.OPENAI_RESPONSES:
            shape = {"type": "error", "code": self.code, "message": self.message, "param": None, "sequence_number": 0}
            return b"event: error\ndata: " + orjson.dumps(shape) + b"\n\n"
        data = b"data: " + self.body(dialect) + b"\n\n"
        return b"event: error\n" + data if dialect is Dialect.ANTHROPIC else data

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that go with it."""
        found = [(b"content-type", b"application/json")]
        if self.retry_after is not None:
            found.append((b"retry-after", str(max(1, round(self.retry_after))).encode()))
        if self.status == 401:
            found.append((b"www-authenticate", b"Bearer"))
        if self.status == 408:
            # What the client still sends would be taken for its next request.
            found.append((b"connection", b"close"))
        return found


class RequestRefused(Exception):
    """A request ends with a fault."""

    def __init__(self, fault: ApiError) -> None:
        super().__init__(fault.code)
        self.fault = fault


def refuse(status: int, code: str, message: str, retry_after: float | None = None) -> RequestRefused:
    """The exception for a fault."""
    return RequestRefused(ApiError(status, code, message, retry_after))
