"""Serves hermes-agent's context compressor to a replay, without a network. Executed by that package's own interpreter.

Arguments: window, an empty home folder. Reads one JSON object per line and answers with one: `{"tokens": N}` asks
whether it is time, `{"messages": [...], "tokens": N}` compresses, `{"usage": {...}}` tells what the provider counted.

No summary model is there. Its call is answered by an error, as its client raises it, and what the compressor then
writes by itself stands in for the summary; the guards that would stop it after two such failures are reset, because
with a model there would have been none. What the call would have sent is counted in characters.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any


def main(window: str, home: str) -> None:
    os.environ["HERMES_HOME"] = home
    logging.disable(logging.CRITICAL)
    from agent import context_compressor
    from agent.context_compressor import ContextCompressor

    asked: list[str] = []

    def no_provider(**request: Any) -> object:
        asked.append(json.dumps(request.get("messages"), ensure_ascii=False))
        raise RuntimeError("No LLM provider configured")

    context_compressor.call_llm = no_provider
    # A model it knows, so that it does not ask the network for the window.
    engine = ContextCompressor(model="gpt-4.1", config_context_length=int(window), quiet_mode=True)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the package prints is no answer
    for line in sys.stdin:
        order = json.loads(line)
        engine._summary_failure_cooldown_until = 0.0
        engine._fallback_compression_streak = 0
        if "usage" in order:
            engine.update_from_response(order["usage"])
            answer: Any = {}
        elif "messages" in order:
            asked.clear()
            messages = engine.compress(order["messages"], current_tokens=order["tokens"])
            answer = {"messages": messages, "summary": asked[0] if asked else ""}
        else:
            answer = {"due": engine.should_compress(order["tokens"])}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:3])
