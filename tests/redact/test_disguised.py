"""A secret is found however its name is written: escapes, entities, invisible and other letters, colours, UTF-16."""

from __future__ import annotations

import base64

import pytest

from leporello.redact import redact
from tests.redact import secrets

SECRET: str = "Xk29" + secrets.rand(12, secrets.HEX)
FIRST, SECOND = SECRET[:8], SECRET[8:]
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BOLD = "".join(chr(0x1D41A + ord(letter) - 97) for letter in "password")
WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in KEY)
PAIR = base64.b64encode(f"admin:{SECRET}".encode()).decode()
INVISIBLE = "\x00\u00ad\u034f\u061c\u180e\u200b\u200d\u202e\u2060\u2062\u2066\u3164\ufe0f\ufeff\U000e0061"
ORDERS = (
    "\x1b[31m",
    "\x1b[38:2::255:100:0m",
    "\x1b[?25l",
    "\x1b(B",
    "\x9b31m",
    "^[[31m",
    r"\033[31m",
    r"\x1b[31m",
    r"\e[1;31m",
    "\x1b]8;;https://x.example\x1b\\",
)

TEXTS = (
    rf'{{"\x70\x61\x73\x73\x77\x6f\x72\x64": "{SECRET}"}}',
    rf'{{"\u{{70}}\u{{61}}ssword": "{SECRET}"}}',
    rf'{{"\U00000070assword": "{SECRET}"}}',
    rf"printf '\160\141\163\163word={SECRET}'",
    rf"export $'PASS\x57ORD={SECRET}'",
    f"a%253D1%2526password%253D{SECRET}",
    f"GET /login?next=%2Fcb%3Ftoken%3D{SECRET}%26x%3D1 HTTP/1.1",
    f"postgres%3A%2F%2Fbob%3A{SECRET}%40h%2Fdb",
    f"&#112;&#97;&#115;&#115;&#119;&#111;&#114;&#100;: {SECRET}",
    f"&#x70;&#x61;ssword={SECRET}",
    f"password&equals;{SECRET}",
    f"password&colon; {SECRET}",
    f"password:&nbsp;{SECRET}",
    f"postgres:&#x2F;&#x2F;bob:{SECRET}@h",
    f"{BOLD}: {SECRET}",
    "\x00".join(f"password={SECRET}"),
    f"Your login:\r\npassword=3D{FIRST}=\r\n{SECOND}\r\n",
    f"PASSWORD='{FIRST}'\"{SECOND}\"",
    f"export PASS''WORD={SECRET}",
    rf"db.password\={SECRET}",
    f"The password is\n{SECRET}",
    f"Das Passwort lautet\n\n{SECRET}\n",
    rf'{{"command": "echo -e \'pass\\033[31mword={SECRET}\'"}}',
    f"The header was Basic {PAIR}",
    f'<input value="{SECRET}" name="password" type="text">',
    f"env:\n  - value: {SECRET}\n    name: DB_PASSWORD",
    f'{{"value":"{SECRET}","name":"password"}}',
    f'Content-Disposition: form-data; name="password"\r\n\r\n{SECRET}\r\n--b',
    f'["password"]=>\n  string(16) "{SECRET}"',
    f'password = """\n{SECRET}"""',
    f"postgresql://bob:{FIRST}/{SECOND}@localhost/x",
    *(f"pass{sign}word={SECRET}" for sign in (*INVISIBLE, *ORDERS)),
    *(f"{KEY[:12]}{sign}{KEY[12:]}" for sign in (*INVISIBLE, "\x1b[01;31m")),
    "&#103;" + KEY[1:],
    WIDE,
)


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_masked(text: str) -> None:
    masked = redact(text).replace("\x00", "")
    for part in (SECRET, FIRST, SECOND, PAIR, KEY[14:], WIDE[14:]):
        assert part not in masked


@pytest.mark.parametrize(
    "text",
    [
        "https://registry.example:4873/@babel/core",
        "http://localhost:8080/users/@me",
        "\U0001f469\u200d\U0001f4bb wrote `password` into the form\ufe0f.",
        r"re.compile(r'\x41\x42[^[:alpha:]]')",
        '{"value": "blue", "name": "colour"}',
        "Make sure that the password is\nat least 12 characters long.",
        "The token is\nutf8-encoded",
        "Basic authentication is switched off.",
        r"C:\047\users\name",
    ],
)
def test_it_stays(text: str) -> None:
    assert redact(text) == text
