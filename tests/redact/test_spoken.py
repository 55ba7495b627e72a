"""Passwords in sentences go whole, in several languages; sentences about passwords stay."""

from __future__ import annotations

import pytest

from leporello.redact import PLACEHOLDER, redact
from tests.redact import secrets

CHOSEN = "swordfish" + "Q7"
SIGNED = "Tr0ub4" + "dor&3"
HEX_KEY: str = secrets.rand(32, secrets.HEX)
PHRASE = "correct horse " + "battery staple"

# {0} is the secret; everything around it must stay.
SAID = [
    "The password is {0}.",
    "My password is {0}",
    "the password is **{0}**",
    "password for staging: {0}",
    "password for the staging db: {0}",
    "set the password to {0}",
    "pass: {0}",
    "pass is {0}",
    "user bob and pass {0}",
    "login: bob / pass: {0}",
    "Passwort: {0}",
    "Das Passwort lautet {0}",
    "Kennwort: {0}",
    "mot de passe : {0}",
    "Le mot de passe est {0}.",
    "contraseña: {0}",
    "пароль: {0}",
    "密码是 {0}",
    "密码是{0}",
]
WHOLE = [
    ("password: {0}", "p@ss " + "w0rd"),
    ("password: '{0}'", "p@ss " + "w0rd"),
    ('{{"password": "{0}"}}', "a b c d"),
    ("password: '{0}'", "correct horse battery"),
    ("passphrase is {0}", PHRASE),
    ("passphrase: {0}", PHRASE),
    ("the passphrase is {0} and the user is bob", PHRASE),
    ("The password is {0}.", "hunter2" + "Zebra"),
    ("The password is {0}.", "Secret" + "42x"),
    ("the root password is {0}", "482913" + "77"),
    ("The PIN is {0}.", "482913"),
    ('{{"pin": "{0}"}}', "4829"),
    ("AWS_SECRET_ACCESS_KEY {0}", secrets.rand(40)),
    ("api key {0}", HEX_KEY),
    ("The API key is {0}.", HEX_KEY),
    ("access token {0}, please", HEX_KEY),
    ("we log in with password {0} there", SIGNED),
    ("пароль: {0}", "Тайна42"),
    ("Cookie: session={0}; theme=dark", "abc123"),
    ("Cookie: theme=dark; csrftoken={0}", "x7k9q2m4"),
]
ORDINARY = [
    "the password is required",
    "password is not set",
    "the password field",
    "reset the password",
    "password: str",
    "passing tests",
    "PIN the version",
    "PIN the version: 1.2.3",
    "api key is missing",
    "the password is **required**",
    "The password is wrong!",
    "the password is base64-encoded",
    "the password is sha256-hashed",
    "the password is 8-64 characters",
    "the password is sent to bob@example.com",
    "the password for bob is stored hashed",
    "password for user2 was changed",
    "the password is in docs/setup2.md",
    "passphrase is required for the key",
    "passphrase is derived from the machine id",
    "passphrase is stored encrypted inside the vault",
    '"password": "Mot de passe"',
    '"password": "Passwort ändern"',
    '"password": "must match the first one"',
    "pass arg1 to the function",
    "pass to func2",
    "pass: 12, fail: 3",
    "PASS: test_parses_utf8_header",
    "PASS: tests/test_a1.py",
    "gpio pin: 17",
    "spin: 1234",
    "access key rotation-policy-2024-quarterly",
    "api key docs/guide-to-keys/index.md",
    "Cookie: theme=dark; lang=en",
    "Das Passwort ist falsch.",
    "mot de passe : obligatoire",
    "пароль: обязателен",
    "密码是 必填",
]


@pytest.mark.parametrize("template", SAID)
@pytest.mark.parametrize("secret", [CHOSEN, SIGNED], ids=["chosen", "signed"])
def test_said_password_goes(template: str, secret: str) -> None:
    """A password that a sentence announces is masked whole; the sentence stays."""
    assert redact(template.format(secret)) == template.format(PLACEHOLDER)


@pytest.mark.parametrize(("template", "secret"), WHOLE)
def test_secret_goes_whole(template: str, secret: str) -> None:
    """Pass phrases, passwords with blanks and signs, PINs, keys and cookies leave no remainder."""
    assert redact(template.format(secret)) == template.format(PLACEHOLDER)


@pytest.mark.parametrize("text", ORDINARY)
def test_talk_about_passwords_stays(text: str) -> None:
    """What is only said of passwords is not touched by a byte."""
    assert redact(text) == text


@pytest.mark.parametrize("filling", ["password for ", "pass is ", "passphrase is a", "pin: ", "api key ", "a1! "])
def test_long_talk_is_read_to_the_end(filling: str) -> None:
    """The work grows with the text and no faster: a quadratic rule would never come to the end of this one."""
    text = filling * (500_000 // len(filling)) + f"\nthe password is {SIGNED}"
    assert redact(text).endswith(f"\nthe password is {PLACEHOLDER}")
