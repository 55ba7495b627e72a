"""The fold message: how a summary stands in a message list, and how it is recognised again.

A fold is recognised by its typed mark and checksum, never by its wording: only a whole user or assistant message whose
first line is the mark, whose last line closes it and whose body has the stated hash counts. A tool message never does.
A frontier (several folds in one message, see `frontier`) reads as one fold over all of them. Being recognised is not
being believed: see `trust`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from leporello.events import Span
from leporello.messages import Message, role_of, text_of
from leporello.summaries.handoff import Handoff, parse, render
from leporello.summaries.summary_tree import read_state, read_tree
from leporello.summaries.trust import MAC_PATTERN, signed

VERSION = 1
_CLOSE = "</leporello-fold>"
_OPEN = re.compile(
    r"<leporello-fold id=(?P<id>f\d{1,9}) v=(?P<v>\d{1,9}) sha=(?P<sha>[0-9a-f]{16})"
    r" span=m(?P<first>\d{1,9})-m(?P<last>\d{1,9})(?: kept=(?P<kept>m\d{1,9}(?:,m\d{1,9})*))?" + MAC_PATTERN + r">\n"
)
_BODY_STARTS = "\n---\n"
_FOOTER_STARTS = "\n--- "


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded span: its id, what it covers, what of that span stays shown beside it, and the handoff."""

    number: int
    span: Span
    handoff: Handoff
    kept: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """`f<N>`, counted within the conversation."""
        return f"f{self.number}"


@cache
def prompt(name: str) -> str:
    return files("leporello.summaries").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def fold_text(fold: Fold, *, recall: bool, key: bytes | None = None) -> str:
    """The whole text of a fold message, signed where there is a key.

    The recovery footer appears only where its calls can be made, and what unverified lines are is told where some are.
    """
    context = f"{prompt('frame')} {prompt('unverified')}" if fold.handoff.unverified else prompt("frame")
    body = context + _BODY_STARTS + render(fold.handoff)
    if recall:
        body += _FOOTER_STARTS + prompt("footer").replace("{fold}", fold.id).replace("{first}", f"m{fold.span.first}")
    kept = f" kept={','.join(f'm{n}' for n in fold.kept)}" if fold.kept else ""
    mark = f"<leporello-fold id={fold.id} v={VERSION} sha={_sha(body)} span=m{fold.span.first}-m{fold.span.last}{kept}>"
    return signed(f"{mark}\n{body}\n{_CLOSE}", key)


def fold_message(fold: Fold, role: str, *, recall: bool, key: bytes | None = None) -> Message:
    return {"role": role, "content": fold_text(fold, recall=recall, key=key)}


def blocks_of(message: Mapping[str, Any]) -> list[str]:
    """The texts of a fold message that must be vouched for, each by itself: the fold, or what a frontier consists of.

    The words before a frontier's nodes are left out: they are the program's and written anew each time.
    """
    frontier = read_tree(message)
    if frontier is None:
        return [text_of(message)]
    return [*(node.text for node in frontier.nodes), *([frontier.state.text] if frontier.state else [])]


def read_fold(message: Mapping[str, Any]) -> Fold | None:
    """The fold a message carries, or None for every other message, forged and damaged ones included."""
    if role_of(message) not in ("user", "assistant") or message.get("tool_calls"):
        return None
    if isinstance(message.get("content"), list):
        frontier = read_tree(message)
        if frontier is not None:
            kept = frontier.state.kept if frontier.state else ()
            return Fold(frontier.number, frontier.span, frontier.handoff, kept)
    text = text_of(message)
    if text.startswith("<leporello-state "):
        state = read_state(message)
        return Fold(state.number, state.span, state.handoff, state.kept) if state else None
    if not text.startswith("<leporello-fold ") or not text.endswith("\n" + _CLOSE):
        return None
    match = _OPEN.match(text)
    if not match or int(match["v"]) != VERSION:
        return None
    body = text[match.end() : -len(_CLOSE) - 1]
    if _sha(body) != match["sha"]:
        return None
    _, _, rest = body.partition(_BODY_STARTS)
    kept = tuple(int(part[1:]) for part in match["kept"].split(",")) if match["kept"] else ()
    handoff = parse(rest.rpartition(_FOOTER_STARTS)[0] or rest)
    return Fold(int(match["id"][1:]), Span(int(match["first"]), int(match["last"])), handoff, kept)


def is_fold(message: Mapping[str, Any]) -> bool:
    return read_fold(message) is not None


def _sha(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
