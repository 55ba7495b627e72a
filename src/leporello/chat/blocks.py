"""Streaming Markdown: which blocks are finished and can be printed for good, and which one may still grow."""

from __future__ import annotations

from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIVE_LINES = 40
"""Source lines of an unfinished block that are looked at while it grows; the whole is printed when it ends."""

_FENCES = ("```", "~~~")


def parser() -> MarkdownIt:
    """Markdown as models write it. Raw HTML is text: it must be seen, not interpreted."""
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


_PARSER = parser()


def parse(text: str) -> list[Token]:
    """The tokens of a text."""
    return _PARSER.parse(text)


class BlockStream:
    """Takes text in pieces and gives it back in whole top-level blocks."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> None:
        """More text."""
        self._rest += piece

    @property
    def rest(self) -> str:
        """The block that may still grow."""
        return self._rest

    def finished(self) -> list[str]:
        """Blocks that nothing can change any more; each is given once."""
        starts = block_starts(self._rest)
        if len(starts) < 2:
            return []
        lines = _lines(self._rest)
        blocks = ["".join(lines[a:b]) for a, b in pairwise([0, *starts[1:]])]
        self._rest = "".join(lines[starts[-1] :])
        return blocks

    def end(self) -> list[str]:
        """All that is left."""
        blocks = self.finished()
        rest, self._rest = self._rest, ""
        return [*blocks, rest] if rest.strip() else blocks

    def preview(self) -> str:
        """The unfinished block, or its last lines when it is long."""
        lines = _lines(self._rest)
        if len(lines) <= LIVE_LINES:
            return self._rest
        tail = "".join(lines[-LIVE_LINES:])
        opening = lines[0].lstrip()
        return f"{lines[0]}{tail}" if opening.startswith(_FENCES) else tail


def block_starts(text: str) -> list[int]:
    """The line on which each top-level block begins."""
    return [token.map[0] for token in parse(text) if token.level == 0 and token.nesting >= 0 and token.map]


def _lines(text: str) -> list[str]:
    """Lines with their ends, counted as the parser does: a line feed ends a line and nothing else."""
    pieces = text.split("\n")
    return [*(f"{piece}\n" for piece in pieces[:-1]), *pieces[-1:]]
