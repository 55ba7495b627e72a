"""An engine with a database, tools and a command of its own, as plugins for the original host have them."""

import json
import sqlite3

from agent.context_engine import ContextEngine
from hermes_cli.config import get_hermes_home

SCHEMA = {
    "name": "archive_find",
    "description": "Find what the archive holds",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class ArchiveEngine(ContextEngine):
    name = "archive"

    def __init__(self):
        super().__init__(context_length=100_000)
        # A handle that only the thread which made it may use.
        self._db = sqlite3.connect(get_hermes_home() / "archive.db")
        self._db.execute("create table if not exists kept (session text, text text)")
        self.session = ""
        self.starts = []

    def on_session_start(self, session_id, **kwargs):
        self.session = session_id
        self.starts.append((session_id, kwargs))

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens > 0

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=""):
        from agent.auxiliary_client import call_llm

        newest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        gone = messages[:newest]
        self._db.executemany("insert into kept values (?, ?)", [(self.session, str(m.get("content"))) for m in gone])
        self._db.commit()
        asked = [{"role": "user", "content": f"Summarise {len(gone)} messages. Topic: {focus_topic}"}]
        answer = call_llm(task="compression", messages=asked, max_tokens=200)
        self.compression_count += 1
        text = answer.choices[0].message.content
        return [
            {"role": "user", "content": "What happened so far?"},
            {"role": "assistant", "content": text},
            *messages[newest:],
        ]

    def get_tool_schemas(self):
        return [SCHEMA]

    def handle_tool_call(self, name, args, **kwargs):
        if name != SCHEMA["name"]:
            return json.dumps({"error": f"Unknown tool: {name}"})
        pattern = f"%{args.get('text', '')}%"
        rows = self._db.execute("select text from kept where text like ? and session != ''", (pattern,)).fetchall()
        return json.dumps({"found": [row[0] for row in rows], "messages": len(kwargs.get("messages") or [])})


def register(ctx):
    engine = ArchiveEngine()
    ctx.register_context_engine(engine)
    ctx.register_command("archive", lambda text: f"{engine.compression_count} times {text}".strip(), "what it did")
    ctx.register_cli_command("archive", None)
