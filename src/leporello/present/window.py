"""`/context`: where the window goes, counted and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from leporello.conversation import Conversation
from leporello.conversation.sizes import PromptSizes
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.store.records import FoldLine, ViewLine
from leporello.summaries.handoff import Section
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptSize


class WindowPart(StrEnum):
    """What takes room in a window, in the order of a request."""

    SYSTEM = "system"
    TOOLS = "tools"
    OVERHEAD = "overhead"
    RULES = "rules"
    PINS = "pins"
    SUMMARY = "summary"
    USER = "your messages"
    ANSWERS = "answers"
    CALLS = "tool calls"
    RESULTS = "tool results"
    TAIL = "tail"
    FREE = "free"


class WindowUse(Struct, frozen=True):
    """Tokens by part, and the marks that matter."""

    parts: dict[WindowPart, int]
    window: int
    used: int
    """As the meter reads it, which knows the provider's own counts."""
    threshold: int
    reserve: int
    tail_messages: int
    tail_shortened: int
    folds: int
    measured: bool
    """Whether a real count is part of `used`."""
    window_assumed: bool = False
    outlook: tuple[str, ...] = ()
    """What the policy says about the next request, and what was saved so far."""


def window_use(talk: Conversation) -> WindowUse:
    log, compactor = talk.runtime.log, talk.runtime.compactor
    outlook = (*compactor.outlook(), *talk.runtime.tools.told())
    return divide(log.view.lines, talk.runtime.sizes, compactor.reading, log.compactions, compactor.due_at, outlook)


def divide(
    lines: Sequence[ViewLine],
    sizes: PromptSizes,
    reading: PromptSize,
    folds: int,
    due: int,
    outlook: tuple[str, ...] = (),
) -> WindowUse:
    """Tokens by part, which add up to what the provider counted. What it counted beyond these is overhead.

    `due` is at how many tokens the next compaction is made, whatever it costs. A conversation need not be open for it.
    """
    counter, limits = sizes.counter, sizes.limits
    first_of_tail = _tail_start(lines, sizes)
    parts = dict.fromkeys(WindowPart, 0)
    parts[WindowPart.SYSTEM] = sizes.fixed.system_tokens
    parts[WindowPart.TOOLS] = sizes.fixed.tool_tokens
    for position, line in enumerate(lines):
        size = counter.message(line.message)
        if line.fold:
            rules = min(size, counter.text(_section(line, Section.CONSTRAINTS)))
            pins = min(size - rules, counter.text(_section(line, Section.PINNED)))
            parts[WindowPart.RULES] += rules
            parts[WindowPart.PINS] += pins
            parts[WindowPart.SUMMARY] += size - rules - pins
        elif position >= first_of_tail:
            parts[WindowPart.TAIL] += size
        else:
            _split(counter, line.message, size, parts)
    _add_up(parts, reading.tokens)
    parts[WindowPart.FREE] = max(0, limits.window - reading.tokens)
    return WindowUse(
        parts,
        limits.window,
        reading.tokens,
        due,
        limits.output_reserve,
        len(lines) - first_of_tail,
        sum(line.shortened for line in lines[first_of_tail:]),
        folds,
        reading.measured,
        limits.window_assumed,
        outlook,
    )


def _add_up(parts: dict[WindowPart, int], total: int) -> None:
    """Where the provider counted less than we did, schemas take the difference first: its form of them is unknown."""
    excess = sum(parts.values()) - total
    parts[WindowPart.OVERHEAD] = max(0, -excess)
    for part in (WindowPart.TOOLS, WindowPart.SYSTEM, *sorted(parts, key=lambda part: -parts[part])):
        taken = min(parts[part], max(0, excess))
        parts[part] -= taken
        excess -= taken


def _tail_start(lines: Sequence[ViewLine], sizes: PromptSizes) -> int:
    """Where the newest messages begin that a folding would leave as they are."""
    left = sizes.limits.tail_tokens
    start = len(lines)
    while start > 0 and not lines[start - 1].fold:
        left -= sizes.counter.message(lines[start - 1].message)
        if left < 0 and len(lines) - start >= 1:
            break
        start -= 1
    return start


def _section(line: ViewLine, section: Section) -> str:
    return "\n".join(told.text for told in line.summary.handoff[section]) if isinstance(line, FoldLine) else ""


def _split(counter: TokenCounter, message: Message, size: int, parts: dict[WindowPart, int]) -> None:
    if is_result(message):
        parts[WindowPart.RESULTS] += size
    elif role_of(message) == "user":
        parts[WindowPart.USER] += size
    elif calls_of(message):
        words = min(size, counter.text(text_of(message)))
        parts[WindowPart.ANSWERS] += words
        parts[WindowPart.CALLS] += size - words
    else:
        parts[WindowPart.ANSWERS] += size


def rows(use: WindowUse) -> list[tuple[WindowPart, int, str]]:
    """Part, tokens and a remark, without the empty ones."""
    shortened = f"{use.tail_shortened} of them shortened" if use.tail_shortened else "kept as they are"
    remarks = {
        WindowPart.TAIL: f"the newest {use.tail_messages}, {shortened}",
        WindowPart.OVERHEAD: "what the provider counted beyond these" if use.measured else "framing of the messages",
        WindowPart.SUMMARY: f"folded {use.folds}×" if use.folds else "",
        WindowPart.RULES: "yours, word for word",
        WindowPart.PINS: "word for word",
        WindowPart.FREE: f"{use.reserve:,} of it for the answer",
    }
    return [(part, tokens, remarks.get(part, "")) for part, tokens in use.parts.items() if tokens]


def headline(use: WindowUse) -> str:
    about = "" if use.measured else "about "
    share = use.used / max(1, use.window)
    whole = f"an assumed {use.window:,}" if use.window_assumed else f"{use.window:,}"
    return f"{about}{use.used:,} of {whole} tokens ({share:.0%}); folds at {use.threshold:,}"


def bar(use: WindowUse, width: int) -> list[tuple[WindowPart, int]]:
    """How many cells of a bar each part gets; every part that is there gets at least one."""
    drawn = {part: tokens for part, tokens in use.parts.items() if tokens > 0}
    total = max(1, sum(drawn.values()))
    cells = {part: max(1, round(width * tokens / total)) for part, tokens in drawn.items()}
    while sum(cells.values()) > width and max(cells.values(), default=0) > 1:
        cells[max(cells, key=lambda part: cells[part])] -= 1
    while cells and sum(cells.values()) < width:
        cells[max(cells, key=lambda part: cells[part])] += 1
    return list(cells.items())


def share_of(use: WindowUse, tokens: int) -> str:
    """The share of the window in whole per cent, four columns wide."""
    return f"{tokens / max(1, use.window):>4.0%}"


def draw(use: WindowUse, width: int) -> str:
    """The picture in plain text: a line for each part with a bar of its own."""
    table = rows(use)
    name_width = max((len(part.value) for part, _, _ in table), default=0)
    room = max(8, min(30, width - name_width - 40))
    lines = [headline(use)]
    for part, tokens, remark in table:
        filled = max(1, round(room * tokens / max(1, use.window))) if tokens > 0 else 0
        drawn = ("░" if part is WindowPart.FREE else "█") * min(room, filled)
        lines.append(f"{part.value:{name_width}} {tokens:>9,} {share_of(use, tokens)} {drawn:{room}} {remark}".rstrip())
    return "\n".join((*lines, *use.outlook))


def explain(talk: Conversation) -> str:
    compactor = talk.runtime.compactor
    policy = talk.runtime.settings.compression.policy
    listed = [*talk.runtime.sizes.limits.explain(), ("depth_tokens", compactor.depth, f"compression.policy {policy}")]
    width = max(len(name) for name, _, _ in listed)
    rows = [f"{name:{width}} {value:>10,}  {why}" for name, value, why in listed]
    return "\n".join((*rows, *compactor.outlook()))
