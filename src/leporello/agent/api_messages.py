"""The messages of one request: system prompt, the conversation, and what was recalled for this step only.

Three lists that are never mixed up: the conversation as it is stored, the system prompt (never stored among it), and
this one, which is made anew for each request and thrown away. Recalled text stands at the very end, behind everything
that will be sent again: so the next request, without it, still begins with the same bytes.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from leporello.agent.system_prompt import SystemPrompt
from leporello.messages import Message, Messages, role_of


def api_messages(system: SystemPrompt | None, messages: Messages, recalled: str = "") -> list[Message]:
    """What is sent. Neither the messages nor the list itself are changed."""
    sent = [] if system is None else [system.message()]
    sent.extend(messages)
    if not recalled.strip():
        return sent
    block = {"type": "text", "text": _framed(recalled)}
    if messages and role_of(messages[-1]) == "user":
        sent[-1] = {**messages[-1], "content": [*_as_blocks(messages[-1].get("content")), block]}
    else:
        sent.append({"role": "user", "content": [block]})
    return sent


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _framed(recalled: str) -> str:
    template = (resources.files("leporello.agent") / "prompts" / "recalled.md").read_text("utf-8")
    return template.strip().replace("{passages}", recalled.strip())
