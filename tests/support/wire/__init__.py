"""The rules by which the vendors' servers accept or refuse a request, one function per dialect.

Each takes a request's body and gives the reasons for which the real server would answer 400; none means accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leporello.dialects.base import Dialect
from tests.support.wire.anthropic import anthropic_violations
from tests.support.wire.chat import chat_violations
from tests.support.wire.responses import responses_violations

VIOLATIONS: dict[Dialect, Callable[[Mapping[str, Any]], list[str]]] = {
    Dialect.ANTHROPIC: anthropic_violations,
    Dialect.OPENAI_CHAT: chat_violations,
    Dialect.OPENAI_RESPONSES: responses_violations,
}

__all__ = ["VIOLATIONS", "anthropic_violations", "chat_violations", "responses_violations"]
