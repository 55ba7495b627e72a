"""Runs inside an environment with hermes-agent: its own loader finds, selects and uses our engine. Prints JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hermes_cli.plugins import get_plugin_context_engine
from run_agent import AIAgent


def main(session: Path, home: Path) -> None:
    messages = json.loads(session.read_text(encoding="utf-8"))
    found = get_plugin_context_engine()
    seen = {"found": found.name}
    agents = [
        AIAgent(
            base_url="http://127.0.0.1:9/v1",
            api_key="none",
            model="gpt-4o",
            quiet_mode=True,
            session_id=f"s{number}",
            skip_memory=True,
        )
        for number in (1, 2)
    ]
    engine, other = (agent.context_compressor for agent in agents)
    seen |= {
        "selected": engine.name,
        "type": type(engine).__name__,
        "separate": engine is not other and engine is not found,
        "window": engine.context_length,
        "tools": sorted(agents[0]._context_engine_tool_names),
        "offered": sorted(
            tool["function"]["name"] for tool in agents[0].tools if tool["function"]["name"].startswith("lcm_")
        ),
    }
    engine.update_model(model="gpt-4o", context_length=24_000)
    seen["threshold"] = engine.threshold_tokens
    engine.update_from_response({"prompt_tokens": 20_000, "completion_tokens": 5, "total_tokens": 20_005})
    seen["due"] = engine.should_compress()
    folded, _ = agents[0]._compress_context(messages, "You are careful.", approx_tokens=20_000)
    seen |= {"before": len(messages), "after": len(folded), "count": engine.compression_count}
    seen["messages"] = folded
    # What Hermes does when it keeps its sessions in its database.
    engine.on_session_start("s1-2", boundary_reason="compression", old_session_id="s1", hermes_home=str(home))
    grep = engine.handle_tool_call("lcm_grep", {"query": "blue heron password"}, messages=folded)
    seen["grep"] = json.loads(grep)
    seen["expand"] = json.loads(engine.handle_tool_call("lcm_expand", {"id": "f1"}, messages=folded))
    seen["unknown"] = json.loads(engine.handle_tool_call("nothing", {}, messages=folded))
    seen["status"] = engine.get_status()
    engine.on_session_reset()
    seen["reset"] = [engine.compression_count, engine.last_prompt_tokens, other.compression_count]
    print(json.dumps(seen))


if __name__ == "__main__":
    os.environ.setdefault("HERMES_QUIET", "1")
    main(Path(sys.argv[1]), Path(os.environ["HERMES_HOME"]))
