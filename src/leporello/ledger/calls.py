"""What a tool call does, in a few words: kind of work, target, and how it ended. Works for the usual agents' tools.

The same description serves the one-line form of a pruned result, the actions of the ledger and the index's headings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leporello.messages import Message, PartKind, ToolCall, parse_json, parts_of, text_of
from leporello.redact import redact
from leporello.redact.messages import masked_call

_COMMAND_KEYS = ("command", "cmd", "script", "shell_command")
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath")
_OTHER_KEYS = ("pattern", "query", "url", "regex", "description", "prompt", "name", "id", "input", "q")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_EXIT = re.compile(
    r"\"?exit[_ ]?code\"?[:= ]+(-?\d+)|exited with (?:code|status) (\d+)|<returncode>(-?\d+)</returncode>"
    r"|exit status (\d+)|\"returncode\":\s*(-?\d+)",
    re.IGNORECASE,
)
_WRAPPER_KEYS = ("output", "stdout", "content", "result", "text")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_SPACES = re.compile(r"\s+")
HEADING_CHARS = 72
ROOT_SHARE = 0.75
_I = re.IGNORECASE

_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "git_write",
        re.compile(r"\bgit (?:-\S+ )*(?:commit|push|merge|tag|rebase|cherry-pick|revert)\b|\bgh pr (?:create|merge)"),
    ),
    ("git_read", re.compile(r"\b(?:git|gh|hg|svn)\b")),
    ("search", re.compile(r"\b(?:rg|grep|ag|ack|findstr)\b")),
    (
        "check",
        re.compile(
            r"\b(?:pytest|jest|vitest|tox|nox|tsc|mypy|ruff|eslint|clippy|golangci-lint|unittest|ctest|phpunit|rspec)\b"
            r"|\b(?:test|tests|lint|check|build|typecheck|compile|ci)\b|\b(?:make|cargo|gradle|mvn|bazel)\b"
        ),
    ),
    (
        "install",
        re.compile(
            r"\b(?:pip3?|npm|pnpm|yarn|apt(?:-get)?|brew|uv|gem|go get)\b.{0,2000}\b(?:install|add|i|sync|get)\b"
        ),
    ),
    ("read", re.compile(r"(?:^|[;&|]\s*)(?:cat|sed -n|head|tail|nl|less|bat|type)\b")),
    ("list", re.compile(r"(?:^|[;&|]\s*)(?:ls|find|tree|fd|dir|du)\b")),
)

_TOOL_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("other", re.compile(r"todo|plan", _I)),
    ("read", re.compile(r"read|view|cat|open", _I)),
    ("search", re.compile(r"grep|search|find|query", _I)),
    ("list", re.compile(r"glob|^ls$|list|tree", _I)),
    ("edit", re.compile(r"edit|write|patch|replace|create|insert|update|delete|apply", _I)),
    ("agent", re.compile(r"task|agent|delegate", _I)),
    ("web", re.compile(r"web|fetch|http|browse|url", _I)),
)


def tool_class(name: str, command: str) -> str:
    """What kind of work a call does: by its command when it runs one, else by the tool's name."""
    if command:
        for label, pattern in _COMMANDS:
            if pattern.search(command):
                return label
        return "shell"
    for label, pattern in _TOOL_NAMES:
        if pattern.search(name):
            return label
    return "other"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call in a few words. `path` is the file it works on, when it names one."""

    name: str
    work: str
    command: str
    target: str
    path: str
    span: str = ""

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
    call = masked_call(call)
    arguments = call.parsed()
    raw = call.arguments if not arguments else ""
    command = _command(arguments)
    path = _first_text(arguments, _PATH_KEYS)
    patch = _patch_text(arguments, raw)
    files = [one or two for one, two in _PATCH_FILE.findall(patch)] if patch else []
    if files and not path:
        path = files[0]
    work = "edit" if files and not command else tool_class(call.name, command)
    target = command or ", ".join(files[:3]) or path or _first_text(arguments, _OTHER_KEYS) or raw
    if path and not command and not files:
        target = path + _span_of(arguments)
        pattern = _first_text(arguments, ("pattern", "query", "regex"))
        if pattern:
            target = f"{pattern} in {path}"
    # Joining the words of a command can make a secret's shape of them.
    return CallFacts(call.name or "tool", work, redact(command), redact(target), redact(path), _span_of(arguments))


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
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


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


def exit_code(text: str) -> int | None:
    """The exit code a result states, looked for at both ends."""
    for piece in (text[:300], text[-300:]):
        match = _EXIT.search(piece)
        if match:
            return int(next(group for group in match.groups() if group is not None))
    return None


_FAILED = re.compile(
    r"^\s*(?:<tool_use_error>|Error\b|error:|Traceback|fatal:|.{0,40}(?:not found|No such file|failed))", re.I
)


def ended(message: Message, text: str | None = None) -> str:
    """How a result ended, in a few words: exit code when stated, else whether it looks like an error; and its size."""
    body = result_text(message) if text is None else text
    pictures = sum(part.kind is PartKind.IMAGE for part in parts_of(message))
    lines = body.count("\n") + 1 if body.strip() else 0
    words: list[str] = []
    code = exit_code(body)
    if code is not None:
        words.append(f"exit {code}")
    elif _FAILED.match(body[:200]):
        words.append("error")
    if pictures:
        words.append(f"{pictures} image{'s' if pictures > 1 else ''}")
    words.append(f"{lines} line{'s' if lines != 1 else ''}" if lines else "no output")
    return ", ".join(words)


def looks_failed(text: str) -> bool:
    code = exit_code(text)
    return code not in (None, 0) or bool(_FAILED.match(text[:200]))
