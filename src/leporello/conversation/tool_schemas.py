"""Which of the tools a host offers stand in the requests of a conversation, and the answer to `find_tools`.

Those never used give way to one `find_tools`. Schemas stand before everything else, so another set breaks the prompt
cache from its first byte: it changes only with a compaction or when the cache is cold, and a tool that is needed
earlier comes back at the price of that break. The set is kept in the store: a restart, or another worker, changes no
byte of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import Struct

from leporello.caching import MARK
from leporello.conversation.compactor import Compactor
from leporello.conversation.log import ConversationLog
from leporello.conversation.sizes import PromptSizes
from leporello.dialects.pieces import DEFERRED, function_of, tool_name
from leporello.messages import calls_of, encode_json
from leporello.policy.decision import saves_enough
from leporello.recall.tools import TOOL_NAMES

FIND_TOOLS = "find_tools"
LEAST_CALLS = 10
"""Of tools, in the conversation: before it, that a tool was never used says nothing."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that don't stand in the requests, and since which compaction."""

    generation: int
    hidden: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    """What the model looked for: it stays, used or not."""
    breaks: int = 0
    """How often a tool came back while the cache was warm."""

    def as_dict(self) -> dict[str, Any]:
        """For the store."""
        return {**asdict(self), "hidden": list(self.hidden), "found": list(self.found)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolSet:
        """From `as_dict`, as it was stored."""
        return cls(data["generation"], tuple(data["hidden"]), tuple(data["found"]), data["breaks"])


class ToolUse(Struct, frozen=True):
    """What is known about the tools when a set is chosen."""

    sizes: Mapping[str, int]
    """Tokens of each schema, in the order of the request."""
    room: int
    """Tokens that schemas may take."""
    calls: int
    """Made in the whole conversation."""
    used: Collection[str]
    """Names that were called, and those that must stay for another reason."""


def chosen_anew(kept: ToolSet, generation: int, use: ToolUse) -> ToolSet:
    """The set for requests that are written anew anyway."""
    total = sum(use.sizes.values())
    unused = [name for name in use.sizes if name not in use.used and name not in kept.found]
    worth = saves_enough(total, total - sum(use.sizes[name] for name in unused))
    hides = total > use.room and use.calls >= LEAST_CALLS and worth
    return replace(kept, generation=generation, hidden=tuple(unused) if hides else ())


def brought_back(kept: ToolSet, names: Collection[str], *, found: bool = False) -> ToolSet:
    """The set with hidden tools that are needed now; the same when none of them is hidden."""
    back = tuple(name for name in kept.hidden if name in names)
    if not back:
        return kept
    return replace(
        kept,
        hidden=tuple(name for name in kept.hidden if name not in back),
        found=kept.found + (back if found else ()),
        breaks=kept.breaks + 1,
    )


def matching(query: str, tools: Mapping[str, str], most: int) -> list[str]:
    """Names of the tools that a query means: those it names, else those whose name and description share its words."""
    words = set(_words(query))
    named = [name for name in tools if name.casefold() in query.casefold().replace(",", " ").split()]
    if named:
        return named
    scores = {name: len(words & {*_words(name), *_words(told)}) for name, told in tools.items()}
    best = sorted((name for name in tools if scores[name]), key=lambda name: -scores[name])
    return best[:most]


def _words(text: str) -> Sequence[str]:
    return "".join(character if character.isalnum() else " " for character in text.casefold()).split()


STATE_KEY = "tools.set"
MOST_FOUND = 5
Schema = Mapping[str, Any]


class ToolSchemas:
    """The tools of one conversation: `renew` before a request, `shown` for what stands in it, `find` for a call."""

    def __init__(self, log: ConversationLog, sizes: PromptSizes, compactor: Compactor, share: float) -> None:
        self._log = log
        self._sizes = sizes
        self._compactor = compactor
        self._share = share
        self._kept: ToolSet | None = None

    @property
    def kept(self) -> ToolSet:
        """The set as it was last read or chosen; nothing is hidden before one was."""
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def _read(self) -> ToolSet:
        kept = self._log.store.state.get(self._log.id, STATE_KEY)
        return ToolSet.from_dict(kept) if kept else ToolSet(0)

    def renew(
        self, tools: Sequence[Schema], *, keep: Collection[str] = (), hides: bool = True, deferred: bool = False
    ) -> None:
        """Choose the set anew where that breaks no cache; else only what is in use comes back.

        `keep`: names that must stay. `deferred`: the provider loads hidden tools itself, without a break.
        """
        generation, warm = self._log.view.generation, self._compactor.warm
        if warm and self.kept.generation == generation and not self.kept.hidden:
            return
        kept = self._kept = self._read()
        if kept.generation == generation and warm:
            if not deferred:
                newest = {call.name for message in self._log.view.messages for call in calls_of(message)}
                self._store(kept, brought_back(kept, newest | {*keep}))
            return
        counter, room = self._sizes.counter, int(self._share * self._sizes.limits.window)
        named = hides and all(tool_name(tool) != FIND_TOOLS for tool in tools)
        sizes = {name: counter.tools([tool]) for name, tool in _hideable(tools)} if named else {}
        # Loading the ledger takes time: only where something may be hidden.
        called = self._called() if sum(sizes.values()) > room else []
        self._store(kept, chosen_anew(kept, generation, ToolUse(sizes, room, len(called), {*called, *keep})))

    def _called(self) -> list[str]:
        """The tool of every call in the whole conversation."""
        ledger = self._log.ledger
        called = [facts.answers.name for facts in ledger.facts.values() if facts.answers]
        return [*called, *(call.name for call in ledger.waiting)]

    def shown(self, tools: Sequence[Schema], search: Schema | None = None) -> list[dict[str, Any]]:
        """The tools of a request. `search`: the provider's own tool that finds those whose loading is put off."""
        hidden = self.hidden(tools)
        if not hidden:
            return [dict(tool) for tool in tools]
        if search is not None:
            put_off = ({**tool, DEFERRED: True} if tool_name(tool) in hidden else dict(tool) for tool in tools)
            return [*put_off, dict(search)]
        return [*(dict(tool) for tool in tools if tool_name(tool) not in hidden), find_tool(hidden)]

    def hidden(self, tools: Sequence[Schema]) -> list[str]:
        """Names of those that don't stand in a request, in the order they were given in."""
        kept = self.kept.hidden
        return [name for name, _ in _hideable(tools) if name in kept]

    def told(self) -> list[str]:
        """What is hidden, and what that has cost, for people."""
        hidden, breaks = len(self.kept.hidden), self.kept.breaks
        if not hidden and not breaks:
            return []
        back = f"; tools came back {breaks} times, which breaks the prompt cache" if breaks else ""
        return [f"{hidden} tools that were never used stand behind find_tools{back}"]

    def find(self, query: Any, tools: Sequence[Schema]) -> str:
        """The answer to a call of `find_tools`: what it names or describes can be called from the next request on."""
        kept = self.kept
        told = {name: _told(tool) for name, tool in _hideable(tools) if name in kept.hidden}
        found = matching(query, told, MOST_FOUND) if isinstance(query, str) else []
        if not found:
            return _json({"error": "no tool fits; give names, or words of what it should do", "tools": list(told)})
        self._store(kept, brought_back(kept, found, found=True))
        return _json({"tools": [{"name": name, "description": told[name]} for name in found], "callable": "now"})

    def _store(self, kept: ToolSet, made: ToolSet) -> None:
        self._kept = made
        if made == kept:
            return
        self._log.store.state.set(self._log.id, STATE_KEY, made.as_dict())
        if made.breaks > kept.breaks:
            self._compactor.break_cache()


def find_tool(hidden: Iterable[str]) -> dict[str, Any]:
    """The schema of `find_tools` beside a set of hidden tools."""
    query = {"type": "string", "description": "Names from the list, or words of what the tool should do"}
    described = f"Makes tools callable that are not listed here. There are: {', '.join(hidden)}."
    parameters = {
        "type": "object",
        "properties": {"query": query},
        "required": ["query"],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": FIND_TOOLS, "description": described, "parameters": parameters},
    }


def _hideable(tools: Iterable[Schema]) -> Iterable[tuple[str, Schema]]:
    """Functions that nothing else in a request depends on: folds name the recall tools, and a mark must stay."""
    for tool in tools:
        name = tool_name(tool)
        if name and name not in TOOL_NAMES and MARK not in tool:
            yield name, tool


def _told(tool: Schema) -> str:
    function = function_of(tool)
    return (function.description or "") if function else ""


def _json(value: Mapping[str, Any]) -> str:
    return encode_json(value).decode()
