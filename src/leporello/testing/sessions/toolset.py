"""System prompt and tool schemas of a generated session."""

from __future__ import annotations

from typing import Any

_TOOLS = {
    "terminal": ("Run a shell command and return its output and exit code.", {"command": "string"}),
    "read_file": ("Read lines of a text file.", {"path": "string", "offset": "integer", "limit": "integer"}),
    "write_file": ("Write a whole file.", {"path": "string", "content": "string"}),
    "patch": ("Replace one passage of a file.", {"path": "string", "old_string": "string", "new_string": "string"}),
    "search_files": ("Search file contents by regular expression.", {"pattern": "string", "path": "string"}),
    "web_search": ("Search the web.", {"query": "string"}),
    "web_extract": ("Read the text of web pages.", {"urls": "array"}),
    "mcp_tracker_get": ("Fetch an issue of the tracker.", {"issue": "object", "depth": "integer"}),
}


def tool_schemas() -> tuple[dict[str, Any], ...]:
    """The tools in OpenAI format."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": {key: _property(kind) for key, kind in fields.items()},
                    "required": list(fields)[:1],
                },
            },
        }
        for name, (description, fields) in _TOOLS.items()
    )


def _property(kind: str) -> dict[str, Any]:
    return {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind}


def system_prompt(project: str) -> str:
    """A short system prompt that names the project."""
    return (
        f"You are a careful software engineer working on the repository `{project}`. Use the tools to read before you "
        "write, keep changes small, run the tests, and report plainly what you did and what is still open."
    )
