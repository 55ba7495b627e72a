"""Which files a shell command or a patch changes, and which one it reads, as far as its words say."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from leporello.lazy_regex import lazy_regex

LOOKED_AT = 40_000
"""Characters of a command that are looked at."""
NAME_CHARS = 40
MOST_NAMES = 3
MOST_FILES = 24
SHOWN_CHARS = 90
_PATCHED = lazy_regex(r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_MOVED = lazy_regex(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
_HEREDOC = lazy_regex(r"<<-?\s*(['\"]?)(\w{1,40})\1")
_TOKEN = lazy_regex(
    r"[12]?>&[12-]|2>{1,2}[ ]?[^\s;&|<>()]{0,300}|(?P<to>[1&]?>{1,2})|(?P<end>[;&|()\n]+)"
    r"|(?P<word>(?:'[^']{0,4000}'|\"[^\"]{0,4000}\"|[^\s;&|<>()'\"])+)"
)
_DOCUMENT = "\0"
_WRITES = lazy_regex(
    r"open\(\s{0,9}['\"]([^'\"\n]{1,300})['\"]\s{0,9},\s{0,9}['\"][wa]|Path\(['\"]([^'\"\n]{1,300})['\"]\)\.write_"
)
_DEFINED = lazy_regex(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|async|pub|abstract|final) )*"
    r"(?:def|class|func(?: \([^)\n]{0,60}\))?|function|fn|interface|struct|enum|trait|type|module|const) (\w{2,60})"
    r"|^#{1,4} (\S[^\n]{0,60})",
    re.MULTILINE,
)
_LINES = lazy_regex(r"(\d{1,9}),(\d{1,9})p")
_READERS = frozenset("cat nl head tail less more bat sed".split())
_BEFORE = frozenset("sudo command time env exec nohup then do else".split())
_NOT_FILES = ("/dev/", "/tmp/", "/proc/", "-", "&")
_SETS = lazy_regex(r"\w{1,80}=")
_ODD = frozenset("$*?`{}")

FileEdit = tuple[str, str]
"""A file, and what was changed in it in a few words."""


class CommandFiles(Struct):
    edits: dict[str, str] = field(default_factory=dict)
    """Files it changes, each with what changes."""
    read: str = ""
    """The first file it shows."""
    span: str = ""
    """The lines of it that are shown, as in `:1-80`."""


def files_of(command: str) -> CommandFiles:
    """The files of a shell command, each here-document told as what is written where."""
    found = CommandFiles()
    if "*** Begin Patch" in command:
        found.edits.update(patched(command))
        return found
    folder = ""
    for words, targets, written in _commands(command):
        name, arguments = _name(words)
        if name == "cd" and arguments:
            # What is named inside the folder of a project is told as it is named.
            folder = "" if arguments[0].startswith(("/", "~", "$")) else posixpath.join(folder, arguments[0])
            continue
        for path, change in [*((target, counted(written)) for target in targets), *_changed(name, arguments, written)]:
            if _is_file(path) and len(found.edits) < MOST_FILES:
                found.edits[posixpath.normpath(posixpath.join(folder, path))] = change
        if name in _READERS and not targets:
            _note_read(found, name, arguments, folder)
    return found


def patched(patch: str) -> Iterator[FileEdit]:
    """The files of a patch, each with what changes in it."""
    heads = list(_PATCHED.finditer(patch))
    ends = [*(head.start() for head in heads[1:]), len(patch)]
    for head, end in zip(heads, ends, strict=False):
        body = patch[head.end() : end]
        path = (head[2] or head[3]).strip()
        moved = _MOVED.search(body)
        if head[1] == "Delete":
            yield path, "deleted"
        else:
            yield moved[1].strip() if moved else path, counted(*_sides(body))


def counted(new: str, old: str = "") -> str:
    """What a change puts in the place of what: a line or two themselves, else how many, and the names they define."""
    if told := _replaced(new, old):
        return told
    counts = [f"{sign}{text.count(chr(10)) + 1}" for sign, text in (("+", new), ("−", old)) if text.strip()]
    names = dict.fromkeys(_short(a or b) for a, b in _DEFINED.findall(new[:LOOKED_AT]))
    return " ".join([*counts, ", ".join(list(names)[:MOST_NAMES])]).strip()


def _replaced(new: str, old: str) -> str:
    """The line that takes the place of another, where little else changes."""
    if not old or len(new) + len(old) > LOOKED_AT:
        return ""
    before, after = ([line.strip() for line in text.split("\n") if line.strip()] for text in (old, new))
    kept = set(before) & set(after)
    gone = [line for line in before if line not in kept]
    came = [line for line in after if line not in kept]
    if len(gone) != 1 or len(came) != 1:
        return ""
    return f"`{_short(gone[0], SHOWN_CHARS)}` → `{_short(came[0], SHOWN_CHARS)}`".replace("; ", ";")


def _short(text: str, most: int = NAME_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _sides(patch: str) -> tuple[str, str]:
    lines = patch.split("\n")
    new = "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))
    return new, "\n".join(line[1:] for line in lines if line.startswith("-") and not line.startswith("---"))


def _commands(command: str) -> Iterator[tuple[list[str], list[str], str]]:
    """The simple commands: their words, the files their output goes to, and the here-document they read."""
    shell, documents = _without_documents(command[:LOOKED_AT])
    words: list[str] = []
    targets: list[str] = []
    written = ""
    redirected = False
    for token in _TOKEN.finditer(shell + "\n"):
        if token["end"]:
            if words or targets:
                yield words, targets, written
            words, targets, written = [], [], ""
        elif (word := token["word"]) is None:
            redirected = token["to"] is not None
            continue
        elif word[0] == _DOCUMENT:
            written = documents[int(word[1:])] if word[1:].isdecimal() else ""
        else:
            (targets if redirected else words).append(word.strip("'\""))
        redirected = False


def _without_documents(command: str) -> tuple[str, list[str]]:
    """The command with a mark for each here-document, and what stands in them."""
    shell: list[str] = []
    documents: list[str] = []
    lines = iter(command.split("\n"))
    for line in lines:
        mark = _HEREDOC.search(line)
        if mark:
            line = f"{line[: mark.start()]} {_DOCUMENT}{len(documents)} {line[mark.end() :]}"
            documents.append("\n".join(_until(lines, mark[2])))
        shell.append(line)
    return "\n".join(shell), documents


def _until(lines: Iterator[str], end: str) -> Iterator[str]:
    for line in lines:
        if line.strip() == end:
            return
        yield line


def _name(words: Sequence[str]) -> tuple[str, list[str]]:
    """The program and its arguments, without what is set for it or runs it."""
    rest = list(words)
    while rest and (rest[0] in _BEFORE or _SETS.match(rest[0])):
        rest.pop(0)
    if rest[:1] == ["git"] and len(rest) > 1:
        rest.pop(0)
    return (rest[0].rsplit("/", 1)[-1], rest[1:]) if rest else ("", [])


def _changed(name: str, arguments: Sequence[str], written: str) -> Iterator[FileEdit]:
    plain = [word for word in arguments if word and not word.startswith("-")]
    flags = [word for word in arguments if word.startswith("-")]
    if name in ("sed", "perl") and any(flag.startswith("-i") or flag in ("-pi", "-pie") for flag in flags):
        yield from ((path, name) for path in plain[1:])
    elif name == "tee":
        yield from ((path, counted(written)) for path in plain)
    elif name == "mv" and len(plain) == 2:
        yield plain[0], f"moved to {plain[1]}"
        yield _in_folder(plain[1], plain[0]), f"moved from {plain[0]}"
    elif name == "cp" and len(plain) == 2:
        yield _in_folder(plain[1], plain[0]), f"copied from {plain[0]}"
    elif name == "rm":
        yield from ((path, "deleted") for path in plain)
    elif name.startswith(("python", "node")):
        yield from ((one or other, name) for one, other in _WRITES.findall(written))


def _in_folder(target: str, source: str) -> str:
    """Where a file comes to lie: a target that ends with a slash is a folder."""
    return posixpath.join(target, posixpath.basename(source)) if target.endswith("/") else target


def _is_file(word: str) -> bool:
    if not word or len(word) >= 300 or word.startswith(_NOT_FILES):
        return False
    # What git keeps for itself is no file of the work.
    return not _ODD.intersection(word) and "/.git/" not in f"/{word}"


def _note_read(found: CommandFiles, name: str, arguments: Sequence[str], folder: str) -> None:
    words = [word for word in arguments if not word.startswith("-")]
    if name == "sed" and words:
        lines = _LINES.fullmatch(words.pop(0))
        if lines and not found.span:
            found.span = f":{lines[1]}-{lines[2]}"
    path = next((word for word in words if _is_file(word) and ("." in word or "/" in word)), "")
    if path and not found.read:
        found.read = posixpath.normpath(posixpath.join(folder, path))
