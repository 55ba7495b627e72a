"""The rules by which the vendors' servers accept or refuse a request, one function per dialect.

Each takes a request's body and gives the reasons for which the real server would answer 400; none means accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.support.wire.anthropic import anthropic_violations
from tests.support.wire.chat import chat_violations
from tests.support.wire.responses import responses_violations

VIOLATIONS: dict[Dialect, Callable[[Mapping[str, Any]], list[str]]] = {
    ANTHROPIC: anthropic_violations,
    OPENAI_CHAT: chat_violations,
    OPENAI_RESPONSES: responses_violations,
}

__all__ = ["VIOLATIONS", "anthropic_violations", "chat_violations", "responses_violations"]
