"""The user's own words in a user message, without what a client injected, and a title made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from leporello.lazy_regex import lazy_regex
from leporello.ledger.quoted import CARRIES_WORDS
from leporello.messages import Message, role_of, text_of
from leporello.redact import PLACEHOLDER, redact

_OPEN = lazy_regex(r"^[ \t]*<([A-Za-z][\w:.-]*)(?:\s[^<>\n]*)?>", re.MULTILINE)
_OUTPUT = lazy_regex(
    r"(?:^|[-_:])(?:std(?:out|err)|output|summary|handoff|memory|result|results|returncode|observation|log|logs|diff|file|files|document|documents"
    r"|contents?|page|snippet|selection|context|e?mail|article|transcript|quote|attachment|website|webpage)\Z",
    re.IGNORECASE,
)
# A program's notice; a masked secret that stands alone is still the user's.
_BRACKETED = lazy_regex(rf"\A\s*(?!{re.escape(PLACEHOLDER)})\[[^\[\]\n]{{1,120}}\]\s*\Z")

_HOOKS = ("Operation stopped by hook", "Stop hook feedback:")
"""What a client writes in the user's role when one of its hooks stopped the agent."""
_NOTICE = lazy_regex(r"^Read the output file to retrieve the result: \S{1,500}$", re.MULTILINE)
"""What stands behind the block that tells of a finished background command."""


_CARRIED = lazy_regex(
    r"""^[ \t]{0,8}(?:
      \[[^\[\]\n]{1,200}\][ \t]{0,4}(?:result|output)s?:?[ \t]{0,4}$
    | \[(?:tool|function|command)[ _-](?:result|output|response)[^\[\]\n]{0,80}\]
    | \[(?:tool|function)s?:[ ][^\[\]\n]{1,80}\][ \t]{0,4}$
    | (?:the[ ])?(?:tool|function|command)(?:[ ]call)?[ ](?:returned|printed|responded)[ \t]{0,4}[:：]
    | (?:observation
        |(?:tool|function|command|terminal|shell|bash|execution|action|api)[ _](?:output|results?|response|observation)
        |response[ ]from[ ][\w./-]{1,60}|stdout|stderr)[ \t]{0,4}\d{0,3}[ \t]{0,4}
      (?:\([^()\n]{1,80}\)[ \t]{0,4}|(?:for|of|from)[ ]\S{1,80}[ \t]{0,4})?(?:[:：]|[>»=-]{2,40}[ \t]{0,4}$)
    | I[ ]ran[ ]this[ ]command:[ \t]{0,4}$
    )
    | \A\s{0,8}(?:output|results?)[ \t]{0,4}:[ \t]{0,4}$""",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
"""How agents that know no role for results say, in the user's role, that the output of a tool follows."""
_CARRIES = (
    *"bservation BSERVATION esult ESULT utput UTPUT esponse RESPONSE std STD eturned esponded printed".split(),
    *("I ran this", "[Tool", "[tool", "[TOOL", "[Function", "[function"),
)


def carries_output(text: str) -> bool:
    """Whether a user message holds a tool's output, by what stands before it."""
    return any(word in text for word in _CARRIES) and _CARRIED.search(text) is not None


def strip_injected(text: str) -> str:
    """The text without what a program put there; empty when nothing else is in it."""
    if text.lstrip().startswith("# "):
        text = _OPEN_FILES.sub("", text, 1)
    if carries_output(text):
        text = text[: _CARRIED.search(text).start()]  # type: ignore[union-attr]  # it was found just before
    if _BRACKETED.match(text) or text.lstrip().startswith(_HOOKS):
        return ""
    if _is_template(text):
        return "\n".join(match["given"].strip() for match in _ARGUMENTS.finditer(text))
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
    return _NOTICE.sub("", words).strip() if len(words) < len(text) else text


_OPEN_FILES = lazy_regex(r"\A\s*# Context from my IDE\b.{0,20000}?^#+ My request\b[^\n]*\n", re.MULTILINE | re.DOTALL)
"""Editors put what they have open before the request, under headings."""


def _is_template(text: str) -> bool:
    """Whether a host put a document of its own there: the text of a skill or of a command.

    It begins with the place it is from and has headings, or it is nothing but several blocks of tags.
    """
    if len(text) < SHORTEST_TEMPLATE:
        return False
    if _FROM_PLACE.match(text):
        return len(_HEADING.findall(text)) > 1
    opened = _OPEN.match(text.lstrip()) if text.lstrip()[:1] == "<" else None
    blocks = list(_blocks(text)) if opened else []
    return len(set(blocks)) > 1 and text.rstrip().endswith(f"</{blocks[-1]}>") and not _WORDS_TAG.search(blocks[0])


def _blocks(text: str) -> Iterator[str]:
    """The names of the outermost blocks of tags that stand on lines of their own."""
    opened = ""
    for line in _TAG_LINE.finditer(text):
        if not opened:
            opened = line["opens"] or ""
        elif line["closes"] == opened:
            yield opened
            opened = ""


SHORTEST_TEMPLATE = 600
_FROM_PLACE = lazy_regex(r"\A\s*[A-Z][\w ]{3,60}: (?:[/~]|[A-Z]:\\)\S{1,400}[ \t]*\n")
_HEADING = lazy_regex(r"^#{1,4} \S", re.MULTILINE)
_TAG_LINE = lazy_regex(
    r"^[ \t]{0,16}<(?:(?P<opens>[a-z][\w-]{2,30})>[ \t]*$|/(?P<closes>[a-z][\w-]{2,30})>)", re.MULTILINE
)
_WORDS_TAG = lazy_regex(r"user|args|request|query|issue|description", re.IGNORECASE)
_ARGUMENTS = lazy_regex(
    r"^(?:arguments|user request|user input)[ ]?:[ ]?(?P<given>\S[^\n]{0,2000})", re.MULTILINE | re.IGNORECASE
)


def _is_machine_made(name: str) -> bool:
    if CARRIES_WORDS.search(name):
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
_TAG = lazy_regex(r"</?([A-Za-z][\w:.-]*)(?:\s[^<>\n]{0,200})?/?>")
_OF_HOST = lazy_regex(r"(?:system|command|local-command|task|environment|ide|tool|bash|user)[_-]")
"""Tags that hosts are known to put there: even one that is never closed says nothing of the user's."""
_WORD = lazy_regex(r"[^\W\d_]{2}")


def title_of(*texts: str, most: int = TITLE_CHARS) -> str:
    """The beginning of the first text in which somebody says something; the first text at all when nobody does.

    What a program put into a user message (its context, the output of commands) is no title, nor is a bare number.
    """
    fallback = ""
    for text in islice(filter(None, texts), _LOOKED_AT):
        begin = redact(text[:_ENOUGH])
        fallback = fallback or begin
        words = _user_words(begin)
        if _WORD.search(words):
            return one_line(words, most)
    return one_line(fallback, most)


def title_from(messages: Iterable[Message], given: str = "") -> str:
    """The title that a conversation was given, or what its user said first."""
    return title_of(given, *(text_of(message) for message in messages if role_of(message) == "user"))


def _user_words(text: str) -> str:
    """What the user wrote, without blocks of programs and without tags around it."""
    words = strip_injected(text)
    while (less := strip_injected(words)) != words:  # blocks that stood in one line with another
        words = less
    return without_tags(words)


def says_something(words: str) -> bool:
    """Whether words without what a program put there say anything: `<div>` does, the empty block of a host does not."""
    if without_tags(words).strip():
        return True
    tags = [(tag[0].startswith("</"), tag[1]) for tag in _TAG.finditer(words)]
    closed = {name for closes, name in tags if closes}
    return any(not (name in closed and _may_be_of_host(name)) and not _OF_HOST.match(name) for _, name in tags)


def _may_be_of_host(name: str) -> bool:
    return _is_machine_made(name) or CARRIES_WORDS.search(name) is not None


def without_tags(text: str) -> str:
    return _TAG.sub(" ", text)


def one_line(text: str, most: int) -> str:
    """The beginning of a text as one line, secrets masked."""
    # A secret is masked as a whole before anything is cut, and once more where line ends became blanks.
    line = redact(" ".join(redact(text)[: most * 20].split()))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
