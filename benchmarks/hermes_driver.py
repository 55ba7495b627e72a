"""Runs hermes-agent's context compressor on a session, without a network. Executed by that package's own interpreter.

Arguments: session file, window, repeats, an empty home folder. Prints one line of JSON.

The compressor is driven through its public class, as its host does it: construct with a window, call `compress`. It has
no model-free mode of its own; when no summary provider is there, it drops the middle and inserts a fixed notice with
what it can gather from the dropped turns. That path is timed twice: as shipped, where each attempt first looks for a
provider, and with that look-up answered at once (`RuntimeError`, as its client raises it), so that only the
compressor's own work is left. The second is the figure to compare with.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time


def main(session_file: str, window: str, repeats: str, home: str) -> None:
    os.environ["HERMES_HOME"] = home
    logging.disable(logging.CRITICAL)
    started = time.perf_counter()
    from agent import context_compressor
    from agent.context_compressor import ContextCompressor

    imported = time.perf_counter() - started
    with open(session_file, encoding="utf-8") as file:
        messages = json.load(file)["messages"]

    def once() -> tuple[tuple[float, float], list[dict[str, object]]]:
        engine = ContextCompressor(model="gpt-4.1", config_context_length=int(window), quiet_mode=True)
        wall, cpu = time.perf_counter(), time.process_time()
        result = engine.compress(messages, current_tokens=int(window))
        return (time.perf_counter() - wall, time.process_time() - cpu), result

    shipped = [once()[0] for _ in range(int(repeats))]

    def no_provider(**_: object) -> object:
        raise RuntimeError("No LLM provider configured")

    context_compressor.call_llm = no_provider
    alone = [once() for _ in range(int(repeats))]
    print(
        json.dumps(
            {
                "import_seconds": imported,
                "as_shipped": shipped,
                "alone": [times for times, _ in alone],
                "messages_after": len(alone[0][1]),
                "result": alone[0][1],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:5])
