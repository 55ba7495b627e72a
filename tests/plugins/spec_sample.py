"""The shape of a plugin, whole, as the documentation of the original interface shows it; typed by hand."""

TINY = """\
# plugins/context_engine/tiny/__init__.py
import json
from agent.context_engine import ContextEngine

class TinyEngine(ContextEngine):
    name = "tiny"
    def update_from_response(self, usage):
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens > 0
    def compress(self, messages, current_tokens=None, focus_topic=None):
        self.compression_count += 1
        return messages[:2] + messages[-10:]
    def get_tool_schemas(self):
        return [{"name": "tiny_grep", "description": "Search the history",
                 "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}]
    def handle_tool_call(self, name, args, **kwargs):
        return json.dumps({"results": []} if name == "tiny_grep" else {"error": f"Unknown tool: {name}"})

def register(ctx):
    ctx.register_context_engine(TinyEngine(context_length=200000))
"""
