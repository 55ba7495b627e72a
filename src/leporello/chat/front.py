"""The front of `leporello chat`: what must be there at once. It reads; what it read goes to `app`, loaded behind it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from leporello.chat.files import ProjectFiles
from leporello.chat.interrupt import orderly_end
from leporello.chat.opening import Opening
from leporello.chat.options import ChatOptions
from leporello.chat.status import Status
from leporello.config import colours_wanted
from leporello.errors import InputError, LeporelloError

if TYPE_CHECKING:
    from leporello.chat.app import Chat

LEAVING = "Ctrl-C again, Ctrl-D or /quit leaves."


def chat_plainly(options: ChatOptions) -> bool:
    """Lines in, lines out, no control codes; True when every turn went well.

    A line is a message; one that ends with a backslash goes on in the next.
    """
    person = sys.stdin.isatty()
    face = import_module("leporello.chat.plain").PlainFace(person)
    chat: Chat = import_module("leporello.chat.app").Chat.open(options, face, face.ask if person else None)
    well = True
    try:
        if options.resume or options.go_on:
            chat.show_recap()
        for text in _lines(person):
            if text.strip():
                going_on = chat.take(text)
                well = well and not chat.failed
                if not going_on:
                    break
    finally:
        chat.close()
    return well


def _lines(person: bool) -> Iterator[str]:
    held = ""
    while True:
        if person:
            sys.stderr.write("> " if not held else "· ")
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
            continue
        yield held
        held = ""


def chat_on_terminal(options: ChatOptions) -> bool:
    """The prompt first, the rest behind it."""
    with orderly_end():
        front = _Front(options)
        try:
            front.run()
        finally:
            front.close()
    return True


class _Front:
    def __init__(self, options: ChatOptions) -> None:
        prompt = import_module("leporello.chat.prompt")  # of the extra: plain chats must not need it
        self._options = options
        self._status = Status(options.model, note="opening …")
        files = ProjectFiles(options.workdir)
        self._prompt = prompt.Prompt(
            options.history,
            prompt.ChatCompleter(self._commands, self._arguments, files),
            self._present,
            # Loading beside the first drawing would only slow it down.
            once_shown=lambda: self._opening.start(),
        )
        self._opening: Opening[Chat] = Opening(self._open, self._opened, self._prompt.abort)

    def run(self) -> None:
        self._banner()
        if self._options.resume or self._options.go_on:
            chat = self._opening.result()
            self._prompt.flush()
            chat.show_recap()
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
                self._write(f"{LEAVING}\n")
                continue
            asked_to_leave = False
            if text.strip() and not self._take(text):
                return

    def _take(self, text: str) -> bool:
        chat = self._opening.result()
        self._prompt.flush()
        return chat.take(text)

    def close(self) -> None:
        chat = self._opening.value
        if chat is not None:
            chat.close()

    def _open(self) -> Chat:
        face = import_module("leporello.chat.terminal").TerminalFace()
        chat: Chat = import_module("leporello.chat.app").Chat.open(self._options, face, face.ask)
        return chat

    def _opened(self, chat: Chat) -> None:
        self._prompt.announce(_dim(chat.greeting()))
        threading.Thread(target=chat.warm_up, name="leporello-warm-up", daemon=True).start()

    def _banner(self) -> None:
        model = self._options.model
        self._write(
            f"{_bold('Leporello')} · {model}\n{_dim('/help for commands · @ for a file · Alt-Enter for a new line')}\n"
        )

    def _present(self) -> Status:
        chat = self._opening.value
        return self._status if chat is None else chat.status

    def _commands(self) -> dict[str, str]:
        chat = self._opening.value
        return {} if chat is None else chat.command_names()

    def _arguments(self, name: str) -> dict[str, str]:
        chat = self._opening.value
        try:
            return {} if chat is None else chat.arguments(name)
        except LeporelloError:
            return {}

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colours_wanted() else text
