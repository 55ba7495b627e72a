"""Arguments of calls stay JSON, whatever in them is masked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.redact import PLACEHOLDER
from leporello.redact.messages import masked_arguments

WORDS = st.sampled_from(
    [
        "password",
        "as the password",
        "token is",
        "use",
        "pin",
        "hunter2!x",
        "Tr0ub4dor&3",
        '"',
        "\\",
        ":",
        "(",
        "\n",
        " ",
    ]
)
TEXTS = st.lists(WORDS, max_size=5).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=6
)


def is_masked(text: str) -> bool:
    return PLACEHOLDER in text


def is_whole_or_masked(shown: object, given: object) -> bool:
    """Every value is as it was, or says that a secret was there."""
    if shown == given or (isinstance(shown, str) and is_masked(shown)):
        return True
    if isinstance(shown, list) and isinstance(given, list) and len(shown) == len(given):
        return all(map(is_whole_or_masked, shown, given))
    if not isinstance(shown, dict) or not isinstance(given, dict):
        return False
    if sum(map(is_masked, shown)) > 0 and len(shown) < len(given):
        return True  # two names that became one
    return len(shown) == len(given) and all(
        (name == key or is_masked(name)) and is_whole_or_masked(value, old)
        for (name, value), (key, old) in zip(shown.items(), given.items(), strict=True)
    )


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_not_masked_is_as_it_was(arguments: dict) -> None:
    assert is_whole_or_masked(json.loads(masked_arguments(json.dumps(arguments))), arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pin": 482913},
        {"access token use": ["\nhunter2!xyz ", "b "]},
    ],
)
def test_a_secret_that_no_single_string_holds_is_masked_and_the_rest_is_json(arguments: dict) -> None:
    shown = masked_arguments(json.dumps({**arguments, "path": "src/a.py"}))
    assert json.loads(shown)["path"] == "src/a.py"
    assert not any(secret in shown for secret in ("hunter2!xyz", "482913"))
