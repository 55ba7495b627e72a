"""The frontier message: several summaries of neighbouring spans in one message, oldest first, and what changes last.

A list of text parts: a preamble that never changes, one block for each node, and a block with the state of things. A
node's block is written once and stands byte for byte until the node is merged into a coarser one, so that everything
before the newest node stays a prefix that a prompt cache knows. The state (rules in force, open requests, files) is
written anew each time; where the message after the frontier has the same role, it is a message of its own between the
two, so that the frontier's own role never changes.

Blocks are recognised by their typed marks and checksums, never by their wording. A part is one block, whole, or the
message is no frontier.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.events import Span
from leporello.messages import Message, role_of
from leporello.summaries.handoff import Handoff, joined, parse, render
from leporello.summaries.trust import MAC_PATTERN, signed

VERSION = 1
_MARK = re.compile(
    r"<leporello-(?P<kind>frontier|node|state) v=(?P<v>\d{1,9}) sha=(?P<sha>[0-9a-f]{16})(?P<facts>[^>\n]*?)"
    + MAC_PATTERN
    + r">\n"
)
_NODE = re.compile(
    r" id=f(?P<id>\d{1,9}) level=(?P<level>\d{1,9}) span=m(?P<first>\d{1,9})-m(?P<last>\d{1,9})"
    r" source=(?P<source>\d{1,9})(?: also=(?P<also>m\d{1,9}(?:,m\d{1,9})*))?"
)
_STATE = re.compile(
    r" id=f(?P<id>\d{1,9}) span=m(?P<first>\d{1,9})-m(?P<last>\d{1,9})(?: kept=(?P<kept>m\d{1,9}(?:,m\d{1,9})*))?"
)
_NOTE_STARTS = "\n--- "


@dataclass(frozen=True, slots=True)
class SummaryNode:
    """The summary of one span. `level` is 1 over raw messages, and one more than its children's over other nodes."""

    number: int
    level: int
    span: Span
    source: int
    """Tokens of the messages it stands for."""
    text: str
    """The block, exactly as it stands in the message."""
    handoff: Handoff
    also: tuple[int, ...] = ()
    """Messages outside the span that were folded with it: they had been kept standing when their span was folded."""

    @property
    def id(self) -> str:
        """`f<N>`, counted within the conversation."""
        return f"f{self.number}"


@dataclass(frozen=True, slots=True)
class RunningState:
    """What changes from one compaction to the next, for all nodes together."""

    number: int
    """The newest fold number at the time."""
    span: Span
    handoff: Handoff
    text: str
    kept: tuple[int, ...] = ()
    """Messages of the span that stay shown beside the frontier."""


@dataclass(frozen=True, slots=True)
class SummaryTree:
    """A frontier message, read. The state is None when it stands in a message of its own."""

    nodes: tuple[SummaryNode, ...]
    state: RunningState | None = None

    @property
    def span(self) -> Span:
        """From the first message folded to the last."""
        return Span(min(node.span.first for node in self.nodes), max(node.span.last for node in self.nodes))

    @property
    def number(self) -> int:
        """The newest fold number in it."""
        return max(node.number for node in self.nodes)

    @property
    def handoff(self) -> Handoff:
        state = [self.state.handoff] if self.state else []
        return joined(*(node.handoff for node in self.nodes), *state)


def make_node(
    number: int,
    level: int,
    span: Span,
    source: int,
    handoff: Handoff,
    also: Sequence[int] = (),
    key: bytes | None = None,
) -> SummaryNode:
    """A node with its block, signed where there is a key."""
    facts = f" id=f{number} level={level} span=m{span.first}-m{span.last} source={source}{_listed('also', also)}"
    block = signed(_block("node", facts, render(handoff, ())), key)
    return SummaryNode(number, level, span, source, block, handoff, tuple(also))


def make_state(
    number: int, span: Span, handoff: Handoff, kept: Sequence[int] = (), note: str = "", key: bytes | None = None
) -> RunningState:
    """A state with its block, signed where there is a key; the note stands at its end."""
    facts = f" id=f{number} span=m{span.first}-m{span.last}{_listed('kept', kept)}"
    body = render(handoff) + (_NOTE_STARTS + note if note else "")
    return RunningState(number, span, handoff, signed(_block("state", facts, body), key), tuple(kept))


def tree_message(role: str, preamble: str, nodes: Sequence[SummaryNode], state: RunningState | None) -> Message:
    """The message: preamble, nodes, and the state unless it stands by itself."""
    texts = [_block("frontier", "", preamble), *(node.text for node in nodes)]
    if state is not None:
        texts.append(state.text)
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def state_message(role: str, state: RunningState) -> Message:
    return {"role": role, "content": state.text}


def read_tree(message: Mapping[str, Any]) -> SummaryTree | None:
    """The frontier a message carries, or None for every other message, forged and damaged ones included."""
    content = message.get("content")
    if not isinstance(content, list) or len(content) < 2 or not _may_carry(message):
        return None
    blocks = []
    for part in content:
        block = _read_block(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else None
        if block is None:
            return None
        blocks.append(block)
    kinds = [block.kind for block in blocks]
    count = len(kinds) - 1 - (kinds[-1] == "state")
    if count < 1 or kinds[0] != "frontier" or kinds[1 : count + 1] != ["node"] * count:
        return None
    nodes = [_node(block) for block in blocks[1 : count + 1]]
    state = _state(blocks[-1]) if kinds[-1] == "state" else None
    if any(node is None for node in nodes) or (kinds[-1] == "state" and state is None):
        return None
    return SummaryTree(tuple(node for node in nodes if node), state)


def read_state(message: Mapping[str, Any]) -> RunningState | None:
    """The state in a message of its own, or None for every other message."""
    content = message.get("content")
    block = _read_block(content) if isinstance(content, str) and _may_carry(message) else None
    return _state(block) if block is not None and block.kind == "state" else None


def _may_carry(message: Mapping[str, Any]) -> bool:
    return role_of(message) in ("user", "assistant") and not message.get("tool_calls")


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    facts: str
    body: str
    text: str


def _block(kind: str, facts: str, body: str) -> str:
    return f"<leporello-{kind} v={VERSION} sha={_sha(facts, body)}{facts}>\n{body}\n</leporello-{kind}>"


def _read_block(text: object) -> _Block | None:
    match = _MARK.match(text) if isinstance(text, str) else None
    if match is None or not isinstance(text, str) or int(match["v"]) != VERSION:
        return None
    close = f"\n</leporello-{match['kind']}>"
    body = text[match.end() : -len(close)]
    if not text.endswith(close) or _sha(match["facts"], body) != match["sha"]:
        return None
    return _Block(match["kind"], match["facts"], body, text)


def _node(block: _Block) -> SummaryNode | None:
    match = _NODE.fullmatch(block.facts)
    if match is None:
        return None
    span = Span(int(match["first"]), int(match["last"]))
    also = _numbers(match["also"])
    return SummaryNode(
        int(match["id"]), int(match["level"]), span, int(match["source"]), block.text, parse(block.body), also
    )


def _state(block: _Block) -> RunningState | None:
    match = _STATE.fullmatch(block.facts)
    if match is None:
        return None
    span = Span(int(match["first"]), int(match["last"]))
    said = block.body.rpartition(_NOTE_STARTS)[0] or block.body
    return RunningState(int(match["id"]), span, parse(said), block.text, _numbers(match["kept"]))


def _listed(name: str, numbers: Sequence[int]) -> str:
    return f" {name}={','.join(f'm{number}' for number in numbers)}" if numbers else ""


def _numbers(listed: str | None) -> tuple[int, ...]:
    return tuple(int(part[1:]) for part in listed.split(",")) if listed else ()


def _sha(facts: str, body: str) -> str:
    return hashlib.sha256(f"{facts}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
