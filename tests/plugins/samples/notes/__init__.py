"""A general plugin: an engine, a tool, a command, hooks and a summariser through register(ctx)."""

import json

from leporello.engines.base import ContextEngine

told = []


class NotesEngine(ContextEngine):
    name = "notes"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens > 0

    def compress(self, messages, current_tokens=None, focus_topic=None):
        newest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        return messages[newest:]


def summarise(prompt, max_tokens):
    return "## Goal\n- Written by the plugin\n\n## Critical Context\n- Nothing is known"


def register(ctx):
    ctx.register_context_engine(NotesEngine())
    ctx.register_tool(
        name="note_down",
        toolset="notes",
        schema={"description": "Note it", "parameters": {"type": "object", "properties": {}}},
        handler=lambda args, **kwargs: json.dumps({"noted": args}),
    )
    ctx.register_command("notes", lambda text: f"noted {text}", description="show notes", args_hint="[text]")
    for hook in ("pre_compaction", "post_compaction", "session_start", "session_end"):
        ctx.register_hook(hook, lambda _hook=hook, **facts: told.append((_hook, facts)))
    ctx.register_hook("pre_gateway_dispatch", lambda **facts: None)
    ctx.register_summariser("notes", summarise)
