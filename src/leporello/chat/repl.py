"""The loop of `leporello chat`: reads what is typed while everything heavy loads in the background; and signals."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Generic, TypeVar

from leporello.cancel import CancelToken
from leporello.chat.ui import ChatOptions, ChatStatus, write_now
from leporello.config import colours_wanted
from leporello.errors import InputError, LeporelloError

if TYPE_CHECKING:
    from leporello.chat.app import Chat


T = TypeVar("T")


class Lazy(Generic[T]):
    """Makes a value in a background thread. An error goes to `failed` at once, and is raised again by `result`."""

    def __init__(
        self, make: Callable[[], T], made: Callable[[T], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._make = make
        self._made = made
        self._failed = failed
        self._value: T | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._begun = False
        self._thread = threading.Thread(target=self._run, name="leporello-opening", daemon=True)

    def start(self) -> None:
        with self._lock:
            if not self._begun:
                self._begun = True
                self._thread.start()

    @property
    def value(self) -> T | None:
        return self._value

    def result(self) -> T:
        """Start if necessary, wait, and return the value."""
        self.start()
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._make()
        except BaseException as error:  # noqa: BLE001  carried to the thread that waits at the prompt
            self._error = error
            self._failed(error)
        else:
            self._made(self._value)


@contextmanager
def soft_interrupts(token: CancelToken, uninterruptible: Callable[[], bool]) -> Iterator[None]:
    """While inside, SIGINT cancels the token; where nothing listens to it, or the second time, it raises as usual."""

    def interrupted(number: int, frame: FrameType | None) -> None:
        if token.cancelled or uninterruptible():
            raise KeyboardInterrupt
        # Not here: the interrupted code may hold the very locks that cancelling needs.
        threading.Thread(target=token.cancel, name="leporello-cancel", daemon=True).start()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def orderly_exit() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP exit normally, so that the terminal is restored."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def chat_plainly(options: ChatOptions) -> bool:
    """Lines in, lines out, no control codes; True when every turn went well.

    A line is a message; one that ends with a backslash goes on in the next.
    """
    person = sys.stdin.isatty()
    ui = import_module("leporello.chat.plain").PlainUi(person)
    chat: Chat = import_module("leporello.chat.app").Chat.open(options, ui, ui.ask if person else None)
    ok = True
    try:
        if options.resume or options.go_on:
            chat.show_resume_summary()
        for text in _lines(person):
            if text.strip():
                stay = chat.take(text)
                ok = ok and not chat.failed
                if not stay:
                    break
    finally:
        chat.close()
    return ok


def _lines(person: bool) -> Iterator[str]:
    held = ""
    while True:
        if person:
            sys.stderr.write("· " if held else "> ")
            sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            return
        except UnicodeDecodeError as error:
            raise InputError(f"is not {error.encoding.upper()} text", "standard input") from None
        if not line:
            if held:
                yield held
            return
        held += line.rstrip("\n")
        if held.endswith("\\"):
            held = held[:-1] + "\n"
        else:
            yield held
            held = ""


def chat_on_terminal(options: ChatOptions) -> bool:
    with orderly_exit():
        repl = _Repl(options)
        try:
            repl.run()
        finally:
            repl.close()
    return True


class _Repl:
    def __init__(self, options: ChatOptions) -> None:
        prompt = import_module("leporello.chat.prompt")  # of the extra: plain chats must not need it
        self._options = options
        self._status = ChatStatus(options.model, note="opening …")
        files = prompt.ProjectFiles(options.workdir)
        self._prompt = prompt.Prompt(
            options.settings.home.history_file,
            prompt.ChatCompleter(self._commands, self._arguments, files),
            self._present,
            # Loading beside the first drawing would only slow it down.
            once_shown=lambda: self._opening.start(),
        )
        self._opening: Lazy[Chat] = Lazy(self._open, self._opened, self._prompt.abort)

    def run(self) -> None:
        hint = _dim("/help for commands · @ for a file · Alt-Enter for a new line")
        write_now(f"\x1b[1mLeporello\x1b[0m · {self._options.model}\n{hint}\n")
        if self._options.resume or self._options.go_on:
            chat = self._opening.result()
            self._prompt.flush()
            chat.show_resume_summary()
        asked_to_leave = False
        while True:
            try:
                text = self._prompt.read()
            except EOFError:
                return
            except KeyboardInterrupt:
                if asked_to_leave:
                    return
                asked_to_leave = True
                write_now("Ctrl-C again, Ctrl-D or /quit leaves.\n")
                continue
            asked_to_leave = False
            if text.strip():
                chat = self._opening.result()
                self._prompt.flush()
                if not chat.take(text):
                    return

    def close(self) -> None:
        chat = self._opening.value
        if chat is not None:
            chat.close()

    def _open(self) -> Chat:
        ui = import_module("leporello.chat.terminal").TerminalUi()
        chat: Chat = import_module("leporello.chat.app").Chat.open(self._options, ui, ui.ask)
        return chat

    def _opened(self, chat: Chat) -> None:
        self._prompt.announce(_dim(chat.greeting()))
        chat.redraw = self._prompt.redraw
        threading.Thread(target=chat.warm_up, name="leporello-warm-up", daemon=True).start()

    def _present(self) -> ChatStatus:
        chat = self._opening.value
        return self._status if chat is None else chat.status

    def _commands(self) -> dict[str, str]:
        chat = self._opening.value
        return {} if chat is None else chat.command_names()

    def _arguments(self, name: str) -> dict[str, str]:
        chat = self._opening.value
        with suppress(LeporelloError):
            return {} if chat is None else chat.arguments(name)
        return {}


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colours_wanted() else text
