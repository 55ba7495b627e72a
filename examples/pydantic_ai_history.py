"""A Pydantic AI agent whose history is folded before each request. Runs without a key: the model here is a script.

pip install leporello pydantic-ai-slim
python examples/pydantic_ai_history.py
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.function import AgentInfo, FunctionModel

from leporello.adapters.pydantic_ai import FoldHistory

WINDOW = 16_000
sent: list[list[ModelMessage]] = []


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Reads one page in each turn."""
    sent.append(list(messages))
    newest = messages[-1].parts[-1]
    if isinstance(newest, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"Done: {str(newest.content)[:200]}")])
    return ModelResponse(parts=[ToolCallPart("read_page", {"number": 1}), ToolCallPart("read_page", {"number": 2})])


fold = ProcessHistory(FoldHistory(window=WINDOW))
agent = Agent(FunctionModel(scripted), instructions="Be brief.", capabilities=[fold])


@agent.tool_plain
def read_page(number: int) -> str:
    """Read a page of the manual."""
    return f"Page {number}: " + "the valve opens when the pressure in the second chamber falls. " * 20


def main() -> None:
    """Forty turns."""
    history: list[ModelMessage] = []
    rule = "Never open the main valve. Keep that in mind."
    for turn in range(40):
        asked = rule if not turn else f"Read page {turn} for me."
        result = agent.run_sync(asked, message_history=history)
        history = result.all_messages()
    last: list[Any] = json.loads(ModelMessagesTypeAdapter.dump_json(sent[-1]))
    print(
        json.dumps(
            {
                "most_sent": max(map(len, sent)),
                "calls": len(sent),
                "last_sent": last,
                "same_objects": sum(message in sent[-1] for message in history[-6:]),
                "answer": result.output,
            }
        )
    )


if __name__ == "__main__":
    main()
