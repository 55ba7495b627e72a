"""Names that announce a secret: judged by their end, and passed over quickly when nothing in them tells."""

from __future__ import annotations

import pytest

from leporello.redact.names import strength_of

TELLING = (
    "db_password passwort user-pass adminPass kennwort wachtwoord senha"
    " contraseña contrasena haslo hasło parola sifre şifre my_mdp wifi_psk"
    " 密码 密碼 口令 пароль パスワード 비밀번호 api_key storage.key github_token app_secret"
    " my_pat auth_salt masterauth sentry_dsn 密钥 密鑰 secret token credentials"
    " my_auth my-key ключ токен キー トークン 토큰 clé DB_PASSWORD_PRODUCTION"
    " sharedaccess_secret_access_key_base64"
).split()


@pytest.mark.parametrize("name", TELLING)
def test_a_name_tells_however_long_it_is(name: str) -> None:
    told = strength_of(f"x_{name}")
    assert told is not None
    assert strength_of(f"{'settings_of_the_service_' * 20}x_{name}") is told


@pytest.mark.parametrize("name", ["", "author" * 50, "pattern", "monkeys", "compass_rose", "x" * 5_000, "primary_key"])
def test_other_names_tell_nothing(name: str) -> None:
    assert strength_of(name) is None
