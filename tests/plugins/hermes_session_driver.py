"""Runs inside an environment with hermes-agent: one run of its command line program. Prints JSON.

Steps are pairs: `say` a message, `command` (/compress, /new, /resume ID), `model` to switch to, `missing` (of these
words: those that recall does not find, or whose message it can't open).
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from cli import HermesCLI


def is_found(cli: HermesCLI, word: str) -> bool:
    def ask(tool: str, **arguments: str) -> dict[str, Any]:
        engine = cli.agent.context_compressor
        answer: dict[str, Any] = json.loads(engine.handle_tool_call(tool, arguments, messages=cli.conversation_history))
        return answer

    ids = [line["id"] for line in ask("lcm_grep", query=word).get("results", ()) if word in json.dumps(line)]
    return bool(ids) and word in json.dumps(ask("lcm_expand", id=ids[0]))


def main(steps: list[list[Any]], resume: str, threshold: int) -> None:
    cli = HermesCLI(toolsets=["context_engine", "todo", "file"], resume=resume or None, compact=True)
    answers: list[Any] = []
    for kind, argument in steps:
        if cli.agent is not None:
            cli.agent.context_compressor.threshold_tokens = threshold
        if kind == "say":
            if cli.agent is None:
                assert cli._init_agent()
                cli.agent.context_compressor.threshold_tokens = threshold
            answers.append(cli.chat(argument))
        elif kind == "command":
            cli.process_command(argument)
            answers.append(cli.session_id)
        elif kind == "model":
            agent = cli.agent
            agent.switch_model(argument, agent.provider, agent.api_key, agent.base_url, agent.api_mode)
            answers.append(agent.model)
        else:
            assert cli.agent is not None or cli._init_agent()
            answers.append([word for word in argument if not is_found(cli, word)])
    engine = cli.agent.context_compressor
    told = {"answers": answers, "session": cli.session_id, "engine": engine.name, "count": engine.compression_count}
    told["messages"] = cli.conversation_history
    if cli.agent is not None:
        # What the program does when it ends.
        cli.agent.shutdown_memory_provider(cli.conversation_history)
    sys.__stdout__.write("\n" + json.dumps(told) + "\n")


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(given["steps"], given["resume"], given["threshold"])
