"""Exact counts by a real vocabulary.

splintr carries the vocabularies inside its wheel, so counting needs no network. It is loaded on the first count, never
at import: `import leporello` must stay cheap for commands that count nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

CHUNK = 1 << 20
"""Longer texts are counted in slices, which bounds the memory of the id list; a cut costs at most a token or two."""

_loading = threading.Lock()


@cache
def _load(name: str) -> tuple[Callable[[str], list[int]], int]:
    from splintr import Tokenizer  # noqa: PLC0415 - 20 MB of vocabulary, only for those who count

    tokenizer: Any = Tokenizer.from_pretrained(name)
    encode: Callable[[str], list[int]] = tokenizer.encode_ordinary
    # Some vocabularies put a begin-of-text token before everything; it belongs to the request, not to each text.
    return encode, len(encode(""))


def count(vocabulary: str, text: str) -> int:
    """The number of tokens of a text. Text that looks like a control token is counted as text."""
    if not text:
        return 0
    with _loading:
        encode, template = _load(vocabulary)
    if len(text) > CHUNK:
        return sum(count(vocabulary, text[start : start + CHUNK]) for start in range(0, len(text), CHUNK))
    try:
        return len(encode(text)) - template
    except UnicodeEncodeError:
        # A lone surrogate can't be sent by any provider either; it travels as the replacement mark.
        return len(encode(text.encode("utf-8", "replace").decode())) - template
