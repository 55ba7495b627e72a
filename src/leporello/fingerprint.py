"""The identity of messages, and whether a list of messages is one that is known.

Two messages are the same when they say the same: role, content, tool calls and ids. Not part of it is what hosts and
clients add or move between two requests: unknown keys of the message (`timestamp`, `_db_persisted`, provider state),
keys of a content part that begin with `_`, prompt-cache marks, the order of keys, the spacing of call arguments, and
whether a text stands alone or as a list of one part.

The fingerprints of a list are a chain:

    value[0] = start of the list's owner      value[k] = H(value[k-1], fingerprint of message k)

Two lists have the same value at k exactly when they have the same owner and the same first k messages. Proxied
conversations are stored under these values: the fingerprint of a plain message must not change between releases.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from leporello.caching import MARK
from leporello.messages import HASH_TAG, Message, calls_of, is_result, message_hash, parse_json, result_id, role_of

_SIZE = 16
_TAG = "id:"
_SPEAKERS = ("user", "assistant", "system")
_DEEPEST = 200  # keys nested deeper than this are compared in the order in which they stand


def start(owner: str, name: str = "") -> bytes:
    """The first value of all chains of one client; `name` separates conversations that the client itself names."""
    return hashlib.blake2b(orjson.dumps(["leporello-chain-1", owner, name]), digest_size=_SIZE).digest()


def fingerprints(start: bytes, messages: Iterable[Message]) -> list[bytes]:
    """The chain values after each message; position k of the list belongs to message k+1."""
    values = []
    value = start
    for message in messages:
        value = hashlib.blake2b(value + message_fingerprint(message), digest_size=_SIZE).digest()
        values.append(value)
    return values


def message_fingerprint(message: Mapping[str, Any]) -> bytes:
    """The identity of one message, as a hash."""
    content = message.get("content")
    if len(message) == 2 and message.get("role") in _SPEAKERS and type(content) is str and content:
        # Most messages of a long request: what follows would find no more in them.
        return hashlib.blake2b(_bytes([message["role"], [content], []]), digest_size=_SIZE).digest()
    said: list[Any] = [role_of(message), _content(content)]
    said.append([[call.id, call.name, _arguments(call.arguments)] for call in calls_of(message)])
    if is_result(message):
        said.append(result_id(message))
    return hashlib.blake2b(_bytes(said), digest_size=_SIZE).digest()


def stored_fingerprint(message: Mapping[str, Any]) -> str:
    """The identity of one message as tagged text, to be stored; `is_stored_as` reads it."""
    return _TAG + message_fingerprint(message).hex()


def is_stored_as(known: str, message: Mapping[str, Any]) -> bool:
    """Whether the message has the stored identity. Up to 0.1.0 the hash of the exact bytes was stored instead."""
    return known == (message_hash(message) if known.startswith(HASH_TAG) else stored_fingerprint(message))


def common_length(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """How many messages two chains have in common."""
    shorter = range(min(len(first), len(second)))
    return bisect_right(shorter, False, key=lambda index: first[index] != second[index])


def known_lengths(values: Sequence[bytes], known: Container[bytes]) -> Iterator[int]:
    """The lengths at which a list is one of the known ones, longest first."""
    return (length for length in range(len(values), 0, -1) if values[length - 1] in known)


def _content(content: Any) -> list[Any]:
    # A text and a list of one text part say the same; clients turn one into the other to set a cache mark.
    if content is None or content == "":
        return []
    if not isinstance(content, list):
        return [content]
    return [_part(part) for part in content if part != ""]


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    if len(part) == 2 and part.get("type") == "text" and type(part.get("text")) is str:
        return part["text"]
    # Only the part's own keys: deeper down, such as in the input of a call, a key with `_` is content.
    plain = {
        key: value for key, value in part.items() if value is not None and key != MARK and not str(key).startswith("_")
    }
    if plain.keys() == {"type", "text"} and plain["type"] == "text":
        return plain["text"]
    return plain


def _arguments(text: str) -> Any:
    value = parse_json(text)
    return text if value is None else value


def _bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Half a surrogate pair, a number beyond 64 bits, deep nesting: slower, and the same for the same value.
        return repr(_sorted(value)).encode("utf-8", "surrogatepass")


def _sorted(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: _sorted(value[key], depth + 1) for key in sorted(value, key=str)}
    return [_sorted(item, depth + 1) for item in value] if isinstance(value, list) else value
