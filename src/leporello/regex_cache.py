"""Compiled patterns, kept from run to run beside Python's own compiled files.

The 400 patterns of a first compaction take 90 ms to compile, and 3 to restore. `re` can neither store nor restore
what it compiled, so this uses the parts it is made of, for versions of Python whose parts are known; a test compares
what comes out with what `re` makes. Like a `.pyc` file it is made when something was compiled, left alone where nothing
may be written, and made anew for another Python. Its key is the pattern itself, so it is never out of date.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import marshal
import os
import re
import sys
import zlib
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, AnyStr, NamedTuple

KNOWN = ((3, 11), (3, 12), (3, 13))
MOST_KEPT = 4_000
"""Patterns of other versions of this package stay in it until there are so many; then those that were used stay."""


class _Compiled(NamedTuple):
    """What `_sre.compile` takes beside the pattern's text; the code as bytes."""

    flags: int
    code: bytes
    groups: int
    names: dict[str, int]
    named: tuple[str | None, ...]


_Kept = dict[tuple[str | bytes, int], bytes]
"""By pattern and flags what `re` made of it."""


class RegexCache:
    """The patterns of one file. It is read when the first pattern is asked for, and written when the program ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept: _Kept | None = None
        self._used: _Kept = {}
        self._new = False

    def compile(self, source: AnyStr, options: int) -> re.Pattern[AnyStr]:
        """What `re.compile` gives."""
        if sys.version_info[:2] not in KNOWN or sys.implementation.name != "cpython":
            return re.compile(source, options)
        if self._kept is None:
            self._kept = self._read()
        key = (source, int(options))
        kept = self._kept.get(key)
        if kept is None:
            made = _taken_apart(source, int(options))
            self._kept[key] = kept = marshal.dumps(tuple(made))
            self._write_at_the_end()
        else:
            made = _Compiled(*marshal.loads(kept))
        self._used[key] = kept
        code = array("I", made.code).tolist()
        pattern: re.Pattern[AnyStr] = _sre().compile(source, made.flags, code, made.groups, made.names, made.named)
        return pattern

    def _write_at_the_end(self) -> None:
        # A package without sources is packed into a program: there is no folder for what Python compiles.
        if not self._new and not sys.dont_write_bytecode and os.path.exists(__file__):
            self._new = True
            atexit.register(self.write)

    def _read(self) -> _Kept:
        try:
            data = self._file.read_bytes()
        except OSError:
            return {}
        mark = _mark()
        sum_ends = len(mark) + _SUM_BYTES
        body = data[sum_ends:]
        if data[:sum_ends] != mark + _sum(body):
            return {}  # of another Python, cut off or damaged; it is made anew
        return dict(marshal.loads(body))

    def write(self) -> None:
        """Put what was compiled beside what others have written meanwhile, whole or not at all."""
        kept = self._read() | (self._kept or {})
        body = marshal.dumps(kept if len(kept) <= MOST_KEPT else self._used)
        beside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(_mark() + _sum(body) + body)
            beside.replace(self._file)
        except OSError:
            with suppress(OSError):  # a folder that may only be read: each run compiles for itself
                beside.unlink()


def shared_cache() -> RegexCache:
    """The file beside the package's compiled modules, wherever Python puts them."""
    return RegexCache(Path(importlib.util.cache_from_source(__file__)).with_suffix(".regexes"))


def _taken_apart(source: str | bytes, options: int) -> _Compiled:
    """What `re.compile` does before it calls `_sre.compile`."""
    parsed = importlib.import_module("re._parser").parse(source, options)
    code = importlib.import_module("re._compiler")._code(parsed, options)
    state = parsed.state
    named: list[str | None] = [None] * state.groups
    for name, number in state.groupdict.items():
        named[number] = name
    numbers = array("I", map(int, code))
    return _Compiled(int(options | state.flags), numbers.tobytes(), state.groups - 1, state.groupdict, tuple(named))


def _sre() -> Any:
    return importlib.import_module("_sre")


def _mark() -> bytes:
    """Of the Python that wrote a file: its version, and those of its regular expressions."""
    return f"{sys.version}\n{_sre().MAGIC} {_sre().CODESIZE} {sys.byteorder}\n".encode()


_SUM_BYTES = 4


def _sum(body: bytes) -> bytes:
    """Tells damage, which would make patterns that match something else."""
    return zlib.crc32(body).to_bytes(_SUM_BYTES, "big")
