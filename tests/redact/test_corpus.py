"""Every shape of the corpus is masked, in every kind and language, and no harmless line is touched."""

from __future__ import annotations

from collections import Counter

import pytest

from leporello.redact import redact
from tests.redact import corpus, harmless

SECRET = list(corpus.items())
HARMLESS = list(harmless.items())
LANGUAGES = {"code", "en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko", "pl", "tr"}


@pytest.mark.parametrize("kind", sorted({item.kind for item in SECRET}))
def test_every_shape_is_masked(kind: str) -> None:
    """Of no secret a part is left, the last characters of a long one least of all."""
    read = [(item, redact(item.text)) for item in SECRET if item.kind == kind]
    assert [item.text for item, masked in read if any(secret in masked for secret in item.secrets)] == []


@pytest.mark.parametrize("kind", sorted({item.kind for item in HARMLESS}))
def test_harmless_lines_stay(kind: str) -> None:
    """Hashes, types, placeholders and talk about passwords are not touched by a byte."""
    assert [item.text for item in HARMLESS if item.kind == kind and redact(item.text) != item.text] == []


def test_the_corpus_does_not_shrink() -> None:
    """It is the evidence; a half written by another hand, and not read here, is judged beside it."""
    assert len(SECRET) >= 380
    assert sum(item.many_lines for item in SECRET) >= 60
    assert len(HARMLESS) >= 320
    assert {item.language for item in SECRET} == LANGUAGES
    assert min(Counter(item.language for item in SECRET).values()) >= 6
