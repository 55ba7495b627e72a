"""Slash commands that need the command line's own code, for `chat` and `run`."""

from __future__ import annotations

from pathlib import Path

from leporello.agent.commands import SlashCommand
from leporello.cli.files import must_be_new, open_atomically
from leporello.conversation import Conversation
from leporello.errors import InputError
from leporello.present.conversation import json_lines, markdown
from leporello.present.text import safe

_WRITERS = {".md": markdown, ".jsonl": json_lines}


def _export(talk: Conversation, argument: str) -> str:
    path = Path(argument or f"leporello-{talk.id}.md").expanduser()
    write = _WRITERS.get(path.suffix)
    if write is None:
        raise InputError(f"{path.name} must end with .md (to read) or .jsonl (for programs).")
    must_be_new(path, "Name another file.")
    record = talk.runtime.log.store.conversations.resolve(talk.id)
    with open_atomically(path, private=True) as file:
        for piece in write(talk.runtime.log.store, record, False):
            file.write(piece.encode())
    return f"Written to {safe(str(path))}: {record.messages:,} messages."


COMMANDS: dict[str, SlashCommand] = {
    "export": SlashCommand("write the whole conversation to a .md or .jsonl file", _export, "[file]", ("save",)),
}
