"""The prompt: multi-line input with history, completion (files too) and long pastes; the status line below it."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected, has_completions
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.styles import Style

from leporello.chat.terminal import depth
from leporello.chat.ui import ChatStatus, status_line
from leporello.lazy_regex import lazy_regex

MOST_FILES = 5_000
MOST_MATCHES = 20
FRESH_SECONDS = 10.0
_SKIPPED = {"node_modules", "__pycache__", "venv", "dist", "build", "target"}


class ProjectFiles:
    """Relative paths below a folder, without hidden ones and the usual generated ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: list[str] = []
        self._at = float("-inf")

    def matching(self, fragment: str) -> list[str]:
        """Paths that fit what was typed: those that begin so first, then names that do, then the rest."""
        wanted = fragment.casefold()
        ranked: list[tuple[int, int, str]] = []
        for path in self._all():
            folded = path.casefold()
            if wanted not in folded:
                continue
            name = folded.rstrip("/").rpartition("/")[2]
            rank = 0 if folded.startswith(wanted) else 1 if name.startswith(wanted) else 2
            ranked.append((rank, path.count("/"), path))
        return [path for _, _, path in sorted(ranked)[:MOST_MATCHES]]

    def _all(self) -> list[str]:
        now = time.monotonic()
        if now - self._at > FRESH_SECONDS:
            self._found = _walk(self._folder)
            self._at = now
        return self._found


def _walk(folder: Path) -> list[str]:
    found: list[str] = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        relative = os.path.relpath(root, folder)
        prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
        found += [f"{prefix}{name}/" for name in folders]
        found += [f"{prefix}{name}" for name in sorted(files) if not name.startswith(".")]
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]


MARK = "› "
MENU_ROWS = 8
LONG_PASTE_LINES = 12
LONG_PASTE_CHARS = 2_000
_MENTION = lazy_regex(r"(?:^|\s)@(\S*)$")
_STYLE = Style.from_dict(
    {
        "bottom-toolbar": "noreverse",
        "bottom-toolbar.text": "ansibrightblack",
        "prompt": "bold ansicyan",
        "continuation": "ansibrightblack",
    }
)


class Pastes:
    """Long pasted texts: a short stand-in is shown and edited, the text itself is sent."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def shorten(self, text: str) -> str:
        """The text, or its stand-in when it is long."""
        lines = text.count("\n") + 1
        if lines < LONG_PASTE_LINES and len(text) < LONG_PASTE_CHARS:
            return text
        size = f"{lines:,} lines" if lines >= LONG_PASTE_LINES else f"{len(text):,} characters"
        name = f"[pasted text {len(self._texts) + 1}: {size}]"
        self._texts[name] = text
        return name

    def expand(self, text: str) -> str:
        """The text with every stand-in replaced, once: what was pasted is not looked into."""
        if not self._texts:
            return text
        names = "|".join(map(re.escape, self._texts))
        return re.sub(names, lambda found: self._texts[found[0]], text)


class ChatCompleter(Completer):
    """Commands at the beginning, their arguments behind them, files after an @."""

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        arguments: Callable[[str], Mapping[str, str]],
        files: ProjectFiles,
    ) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        mention = _MENTION.search(text)
        if mention:
            for path in self._files.matching(mention[1]):
                yield Completion(path, start_position=-len(mention[1]))
        elif text.startswith("/") and "\n" not in text:
            yield from self._of_command(text[1:])

    def _of_command(self, typed: str) -> Iterable[Completion]:
        name, space, argument = typed.partition(" ")
        choices = self._arguments(name) if space else self._commands()
        wanted = argument.lstrip() if space else name
        for choice, meaning in choices.items():
            if choice.startswith(wanted):
                yield Completion(choice, start_position=-len(wanted), display_meta=meaning)


class Prompt:
    """Reads what a person types. `abort` ends the reading from another thread with an error.

    `once_shown` is called when the prompt stands on the screen for the first time.
    """

    def __init__(
        self, history: Path, completer: Completer, status: Callable[[], ChatStatus], once_shown: Callable[[], None]
    ) -> None:
        self._pastes = Pastes()
        self._status = status
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._news: list[str] = []
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", MARK)],
            multiline=True,
            prompt_continuation=lambda width, _, __: [("class:continuation", "· ".rjust(width))],
            history=private_history(history),
            completer=completer,
            complete_while_typing=True,
            bottom_toolbar=self._toolbar,
            key_bindings=self._bindings(),
            style=_STYLE,
            color_depth=depth(),
            reserve_space_for_menu=0,
            enable_open_in_editor=False,
            include_default_pygments_style=False,
        )
        self._session.default_buffer.on_text_changed += self._make_room
        self._once_shown: Callable[[], None] | None = once_shown
        self._session.app.after_render += self._shown

    def read(self) -> str:
        """The next text; `EOFError` at the end, `KeyboardInterrupt` for Ctrl-C on an empty line."""
        self.flush()
        self._session.reserve_space_for_menu = 0
        return self._pastes.expand(self._session.prompt(pre_run=self._check))

    def announce(self, text: str) -> None:
        """Print a line above the prompt, from any thread."""
        with self._lock:
            self._news.append(text)
        app = self._session.app
        if app.loop is not None and app.is_running:
            app.loop.call_soon_threadsafe(self._announce, context=app.context)

    def redraw(self) -> None:
        """Draw the status line again, from any thread."""
        self._session.app.invalidate()

    def flush(self) -> None:
        """Print what was announced and not shown yet, while no prompt is on the screen."""
        with self._lock:
            news, self._news = self._news, []
        for text in news:
            sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _announce(self) -> None:
        if self._session.app.is_running:
            run_in_terminal(self.flush)

    def abort(self, error: BaseException) -> None:
        """End the present or the next `read` with an error."""
        with self._lock:
            self._failure = error
        app = self._session.app
        if app.loop is not None and app.is_running:
            app.loop.call_soon_threadsafe(self._check)

    def _check(self) -> None:
        with self._lock:
            failure = self._failure
        if failure is not None and not self._session.app.is_done:
            self._session.app.exit(exception=failure)

    def _shown(self, _: object) -> None:
        callback, self._once_shown = self._once_shown, None
        if callback is not None:
            callback()

    def _make_room(self, buffer: Buffer) -> None:
        """Room for a menu only while there may be one: otherwise the status line stands right below the text."""
        text = buffer.document.text_before_cursor
        wanted = text.startswith("/") or _MENTION.search(text)
        self._session.reserve_space_for_menu = MENU_ROWS if wanted else 0

    def _toolbar(self) -> FormattedText:
        columns = self._session.app.output.get_size().columns
        return FormattedText([("", status_line(self._status(), columns - 1))])

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("enter", filter=~(has_completions & completion_is_selected))
        def _send(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            before = buffer.document.text_before_cursor
            if before.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @bindings.add("enter", filter=has_completions & completion_is_selected)
        def _choose(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        @bindings.add("escape", "enter")
        @bindings.add("escape", "c-j")
        def _line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @bindings.add("c-c")
        def _cancel(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")

        @bindings.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(self._pastes.shorten(text))

        @bindings.add("c-o")
        def _open(event: KeyPressEvent) -> None:
            event.current_buffer.text = "/expand last"
            event.current_buffer.validate_and_handle()

        return bindings


def private_history(path: Path) -> FileHistory:
    """A history file that only its owner can read, created with that mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    path.chmod(0o600)
    return FileHistory(str(path))
