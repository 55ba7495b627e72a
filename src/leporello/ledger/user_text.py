"""The user's own words in a user message, without what a client injected, and a title made of them."""

from __future__ import annotations

import re
from itertools import islice

from leporello.redact import PLACEHOLDER, redact

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


def strip_injected(text: str) -> str:
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


TITLE_CHARS = 80
_LOOKED_AT = 20
_ENOUGH = 100_000
"""Characters of one message that are looked at: a title is at its beginning, or it has none."""
_TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>\n]{0,200})?/?>")
_REQUEST = re.compile(r"^#+ My request\b[^\n]*\n", re.MULTILINE)
"""Editors put what they have open before the question, under headings."""
_WORD = re.compile(r"[^\W\d_]{2}")


def title_of(*texts: str, most: int = TITLE_CHARS) -> str:
    """The beginning of the first text in which somebody says something; the first text at all when nobody does.

    What a program put into a user message (its context, the output of commands) is no title, nor is a bare number.
    """
    fallback = ""
    for text in islice(filter(None, texts), _LOOKED_AT):
        begin = redact(text)[:_ENOUGH]
        fallback = fallback or begin
        words = _user_words(begin)
        if _WORD.search(words):
            return one_line(words, most)
    return one_line(fallback, most)


def _user_words(text: str) -> str:
    """What the user wrote, without blocks of programs and without tags around it."""
    words = strip_injected(text)
    while (less := strip_injected(words)) != words:  # blocks that stood in one line with another
        words = less
    asked = _REQUEST.search(words)
    return _TAG.sub(" ", words[asked.end() :] if asked else words)


def one_line(text: str, most: int) -> str:
    """The beginning of a text as one line, secrets masked."""
    # A secret is masked as a whole before anything is cut, and once more where line ends became blanks.
    line = redact(" ".join(redact(text)[: most * 20].split()))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
