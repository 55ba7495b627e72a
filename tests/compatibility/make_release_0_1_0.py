"""Made the files beside it, run with the code of release 0.1.0: `python make.py FOLDER`. Kept to show what they hold.

A home folder with a store (two engines, folds, an undo, pins, a saved output, an imported session, inbox messages), a
config.yaml, exported conversations, a list that `compress()` folded, and `expected.json`: what 0.1.0 read back from it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

CONFIG = """\
# A comment that stays.
context:
  engine: compressor
compression:
  threshold: 0.45
  target_ratio: 0.25
  protect_last_n: 12
model:
  default: gpt-4o
  context_length: 32000
prompt_caching:
  cache_ttl: 1h
providers:
  corner:
    base_url: http://127.0.0.1:9/v1
lcm:
  fan_in: 4
"""


def session(name: str, turns: int) -> list[dict]:
    """Requests, rules, tool calls with long results, answers."""
    messages = [
        {"role": "user", "content": f"Work on {name}. Never touch the public API of {name}. Always run make check."}
    ]
    for number in range(turns):
        run = {"name": "terminal", "arguments": json.dumps({"command": f"pytest tests/test_{name}_{number}.py"})}
        messages.append(
            {
                "role": "assistant",
                "content": f"I run the tests of part {number}.",
                "tool_calls": [{"id": f"{name}{number}", "type": "function", "function": run}],
            }
        )
        lines = [f"tests/test_{name}_{number}.py::test_{k} FAILED in {k}.{number} s" for k in range(12)]
        messages.append({"role": "tool", "tool_call_id": f"{name}{number}", "content": "\n".join(lines)})
        messages.append(
            {
                "role": "assistant",
                "content": f"Part {number} of {name} fails in 40 tests: port {9000 + number} is taken.",
            }
        )
        messages.append(
            {"role": "user", "content": f"Use port {7000 + number} for part {number} then. Grüße, 漢字 {number}."}
        )
    return messages


def main(folder: Path) -> None:
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    os.environ["LEPORELLO_HOME"] = str(home)
    (home / "config.yaml").write_text(CONFIG, encoding="utf-8")

    from leporello import Conversation, compress, load_settings
    from leporello.cli import main as cli
    from leporello.config import SETTINGS
    from leporello.store import open_store
    from leporello.store.records import Metadata

    expected: dict = {"settings": {}, "conversations": {}}
    settings = load_settings()
    for setting in SETTINGS:
        if "<" not in setting.name:
            expected["settings"][setting.name] = settings.get(setting.name)

    for name, engine in (("api", "compressor"), ("worker", "lcm")):
        os.environ["LEPORELLO_CONTEXT__ENGINE"] = engine
        chosen = load_settings()
        with Conversation.open(
            name, model="gpt-4o", window=9_000, settings=chosen, metadata=Metadata(model="gpt-4o", title=f"The {name}")
        ) as talk:
            for message in session(name, 45):
                talk.append(message)
                if message["role"] == "user":
                    talk.request(system="You are careful.")
            talk.compact()
            talk.compact("port")
            if name == "api":
                talk.pins.add("m4")
                call = {"id": "big", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
                talk.append({"role": "assistant", "content": None, "tool_calls": [call]})
                talk.tool_result("big", "one line of a large output\n" * 5_000)
                talk.append({"role": "user", "content": "And now the last question."})
                for message in session("more", 12):
                    talk.append(message)
                talk.compact()
                talk.undo()
    os.environ.pop("LEPORELLO_CONTEXT__ENGINE")

    imported = folder / "imported.json"
    imported.write_text(json.dumps(session("imported", 5)), encoding="utf-8")
    run(cli, "import", str(imported))
    imported.unlink()

    store = open_store(load_settings().store_url)
    for record in store.conversations.page().conversations:
        with Conversation.open(record.id, window=9_000, store=store, model="gpt-4o") as talk:
            log = [line.message for line in store.log.iterate(record.id)]
            expected["conversations"][record.id] = {
                "title": record.metadata.title,
                "log": log,
                "view": talk.messages,
                "request": list(talk.request(system="You are careful.").messages),
                "search": [window.message for window in talk.search("port 7003")],
            }
            out = folder / {"api": "api.jsonl", "worker": "worker.jsonl"}.get(record.id, "imported.jsonl")
            run(cli, "sessions", "export", record.id, "--out", str(out))
    store.close()
    folded = list(compress(session("plain", 60), window=9_000))
    (folder / "folded.json").write_text(json.dumps(folded, ensure_ascii=False, indent=1), encoding="utf-8")
    (folder / "expected.json").write_text(
        json.dumps(expected, ensure_ascii=False, indent=1, default=str), encoding="utf-8"
    )


def run(cli, *arguments: str) -> None:
    try:
        cli(list(arguments))
    except SystemExit as ended:
        if ended.code not in (0, None):
            raise


main(Path(sys.argv[1]).resolve())
