"""A secret is masked however its text is shown: with numbers before the lines, in a diff, in JSON, in colour."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from leporello.redact import redact
from leporello.redact.messages import masked_arguments
from tests.redact import harmless

SECRET = "Kestrel" + "#42" + "x"
TEXTS = (
    f"db:\n  password: |\n    {SECRET}",
    f'{{\n  "password" :\n    "{SECRET}",\n}}',
    f"<key>Password</key>\n<string>{SECRET}</string>",
    f"kind: Secret\nstringData:\n  whatever: {SECRET}",
    f"const a = {{\n  password:\n    '{SECRET}',\n}}",
    f"pwd {SECRET}",
    f"mdp : {SECRET}",
)
WAYS: dict[str, Callable[[str], str]] = {
    "numbers and tabs": lambda text: "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 1)),
    "numbers and arrows": lambda text: "\n".join(f"{n:6}→{line}" for n, line in enumerate(text.split("\n"), 1)),
    "grep": lambda text: "\n".join(f"src/app.conf:{n}:{line}" for n, line in enumerate(text.split("\n"), 1)),
    "diff": lambda text: "@@ -1 +1 @@\n" + "\n".join(f"+{line}" for line in text.split("\n")),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "containers": lambda text: "\n".join(f"app-1  | {line}" for line in text.split("\n")),
    "log": lambda text: "\n".join(f"2026-01-02T10:00:00Z INFO {line}" for line in text.split("\n")),
    "colours": lambda text: "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n")),
    "json": lambda text: json.dumps({"output": text, "exit_code": 0}),
    "long json": lambda text: json.dumps({"output": "all is well\n" * 300 + text, "exit_code": 0}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_masked_however_it_is_shown(text: str, way: str) -> None:
    assert SECRET not in redact(text)
    assert SECRET not in redact(WAYS[way](text))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "long json"])
def test_harmless_lines_stay_however_they_are_shown(way: str) -> None:
    """One line of each, as the whole of a text."""
    shown = [WAYS[way](item.text) for item in harmless.items() if "\n" not in item.text]
    assert [text for text in shown if redact(text) != text] == []


@pytest.mark.parametrize(
    "command", ["cat /run/secrets/db_password", "pass show work/db", "vault kv get -field=password secret/db"]
)
@pytest.mark.parametrize("prompt", ["$ ", "root@host:~# ", "ada@host /srv $ "])
def test_what_a_command_prints_is_masked_anywhere_in_a_text(command: str, prompt: str) -> None:
    """And in the arguments of a call, in which the text is a string."""
    text = f"I tried this:\n{prompt}{command}\n{SECRET}\nand went on"
    assert redact(text) == text.replace(SECRET, "[REDACTED]")
    assert SECRET not in masked_arguments(json.dumps({"body": text}))


@pytest.mark.parametrize(
    "arguments",
    [{"my token is": ["\nhunter2!xyz ", "b"]}, {"the pin is ": 482913}, {"note": "login: admin / hunter2!xyz"}],
)
def test_what_names_and_values_of_a_call_say_together_is_masked(arguments: dict) -> None:
    shown = masked_arguments(json.dumps({**arguments, "path": "src/a.py"}))
    assert json.loads(shown)["path"] == "src/a.py"
    assert not any(secret in shown for secret in ("hunter2!xyz", "482913"))
