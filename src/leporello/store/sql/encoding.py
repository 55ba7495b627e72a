"""Values on their way into and out of SQL columns: texts, ids, times, money, JSON, compressed bodies, view entries."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import zstandard

from leporello.errors import InputError, StoreCorrupt
from leporello.events import CompactionReport, Outcome, Span, Verification, ViewEntry
from leporello.lazy_regex import lazy_regex
from leporello.messages import decode_json, encode_json
from leporello.usage import CanonicalUsage

_MARK = "\x1a"
_SPECIAL = lazy_regex("[\x00\x1a\ud800-\udfff]")
_MARKED = lazy_regex("\x1a([0-9a-f]{4})")

LONGEST_KEY = 200
"""Texts that are part of a key are cut to this many characters: PostgreSQL bounds the size of an index entry."""

LARGEST_NUMBER = 2**62  # callers may pass any number: beyond this no database can compare them

NANOS = 1_000_000_000
_FAR_AWAY = 1e12
_VERY_RICH = 1e9


def encode_text(text: str) -> bytes:
    """Bytes of any Python text, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def pack(text: str) -> str:
    """A string that every database accepts and `unpack` turns back."""
    return _SPECIAL.sub(lambda match: f"{_MARK}{ord(match.group()):04x}", text)


def unpack(text: str) -> str:
    return _MARKED.sub(lambda match: chr(int(match.group(1), 16)), text) if _MARK in text else text


def pack_key(text: str) -> str:
    """`pack` for a text that is part of a key; a long one keeps its beginning and a hash of the whole."""
    packed = pack(text)
    if len(packed) <= LONGEST_KEY:
        return packed
    digest = hashlib.blake2b(encode_text(text), digest_size=8).hexdigest()
    return f"{packed[: LONGEST_KEY - 20]}...{digest}"


def name_key(id: str) -> bytes:
    """The key of an id in the directory: fixed in size whatever the id looks like."""
    return hashlib.blake2b(encode_text(id), digest_size=16).digest()


def hash_key(tagged: str) -> bytes:
    """A tagged hash (`b2:<hex>`) as bytes, the tag kept in front."""
    tag, _, digest = tagged.partition(":")
    return tag.encode("ascii") + b":" + bytes.fromhex(digest)


def hash_text(key: bytes) -> str:
    tag, _, digest = key.partition(b":")
    return f"{tag.decode('ascii')}:{digest.hex()}"


def millis(seconds: float) -> int:
    """A time as stored."""
    if not abs(seconds) < _FAR_AWAY:
        raise InputError(f"{seconds} is not a time in seconds.")
    return round(seconds * 1000)


def seconds(stored: int) -> float:
    return stored / 1000


def nanos(cost: float) -> int:
    """Money as stored: whole billionths of a dollar, so that sums don't depend on the order of adding."""
    if not abs(cost) < _VERY_RICH:
        raise InputError(f"{cost} is not an amount of dollars.")
    return round(cost * NANOS)


def dollars(stored: int) -> float:
    return stored / NANOS


def shown(text: str) -> str:
    """A text from outside as it may stand in an error message."""
    quoted = ascii(text)
    return quoted if len(quoted) <= 80 else f"{quoted[:76]}...'"


def to_json(value: Any, what: str) -> bytes:
    """JSON bytes that read back as exactly this value; `InputError` for anything JSON can't carry."""
    try:
        data = encode_json(value)
        same = _same(decode_json(data), value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}") from error
    if not same:
        raise InputError(
            f"{what} would not read back as written: use only dicts with text keys, lists, texts and numbers."
        )
    return data


def _same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals itself."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return False


_RAW = b"\x00"
_ZSTD = b"\x01"
_ZSTD_SKELETON = b"\x02"
_ZSTD_BESIDE = b"\x03"

_SMALLEST = 48  # shorter data is stored as it is
_LARGE = 32 * 1024  # from here on the dictionary no longer matters
_LEVEL = 3
HEADER = 19
"""So many bytes of a stored body tell how large it is unpacked: the codec, and the longest head of a zstd frame."""

_SKELETON = (
    rb'{"type":"image_url","image_url":{"url":"data:image/png;base64,'
    rb'{"type":"thinking","thinking":"","signature":"'
    rb'{"path":"","old_string":"","new_string":"","replace_all":false}'
    rb"{\"command\":\"cd  && git diff --stat && python -m pytest tests/ -q 2>&1 | tail -20\",\"timeout\":"
    rb'\"file_path\":\"/src/\",\"content\":\"\",\"offset\":,\"limit\":,\"pattern\":\"\",\"query\":\"\"}"}}]}'
    rb'{"output":"","exit_code":0,"error":null}'
    rb"Traceback (most recent call last):\n  File \"/usr/lib/python3/site-packages/__init__.py\", line , in <module>\n"
    rb'{"role":"system","content":"{"role":"user","content":[{"type":"text","text":""}]}'
    rb'{"role":"user","content":"'
    rb'{"role":"tool","tool_call_id":"call_","content":"","name":"'
    rb'{"role":"assistant","content":"","reasoning_content":"'
    rb'{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function","function":'
    rb'{"name":"","arguments":"{\"'
)
_DICTIONARY = zstandard.ZstdCompressionDict(_SKELETON, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
_DICTIONARY.precompute_compress(level=_LEVEL)


class _Codecs(threading.local):
    """(De)compressors may not be shared between threads that run at the same time."""

    def __init__(self) -> None:
        self.plain = zstandard.ZstdCompressor(level=_LEVEL)
        self.skeleton = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY, write_dict_id=False)
        self.read_plain = zstandard.ZstdDecompressor()
        self.read_skeleton = zstandard.ZstdDecompressor(dict_data=_DICTIONARY)


_codecs = _Codecs()


def pack_body(data: bytes) -> bytes:
    if len(data) < _SMALLEST:
        return _RAW + data
    if len(data) < _LARGE:
        packed = _ZSTD_SKELETON + _codecs.skeleton.compress(data)
    else:
        packed = _ZSTD + _codecs.plain.compress(data)
    return packed if len(packed) <= len(data) else _RAW + data


def pack_beside(data: bytes, base: bytes) -> bytes:
    """Bytes as stored beside others, packed, that say most of the same: what is repeated takes no room."""
    beside = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_beside(base), write_dict_id=False)
    return min(pack_body(data), _ZSTD_BESIDE + beside.compress(data), key=len)


def unpack_beside(stored: bytes, base: bytes, where: str) -> bytes:
    """The bytes that `pack_beside` was given with the same base."""
    if stored[:1] != _ZSTD_BESIDE:
        return unpack_body(stored, where)
    try:
        return zstandard.ZstdDecompressor(dict_data=_beside(base)).decompress(stored[1:])
    except zstandard.ZstdError as error:
        raise _damaged(where, error) from error


def _beside(base: bytes) -> zstandard.ZstdCompressionDict:
    known = unpack_body(base, "what stands beside")
    return zstandard.ZstdCompressionDict(known, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _damaged(where: str, error: zstandard.ZstdError) -> StoreCorrupt:
    return StoreCorrupt(f"The stored bytes of {where} are damaged ({error}). Restore them from a backup.")


def unpack_body(stored: bytes, where: str) -> bytes:
    """The bytes that `pack_body` was given; `where` names the place for the error."""
    codec, data = stored[:1], stored[1:]
    try:
        if codec == _RAW:
            return data
        if codec == _ZSTD_SKELETON:
            return _codecs.read_skeleton.decompress(data)
        if codec == _ZSTD:
            return _codecs.read_plain.decompress(data)
    except zstandard.ZstdError as error:
        raise _damaged(where, error) from error
    raise StoreCorrupt(f"The stored bytes of {where} have the unknown codec {codec.hex() or 'none'}.")


def body_size(header: bytes, length: int) -> int:
    """How many bytes `unpack_body` gives, from the beginning of what is stored and its length."""
    if header[:1] in (_ZSTD, _ZSTD_SKELETON):
        try:
            return max(0, zstandard.frame_content_size(header[1:]))
        except zstandard.ZstdError:
            # Damage is found by reading; a size only tells how wide something is drawn.
            return length
    return max(0, length - 1)


def pack_json(value: Any, what: str) -> bytes:
    """A JSON value as stored. Raises `InputError`, naming `what`, for anything JSON can't carry."""
    return pack_body(to_json(value, what))


def unpack_json(stored: bytes, where: str) -> Any:
    return decode_json(unpack_body(stored, where))


def pack_entries(entries: Sequence[ViewEntry]) -> bytes:
    """Entries of a view as stored. Neighbouring references are one run, so a compaction takes the room of its folds.

    `[[1, 3], {"m": {...}, "f": "f1"}, [95, 120]]` shows m1 to m3, the fold f1, and m95 to m120.
    """
    items: list[Any] = []
    for entry in entries:
        if entry.inline is None:
            if items and isinstance(items[-1], list) and items[-1][1] + 1 == entry.ref and entry.fold is None:
                items[-1][1] = entry.ref
            else:
                items.append([entry.ref, entry.ref])
        else:
            item: dict[str, Any] = {"m": entry.inline}
            if entry.ref is not None:
                item["r"] = entry.ref
            if entry.fold is not None:
                item["f"] = entry.fold
            items.append(item)
    return pack_json(items, "A view entry")


def unpack_entries(stored: bytes, where: str) -> tuple[ViewEntry, ...]:
    entries: list[ViewEntry] = []
    for item in unpack_json(stored, where):
        if isinstance(item, list):
            entries.extend(ViewEntry(ref=number) for number in range(item[0], item[1] + 1))
        else:
            entries.append(ViewEntry(ref=item.get("r"), inline=item["m"], fold=item.get("f")))
    return tuple(entries)


def pack_report(report: CompactionReport) -> bytes:
    """JSON bytes of a report. Values in its details that JSON can't carry become texts: a report is never refused."""
    return json.dumps(asdict(report), default=str, separators=(",", ":")).encode("ascii")


def unpack_report(data: bytes) -> CompactionReport:
    fields = json.loads(data)
    covered = fields["covered"]
    verification = fields["verification"]
    return CompactionReport(
        **{
            **fields,
            "outcome": Outcome(fields["outcome"]),
            "covered": None if covered is None else Span(**covered),
            "usage": CanonicalUsage(**fields["usage"]),
            "verification": Verification(**{**verification, "dropped": tuple(verification["dropped"])}),
            "warnings": tuple(fields["warnings"]),
        }
    )
