"""Middleware for LangChain agents (and LangGraph, on which they run): each model call sees the conversation folded.

    from langchain.agents import create_agent
    from leporello.adapters.langchain import LeporelloMiddleware

    agent = create_agent(model, tools, middleware=[LeporelloMiddleware(window=128_000)])

The agent's state keeps every message; only what is sent is folded, and the same way until more must be. The model gets
the recall tools, which read the state, so that everything that was folded can be found and opened again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AnyMessage, ToolMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.tools import BaseTool, StructuredTool

from leporello.adapters.lists import FoldedLists
from leporello.messages import Message, encode_json
from leporello.recall.tools import SCHEMAS, TOOL_NAMES, RecallTools


class LeporelloMiddleware(AgentMiddleware):
    """Folds what is sent to the model. One instance serves any number of threads and conversations."""

    def __init__(
        self, *, window: int | None = None, model: str | None = None, engine: str = "compressor", recall: bool = True
    ) -> None:
        super().__init__()
        self._lists = FoldedLists(window=window, model=model, engine=engine, recall=recall)
        self.tools: Sequence[BaseTool] = [_tool(schema) for schema in SCHEMAS] if recall else []

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._folded(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._folded(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Answer the recall tools from the state, and pass all others on."""
        return self._recalled(request) or handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return self._recalled(request) or await handler(request)

    def _folded(self, request: Any) -> Any:
        fixed = self._lists.count(encode_json([_described(tool) for tool in request.tools]).decode())
        if request.system_message is not None:
            fixed += self._lists.count(str(request.system_message.content))
        shown = self._lists.show(_as_dicts(request.messages), fixed)
        if all(line.place is not None for line in shown):
            return request
        messages = [
            request.messages[line.place] if line.place is not None else convert_to_messages([line.message])[0]
            for line in shown
        ]
        return request.override(messages=messages)

    def _recalled(self, request: Any) -> ToolMessage | None:
        call = request.tool_call
        if call["name"] not in TOOL_NAMES or not self.tools:
            return None
        archive = self._lists.archive(_as_dicts(request.state["messages"]))
        answer = RecallTools(archive, self._lists.count).handle(call["name"], call["args"])
        return ToolMessage(answer, tool_call_id=call["id"], name=call["name"])


def _as_dicts(messages: Sequence[AnyMessage]) -> list[Message]:
    """One OpenAI-format message for each of LangChain's."""
    return [dict(convert_to_openai_messages(message)) for message in messages]


def _tool(schema: dict[str, Any]) -> BaseTool:
    def answered_by_the_middleware(**_: Any) -> str:
        return ""

    return StructuredTool(
        name=schema["name"],
        description=schema["description"],
        args_schema=schema["parameters"],
        func=answered_by_the_middleware,
    )


def _described(tool: Any) -> Any:
    if isinstance(tool, dict):
        return tool
    return {"name": tool.name, "description": tool.description, "parameters": tool.get_input_jsonschema()}
