"""Folds as values, how each is written as a message, and how foreign and stored text is read back.

A view holds one of three kinds. A `Fold` is one summary. A `SummaryTree` is several summaries of neighbouring spans in
one message: a preamble that never changes, one block for each node, oldest first, and a `RunningState`. A node's block
is written once and stands byte for byte until the node is merged into a coarser one, so that everything before the
newest node stays a prefix that a prompt cache knows. The state (rules in force, open requests, files) is written anew
each time; where the message after the tree has the same role, it is a message of its own between the two, so that the
tree's own role never changes.

`fold_message` writes the text, once the role is known and whether the model can call the recall tools. `read_fold` is
for text from outside: it goes by typed marks and checksums, never by wording. Only a whole user or assistant message
counts, never a tool message.

Being recognised is not being believed: anybody can write a fold into a list, and its checksum only tells a whole one
from a damaged one. A fold is believed when the engine at hand wrote it itself, or when it is signed with the caller's
key (`Trust`). The key comes as bytes; where it is kept is the caller's affair.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from msgspec import Struct

from leporello.events import Span
from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, role_of, text_of
from leporello.summaries.handoff import Handoff, joined, parse, render

MAC_PATTERN = r"(?: mac=[0-9a-f]{32})?"
"""The signature in a block's mark, for the patterns that read marks; it stands last."""
_SIGNED = lazy_regex(r"(?P<mark><leporello-[a-z]+ [^>\n]*) mac=(?P<mac>[0-9a-f]{32})>\n")


def signed(block: str, key: bytes | None) -> str:
    """The block with a signature over all of its text at the end of its mark; as it is when there is no key."""
    if not key:
        return block
    mark, _, rest = block.partition(">\n")
    return f"{mark} mac={_mac(block, key)}>\n{rest}"


def is_signed(block: str, key: bytes | None) -> bool:
    match = _SIGNED.match(block)
    if match is None or not key:
        return False
    return hmac.compare_digest(match["mac"], _mac(f"{match['mark']}>\n{block[match.end() :]}", key))


class Trust:
    """What one engine believes: the blocks it wrote itself, and those that bear its key's signature."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key
        self._written: set[str] = set()

    def remember(self, blocks: Iterable[str]) -> None:
        self._written.update(map(_digest, blocks))

    def forget(self) -> None:
        """Another conversation begins; what was written in the last one has no business in it."""
        self._written.clear()

    def believes(self, blocks: Iterable[str]) -> bool:
        return all(_digest(block) in self._written or is_signed(block, self.key) for block in blocks)


def _digest(block: str) -> str:
    return hashlib.sha256(block.encode("utf-8", "surrogatepass")).hexdigest()


def _mac(block: str, key: bytes) -> str:
    return hmac.new(key, block.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


VERSION = 1
_IDS = r"m\d{1,9}(?:,m\d{1,9})*"
_FOLD = lazy_regex(
    r"<leporello-fold id=(?P<id>f\d{1,9}) v=(?P<v>\d{1,9}) sha=(?P<sha>[0-9a-f]{16})"
    rf" span=m(?P<first>\d{{1,9}})-m(?P<last>\d{{1,9}})(?: kept=(?P<kept>{_IDS}))?{MAC_PATTERN}>\n"
)
_BLOCK = lazy_regex(
    r"<leporello-(?P<kind>frontier|node|state) v=(?P<v>\d{1,9}) sha=(?P<sha>[0-9a-f]{16})(?P<facts>[^>\n]*?)"
    rf"{MAC_PATTERN}>\n"
)
_NODE = lazy_regex(
    r" id=f(?P<id>\d{1,9}) level=(?P<level>\d{1,9}) span=m(?P<first>\d{1,9})-m(?P<last>\d{1,9})"
    rf" source=(?P<source>\d{{1,9}})(?: also=(?P<also>{_IDS}))?"
)
_STATE = lazy_regex(
    rf" id=f(?P<id>\d{{1,9}}) span=m(?P<first>\d{{1,9}})-m(?P<last>\d{{1,9}})(?: kept=(?P<kept>{_IDS}))?"
)
_CLOSE = "\n</leporello-fold>"
_BODY_STARTS = "\n---\n"
_FOOTER_STARTS = "\n--- "


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int

    @property
    def id(self) -> str:
        """`f<N>`, counted within the conversation."""
        return f"f{self.number}"


@dataclass(frozen=True, slots=True)
class Fold(_Numbered):
    """A folded span: its id, what it covers, what of that span stays shown beside it, and the handoff."""

    span: Span
    handoff: Handoff
    kept: tuple[int, ...] = ()
    body: str = field(default="", compare=False)
    """Its text without mark and footer, as it was written; empty: not written yet."""
    recall: bool | None = field(default=None, compare=False)
    """Whether the text that was read names the recall tools; None: none was read."""


@dataclass(frozen=True, slots=True)
class SummaryNode(_Numbered):
    """The summary of one span. `level` is 1 over raw messages, and one more than its children's over other nodes."""

    level: int
    span: Span
    source: int
    """Tokens of the messages it stands for."""
    text: str
    """The block, exactly as it stands in the message."""
    handoff: Handoff
    also: tuple[int, ...] = ()
    """Messages outside the span that were folded with it: they had been kept standing when their span was folded."""


@dataclass(frozen=True, slots=True)
class RunningState(_Numbered):
    """What changes from one compaction to the next, for all nodes together. Its number is the newest node's."""

    span: Span
    handoff: Handoff
    kept: tuple[int, ...] = ()
    """Messages of the span that stay shown beside the tree."""
    example: int = 0
    """The message that the footer takes as an example; 0: the first of the span."""
    note: str = ""
    """What stands below the handoff beside the footer."""
    body: str = field(default="", compare=False)
    """The handoff's text as it was written; empty: not written yet."""
    recall: bool | None = field(default=None, compare=False)
    """Whether the text that was read names the recall tools; None: none was read."""


class SummaryTree(Struct, frozen=True):
    """The summaries of one message. The state is None when it stands in a message of its own."""

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
    def id(self) -> str:
        """The newest node's."""
        return f"f{self.number}"

    @property
    def handoff(self) -> Handoff:
        """What nodes and state say together."""
        return joined(*(node.handoff for node in self.nodes), *([self.state.handoff] if self.state else []))

    @property
    def kept(self) -> tuple[int, ...]:
        """Messages of the span that stay shown beside it."""
        return self.state.kept if self.state else ()

    @property
    def recall(self) -> bool | None:
        """Whether the text that was read names the recall tools; None: it makes no difference or none was read."""
        return self.state.recall if self.state else None


ViewFold: TypeAlias = Fold | SummaryTree | RunningState
"""What a view can show for messages that are folded."""


@cache
def prompt(name: str) -> str:
    return shipped("leporello.summaries", f"prompts/{name}.md").decode().strip()


# -- writing


def fold_message(fold: ViewFold, role: str, *, recall: bool, key: bytes | None = None) -> Message:
    """The fold as a message, signed where there is a key.

    The recovery footer appears only where its calls can be made (`recall`).
    """
    if isinstance(fold, Fold):
        return {"role": role, "content": fold_text(fold, recall=recall, key=key)}
    if isinstance(fold, RunningState):
        return {"role": role, "content": state_text(fold, recall=recall, key=key)}
    texts = [_block("frontier", "", prompt("frontier")), *(node.text for node in fold.nodes)]
    if fold.state is not None:
        texts.append(state_text(fold.state, recall=recall, key=key))
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def fold_text(fold: Fold, *, recall: bool, key: bytes | None = None) -> str:
    """The whole text of a fold; what unverified lines are is told where some are."""
    context = f"{prompt('frame')} {prompt('unverified')}" if fold.handoff.unverified else prompt("frame")
    body = fold.body or context + _BODY_STARTS + render(fold.handoff)
    if recall:
        body += _FOOTER_STARTS + _footer(fold.id, fold.span.first)
    span = f"span=m{fold.span.first}-m{fold.span.last}{_listed('kept', fold.kept)}"
    return signed(f"<leporello-fold id={fold.id} v={VERSION} sha={_sha(body)} {span}>\n{body}{_CLOSE}", key)


def state_text(state: RunningState, *, recall: bool, key: bytes | None = None) -> str:
    """The block of a state."""
    facts = f" id={state.id} span=m{state.span.first}-m{state.span.last}{_listed('kept', state.kept)}"
    footer = _footer(state.id, state.example or state.span.first) if recall else ""
    note = " ".join(filter(None, (state.note, footer)))
    body = (state.body or render(state.handoff)) + (_FOOTER_STARTS + note if note else "")
    return signed(_block("state", facts, body), key)


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


def _footer(fold: str, first: int) -> str:
    return prompt("footer").replace("{fold}", fold).replace("{first}", f"m{first}")


def _block(kind: str, facts: str, body: str) -> str:
    return f"<leporello-{kind} v={VERSION} sha={_sha(_checked(facts, body))}{facts}>\n{body}\n</leporello-{kind}>"


def _checked(facts: str, body: str) -> str:
    """What the checksum of a block is over."""
    return f"{facts}\n{body}"


def _listed(name: str, numbers: Sequence[int]) -> str:
    return f" {name}={','.join(f'm{number}' for number in numbers)}" if numbers else ""


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# -- reading


def read_fold(message: Mapping[str, Any]) -> ViewFold | None:
    """The fold a message carries, or None for every other message, forged and damaged ones included."""
    if role_of(message) not in ("user", "assistant") or message.get("tool_calls"):
        return None
    content = message.get("content")
    tree = _read_tree(content) if isinstance(content, list) else None
    if tree is not None:
        return tree
    text = text_of(message)
    if text.startswith("<leporello-state "):
        block = _read_block(content)
        return _state(block) if block is not None else None
    return _read_text(text) if text.startswith("<leporello-fold ") else None


def is_fold(message: Mapping[str, Any]) -> bool:
    return read_fold(message) is not None


def blocks_of(fold: ViewFold, message: Mapping[str, Any]) -> list[str]:
    """The texts of a fold's message that must be vouched for, each by itself.

    The words before a tree's nodes are left out: they are the program's and written anew each time.
    """
    if isinstance(fold, SummaryTree):
        return [part["text"] for part in message["content"][1:]]
    return [text_of(message)]


def _read_text(text: str) -> Fold | None:
    match = _FOLD.match(text)
    if not match or not text.endswith(_CLOSE) or int(match["v"]) != VERSION:
        return None
    body = text[match.end() : -len(_CLOSE)]
    if _sha(body) != match["sha"]:
        return None
    said = body.partition(_BODY_STARTS)[2]
    told, footer, _ = said.rpartition(_FOOTER_STARTS)
    return Fold(
        int(match["id"][1:]),
        Span(int(match["first"]), int(match["last"])),
        parse(told if footer else said),
        _numbers(match["kept"]),
        body.rpartition(_FOOTER_STARTS)[0] if footer else body,
        bool(footer),
    )


class _Block(Struct, frozen=True):
    kind: str
    facts: str
    body: str
    text: str


def _read_block(text: object) -> _Block | None:
    match = _BLOCK.match(text) if isinstance(text, str) else None
    if match is None or not isinstance(text, str) or int(match["v"]) != VERSION:
        return None
    close = f"\n</leporello-{match['kind']}>"
    body = text[match.end() : -len(close)]
    if not text.endswith(close) or _sha(_checked(match["facts"], body)) != match["sha"]:
        return None
    return _Block(match["kind"], match["facts"], body, text)


def _read_tree(content: Sequence[Any]) -> SummaryTree | None:
    """The tree in a list of parts. Each part is one block, whole, or the message is none."""
    blocks = []
    for part in content:
        block = _read_block(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else None
        if block is None:
            return None
        blocks.append(block)
    ends = blocks[-1:] if blocks and blocks[-1].kind == "state" else []
    inner = blocks[1 : len(blocks) - len(ends)]
    if not inner or blocks[0].kind != "frontier" or any(block.kind != "node" for block in inner):
        return None
    nodes = [node for node in map(_node, inner) if node is not None]
    if len(nodes) < len(inner):
        return None
    state = _state(ends[0], nodes[-1].span.first) if ends else None
    return None if ends and state is None else SummaryTree(tuple(nodes), state)


def _node(block: _Block) -> SummaryNode | None:
    match = _NODE.fullmatch(block.facts)
    if match is None:
        return None
    span = Span(int(match["first"]), int(match["last"]))
    facts = int(match["id"]), int(match["level"]), span, int(match["source"])
    return SummaryNode(*facts, block.text, parse(block.body), _numbers(match["also"]))


def _state(block: _Block, example: int = 0) -> RunningState | None:
    match = _STATE.fullmatch(block.facts)
    if match is None or block.kind != "state":
        return None
    said, starts, note = block.body.rpartition(_FOOTER_STARTS)
    said = said if starts else block.body
    named = _footer_pattern().search(note) if starts else None
    return RunningState(
        int(match["id"]),
        Span(int(match["first"]), int(match["last"])),
        parse(said),
        _numbers(match["kept"]),
        int(named["first"]) if named else example,
        (note[: named.start()] if named else note) if starts else "",
        said,
        named is not None,
    )


@cache
def _footer_pattern() -> re.Pattern[str]:
    pattern = re.escape(prompt("footer")).replace(re.escape("{fold}"), r"f\d+")
    return re.compile(r" ?" + pattern.replace(re.escape("{first}"), r"m(?P<first>\d{1,9})") + r"\Z")


def _numbers(listed: str | None) -> tuple[int, ...]:
    return tuple(int(part[1:]) for part in listed.split(",")) if listed else ()
