"""How much of a tool's output the model sees. What it does not see is in a file before anything is cut.

A model that sees a shortened text may copy the mark that stands for the rest as if it were content. So every mark has
an unmistakable form, and tools that write refuse text with a mark that the file does not hold already.
"""

from __future__ import annotations

import copy
import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.errors import StoreError, ToolError
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, ToolCall
from leporello.tools.base import ArtifactSink, OutputLimits, SavedOutput, Tool, ToolResult
from leporello.tools.sandbox import write_atomically

_MARKS = (
    lazy_regex(r"\[REDACTED\b[^\]\n]{0,80}\]"),
    lazy_regex(r"\[… [^\]\n]{0,300} …\]"),
    lazy_regex(r"\[…\]"),
    lazy_regex(r"\[[^\[\]\n]{0,400}(?:output cleared here, kept as|same output as) m\d+\]"),
    lazy_regex(r"\[old tool output cleared\]|\[image of an earlier turn: "),
    lazy_regex(r"</?persisted-output>"),
    lazy_regex(r"</?leporello-fold\b"),
)


def cut_mark(what: str) -> str:
    """The mark for text that was left out, such as `[… 1,200 characters not shown …]`."""
    return f"[… {what} …]"


def refuse_marks(new: str, old: str = "", *, where: str) -> None:
    """Raise `ToolError` when `new` has marks that `old` has not: they stand for text the model never saw."""
    surplus = _marks_in(new) - _marks_in(old)
    if not surplus:
        return
    example = next(iter(surplus))
    raise ToolError(
        f"the text for {where} contains {example!r}, which stands for text that was left out or masked in this "
        "conversation, so writing it would destroy the real content. Read the original and use its real text. "
        "If these very characters are meant, set literal_marks to true."
    )


def _marks_in(text: str) -> Counter[str]:
    return Counter(match.group() for pattern in _MARKS for match in pattern.finditer(text))


_ODD = lazy_regex(r"[^A-Za-z0-9_-]+")
_SHORT_HASH = 12
_LONGEST_ID = 64


def output_name(call_id: str, digest: str) -> str:
    """The file name for an output; can't leave the folder, whatever the id is."""
    plain = _ODD.sub("_", call_id)[:_LONGEST_ID].strip("_-")
    return f"{plain or 'call'}-{digest}.txt"


def save_output(folder: Path, call_id: str, data: bytes) -> SavedOutput:
    """Write a whole output; on return it is on disk."""
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    found, path = _place(folder, call_id, digest, len(data))
    if not found:
        write_atomically(path, data, private=True)
    return SavedOutput(path, len(data), data.count(b"\n"))


def adopt_output(folder: Path, call_id: str, spool: Path, digest: str, lines: int) -> SavedOutput:
    """Give a spooled file its lasting name."""
    size = spool.stat().st_size
    found, path = _place(folder, call_id, digest, size)
    if found:
        spool.unlink()
    else:
        os.replace(spool, path)
    return SavedOutput(path, size, lines)


def _place(folder: Path, call_id: str, digest: str, size: int) -> tuple[bool, Path]:
    """Whether a file holds exactly this output already, under whatever call's name; and it, or a free path for it."""
    own = folder / output_name(call_id, digest[:_SHORT_HASH])
    for path in (own, *sorted(folder.glob(f"*-{digest[:_SHORT_HASH]}.txt"))):
        if path.is_file() and path.stat().st_size == size and _digest_of(path) == digest:
            return True, path
    # Should two outputs ever share the short hash, the second gets the whole one.
    return False, folder / output_name(call_id, digest) if own.exists() else own


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


OPENING = "<persisted-output>"
CLOSING = "</persisted-output>"
LARGEST_ARTIFACT = 256 << 20  # bytes; what is larger stays a file only
_READERS = ("read_file", "terminal")
_WORTH_SAVING = 800  # characters; a block needs about 400 of its own


@dataclass(frozen=True, slots=True)
class Budgeted:
    """A result as the model gets it."""

    call: ToolCall
    result: ToolResult
    text: str
    """Content of the tool message."""
    saved: SavedOutput | None = None
    """Set when `text` is a preview."""

    def message(self) -> Message:
        return {"role": "tool", "tool_call_id": self.call.id, "content": self.text}


class OutputBudget:
    """Applies the limits for one conversation, whose outputs folder it writes to.

    `tools` are the names the model can call: a block only ever tells it to use one of those.
    """

    def __init__(
        self, folder: Path, limits: OutputLimits, tools: Sequence[str] = _READERS, artifacts: ArtifactSink | None = None
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._reader = next((name for name in _READERS if name in tools), "")
        self._artifacts = artifacts

    def within(self, limits: OutputLimits) -> OutputBudget:
        """The same budget with other limits: the model's window is another one now."""
        other = copy.copy(self)
        other._limits = limits
        return other

    def turn(self, results: Sequence[tuple[ToolCall, Tool | None, ToolResult]], used: int = 0) -> list[Budgeted]:
        """All results of one assistant turn, in order. `used` are characters of the same turn from before."""
        shown = [self._one(call, tool, result) for call, tool, result in results]
        return self._fit(shown, self._limits.turn_chars - used)

    def one(
        self, call: ToolCall, tool: Tool | None, result: ToolResult, *, used: int = 0, waiting: int = 0
    ) -> Budgeted:
        """A single result, when results of a turn arrive one by one and each is kept at once.

        What was shown can't shrink any more, so room is left for a block of each call that still waits.
        """
        block = min(_WORTH_SAVING, self._limits.turn_chars // (waiting + 1))
        return self.turn([(call, tool, result)], used + waiting * block)[0]

    def _one(self, call: ToolCall, tool: Tool | None, result: ToolResult) -> Budgeted:
        """A result that is too long on its own is saved and shown as a preview."""
        whole = Budgeted(call, result, _with_status(result, result.text))
        if result.saved is not None:
            return self._as_block(whole, self._with_artifact(result.saved), self._limits.preview_chars)
        if result.exempt or (tool is not None and tool.threshold is None):
            return whole
        threshold = self._limits.result_chars
        if tool is not None and tool.threshold is not None:
            threshold = min(threshold, tool.threshold)
        return self._save(whole) if len(whole.text) > threshold else whole

    def _fit(self, shown: list[Budgeted], room: int) -> list[Budgeted]:
        """The largest go to disk until the rest fits; then previews shrink, together."""
        order = sorted(range(len(shown)), key=lambda k: -len(shown[k].text))
        for k in order:
            if _size(shown) <= room:
                return shown
            if shown[k].saved is None and len(shown[k].text) > _WORTH_SAVING:
                smaller = self._point_back(shown[k]) if shown[k].result.exempt else self._save(shown[k])
                if len(smaller.text) < len(shown[k].text):
                    shown[k] = smaller
        preview = self._limits.preview_chars
        while _size(shown) > room and preview:
            preview //= 2
            shown = [
                entry if entry.saved is None or entry.result.exempt else self._as_block(entry, entry.saved, preview)
                for entry in shown
            ]
        return shown

    def _save(self, entry: Budgeted) -> Budgeted:
        data = entry.result.text.encode("utf-8", "surrogatepass")
        try:
            saved = save_output(self._folder, entry.call.id, data)
        except OSError as error:
            return self._unsaved(entry, data, str(error))
        # The preview of a text of middling size must not be as long as the text.
        preview = min(self._limits.preview_chars, len(entry.result.text) // 4)
        return self._as_block(entry, self._with_artifact(saved, data), preview)

    def _unsaved(self, entry: Budgeted, data: bytes, reason: str) -> Budgeted:
        """No room on disk: the store may still take it; if not, nothing is cut that a turn can hold."""
        handle = self._put(data)
        if handle:
            saved = SavedOutput(Path(), len(data), data.count(b"\n"), handle)
            return self._as_block(entry, saved, self._limits.preview_chars)
        if len(entry.text) <= self._limits.turn_chars:
            return entry
        note = f"the output could not be saved ({reason}), so what is missing here is lost"
        text = preview_of(entry.result.text, self._limits.turn_chars // 2, note)
        return replace(entry, text=_with_status(entry.result, text))

    def _point_back(self, entry: Budgeted) -> Budgeted:
        """A read of a saved output that does not fit into this turn: nothing is copied, it can be read again."""
        path = str(entry.result.details.get("path", ""))
        text = (
            f"{OPENING}\nThis read of {path or 'a saved output'} does not fit beside the other results of this turn. "
            f"Nothing is lost: make the same call again, with fewer calls beside it or for a smaller part.\n{CLOSING}"
        )
        return replace(entry, text=text, saved=SavedOutput(Path(path), 0, 0))

    def _as_block(self, entry: Budgeted, saved: SavedOutput, preview: int) -> Budgeted:
        text = persisted_block(entry.result, saved, self._reader, preview)
        return replace(entry, text=text, saved=saved)

    def _with_artifact(self, saved: SavedOutput, data: bytes | None = None) -> SavedOutput:
        if self._artifacts is None or saved.artifact or saved.size > LARGEST_ARTIFACT:
            return saved
        return replace(saved, artifact=self._put(saved.path.read_bytes() if data is None else data))

    def _put(self, data: bytes) -> str:
        """Keep the bytes in the store as well; a store that can't take them now is no reason to lose the file."""
        try:
            return self._artifacts.put(data) if self._artifacts is not None else ""
        except (StoreError, OSError):
            return ""


def persisted_block(result: ToolResult, saved: SavedOutput, reader: str, preview: int) -> str:
    """What the model sees in place of a saved output."""
    rows = [OPENING]
    if result.status:
        rows.append(result.status)
    size = f"{saved.size:,} bytes in {max(1, saved.lines):,} lines"
    rows.append(f"The output is too long to show whole: {size}. It is intact:")
    if saved.path.name:
        rows.append(f"path: {saved.path}")
    if saved.artifact:
        rows.append(f"artifact: {saved.artifact}")
    if saved.path.name and reader:
        rows.append(_how_to_read(saved.path, reader))
    if preview:
        rows.append("Its head and tail:")
        rows.append(preview_of(result.text, preview, "not shown here", saved.size if result.saved else None))
    return "\n".join([*rows, CLOSING])


def _how_to_read(path: Path, reader: str) -> str:
    if reader == "read_file":
        return f'Read parts with read_file(path="{path}", offset=<first line>, limit=<number of lines>).'
    return f"Read parts with a command such as: sed -n 1,200p {shlex.quote(str(path))}"


def preview_of(text: str, chars: int, why: str, size: int | None = None) -> str:
    """Head and tail of a text, at most `chars` of it, with a visible mark between them.

    Cuts at line ends where one is near. Without the mark, what is left is a subsequence of the text. `size` in bytes is
    that of the original when the text itself has a gap already.
    """
    if len(text) <= chars:
        return text
    head, tail = text[: chars - chars // 2], text[len(text) - chars // 2 :]
    end, start = head.rfind("\n"), tail.find("\n") + 1
    head = head[:end] if end >= len(head) * 3 // 4 else head
    tail = tail[start:] if 0 < start <= len(tail) // 4 else tail
    hidden = f"{len(text) - len(head) - len(tail):,} characters"
    if size is not None:
        hidden = f"{size - len((head + tail).encode('utf-8', 'surrogatepass')):,} bytes"
    return f"{head}\n{cut_mark(f'{hidden} {why}')}\n{tail}"


def _with_status(result: ToolResult, text: str) -> str:
    return f"{result.status}\n{text}" if result.status else text


def _size(shown: Sequence[Budgeted]) -> int:
    return sum(len(entry.text) for entry in shown)
