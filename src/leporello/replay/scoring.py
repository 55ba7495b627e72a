"""Whether a gold text occurs in a context: case and white space folded, JSON escapes decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from leporello.messages import Message, calls_of, is_result, parse_json


def fold(text: str) -> str:
    """Case and white space don't matter."""
    return " ".join(text.split()).casefold()


class Haystack:
    """All text of a context, ready to be asked many times."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = fold("\n".join(texts))

    def has(self, gold: str) -> bool:
        """Whether the gold text occurs, word for word."""
        return fold(gold) in self._text


def texts_of(messages: Iterable[Message]) -> Iterator[str]:
    """Every text a model would read in these messages, JSON both as written and decoded."""
    for message in messages:
        yield from _leaves(message.get("content"))
        for call in calls_of(message):
            yield call.arguments
        yield from decoded_texts_of(message)


def decoded_texts_of(message: Message) -> Iterator[str]:
    """The text of one message with JSON strings decoded: what a person would read."""
    content = message.get("content")
    if is_result(message) and isinstance(content, str):
        yield from _decoded(content) or [content]
    else:
        yield from _leaves(content)
    for call in calls_of(message):
        yield call.name
        yield from _decoded(call.arguments) or [call.arguments]


def recovered_texts(answer: str) -> Iterator[str]:
    """The texts of a search answer: as it is, and with its JSON strings decoded when it is JSON."""
    yield answer
    yield from _decoded(answer)


def _decoded(text: str) -> list[str]:
    """The strings inside a JSON text; nothing when it is not JSON."""
    return list(_leaves(parse_json(text))) if text.lstrip()[:1] in ("{", "[") else []


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
