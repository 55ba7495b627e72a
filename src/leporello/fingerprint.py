"""Which conversation a request belongs to: by a chain of hashes over what was said.

Clients of model APIs send their whole history each time. Every message has a digest over its role, words and calls;
marks of the prompt cache (clients move them), thinking and the system prompt are left out. The chain of a list is

    chain[0] = seed of the client's key      chain[k] = H(chain[k-1], digest of message k)

so two lists have the same chain value at k exactly when their first k messages and their owner are the same. Nothing
here touches a store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from leporello.caching import MARK
from leporello.messages import Message, calls_of, is_result, parse_json, result_id, role_of

_SIZE = 16


def start(owner: str, name: str = "") -> bytes:
    """Where the chains of one client begin; `name` sets conversations apart that the client itself names."""
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
    """What one message says, as a hash."""
    said: list[Any] = [role_of(message), _content(message.get("content"))]
    said.append([[call.id, call.name, _arguments(call.arguments)] for call in calls_of(message)])
    if is_result(message):
        said.append(result_id(message))
    return hashlib.blake2b(_bytes(said), digest_size=_SIZE).digest()


def _content(content: Any) -> list[Any]:
    """A text and a list of one text part say the same; clients turn one into the other to set a mark."""
    if content is None or content == "":
        return []
    if not isinstance(content, list):
        return [content]
    return [_part(part) for part in content if part != ""]


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    plain = {key: value for key, value in part.items() if key != MARK and value is not None}
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
        # Half a surrogate pair or a number beyond 64 bits: slower, and the same for the same value.
        return repr(value).encode("utf-8", "surrogatepass")


def common_length(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """How many messages two chains have in common: equal values at k mean equal messages up to k."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[middle - 1] == second[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
