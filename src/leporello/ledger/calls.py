"""What a tool call does, in a few words: kind of work, target, and how it ended. Works for the usual agents' tools.

The same description serves the one-line form of a pruned result, the actions of the ledger and the index's headings.

Records are what a call's answer in JSON says of a thing it names by an id, in one line each: orders, bookings, tickets.
Their ids, states and amounts are what the next call needs, and they stand in no sentence. Of files and commands no
records are read: their output is told line by line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.commands import CommandFiles, FileEdit, counted, files_of, patched
from leporello.ledger.plan import PLAN_TOOL
from leporello.messages import Message, PartKind, ToolCall, parse_json, parts_of, text_of
from leporello.redact import redact
from leporello.redact.messages import masked_call
from leporello.text_features.rare import RarePattern

_COMMAND_KEYS = ("command", "cmd", "script", "shell_command")
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath")
_OTHER_KEYS = ("pattern", "query", "url", "regex", "description", "prompt", "name", "id", "input", "q")
_EXIT = RarePattern(
    lazy_regex(
        r"\"?exit[_ ]?code\"?[:= ]+(-?\d+)|exited with (?:code|status) (\d+)|<returncode>(-?\d+)</returncode>"
        r"|exit status (\d+)|\"returncode\":\s*(-?\d+)",
        re.IGNORECASE,
    )
)
_NEW_TEXT_KEYS = ("new_string", "new_str", "newText", "content", "file_text", "insert_text", "new_source", "contents")
_OLD_TEXT_KEYS = ("old_string", "old_str", "oldText")
_WRAPPER_KEYS = ("output", "stdout", "content", "result", "text")
_HEREDOC = lazy_regex(r"<<-?\s*['\"]?(\w+)['\"]?")
_BODY = lazy_regex(
    r"<<-?[ ]?(['\"]?)([A-Za-z_]\w{0,40})\1([^\n]{0,400})\n.{0,200000}?(?:^[ \t]{0,40}\2[ \t]{0,8}$|\Z)", re.M | re.S
)
"""A here-document with its text: what a program is given to write or to run says nothing of what the command does."""
_LOOKS = lazy_regex(
    r"(?:^|[;&|]{1,2})\s{0,9}(?:cat|ls|find|head|tail|sed|nl|less|rm|mkdir|cp|mv|touch|echo|cd)\b[^;&|\n]{0,2000}"
)
"""A command that looks at files or moves them, whatever they are called."""
_SPACES = lazy_regex(r"\s+")
LONGEST_COMMAND = 200_000
"""No longer than a here-document may be: each that has no end is then read once."""
HEADING_CHARS = 72
ROOT_SHARE = 0.75
ARGUMENT_CHARS = 80
_QUOTED = lazy_regex(r"'[^']{0,4000}'|\"[^\"]{0,4000}\"")
_COMMENT = lazy_regex(r"^[ \t]*#[^\n]*\n?", re.MULTILINE)
_RUNS_TEXT = lazy_regex(r"\b(?:ba|z)?sh -l?c\b|\b(?:ssh|docker)\b")
_MAY_EDIT = ("edit", "shell", "read", "list", "search", "other", "git_read")
_I = re.IGNORECASE

_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "git_write",
        lazy_regex(
            r"\bgit (?:-\S+ )*(?:commit|push|merge|tag|rebase|cherry-pick|revert|checkout|switch|restore|reset"
            r"|apply|am|stash(?! (?:list|show)))(?![\w-])|\bgh pr (?:create|merge)"
        ),
    ),
    ("git_read", lazy_regex(r"\b(?:git|gh|hg|svn)\b")),
    ("search", lazy_regex(r"\b(?:rg|grep|ag|ack|findstr)\b")),
    (
        "check",
        lazy_regex(
            r"\b(?:pytest|jest|vitest|tox|nox|tsc|mypy|ruff|eslint|clippy|golangci-lint|unittest|ctest|phpunit|rspec)\b"
            r"|(?<![\w./-])(?:test|tests|lint|check|build|typecheck|compile|ci)(?![\w./-])|\b(?:make|cargo|gradle|mvn|bazel)\b"
            r"|(?:^|[;&|]\s{0,9})\S{0,200}(?:test|check|lint|build)[\w-]{0,40}\.(?:sh|py|js|ts)\b"
        ),
    ),
    (
        "install",
        lazy_regex(
            r"\b(?:pip3?|npm|pnpm|yarn|apt(?:-get)?|brew|uv|gem|go get)\b.{0,2000}\b(?:install|add|i|sync|get)\b"
        ),
    ),
    ("read", lazy_regex(r"(?:^|[;&|]\s*)(?:cat|sed -n|head|tail|nl|less|bat|type)\b")),
    ("list", lazy_regex(r"(?:^|[;&|]\s*)(?:ls|find|tree|fd|dir|du)\b")),
)

_TOOL_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("other", lazy_regex(PLAN_TOOL, _I)),
    ("read", lazy_regex(r"read|view|(?<![a-z])cat(?![a-z])|open", _I)),
    ("search", lazy_regex(r"grep|search|find|query", _I)),
    ("list", lazy_regex(r"glob|^ls$|list|tree", _I)),
    ("edit", lazy_regex(r"edit|write|patch|replace|create|insert|update|delete|apply", _I)),
    ("other", lazy_regex(r"task_?(?:stop|output|get)", _I)),
    ("agent", lazy_regex(r"task|agent|delegate", _I)),
    ("web", lazy_regex(r"web|fetch|http|browse(?!r)|url", _I)),
    (
        "other",
        lazy_regex(
            r"get|show|check|calculat|think|describe|count|look|status|snapshot|screenshot|console|wait"
            r"|sleep|notif|question|memory|skill|mode|output|^tool$",
            _I,
        ),
    ),
    ("act", lazy_regex(r"\w")),
)


def tool_class(name: str, command: str) -> str:
    """What kind of work a call does: by its command when it runs one, else by the tool's name."""
    if command:
        shell = _BODY.sub(r"\3", command[:LONGEST_COMMAND]) if "<<" in command else command
        shell = _COMMENT.sub("", shell) if "#" in shell else shell
        shell = shell if _RUNS_TEXT.search(shell) else _QUOTED.sub("''", shell)
        for label, pattern in _COMMANDS:
            if pattern.search(shell) and (label != "check" or pattern.search(_LOOKS.sub("", shell))):
                return label
        return "shell"
    return _class_of_tool(name)


@lru_cache(maxsize=1024)
def _class_of_tool(name: str) -> str:
    return next((label for label, pattern in _TOOL_NAMES if pattern.search(name)), "other")


class CallFacts(Struct, frozen=True):
    """A call in a few words. `path` is the file it works on, when it names one."""

    name: str
    work: str
    command: str
    target: str
    path: str
    span: str = ""
    edits: tuple[FileEdit, ...] = ()
    """The files it changes, each with what: lines added and taken away, and what is defined in them."""
    shown: str = ""
    """The file that a command prints."""

    @property
    def heading(self) -> str:
        """Tool and target on one line, short enough to stand before the lines it brought."""
        return self.heading_within("")

    def heading_within(self, root: str) -> str:
        """The heading with paths shown as seen from a folder."""
        target = one_line(inside(self.target, root), HEADING_CHARS)
        return f"{self.name}: {target}" if target else self.name


UNKNOWN_CALL = CallFacts("tool", "other", "", "", "")


@lru_cache(maxsize=4096)
def describe(call: ToolCall) -> CallFacts:
    """What a call does, from its name and arguments; secrets are masked before anything is shortened."""
    return describe_masked(masked_call(call))


_masked_name = lru_cache(maxsize=2048)(redact)
"""Files come up again and again."""


@lru_cache(maxsize=64)
def describe_masked(call: ToolCall) -> CallFacts:
    """The same for a call without secrets; a result asks for it several times."""
    arguments = call.parsed()
    raw = call.arguments if not arguments else ""
    command = _command(arguments)
    path = _first_text(arguments, _PATH_KEYS)
    patch = _patch_text(arguments, raw)
    files = files_of(command) if command else CommandFiles(dict(patched(patch)) if patch else {})
    work = tool_class(call.name, command)
    if files.edits and work in _MAY_EDIT:
        work = "edit"
    edits = files.edits or ({path: _change(arguments)} if path and work == "edit" else {})
    if work == "edit" and not edits and call.name:
        work = "act"  # something is changed that is no file
    span = files.span if files.read else _span_of(arguments)
    # Joining the words of a command can make a secret's shape of them.
    masked = redact(command)
    return CallFacts(
        call.name or "tool",
        work,
        masked,
        _uncommented(masked) or redact(_target(arguments, raw, list(files.edits), path)),
        _masked_name(path if command or path else next(iter(edits), "")),
        span,
        tuple((_masked_name(file), _masked_name(change)) for file, change in edits.items()),
        _masked_name(files.read),
    )


_COMMENTS = lazy_regex(r"\A(?:[ \t]{0,8}#[^\n]*\n\s{0,8})++")


def _uncommented(command: str) -> str:
    """A command without the remarks before it: what it is about is what it does."""
    return (_COMMENTS.sub("", command) or command) if command[:1] == "#" else command


def _target(arguments: Mapping[str, Any], raw: str, edited: Sequence[str], path: str) -> str:
    """What a call is about: its files, else the first of its arguments that says so, else all of them."""
    if edited:
        return ", ".join(edited[:3])
    if path:
        pattern = _first_text(arguments, ("pattern", "query", "regex"))
        return f"{pattern} in {path}" if pattern else path + _span_of(arguments)
    said = _first_text(arguments, _OTHER_KEYS) or raw
    return said or ", ".join(text for text in _plain(arguments) if len(text) <= ARGUMENT_CHARS)


def _plain(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, value in arguments.items():
        if isinstance(value, str | int | float):
            yield f"{key}={value}"
        elif isinstance(value, list) and all(isinstance(item, str | int) for item in value):
            yield f"{key}={','.join(map(str, value))}"


def _change(arguments: Mapping[str, Any]) -> str:
    return counted(*(_first_text(arguments, keys) for keys in (_NEW_TEXT_KEYS, _OLD_TEXT_KEYS)))


def _command(arguments: Mapping[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            # Some agents send an argument vector: ["bash", "-lc", "the real command"].
            words = [str(word) for word in value]
            return words[-1] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    return ""


def _first_text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _patch_text(arguments: Mapping[str, Any], raw: str) -> str:
    for key in ("patch", "diff", "input"):
        value = arguments.get(key)
        if isinstance(value, str):
            return value
    return raw if raw.lstrip().startswith("***") else ""


def _span_of(arguments: Mapping[str, Any]) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if isinstance(offset, int) and isinstance(limit, int):
        return f":{offset}-{offset + limit - 1}"
    return f":{offset}-" if isinstance(offset, int) and offset > 1 else ""


def common_folder(files: Iterable[str]) -> str:
    """The deepest folder that holds most of the files, with a slash at its end; empty when there is none."""
    folders: Counter[str] = Counter()
    paths = [path for path in files if path.startswith("/")]
    for path in paths:
        parts = path.split("/")[1:-1]
        folders.update("/" + "/".join(parts[:depth]) + "/" for depth in range(2, len(parts) + 1))
    common = [folder for folder, count in folders.items() if count >= ROOT_SHARE * len(paths) and count > 1]
    return max(common, key=len, default="")


def inside(text: str, root: str) -> str:
    """The text with paths below a folder shortened; `root` ends with a slash, empty leaves everything."""
    return text.replace(root, "") if root else text


def one_line(text: str, limit: int) -> str:
    """The text on one line, shortened at the end with an ellipsis; a here-document is cut at its start."""
    heredoc = _HEREDOC.search(text)
    if heredoc:
        text = text[: heredoc.start()]
    flat = _SPACES.sub(" ", text).strip()
    if len(flat) <= limit:
        return flat
    # Half an id or a half number looks like a whole one.
    whole = _CUT_WORD.sub("", flat[:limit], count=1) if flat[limit - 1 : limit + 1].isalnum() else flat[: limit - 1]
    return whole[: limit - 1].rstrip() + "…"


_CUT_WORD = lazy_regex(r"(?<=[\s,;|&])[\w#@.-]{1,24}\Z")
"""The beginning of a word at the end of what is shown."""


def result_text(message: Message) -> str:
    """The readable text of a tool result; a JSON envelope around the real output is taken off."""
    text = text_of(message)
    if text[:1] == "{" and len(text) < 5_000_000:
        value = parse_json(text)
        if isinstance(value, dict):
            inner = [value[key] for key in _WRAPPER_KEYS if isinstance(value.get(key), str) and value[key]]
            if inner:
                rest = {key: item for key, item in value.items() if key not in _WRAPPER_KEYS}
                tail = "\n".join(f"{key}: {item}" for key, item in rest.items() if isinstance(item, str | int | float))
                return "\n".join([*inner, tail]) if tail else "\n".join(inner)
    return text


_EXIT_CHARS = 300


def exit_code(text: str) -> int | None:
    """The exit code a result states, looked for at both ends."""
    return _stated_exit(text[:_EXIT_CHARS], text[-_EXIT_CHARS:])


@lru_cache(maxsize=64)
def _stated_exit(head: str, tail: str) -> int | None:
    for piece in (head, tail) if tail != head else (head,):
        if match := _EXIT.search(piece):
            return int(next(group for group in match.groups() if group is not None))
    return None


_FAILED = lazy_regex(
    r"^\s*(?:<tool_use_error>|Error\b|error:|Traceback|fatal:|.{0,40}(?:not found|No such file|failed))", re.I
)


_REFUSED = lazy_regex(
    r"^\s{0,8}(?:<tool_use_error>)?(?:The user doesn't want to (?:proceed with|take)|(?:The )?tool use was rejected"
    r"|(?:The )?user (?:rejected|denied|declined|refused|cancelled)\b)",
    re.I,
)
REFUSED = "refused by the user"


_ABORTED = lazy_regex(
    r"(?:^|\n)[ \t<\[(]{0,4}(?:command|operation|execution|request)(?: was)?"
    r" (?:aborted|interrupted|cancelled|canceled|timed out)\b[^\n]{0,80}\s{0,8}\Z",
    re.I,
)
_ENDS = ("aborted", "interrupted", "cancelled", "canceled", "timed out")
ABORTED = "aborted"


def _is_aborted(text: str) -> bool:
    """Whether somebody or a time limit ended it: its last line says so."""
    tail = text[-200:].lower()
    return any(word in tail for word in _ENDS) and _ABORTED.search(tail) is not None


def _is_refused(text: str) -> bool:
    head = text[:80].lower()
    return ("user" in head or "tool use" in head) and _REFUSED.match(text[:200]) is not None


def ended(message: Message, text: str | None = None) -> str:
    """How a result ended, in a few words: exit code when stated, else whether it looks like an error; and its size."""
    body = result_text(message) if text is None else text
    pictures = sum(part.kind is PartKind.IMAGE for part in parts_of(message))
    lines = body.count("\n") + 1 if body.strip() else 0
    words: list[str] = []
    code = exit_code(body)
    if _is_refused(body):
        words.append(REFUSED)
    elif code is not None:
        words.append(f"exit {code}")
    elif _is_aborted(body):
        words.append(ABORTED)
    elif _FAILED.match(body[:200]):
        words.append("error")
    if pictures:
        words.append(f"{pictures} image{'s' if pictures > 1 else ''}")
    words.append(f"{lines} line{'s' if lines != 1 else ''}" if lines else "no output")
    return ", ".join(words)


def looks_failed(text: str) -> bool:
    code = exit_code(text)
    return code not in (None, 0) or bool(_FAILED.match(text[:200])) or _is_refused(text) or _is_aborted(text)


RECORD_CHARS = 360
VALUE_CHARS = 40
PLAIN_CHARS = 80
MOST_RECORDS = 12
MOST_GROUPS = 8
MOST_VALUES = 6
MOST_WORDS = 4
LARGEST = 200_000
_ID = lazy_regex(r"(?:^|_)(?:id|number|code|key)$|[a-z]Id$")
_SENTENCE = lazy_regex(r"\s\S{1,40}\s[^\n]{0,40}[.!?]$|[。！？]$|\n")
"""What is said, perhaps to whoever reads it; a record has values."""
_NAMES = lazy_regex(r"(?=\D*\d)\S+")

RecordFacts = tuple[str, str]
"""What a record is about, and what it says."""


def records_of(text: str, call: CallFacts) -> tuple[RecordFacts, ...]:
    """The records of an answer; a short plain answer to a question with arguments is one too."""
    if call.command or call.path or call.work in ("agent", "web"):
        return ()
    about = f"{call.name} {call.target}".strip()
    if text[:1] not in ("{", "["):
        said = text.strip() if len(text) <= PLAIN_CHARS else ""
        return ((about[:PLAIN_CHARS], said),) if call.target and call.work != "act" and _NAMES.fullmatch(said) else ()
    value = parse_json(text) if len(text) < LARGEST else None
    rows = value if isinstance(value, list) else [value]
    return tuple(_record(row, about) for row in rows[:MOST_RECORDS] if isinstance(row, dict) and row)


def state_of(record: RecordFacts) -> str:
    """What a record says of how things stand now."""
    parts = record[1].split("; ")
    return next((part for part in parts if part.startswith(("status ", "message ", "result "))), "")


def _record(row: Mapping[str, Any], about: str) -> RecordFacts:
    named = next((key for key, value in row.items() if _ID.search(key) and isinstance(value, str | int)), "")
    plain = [f"{key} {value}" for key, value in row.items() if key != named and _is_short(value)]
    nested = [
        f"{key} {', '.join(groups)}"
        for key, value in row.items()
        if isinstance(value, dict | list) and (groups := list(_groups(value)))
    ]
    told = ""
    for part in [*plain, *nested]:
        room = RECORD_CHARS - len(told)
        # Of a list that is too long the first are told.
        fits = part if len(part) <= room else part[: max(0, part.rfind(", ", 0, room))]
        if fits:
            told += f"; {fits}" if told else fits
    return f"{named} {row[named]}" if named else about[:PLAIN_CHARS], told


def _is_short(value: object) -> bool:
    """Whether a value is a name, an id, an amount or a state; sentences are no record, whoever wrote them."""
    said = str(value) if isinstance(value, int | float | str) and value is not False else ""
    return 0 < len(said) <= VALUE_CHARS and len(said.split()) <= MOST_WORDS and not _SENTENCE.search(said)


def _groups(value: dict[str, Any] | list[Any]) -> Iterator[str]:
    """What a list or an object inside a record holds: the values of each of its own objects together."""
    inner = list(value.values()) if isinstance(value, dict) else value
    objects = [item for item in inner if isinstance(item, dict)]
    if not objects:
        named = list(value.items()) if isinstance(value, dict) else [("", item) for item in inner]
        # Amounts say nothing without their names.
        told = (f"{name} {item}" if name and isinstance(item, int | float) else str(item) for name, item in named)
        yield from (said for said, (_, item) in zip(told, named[:MOST_GROUPS], strict=False) if _is_short(item))
    together = (" ".join(_leaves(item))[:PLAIN_CHARS] for item in objects[:MOST_GROUPS])
    yield from filter(None, together)


def _leaves(item: dict[str, Any]) -> Iterator[str]:
    """The values of an object; of several ids each with its name."""
    short = [(name, leaf) for name, leaf in list(item.items())[: 2 * MOST_VALUES] if _is_short(leaf)]
    ids = [name for name, _ in short if _ID.search(name)]
    for name, leaf in short:
        yield f"{name} {leaf}" if name in ids and len(ids) > 1 else str(leaf)
