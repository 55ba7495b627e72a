"""A secret is found however its name is written: escapes, entities, invisible and other letters, colours, UTF-16."""

from __future__ import annotations

import base64

import pytest

from leporello.redact import redact
from tests.redact import secrets
from tests.support.work import counting

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


@pytest.mark.parametrize("said", [f"password={SECRET}", KEY, f'{{"api_key": "{SECRET}"}}', f"the token is {SECRET}."])
@pytest.mark.parametrize("before", ["", "x", "xy", "J\u00e4ger", "user\0", "\1\x7f"])
def test_a_secret_that_is_encoded_is_masked_whole(said: str, before: str) -> None:
    """Wherever in the code it begins; what holds none, and what is no text, stays."""
    plain = f"{before} {said}".encode()
    for code in (base64.b64encode(plain), base64.urlsafe_b64encode(plain).rstrip(b"="), plain.hex().encode()):
        assert redact(f"echo {code.decode()} | decode") == "echo [REDACTED] | decode"
    twice = base64.b64encode(base64.b64encode(plain)).decode()
    assert redact(f"{base64.b64encode(plain).decode()} {twice}").count("[REDACTED]") >= 1


@pytest.mark.parametrize("said", [b"the password must have 12 letters", b"password = get_password()", bytes(range(60))])
def test_what_is_encoded_without_a_secret_stays(said: bytes) -> None:
    for code in (base64.b64encode(said).decode(), said.hex()):
        assert redact(f"echo {code} | decode") == f"echo {code} | decode"


@pytest.mark.parametrize(
    "name", ["p\u0430ssword", "\u0440\u0430ssw\u043erd", "P\u0410SSWORD", "passw\u03bfrd", "\u0455ecret_key"]
)
def test_letters_that_look_like_ours_are_read_as_ours(name: str) -> None:
    assert SECRET not in redact(f"{name}: {SECRET}")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password: >-\n  Fuchs\n  Hase42x\nuser: ada", "password: >-\n  [REDACTED]\nuser: ada"),
        ("password: |\n  Fuchs&Hase77\nuser: ada", "password: |\n  [REDACTED]\nuser: ada"),
        ("DB_PASS=Fuchs&Hase98", "DB_PASS=[REDACTED]"),
        ("?password=Fuchs7x&next=1", "?password=[REDACTED]&next=1"),
        ("helm x --set auth.password=Rosine56x,replicas=2", "helm x --set auth.password=[REDACTED],replicas=2"),
        ("description: |\n  password\n  reset", "description: |\n  password\n  reset"),
        ("f(password=pw2, user=u)", "f(password=pw2, user=u)"),
    ],
)
def test_where_a_value_ends(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize("header", ["x-goog-api-key: ", "api_key="])
def test_a_key_may_have_dots(header: str) -> None:
    assert redact(header + "AQ." + secrets.rand(40, secrets.HEX)) == header + "[REDACTED]"
    assert redact(header + "settings.google.api_key") == header + "settings.google.api_key"


def settings(count: int) -> bytes:
    return "".join(f"SERVICE_{number}_PASSWORD=q7Rz0LmX2pTv{number}\n" for number in range(count)).encode()


@pytest.mark.parametrize(
    ("text", "left", "most"),
    [
        (base64.b64encode(settings(1_000)).decode(), "[REDACTED]", 4_000),
        (settings(1_000).hex(), "[REDACTED]", 4_000),
        (base64.encodebytes(settings(1_000)).decode(), "[REDACTED]\n", 20_000),
        ("password: >-\n" + "  abcDEF12345\n" * 1_000, "password: >-\n  [REDACTED]\n", 100),
    ],
    ids=["base64", "hexadecimal", "lines of base64", "folded"],
)
def test_a_long_value_is_followed_once(text: str, left: str, most: int) -> None:
    """A run of code is read up to its first secret, a wrapped key from its first line, a folded value in one go."""
    redact(f"a {text}")  # what is made ready once in a process
    with counting() as work:
        assert redact(text) == left
    assert work.scans <= most
