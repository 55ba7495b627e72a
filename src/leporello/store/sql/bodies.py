"""Bytes of messages, entries and artifacts as they lie in the database: compressed where that pays.

The first byte names the codec, so that another one can be added beside these. Chat messages are short and look alike; a
dictionary of their JSON skeletons makes the short ones smaller. The dictionary is part of the format: it never changes,
a better one would be a new codec.
"""

from __future__ import annotations

import threading

import zstandard

from leporello.errors import StoreCorrupt

_RAW = b"\x00"
_ZSTD = b"\x01"
_ZSTD_SKELETON = b"\x02"

_SMALLEST = 48
"""Shorter data is stored as it is."""
_LARGE = 32 * 1024
"""From here on the dictionary no longer matters."""
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
    """Bytes as stored."""
    if len(data) < _SMALLEST:
        return _RAW + data
    if len(data) < _LARGE:
        packed = _ZSTD_SKELETON + _codecs.skeleton.compress(data)
    else:
        packed = _ZSTD + _codecs.plain.compress(data)
    return packed if len(packed) <= len(data) else _RAW + data


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
        raise StoreCorrupt(f"The stored bytes of {where} are damaged ({error}). Restore them from a backup.") from error
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
