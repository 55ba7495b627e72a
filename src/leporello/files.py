"""Files: bytes are decoded as text or refused with the place, and a file is written whole or not at all.

Decoding goes by the byte order mark (UTF-8, UTF-16, UTF-32) or the encoding that was named. It guesses and replaces
nothing: a letter that was misread once is lost for good.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from leporello.errors import InputError

_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
_REMEDY = (
    "Convert it to UTF-8 (iconv does that); `leporello import` and `leporello compress` also read it as it is when "
    "--encoding names its encoding, for example --encoding latin-1"
)


class Decoded(Struct, frozen=True):
    """A text, and what should be said about how it was read; nothing for plain UTF-8."""

    text: str
    remark: str = ""


class NotText(InputError):
    """Bytes that are no text in the encoding they should be in; `offset` is the first that does not belong."""

    def __init__(self, message: str, where: str = "", offset: int = 0) -> None:
        super().__init__(message, where)
        self.offset = offset


def decode_text(data: bytes, where: str, encoding: str | None = None) -> Decoded:
    """The text of a file or stream; `NotText` names the offset of the first byte that can't be decoded."""
    if encoding is not None:
        if not known_encoding(encoding):
            known = "latin-1, cp1252 and utf-16 are some"
            raise InputError(f"{encoding!r} is no encoding that is known here; {known}", where)
        text = _strict(data, encoding, encoding, where).removeprefix("\ufeff")
        return Decoded(text, f"read as {encoding}, as asked")
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            text = _strict(data[len(mark) :], codec, name, where, len(mark))
            return Decoded(text, f"read as {name}, as its byte order mark says")
    return Decoded(_strict(data, "utf-8", "UTF-8", where))


def known_encoding(name: str) -> bool:
    try:
        "x".encode(name)
    except (LookupError, ValueError):
        return False
    return True


def _strict(data: bytes, codec: str, name: str, where: str, skipped: int = 0) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        # Half characters that a careless program wrote out are kept as they are: the store knows them.
        with contextlib.suppress(UnicodeDecodeError):
            if codec == "utf-8":
                return data.decode("utf-8", "surrogatepass")
        offset = error.start + skipped
    except UnicodeError as error:
        # Some codecs, such as UTF-16 without its mark, don't tell the place.
        raise NotText(f"is not {name} text: {error}. {_REMEDY}.", where, 0) from None
    if b"\0" in data[:8_192] and codec == "utf-8":
        raise NotText(f"holds binary data, not text (byte {offset:,} is not {name})", where, offset)
    wrong = data[offset - skipped : offset - skipped + 1].hex()
    raise NotText(f"is not {name} text: byte {offset:,} is 0x{wrong}. {_REMEDY}.", where, offset)


def shipped(package: str, name: str) -> bytes:
    """A file that is installed with a package of ours. (`importlib.resources` is slow to load.)"""
    data = pkgutil.get_data(package, name)
    if data is None:
        raise FileNotFoundError(f"{package} has no {name}")
    return data


@contextlib.contextmanager
def open_whole(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Write a file beside its place, flush it, and put it there when the block ends without an error.

    A private one can be read only by its owner; another keeps the mode of the file it replaces. What a link leads to is
    written, not the link.
    """
    # Nothing that only reads needs it.
    import tempfile  # noqa: PLC0415

    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            temporary.chmod(_mode_for(path))
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _mode_for(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# -- for files that a person named


def must_be_new(path: Path, remedy: str) -> None:
    """Refuse to write over something that is there."""
    if path.exists() or path.is_symlink():
        raise InputError(f"exists already; nothing was written. {remedy}", str(path))


@contextlib.contextmanager
def open_atomically(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """The whole file or nothing; a device or a pipe (`/dev/stdout`) can't be replaced and is written to."""
    special = path.exists() and not path.is_file()
    try:
        with path.open("wb") if special else open_whole(path, private=private) as stream:
            yield stream
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path)) from error
