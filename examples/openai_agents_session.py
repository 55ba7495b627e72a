"""An OpenAI Agents SDK agent with a session that folds. Runs without a key: the model here is a script.

pip install leporello openai-agents
python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from leporello.adapters.openai_agents import LeporelloSession

WINDOW = 16_000


class ScriptedModel(Model):
    """Reads one page in each turn; at the end it looks up what it was told at the beginning."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        items = list(input)
        self.sent.append(items)
        return ModelResponse(output=[_answer(items)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _answer(items: list[Any]) -> Any:
    newest = items[-1]
    if newest.get("type") == "function_call_output":
        text = ResponseOutputText(text=f"Done: {str(newest['output'])[:200]}", type="output_text", annotations=[])
        return ResponseOutputMessage(
            id=f"msg-{len(items)}", type="message", role="assistant", status="completed", content=[text]
        )
    asked = str(newest["content"])
    name, arguments = ("lcm_grep", {"query": "code word"}) if "code word?" in asked else ("read_page", {"number": 1})
    call_id = f"call-{len(items)}-{len(asked)}"
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments))


@function_tool
def read_page(number: int) -> str:
    """Read a page of the manual."""
    return f"Page {number}: " + "the valve opens when the pressure in the second chamber falls. " * 40


async def main() -> None:
    """Forty turns, then a question about the first one, in a second process for all that the session knows."""
    set_tracing_disabled(True)
    model = ScriptedModel()
    config = RunConfig(model=model)
    session = LeporelloSession("manual", model="gpt-4o", window=WINDOW)
    agent = Agent("Reader", tools=[read_page, *session.tools()])
    await Runner.run(agent, "The code word is heliotrope. Keep it in mind.", session=session, run_config=config)
    for turn in range(40):
        await Runner.run(agent, f"Read page {turn} for me.", session=session, run_config=config)
    session.close()
    session = LeporelloSession("manual", model="gpt-4o", window=WINDOW)
    agent = Agent("Reader", tools=[read_page, *session.tools()])
    result = await Runner.run(agent, "What was the code word?", session=session, run_config=config)
    # A branch shows what was shown up to its last message: one more page is read until no fold was made since.
    folds = -1
    while folds != session.talk.runtime.log.compactions:
        folds = session.talk.runtime.log.compactions
        await Runner.run(agent, "Read one more page for me.", session=session, run_config=config)
        await session.get_items()  # when they are read, a fold that is due is made
    kept = session.talk.runtime.log.store.log.count(session.talk.id)
    before = await session.get_items()
    newest = await session.pop_item()
    after = await session.get_items()
    limited = await session.get_items(limit=2)
    await session.add_items([newest])
    again = await session.get_items()
    await session.clear_session()
    print(
        json.dumps(
            {
                "kept": kept,
                "most_sent": max(len(items) for items in model.sent),
                "last_sent": model.sent[-1],
                "calls": len(model.sent),
                "answer": result.final_output,
                "folded": session.talk.runtime.log.compactions,
                "popped": newest == before[-1] and after == before[:-1] and again == before,
                "limited": limited == after[-2:],
                "cleared": await session.get_items(),
            }
        )
    )
    session.close()


if __name__ == "__main__":
    asyncio.run(main())
