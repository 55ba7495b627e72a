"""What a resumed conversation was about, in a few lines, secrets masked."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.chat.clean import one_line
from leporello.conversation import Conversation
from leporello.messages import calls_of, role_of, text_of
from leporello.redact import redact

SHOWN_ASK = 200
SHOWN_ANSWER = 1_200


@dataclass(frozen=True, slots=True)
class Recap:
    """The newest request, its answer when there is one, and how the conversation stands."""

    ask: str
    answer: str
    unanswered: bool
    line: str


def recap(talk: Conversation) -> Recap:
    """Read from the newest messages only."""
    lines = talk.view.lines
    ask = ""
    answer = ""
    for line in reversed(lines):
        if line.fold:
            continue
        role = role_of(line.message)
        if role == "assistant" and not answer and not ask and not calls_of(line.message):
            answer = text_of(line.message).strip()
        elif role == "user":
            ask = text_of(line.message)
            break
    count = talk.view.last
    folded = f", folded {talk.compressions}×" if talk.compressions else ""
    return Recap(
        _cut(one_line(redact(ask)), SHOWN_ASK),
        _cut(redact(answer), SHOWN_ANSWER),
        bool(ask) and not answer,
        f"{talk.id} · {count:,} {'message' if count == 1 else 'messages'}{folded}",
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"
