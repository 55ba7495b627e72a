"""A stub server that refuses what the vendors' servers refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, Dialect
from leporello.testing.stub_server import Step, StubServer
from tests.support.wire import VIOLATIONS, anthropic_violations, chat_violations


def strict_server(
    script: Iterable[Step] = (),
    *,
    answers: Mapping[str, Any] | None = None,
    router: bool = False,
    tool_search: bool = True,
) -> StubServer:
    """With `router`, chat requests may carry cache marks and reasoning, as OpenRouter takes them.

    Without `tool_search` Anthropic's dialect has no deferred loading of tools.
    """

    def violations(dialect: Dialect, body: Mapping[str, Any]) -> list[str]:
        if dialect is ANTHROPIC and not tool_search:
            return anthropic_violations(body, tool_search=False)
        if router and dialect is OPENAI_CHAT:
            return chat_violations(body, marks=True, reasoning=True)
        check = VIOLATIONS.get(dialect)
        return check(body) if check else []

    return StubServer(script, answers=answers, violations=violations)
