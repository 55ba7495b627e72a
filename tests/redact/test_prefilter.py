"""The prefilter passes over texts, never over secrets: with it and without it the same places are found."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from leporello import redact as redacting
from leporello.redact import redact_spans
from leporello.redact.prefilter import may_hold_secret
from tests.redact.corpus import items

DRESSES: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "numbered": lambda text: "\n".join(f"{n:6}→{line}" for n, line in enumerate(text.split("\n"), 1)),
    "numbered, with a remark behind": lambda text: "\n".join(
        [*(f"{n}\t{line}" for n, line in enumerate(text.split("\n"), 1)), "<note>read it again</note>"]
    ),
    "JSON": lambda text: json.dumps({"content": text, "limit": 1}),
    "JSON in JSON": lambda text: json.dumps({"body": json.dumps({"content": text})}),
    "diff": lambda text: "\n".join(f"+{line}" for line in text.split("\n")),
    "grep": lambda text: "\n".join(f"src/app.py:{n}:{line}" for n, line in enumerate(text.split("\n"), 1)),
    "log": lambda text: "\n".join(f"2026-05-01T10:00:00Z {line}" for line in text.split("\n")),
    "list": lambda text: json.dumps(text.split(" ")),
    "list in lines": lambda text: json.dumps(text.split(" "), indent=2),
    "glued": lambda text: f'"{text[: len(text) // 2]}" + "{text[len(text) // 2 :]}"',
    "glued over lines": lambda text: f'  1→x = "{text[: len(text) // 3]}"\n  2→    "{text[len(text) // 3 :]}"',
}


@pytest.fixture
def reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "may_hold_secret", lambda text: True)


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.usefixtures("reads_all")
def test_no_secret_is_passed_over(dress: str) -> None:
    texts = [DRESSES[dress](item.text) for item in items()]
    assert [text for text in texts if not may_hold_secret(text) and redact_spans(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "insert into users (name, user_pass) values ('bob', 'hunter2x9');",
        "id,db_pass\n1,Kx9!pp22aa\n",
        "name | db pass |\n---|---|\nbob | Kx9!pp22aa |\n",
        "DB_PASS value: Kx9!pp22aa\n",
        '  1→{\n  2→  "kind": "Secret",\n  3→  "data": {\n  4→    "a": "a2V5LW1hdGVyaWFs"\n  5→  }\n  6→}\n',
        "2026-05-01T10:00:00Z cache key=Xk29f0aa81c3d7e4\n",
        'token: str = "Xk29f0aa81c3d7e4"\n',
        "The token of the worker, which runs in staging, is: Xk29f0aa81c3d7e4",
        "Xk29+f0aa81!c3d7e4 as the token of the worker",
        '["vault", "token", "is", "Xk29f0aa81c3d7e4"]',
        "The secret follows\n\n    Xk29f0aa81c3d7e4\n",
        "What is the token?\nbot: Xk29f0aa81c3d7e4\n",
        "cat > token.txt <<EOF\nXk29f0aa81c3d7e4\nEOF",
        json.dumps(json.dumps(["wandb", "login", "Xk29f0aa81c3d7e4Xk29f0aa81c3d7e4ab12cd34"])),
    ],
)
def test_far_values_are_looked_for(text: str) -> None:
    """A name whose value stands elsewhere: in the next row, behind a bracket, in another field."""
    assert may_hold_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"file_path": "/srv/app/main.py", "exit_code": 0}',
        "class Empty:\n    pass\n\n\ndef status_code(self):\n    return self.code\n",
        '     1→package main\n     2→import (\n     3→\t"context"\n     4→\t"fmt"\n     5→)\n',
        "See https://example.org/docs/keyboard and the pattern in tests/test_author.py.",
        "1. Run the tests\n2. Look at the mapping\n",
    ],
)
def test_ordinary_texts_are_passed_over(text: str) -> None:
    """A word that names a secret elsewhere costs no closer look."""
    assert not may_hold_secret(text)
