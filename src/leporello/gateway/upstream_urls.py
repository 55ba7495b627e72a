"""Addresses at an upstream. `upstream_url` is the only place that makes one.

The path is one of a few fixed templates. What a client may add is a model's name, which stays one encoded segment, and
its query, which stays a query: no text of a client chooses another path than the one that is meant.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import quote

from yarl import URL

from leporello.gateway.config import Upstream
from leporello.gateway.faults import refuse

LONGEST_NAME = 500
_QUERY_SAFE = "!$&'()*+,;=:@/?-._~%"
"""Characters that may stand in a query as they are; all others are encoded."""
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")


class ApiPath(StrEnum):
    """The paths of upstreams that are ever asked; the gateway serves the same ones."""

    CHAT = "/v1/chat/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"
    COUNT_TOKENS = "/v1/messages/count_tokens"
    MODELS = "/v1/models"


def upstream_url(upstream: Upstream, path: ApiPath, query: bytes = b"", model: str = "") -> URL:
    """The address of an API path at an upstream; with a model's name, that of the model below the path."""
    # Base addresses come with and without the version.
    address = upstream.base_url.removesuffix("/v1") + path
    if model:
        address += "/" + _segment(model)
    if query:
        address += "?" + quote(query, safe=_QUERY_SAFE)
    return URL(address, encoded=True)


def _segment(model: str) -> str:
    """A model's name as one segment of a path.

    Many servers decode a path before they resolve it, some twice. So names that would be another path then are refused,
    although they are encoded: those with dots for segments, with backslashes, or encoded once more.
    """
    if len(model) > LONGEST_NAME or not model.isprintable() or "\\" in model or "%" in model or _DOTS.search(model):
        raise refuse(400, "invalid_model", "This can't be the name of a model.")
    return quote(model, safe="")
