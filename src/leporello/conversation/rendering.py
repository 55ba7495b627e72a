"""The view rendered into one request: valid, with cache breakpoints, in any dialect; and replies read back.

A fold is a value until here. Its text is made for the request at hand: it names the recall tools only where the model
can call them. `recall` None means that nobody knows yet; a fold is then shown as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct

from leporello import caching
from leporello.compaction.assemble import repair
from leporello.compaction.view import Item, Origin, are_joined, join_neighbours
from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT, OPENAI_RESPONSES, Dialect, Target
from leporello.dialects.anthropic.request import DEFAULT_MAX_TOKENS
from leporello.errors import InputError
from leporello.messages import Message, role_of
from leporello.providers.base import ModelReply
from leporello.store.records import FoldLine, View, ViewLine
from leporello.summaries.fold import fold_message
from leporello.turns import groups
from leporello.usage import CanonicalUsage


def decode(reply: Any, provider: str = "", model: str = "") -> ModelReply:
    """The answer, whichever dialect it is in."""
    body = _as_json(reply)
    name = model or str(body.get("model") or "")
    dialect = next((dialect for dialect in DIALECTS.values() if dialect.is_reply(body)), None)
    if dialect is None:
        if body.get("role") == "assistant":
            return ModelReply(dict(body), CanonicalUsage(), has_usage=False)
        raise InputError("the reply is neither a chat completion, a response nor an Anthropic message")
    wire = dialect.decode_reply(body, Target(provider or dialect.api.vendor, name))
    usage = CanonicalUsage.parse(wire.usage)
    return ModelReply(wire.message, usage, wire.finish_reason, wire.model or name, has_usage=wire.usage is not None)


def _as_json(reply: Any) -> Mapping[str, Any]:
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if callable(dump):
        body = dump(mode="json", exclude_unset=True)
        if isinstance(body, Mapping):
            return body
    raise InputError(f"a {type(reply).__name__} is not a reply; give the client's answer object or its JSON")


def rendered_line(line: ViewLine, recall: bool | None) -> ViewLine:
    """The line with its fold's text as this request needs it; what already is so stays as it is, byte for byte."""
    if not isinstance(line, FoldLine) or recall is None or line.summary.recall in (recall, None):
        return line
    return replace(line, message=fold_message(line.summary, role_of(line.message), recall=recall))


def view_items(lines: Sequence[ViewLine], recall: bool | None = None) -> list[Item]:
    """Lines of a stored view as the pipeline takes them."""
    items: list[Item] = []
    number = 0
    for line in lines:
        number = line.number or number
        items.append(_item(rendered_line(line, recall), number))
    return items


def _item(line: ViewLine, number: int) -> Item:
    if isinstance(line, FoldLine):
        return Item(line.summary.span.first, line.message, line.summary, Origin.WRITTEN)
    if line.number is None:
        return Item(number, line.message, origin=Origin.WRITTEN, engine_fold=line.fold or "")
    return Item(number, line.message, origin=Origin.SHORTENED if line.shortened else Origin.LOG)


class SentMessage(Struct, frozen=True):
    """One message of a request, and the lines of the view it comes from; none for a stub that answers a lost call."""

    message: Message
    lines: tuple[ViewLine, ...] = ()


def sent_messages(view: View) -> list[SentMessage]:
    """What `RenderedView` makes of a view, for those who want to know where each message comes from."""
    placed = [
        Item(place, line.message, line.summary if isinstance(line, FoldLine) else None)
        for place, line in enumerate(view.lines)
    ]
    found: list[tuple[Item, tuple[ViewLine, ...]]] = []
    for item in repair(placed):
        lines = () if item.origin is Origin.WRITTEN else (view.lines[item.number],)
        if found and are_joined(found[-1][0], item):
            before, earlier = found.pop()
            found.append((join_neighbours((before, item))[0], (*earlier, *lines)))
        else:
            found.append((item, lines))
    return [SentMessage(item.message, lines) for item, lines in found]


class RenderedView:
    """Follows the view of one conversation."""

    def __init__(self) -> None:
        self._generation = -1
        self._recall: bool | None = None
        self._settled: list[Item] = []
        self._lines = 0
        self._last: ViewLine | None = None
        self.last_fold: int | None = None
        """The place of the last fold in the messages that were rendered last."""

    def messages(self, view: View, recall: bool | None = None) -> list[Message]:
        """What is sent of a view. `recall`: whether the model can call the recall tools."""
        if not self._goes_on(view, recall):
            self._generation, self._recall, self._settled, self._lines, self._last = (
                view.generation,
                recall,
                [],
                0,
                None,
            )
        new = view.lines[self._lines :]
        found = groups([line.message for line in new])
        cut = found[-1].start if found else 0
        if cut:
            self._settle(new[:cut])
        open_end = repair(view_items(new[cut:], recall))
        sent = join_neighbours([*self._settled[-1:], *open_end], self._settled[:-1])
        folds = (place for place in range(len(sent) - 1, -1, -1) if sent[place].fold is not None)
        self.last_fold = next(folds, None)
        return [item.message for item in sent]

    def _goes_on(self, view: View, recall: bool | None) -> bool:
        """Whether the view is the one followed so far, longer at its end."""
        if (view.generation, recall) != (self._generation, self._recall) or len(view.lines) < self._lines:
            return False
        return not self._lines or view.lines[self._lines - 1] is self._last

    def _settle(self, lines: tuple[ViewLine, ...]) -> None:
        fresh = repair(view_items(lines, self._recall), more_follows=True)
        self._settled = join_neighbours([*self._settled[-1:], *fresh], self._settled[:-1])
        self._lines += len(lines)
        self._last = lines[-1]


@dataclass(frozen=True, slots=True)
class Request:
    """What `Conversation.request` returns. `messages` are in OpenAI format, the system prompt first, without marks."""

    conversation: str
    model: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int | None = None
    provider: str = ""
    layout: str = "system_and_3"
    ttl: str = "5m"
    tokens: int = 0
    """The size of the whole request as the meter sees it."""
    room: int | None = None
    """What is left of the window for the answer."""
    summary: int | None = None
    """The place of the last fold in `messages`."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def marked(self, *, native: bool = True) -> list[Message]:
        """The messages with cache breakpoints in the internal form."""
        if self.layout == "anchored":
            return caching.anchored(self.messages, self.ttl, native=native, summary=self.summary)
        return caching.system_and_3(self.messages, self.ttl, native=native)

    def anthropic(self) -> dict[str, Any]:
        """Keyword arguments for `client.messages.create`."""
        target = Target(self.provider or "anthropic", self.model, cache_marks=True, native=True)
        # This API wants to be told how long the answer may be; more than there is room for would be refused.
        most = DEFAULT_MAX_TOKENS if self.room is None else max(1, min(DEFAULT_MAX_TOKENS, self.room))
        return self._encoded(ANTHROPIC, self.marked(), target, self.max_tokens or most)

    def openai_chat(self) -> dict[str, Any]:
        """Keyword arguments for `client.chat.completions.create`."""
        use = caching.cache_use(self.model, self.provider)
        messages: Sequence[Message] = self.marked(native=False) if use.marks else self.messages
        target = Target(self.provider, self.model, cache_marks=use.marks, native=self.provider == "openai")
        return self._encoded(OPENAI_CHAT, messages, target, self.max_tokens)

    def openai_responses(self) -> dict[str, Any]:
        """Keyword arguments for `client.responses.create`."""
        target = Target(self.provider or "openai", self.model, native=True)
        return self._encoded(OPENAI_RESPONSES, self.messages, target, self.max_tokens)

    def _encoded(
        self, dialect: Dialect, messages: Sequence[Message], target: Target, max_tokens: int | None
    ) -> dict[str, Any]:
        return dialect.encode_request(
            messages, self.tools, target=target, max_tokens=max_tokens, options=dict(self.options)
        )
