"""Secrets go, ordinary text stays. Both directions, by example and by property."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.redact import PLACEHOLDER, redact, redact_counted, redact_spans
from tests.redact import secrets

VENDOR_KEYS: dict[str, str] = secrets.vendor_keys()
WORDLIKE = "kestrel" + "42"
"""A password that a person would choose."""
OPAQUE: str = secrets.rand(24)
STRANGE = "p@s" + "s!" + secrets.rand(6) + "#x"

# {0} is the secret; everything around it must stay.
WITH_PASSWORD = [
    "DB_PASSWORD={0}",
    "export PGPASSWORD={0}",
    "export PGPASSWORD='{0}'",
    'POSTGRES_PASSWORD: "{0}"',
    "PASSWORD={0} make deploy",
    "SMTP_PASS={0}",
    'password = "{0}"',
    "password='{0}',",
    'password: "{0}",',
    '"password": "{0}"',
    '{{"user": "ada", "password": "{0}", "port": 5432}}',
    '{{"arguments": "{{\\"password\\": \\"{0}\\"}}"}}',
    "'db_password': '{0}',",
    'self.password = "{0}"',
    'dbPassword: "{0}"',
    "spring.datasource.password={0}",
    'config["password"] = "{0}"',
    'password: str = "{0}"',
    'const PASSWORD = "{0}";',
    'admin_password := "{0}"',
    ":password => '{0}'",
    "psql 'host=db user=ada password={0} sslmode=require'",
    "Server=db;User Id=sa;Password={0};Encrypt=true",
    "Server=db;Uid=sa;Pwd={0};",
    "tool --password {0} --verbose",
    "tool --password={0}",
    "tool --db-password '{0}'",
    "mysql -u root -p{0} shop",
    "sshpass -p {0} ssh ada@host",
    "curl -u ada:{0} http://host/x",
    "machine host login ada password {0}",
    "CREATE USER ada IDENTIFIED BY '{0}'",
    "ALTER ROLE ada WITH PASSWORD '{0}';",
    "<password>{0}</password>",
    "ENV ADMIN_PASSWORD {0}",
    "postgresql://ada:{0}@db.example:5432/shop",
    "redis://:{0}@cache:6379/0",
    "mongodb+srv://ada:{0}@cluster.example/db?retryWrites=true",
    "amqp://ada:{0}@[::1]:5672//",
    "https://ada:{0}@example.com/repo.git",
    'url = "mysql+pymysql://ada:{0}@h/db"',
    "密码：{0}",
]
WITH_OPAQUE = [
    "the password is {0}",
    "API_KEY={0}",
    "api_key: {0}",
    'apiKey: "{0}"',
    "x-api-key: {0}",
    '"client_secret": "{0}"',
    "AWS_SECRET_ACCESS_KEY={0}",
    "aws_session_token = {0}",
    "Authorization: Bearer {0}",
    "Authorization: token {0}",
    '"Authorization": "Bearer {0}"',
    'headers={{"Authorization": f"Bearer {0}"}}',
    "-H 'Authorization: Basic {0}'",
    "auth_token={0}&next=/home",
    "https://host/cb?access_token={0}&state=5",
    "//npm.example/:_authToken={0}",
    "token: {0}",
    'TOKEN="{0}"',
    "secret={0}",
    "SECRET_KEY = '{0}'",
    "--token {0}",
    "--api-key={0}",
    "AccountName=shop;AccountKey={0};EndpointSuffix=example",
    "https://shop.blob.example/c?sv=2020&sig={0}",
    "Cookie: theme=dark; session={0}",
    "https://hooks.slack.com/services/{0}",
    "https://discord.com/api/webhooks/123456789012345678/{0}",
    "<apiKey>{0}</apiKey>",
    "SharedAccessKeyName=root;SharedAccessKey={0}",
]


@pytest.mark.parametrize("vendor", VENDOR_KEYS)
@pytest.mark.parametrize("frame", ["{0}", "use {0}, please", '{{"value": "{0}"}}', "line one\n{0}\nline three"])
def test_vendor_key_goes(vendor: str, frame: str) -> None:
    """A key of a known vendor is masked wherever it stands, and its surroundings stay."""
    assert redact(frame.format(VENDOR_KEYS[vendor])) == frame.format(PLACEHOLDER)


@pytest.mark.parametrize("template", WITH_PASSWORD)
@pytest.mark.parametrize("secret", [WORDLIKE, OPAQUE, STRANGE], ids=["wordlike", "opaque", "strange"])
def test_password_goes(template: str, secret: str) -> None:
    """A literal password is masked in code, settings, command lines and addresses; nothing else changes."""
    assert redact(template.format(secret)) == template.format(PLACEHOLDER)


@pytest.mark.parametrize("template", WITH_OPAQUE)
def test_generated_key_goes(template: str) -> None:
    """A generated key or token is masked behind any telling name; nothing else changes."""
    assert redact(template.format(OPAQUE)) == template.format(PLACEHOLDER)


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_key_block_goes(kind: str) -> None:
    """Of a private key only the frame stays, so that a reader knows there was one."""
    text = f"a\n-----BEGIN {kind}-----\n{secrets.key_body()}\n-----END {kind}-----\nb"
    assert redact(text) == f"a\n-----BEGIN {kind}-----{PLACEHOLDER}-----END {kind}-----\nb"


def test_key_block_in_json_and_cut_off() -> None:
    """Escaped newlines, and a key whose end was cut away, hide nothing."""
    body = secrets.key_body()
    escaped = '{"key": "-----BEGIN PRIVATE KEY-----\\n' + body.replace("\n", "\\n") + '\\n-----END PRIVATE KEY-----"}'
    cut_off = "-----BEGIN RSA PRIVATE KEY-----\n" + body
    for text in (escaped, cut_off):
        masked = redact(text)
        assert not any(line in masked for line in body.split("\n"))


def test_public_key_and_certificate_stay() -> None:
    """What is public is no secret."""
    for kind in ("PUBLIC KEY", "CERTIFICATE"):
        text = f"-----BEGIN {kind}-----\n{secrets.key_body()}\n-----END {kind}-----"
        assert redact(text) == text


ORDINARY = [
    # code that handles secrets without holding one
    "password = get_password()",
    "password = self.password",
    "password = os.environ['DB_PASSWORD']",
    'password = os.environ.get("DB_PASSWORD", "")',
    "password: str",
    "password: str | None = None",
    "password: string;",
    "password?: string | null",
    "def login(user: str, password: str) -> Token:",
    "connect(user=user, password=password)",
    "connect(\n    password=pw,\n    token=token,\n)",
    "passwordHash: bcrypt.hash(password, 10),",
    "const token = await fetchToken(user);",
    "accessToken: result.accessToken,",
    "refreshToken = body?.refreshToken;",
    "let validToken: RefreshToken | null = null;",
    "privateKey: Uint8Array;",
    "private_key: &SecretKey,",
    "apiKey: process.env.API_KEY,",
    "api_key=api_key",
    "api_key = settings.api_key('openai')",
    "if password == '':",
    "if (!password) return null;",
    "password = input('Password: ')",
    "token = tokens[0]",
    "token = parser.next_token()",
    "token: Token = lexer.next()",
    "secret = Secret.objects.get(pk=1)",
    "tokens = tokenizer.encode(text)",
    "token_count = 5",
    "max_tokens=4096",
    "max_tokens: 128000",
    '"total_tokens": 15023,',
    "prompt_tokens 1200, completion_tokens 300",
    "primary_key=True",
    "public_key = load('id.pub')",
    'key = "name"',
    "for key, value in items:",
    "password_min_length = 12",
    'field(name="password", label="Password")',
    '<input type="password" name="password">',
    '<label for="password">Password</label>',
    '{"password": {"type": "string", "minLength": 8}}',
    '{"password": "string", "token": "string"}',
    '{"type": "object", "required": ["password", "token"]}',
    '"password": "Password must have at least 8 characters"',
    '{"token": "hello", "id": 31373}',
    "eos_token: <|endoftext|>",
    # where a secret would go
    "PASSWORD=$PASSWORD",
    "PASSWORD=${DB_PASSWORD:-}",
    "DB_PASSWORD=$(pass show db)",
    "password: {{ vault_password }}",
    "API_KEY=<your-api-key>",
    "API_KEY=your-api-key-here",
    "OPENAI_API_KEY=sk-...",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer {token}",
    'headers = {"Authorization": f"Bearer {token}"}',
    "https://user:${PASSWORD}@host/db",
    "f'postgresql://{user}:{password}@{host}/{db}'",
    "password: ********",
    "password:\n  minLength: 8\n  pattern: a1b2c3d4e5f6",
    "Authorization:\nsection=chapter-12a4b6c8d0",
    # prose
    "The password is required.",
    "Your password was changed.",
    "Bearer authentication is used.",
    "Password: required",
    "Token: expired",
    "Enter the password for ada:",
    "The secret is to start early.",
    "keyboard: qwerty, monkey: 3",
    "authors: Ada, Grace",
    # other long strings
    "commit 20d3b17aa0f3a2e9c3b17aa0f3a2e9c3b17aa0f3",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "http://localhost:3000/@vite/client",
    "git@github.com:ada/engine.git",
    "ssh://git@host:2222/repo.git",
    "https://host:8443/path?q=a@b",
    "user@example.com wrote: see http://a:80/",
    "docker run -p 8080:80 mysql",
    "mysql -u root -p shop",
    "curl -u ada http://host",
    "src/auth/token.py:12: error",
    "tests/test_password.py::test_reset PASSED",
    "leporello-0.1.0-py3-none-any.whl",
    "2026-11-15T20:16:00.123456Z INFO started",
    "token bucket: 100 per second",
    "credentials: `tests/e2e/.env`",
    "encryptedPrivateKey: testEncryptedRootPrivateKey,",
    'pwd = "~"',
    "SECRET_NAME=db-credentials",
    "secretName: db-credentials",
    # names of types behind a name
    "access-token OAuth2Bearer",
    "api-key SecretManagerV2",
    "the header is access-token JWTv2Provider",
    "client-secret X509Certificate",
    "pre-shared-key IKEv2Profile",
    "signing-key Sha256Digest",
    "session-token Base64UrlEncoded",
    # what people say with words of SQL
    "identified by UUIDv4",
    "Rows are identified by UUIDv4",
    "users are identified by Email2Hash",
    "create user records identified by UUIDv4 and a date",
    "each is identified by 'email' in the table",
    'it is identified by "tenant_id" and "user_id"',
    "We alter the view. Roles are identified by 'name'",
    # letters of something else
    "passing_grades = {'A', 'B', 'C', 'D', 'E', 'F'}",
    "bypass = {'a','b','c','d','e','f'}",
    "compass = {'N','S','E','W','n','s'}",
    "passenger_classes = {'F','J','W','Y','B','M'};",
    "Set<Character> PASSENGER = {'F','J','W','Y','B','M'};",
    "secretary_rooms = {'A','B','C','D','E','F'}",
    "char[] trespassing = {'a','b','c','d','e','f'};",
    # code that a sentence could be
    "expect(password).toBe(expectedPassword1)",
    "expect(password).not.toBe(hashed1)",
    "if (token.type === TokenType.Base64Url2) {",
    "const token = jwt.sign({ sub: user.id2 }, privateKey, { expiresIn: '2h' });",
    "use password authentication v2",
    "Use password ISO27001 rules",
    "we use password managers like 1Password7",
    "enter password twice2",
    "Passwort vergessen? Klick2Reset",
    "Forgot your password? Click2Reset",
    "log in with SSO/SAML2.0",
    "log in using github/gitlab",
    "DB_PASSWORD: ${DB_PASSWORD:-}",
    "TOKEN_URL: ${IDP:-https://idp.example/oauth2/token}",
    "radius-server key is set elsewhere",
    'the heap "old generation" is full',
    "enable password authentication2",
    "api-key HttpApiKeyV2",
    "enable secret rotation in production",
    "passphrase required",
    "socks5 proxy at port 1080 by default",
    # names with `pass` and `secret` in them
    "underpass = {'A','B','C','D','E','F'}",
    "char[] surpassed = {'a','b','c','d','e','f'};",
    "gyro_compass = {'N','S','E','W','n','s'}",
    "userBypass = {'a','b','c','d','e','f'}",
    "encompassing = {'a','b','c','d','e','f'}",
    "passage = {'a','b','c','d','e','f'}",
    "passport_types = {'P','D','S','E','A','B'}",
    # what is restored, and what is a term
    "restore-keys: linux-node-v2Xk29f0aa81",
    "we follow the password standard ISO27001",
    "the password rules of pci2024 apply",
    # providers, options and levels
    "sign in with google/github2024",
    "socks5 127.0.0.1 1080 timeout 30s0",
    "enable secret level15",
    "create the user and group identified by uid1000;",
    "We create user accounts on the host, each identified by 'email'",
    "create user records with names identified by 'name'",
    "Forgot your password? Reset",
    "Forgot your password? Sign-in-help",
]
# {0} is a value that a person chose, and reads like a name with a number, or like a word.
CHOSEN = [
    ("create or replace user bob identified by '{0}';", "summertime9"),
    ("create user c##bob identified by {0};", "Tiger1999"),
    ("alter user user() identified by '{0}'", "summertime"),
    ("create user \"my user\" identified by '{0}'", "summertime9"),
    ("create user \"my user\"@'%' identified by '{0}'", "summertime9"),
    ("create user {{name}} identified by '{0}'", "summertime9"),
    ("create user {{{{ db_user }}}} identified by '{0}'", "summertime9"),
    ("create user ' + name + ' identified by '{0}'", "summertime9"),
    ("create user bob\n default tablespace users\n identified by {0};", "tiger99x"),
    ("create user if not exists bob on cluster main identified with sha256_password by '{0}'", "summertime9"),
    ("create user bob -- of the shop\n identified by '{0}'", "summertime9"),
    ("create user bob quota 5M on users profile app identified by {0} account lock;", "Tiger1999"),
    ("alter user bob account unlock identified by '{0}'", "summertime9"),
    ("set role dba identified by '{0}'", "summertime9"),
    ("wpa-psk {0}\n", "Liverpool8"),
    ("admin-password {0}\n", "Chelsea10"),
    ("auth-pass {0}\n", "Dragon2048"),
    ("rabbitmq-password {0}\n", "Welcome1"),
    ("db_password {0}\n", "Welcome512"),
    ("grafana-admin-passwd {0}\n", "Arsenal11"),
    ("RESTORE_KEY={0}", "a8Kd93mQz7LpX2vB5nR1tY6wE4sC"),
    ("restore_key: {0}", "hunter2x"),
    ("pw: {0}", "ISO9001-Hunter"),
    ("password: {0}", "1Password99"),
    ("password is {0}", "pci2024"),
    ("use the password {0}", "1Password99"),
    ("Forgot the wifi password? It's {0}", "hunter2x!9"),
    ("Forgot the PIN? {0}", "4711"),
    ("Forgot your password? {0}!!", "hunter2x"),
    ("Forgot password? {0}", "Reset2024"),
    ("Passwort vergessen? {0}", "Sommer2024"),
    ("Forgot password? {0}", "tap4Dancer"),
    ("Forgot the password?\nbob: {0}", "Tiger1999x"),
    ("¿Olvidaste la contraseña? {0}", "Verano2024"),
]


@pytest.mark.parametrize(("template", "value"), CHOSEN)
def test_what_a_person_chose_goes(template: str, value: str) -> None:
    """Behind such names, statements and questions nothing has to look drawn."""
    masked = redact(template.format(value))
    assert value not in masked
    assert masked.startswith(template.format(PLACEHOLDER).partition(PLACEHOLDER)[0] + PLACEHOLDER)


GIVEN = [
    "CREATE USER bob IDENTIFIED BY {0};",
    "create user 'bob'@'%' identified by '{0}'",
    "alter user if exists bob identified with mysql_native_password by '{0}'",
    "GRANT ALL ON shop.* TO bob IDENTIFIED BY '{0}'",
    'CREATE USER bob\n  IDENTIFIED BY "{0}"',
    "create user a identified by '{0}', b identified by '{0}'",
    "... IDENTIFIED BY '{0}'",
    "SET PASSWORD FOR 'bob'@'h' = '{0}'",
    'sign_in("Maria", "{0}")',
    "use password {0} for the server",
    "gebruik wachtwoord {0} voor de server",
    "benutze das Passwort {0} fürs WLAN",
    "usa la contraseña {0} para entrar",
    "utilise le mot de passe {0} pour root",
    "a senha do banco mudou para {0}",
    "sunucunun şifresi {0}",
    "пароль {0}",
    "you can log in using admin/{0}",
    "sign in as bob:{0} please",
    "signIn('ada@example.com', '{0}')",
]


@pytest.mark.parametrize("template", GIVEN)
def test_what_is_given_to_a_statement_or_a_login_goes(template: str) -> None:
    """A person's password, though it may read like a name with a number."""
    assert redact(template.format("Berlin2024Summit")) == template.format(PLACEHOLDER)


def test_base64_that_begins_like_a_path_goes() -> None:
    """No part of a path is as mixed as this."""
    key = "/" + secrets.rand(8) + "+" + secrets.rand(34) + "="
    assert redact(f'{{"auths": {{"ghcr.io": {{"auth": "{key}"}}}}}}').endswith(f'"{PLACEHOLDER}"}}}}}}')
    path = "/var/lib/docker/overlay2/" + secrets.rand(64, secrets.HEX) + "/merged"
    assert redact(f'{{"auth": "{path}"}}') == f'{{"auth": "{path}"}}'


@pytest.mark.parametrize(
    "name",
    """password|char[] pass|dbPass|db_pass|PASS|ADMIN_PWD|userPassword|passphrase|char userpass[]|mypass|rootpass|MYPASS
    |adminPASS|secretkey|SECRETKEY|secretArray|babypass|telecomPass|passkey|wifipass2""".replace("\n    ", "").split(
        "|"
    ),
)
def test_a_password_in_letters_goes(name: str) -> None:
    """As Java and C take it."""
    assert redact(f"{name} = {{'h','u','n','t','3','r','x'}};") == f"{name} = {{{PLACEHOLDER}}};"


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    """Code, templates, prose and ids that only look near a secret are not touched by a byte."""
    assert redact(text) == text


def test_enough_examples_both_ways() -> None:
    """The tables above are the evidence; they must not shrink to a few."""
    assert len(VENDOR_KEYS) + len(WITH_PASSWORD) + len(WITH_OPAQUE) >= 60
    assert len(ORDINARY) >= 60


def test_counts_and_spans_agree() -> None:
    """Two secrets are two spans, and cutting the spans out leaves none of them."""
    text = f"DB_PASSWORD={OPAQUE} then {VENDOR_KEYS['npm']}"
    spans = redact_spans(text)
    assert [text[span.start : span.end] for span in spans] == [OPAQUE, VENDOR_KEYS["npm"]]
    assert redact_counted(text).count == 2


_pieces = st.sampled_from(
    [template.format(OPAQUE) for template in WITH_OPAQUE]
    + [template.format(WORDLIKE) for template in WITH_PASSWORD]
    + list(VENDOR_KEYS.values())
    + ORDINARY
    + [PLACEHOLDER, "\n", " ", ",", '"', "'", "\\", "=", ":", "\ud800", "İ", "密码", "://", "@", "password", "token "]
)


@given(st.lists(_pieces, max_size=8).map("".join))
def test_twice_is_once(text: str) -> None:
    """Redacting a redacted text changes nothing, however secrets and ordinary text are run together."""
    once = redact(text)
    assert redact(once) == once
    assert redact_spans(once) == []


@given(st.lists(_pieces, max_size=6).map("".join))
def test_only_spans_change(text: str) -> None:
    """Outside the masked places the text is the same, in order."""
    position = 0
    masked = redact(text)
    for part in masked.split(PLACEHOLDER):
        found = text.find(part, position)
        assert found >= 0
        position = found + len(part)


@given(st.text(st.characters(codec=None), max_size=400))
def test_any_text_is_taken(text: str) -> None:
    """Lone surrogates, controls, every script: never an exception."""
    redact(text)


@given(st.sampled_from(sorted(VENDOR_KEYS)), st.integers(0, 70_000))
def test_key_is_found_across_pieces(vendor: str, offset: int) -> None:
    """The text is read in pieces; a key that lies on a cut is found all the same."""
    text = "a " * (offset // 2) + VENDOR_KEYS[vendor] + " b" * 20_000
    assert VENDOR_KEYS[vendor] not in redact(text)


def test_surrogates_do_not_hide_a_key() -> None:
    """A character that has no UTF-8 form is no way around the search."""
    assert redact(f"\ud800 {VENDOR_KEYS['npm']} \udfff") == f"\ud800 {PLACEHOLDER} \udfff"


@pytest.mark.parametrize(
    ("filling", "megabytes"), [("eyJ", 2), ("Authorization: ", 2), ("plain words in a log line, item 12\n", 10)]
)
def test_long_text_is_read_to_the_end(filling: str, megabytes: int) -> None:
    """The work grows with the text and no faster: a quadratic rule would never come to the end of this one."""
    text = filling * (megabytes * 1_000_000 // len(filling)) + f"\nDB_PASSWORD={OPAQUE}"
    assert redact(text).endswith(f"DB_PASSWORD={PLACEHOLDER}")
