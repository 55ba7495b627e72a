"""Errors as a client of each model API expects them, and JSON bodies for clients whatever a message holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response

from leporello.dialects import OPENAI_CHAT, Dialect
from leporello.dialects.base import encode_event


def json_body(value: Any) -> bytes:
    """A value as JSON; what only the standard library can write is written by it."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return json.dumps(value, default=str).encode("ascii")


@dataclass(frozen=True, slots=True)
class ApiError:
    """Something that went wrong, in words for the client."""

    status: int
    code: str
    message: str
    retry_after: float | None = None

    def body(self, dialect: Dialect = OPENAI_CHAT) -> bytes:
        """The error in a dialect's shape; our own API shares OpenAI's."""
        return orjson.dumps(dialect.error_body(self.status, self.code, self.message))

    def event(self, dialect: Dialect) -> bytes:
        """The same inside a stream that has begun."""
        shape = dialect.stream.error_event(self.status, self.code, self.message)
        return encode_event(shape, "error" if dialect.stream.named else "")

    def headers(self) -> list[tuple[bytes, bytes]]:
        found = [(b"content-type", b"application/json")]
        if self.retry_after is not None:
            found.append((b"retry-after", str(max(1, round(self.retry_after))).encode()))
        if self.status == 401:
            found.append((b"www-authenticate", b"Bearer"))
        if self.status == 408:
            # What the client still sends would be taken for its next request.
            found.append((b"connection", b"close"))
        return found

    def response(self, dialect: Dialect = OPENAI_CHAT) -> Response:
        headers = {name.decode(): value.decode() for name, value in self.headers()}
        return Response(self.body(dialect), self.status, headers)


class RequestRefused(Exception):
    """A request ends with an error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.code)
        self.error = error


def refuse(status: int, code: str, message: str, retry_after: float | None = None) -> RequestRefused:
    return RequestRefused(ApiError(status, code, message, retry_after))
