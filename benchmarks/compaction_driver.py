"""Compacts sessions in a process of its own, one for each line of its input: `compaction_driver.py ENGINE WINDOW HOME`.

Executed by the interpreter that has the package. A line names a file of messages; the answer is one line of JSON with
processor seconds. After the first line, which warms it up, each measurement is made in a copy of the process: what one
comes to know of a text is not known to the next. The peer has no mode without a model: its look-up of a summary
provider is answered at once by the error that its own client raises (`hermes`), or left as shipped (`hermes-shipped`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Messages = list[dict[str, Any]]


Measurement = Callable[[Messages], dict[str, Any]]


def leporello(window: int) -> tuple[Measurement, ...]:
    from leporello import compress
    from leporello.engines.compressor import ContextCompressor

    def cold(messages: Messages) -> dict[str, Any]:
        begun = time.process_time()
        result = list(compress(messages, window=window))
        return {"cold": time.process_time() - begun, "result": result}

    def warm(messages: Messages) -> dict[str, Any]:
        engine: Any = ContextCompressor(window)
        appends = []
        for number, message in enumerate(messages, 1):
            begun = time.process_time()
            if hasattr(engine, "observe"):  # up to 0.1.0
                engine.observe(message)
            else:
                engine.ledger.add(number, message)
                engine.counter.message(message)
            appends.append(time.process_time() - begun)
        begun = time.process_time()
        engine.compress(messages, force=True)
        return {"warm": time.process_time() - begun, "appends": appends}

    return cold, warm


def hermes(window: int, *, shipped: bool = False) -> tuple[Measurement, ...]:
    logging.disable(logging.CRITICAL)
    from agent import context_compressor
    from agent.context_compressor import ContextCompressor

    def no_provider(**_: object) -> object:
        raise RuntimeError("No LLM provider configured")

    if not shipped:
        context_compressor.call_llm = no_provider

    def cold(messages: Messages) -> dict[str, Any]:
        engine = ContextCompressor(model="gpt-4.1", config_context_length=window, quiet_mode=True)
        begun = time.process_time()
        result = engine.compress(messages, current_tokens=window)
        return {"cold": time.process_time() - begun, "result": result}

    return (cold,)


def apart(measure: Measurement, file: Path) -> dict[str, Any]:
    """What is measured in a copy of this process."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(sending, "w") as answer:
            json.dump(measure(read(file)), answer, default=str)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as answer:
        measured: dict[str, Any] = json.load(answer)
    os.waitpid(child, 0)
    return measured


def read(file: Path) -> Messages:
    messages: Messages = json.loads(file.read_text(encoding="utf-8"))
    return messages


def main(engine: str, window: str, home: str) -> None:
    os.environ["HERMES_HOME"] = home
    make = {"leporello": leporello, "hermes": hermes, "hermes-shipped": lambda size: hermes(size, shipped=True)}
    measurements = make[engine](int(window))
    for place, line in enumerate(sys.stdin):
        file = Path(line.strip())
        parts = [apart(measure, file) if place else measure(read(file)) for measure in measurements]
        print(json.dumps({name: value for part in parts for name, value in part.items()}, default=str), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
