"""An upstream that behaves badly: it sends exactly the bytes it is told, in pieces, and may stall or reset."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Rough:
    """Answers of raw bytes, one list of pieces for each connection; `None` stalls, `"reset"` tears the line."""

    answers: Sequence[Sequence[bytes | str | None]]
    release: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the other side closed while an answer stalled."""
    url: str = ""

    def serve(self, listener: socket.socket) -> None:
        for pieces in self.answers:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                line.settimeout(20)
                self._one(line, pieces)

    def _one(self, line: socket.socket, pieces: Sequence[bytes | str | None]) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _read_request(line)
        for piece in pieces:
            if piece == "reset":
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if piece is None:
                self._stall(line)
                return
            try:
                line.sendall(piece if isinstance(piece, bytes) else piece.encode())
            except OSError:
                return

    def _stall(self, line: socket.socket) -> None:
        line.settimeout(0.05)
        while not self.release.is_set():
            try:
                if line.recv(100) == b"":
                    self.gone.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.gone.set()
                return


def _read_request(line: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    size = next(int(row.split(b":")[1]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length"))
    while len(body) < size:
        body += line.recv(65536)


@contextmanager
def rough(*answers: Sequence[bytes | str | None]) -> Iterator[Rough]:
    """The server, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Rough(answers, url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=made.serve, args=(listener,), daemon=True)
        thread.start()
        yield made
        made.release.set()
        listener.close()
        thread.join(5)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
