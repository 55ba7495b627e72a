"""A stub server that refuses what the vendors' servers refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leporello.dialects import OPENAI_CHAT, Dialect
from leporello.testing.stub_server import Step, StubServer
from tests.support.wire import VIOLATIONS, chat_violations


def strict_server(
    script: Iterable[Step] = (), *, answers: Mapping[str, Any] | None = None, router: bool = False
) -> StubServer:
    """With `router`, chat requests may carry cache marks and reasoning, as OpenRouter takes them."""

    def violations(dialect: Dialect, body: Mapping[str, Any]) -> list[str]:
        if router and dialect is OPENAI_CHAT:
            return chat_violations(body, marks=True, reasoning=True)
        check = VIOLATIONS.get(dialect)
        return check(body) if check else []

    return StubServer(script, answers=answers, violations=violations)
