"""A LangChain agent whose conversation never outgrows its window. Runs without a key: the model here is a script.

pip install leporello langchain
python examples/langchain_agent.py
"""

from __future__ import annotations

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from leporello.adapters.langchain import LeporelloMiddleware

WINDOW = 16_000


class ScriptedModel(BaseChatModel):
    """Reads one page in each turn; at the end it looks up what it was told at the beginning."""

    sent: list[list[Any]] = Field(default_factory=list)
    _llm_type = "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.sent.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: list[Any]) -> AIMessage:
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return AIMessage(f"Done: {newest.content[:200]}")
    asked = newest.content
    name, arguments = ("lcm_grep", {"query": "code word"}) if "code word?" in asked else ("read_page", {"number": 1})
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{len(messages)}-{len(asked)}"}])


@tool
def read_page(number: int) -> str:
    """Read a page of the manual."""
    return f"Page {number}: " + "the valve opens when the pressure in the second chamber falls. " * 40


def main() -> None:
    """Forty turns, then a question about the first one."""
    model = ScriptedModel()
    agent = create_agent(model, [read_page], middleware=[LeporelloMiddleware(window=WINDOW)])
    state: dict[str, Any] = {"messages": [HumanMessage("The code word is heliotrope. Keep it in mind.")]}
    state = agent.invoke(state)
    for turn in range(40):
        state["messages"].append(HumanMessage(f"Read page {turn} for me."))
        state = agent.invoke(state)
    state["messages"].append(HumanMessage("What was the code word?"))
    state = agent.invoke(state)
    sizes = [len(messages) for messages in model.sent]
    print(
        json.dumps(
            {
                "kept": len(state["messages"]),
                "most_sent": max(sizes),
                "last_sent": [message.model_dump(include={"type", "content"}) for message in model.sent[-1]],
                "stable": sum(_grows(one, two) for one, two in zip(model.sent, model.sent[1:], strict=False)),
                "calls": len(model.sent),
                "answer": state["messages"][-1].content,
            }
        )
    )


def _grows(one: list[Any], two: list[Any]) -> bool:
    """Whether a request begins with the whole of the one before it, so that the provider's cache holds."""
    return [message.content for message in two[: len(one)]] == [message.content for message in one]


if __name__ == "__main__":
    main()
