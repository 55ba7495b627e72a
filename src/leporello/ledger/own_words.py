"""The user's own words in a user message.

Agents put more than the user's words into user messages: reminders, the output of local commands, what the editor has
open, notices of finished jobs. Such blocks are tagged. Their text is nobody's order, so neither a request nor a rule is
taken from it. A few tags carry what the user typed or wrote down; their content counts.
"""

from __future__ import annotations

import re

from leporello.redact import PLACEHOLDER

_OPEN = re.compile(r"^[ \t]*<([A-Za-z][\w:.-]*)(?:\s[^<>\n]*)?>", re.MULTILINE)
_CARRIES_WORDS = re.compile(
    r"(?:^|[-_:])(?:args|arguments|ask|description|feedback|goal|instructions?|issue|objective|prompt|problem|query|question"
    r"|request|requirements?|rules?|task)\Z",
    re.IGNORECASE,
)
_OUTPUT = re.compile(
    r"(?:^|[-_:])(?:std(?:out|err)|output|result|results|returncode|observation|log|logs|diff|file|files|document|documents"
    r"|contents?|page|snippet|selection)\Z",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
# A program's notice; a masked secret that stands alone is still the user's.
_BRACKETED = re.compile(rf"\A\s*(?!{re.escape(PLACEHOLDER)})\[[^\[\]\n]{{1,120}}\]\s*\Z")


def own_words(text: str) -> str:
    """The text without the blocks that a program put there; empty when nothing else is in it."""
    if _BRACKETED.match(text):
        return ""
    if "<" not in text:
        return text
    kept: list[str] = []
    open_for_good: set[str] = set()
    position = 0
    while match := _OPEN.search(text, position):
        name = match.group(1)
        end = None
        if name not in open_for_good and _is_machine_made(name):
            end = _block_end(text, name, match.end())
        if end is None:
            open_for_good.add(name)
            kept.append(text[position : match.end()])
            position = match.end()
        else:
            kept.append(text[position : match.start()])
            position = end
    kept.append(text[position:])
    words = "".join(kept)
    return words.strip() if len(words) < len(text) else text


def prose(text: str) -> str:
    """The text without fenced code: what is quoted as code is not said."""
    return _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text


def _is_machine_made(name: str) -> bool:
    if _CARRIES_WORDS.search(name):
        return False
    return "-" in name or "_" in name or bool(_OUTPUT.search(name))


def _block_end(text: str, name: str, start: int) -> int | None:
    """Where the block ends that was opened before `start`; None when it is never closed.

    Output may contain these tags itself. A closing tag too many therefore still belongs to the block, an opening tag
    too many doesn't keep it open, and blocks of output reach to their last closing tag: what stands between two of
    them can't be told from a forgery.
    """
    tags = re.compile(rf"<(/?){re.escape(name)}(?:\s[^<>\n]*)?>")
    end: int | None = None
    last: int | None = None
    depth = 1
    for match in tags.finditer(text, start):
        if match.group(1):
            last = match.end()
            depth -= 1
            if depth <= 0:
                end = last
        elif depth > 0 or _OUTPUT.search(name):
            depth += 1
        else:
            break
    return last if end is None else end
