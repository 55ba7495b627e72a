"""What a host does around one model call of a conversation of a million tokens, measured inside one process.

Executed by the interpreter that has the package: `overhead_driver.py leporello|hermes SESSION FOLDER CALLS`. Prints one
line of JSON: processor seconds of each call. The model itself is left out; its answer is a fixed text.

Each call is: the user's message and the answer are stored (two durable writes), the size of the next request is
estimated, the decision to compress is asked for, and the request's messages are laid out with cache marks. The peer's
steps are its own functions as its loop calls them: `append_message`, `apply_anthropic_cache_control`,
`estimate_messages_tokens_rough`, `should_compress`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

WINDOW = 4_000_000
SYSTEM = "You are a careful engineer."
ANSWER = "Done. " + "The parser keeps the last row now, the tests pass. " * 8

Turn = Callable[[int], None]


def leporello(messages: list[dict[str, Any]], folder: Path) -> Turn:
    from leporello.config import Home, load_settings
    from leporello.conversation import Conversation
    from leporello.providers.base import ModelReply
    from leporello.usage import CanonicalUsage

    settings = load_settings({}, {}, Home(folder))
    conversation = Conversation.open(
        model="claude-sonnet-4-5", window=WINDOW, store=f"sqlite:///{folder}/a.db", settings=settings
    )
    conversation.append(*messages)
    reply = {"role": "assistant", "content": ANSWER}

    def turn(number: int) -> None:
        conversation.append({"role": "user", "content": f"Question {number}: what about port {8000 + number}?"})
        request = conversation.request(system=SYSTEM)
        request.marked()
        conversation.record(ModelReply(dict(reply), CanonicalUsage(request.tokens, 90)))

    return turn


def hermes(messages: list[dict[str, Any]], folder: Path) -> Turn:
    os.environ["HERMES_HOME"] = str(folder)
    logging.disable(logging.CRITICAL)
    from agent.context_compressor import ContextCompressor
    from agent.model_metadata import estimate_messages_tokens_rough
    from agent.prompt_caching import apply_anthropic_cache_control
    from hermes_state import SessionDB

    db = SessionDB(folder / "state.db")
    db.create_session("s", "cli")
    engine = ContextCompressor(model="claude-sonnet-4-5", config_context_length=WINDOW, quiet_mode=True)
    view = [{"role": "system", "content": SYSTEM}]

    def add(message: dict[str, Any]) -> None:
        view.append(message)
        db.append_message(
            "s",
            message["role"],
            message.get("content"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
        )

    for message in messages:
        add(message)

    def turn(number: int) -> None:
        add({"role": "user", "content": f"Question {number}: what about port {8000 + number}?"})
        sent = apply_anthropic_cache_control(view, native_anthropic=True)
        engine.should_compress(estimate_messages_tokens_rough(sent))
        add({"role": "assistant", "content": ANSWER})

    return turn


def main(name: str, session: str, folder: str, calls: str) -> None:
    messages = json.loads(Path(session).read_text(encoding="utf-8"))["messages"]
    turn = {"leporello": leporello, "hermes": hermes}[name](messages, Path(folder))
    turn(0)
    times = []
    for number in range(1, int(calls) + 1):
        begun = time.process_time()
        turn(number)
        times.append(time.process_time() - begun)
    tracemalloc.start()
    turn(int(calls) + 1)
    before = tracemalloc.get_traced_memory()[0]
    for number in range(int(calls) + 2, int(calls) * 2 + 2):
        turn(number)
    grown = (tracemalloc.get_traced_memory()[0] - before) / int(calls)
    print(json.dumps({"seconds": times, "bytes_per_call": grown}))


if __name__ == "__main__":
    main(*sys.argv[1:5])
