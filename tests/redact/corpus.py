"""Shapes in which secrets stand, by kind and language. Each value is made at run time: none stands here.

`«human»` and the like name how the value is made; what a template says around it must not matter.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
_WORDS = (
    "kestrel lantern harbour meadow copper falcon winter garden saddle thunder velvet walnut pepper marble anchor "
    "ribbon castle dragon orchid tunnel"
).split()
_LONG, _TAIL = 32, 12


@dataclass(frozen=True)
class Item:
    kind: str
    language: str
    text: str
    secrets: tuple[str, ...]

    @property
    def many_lines(self) -> bool:
        return "\n" in self.text


def _mixed(source: random.Random, length: int, alphabet: str) -> str:
    """Random characters with a digit and both cases among them, as far as the alphabet has them."""
    while True:
        text = "".join(source.choices(alphabet, k=length))
        wanted = [group for group in (string.digits, string.ascii_lowercase, string.ascii_uppercase)]
        if all(set(group).isdisjoint(alphabet) or set(group) & set(text) for group in wanted):
            return text


def _human(source: random.Random) -> str:
    word = source.choice(_WORDS)
    forms = (
        f"{word}{source.randint(10, 9999)}",
        f"{word.title()}{source.randint(10, 99)}!",
        f"{word.title()}-{source.choice(_WORDS)}-{source.randint(10, 99)}",
        f"{word[0].upper()}{word[1:].replace('e', '3').replace('a', '4')}#{source.randint(1, 99)}",
        f"{word}@{source.choice(_WORDS).title()}{source.randint(1, 9)}",
    )
    return source.choice(forms)


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "human": _human,
    "opaque": lambda source: _mixed(source, 28, ALNUM),
    "short": lambda source: _mixed(source, 12, ALNUM),
    "strong": lambda source: _mixed(source, 9, ALNUM) + source.choice("!#%&*+") + _mixed(source, 5, ALNUM),
    "long": lambda source: _mixed(source, 64, ALNUM + "-_"),
    "hex": lambda source: _mixed(source, 32, HEX),
    "hex40": lambda source: _mixed(source, 40, HEX),
    "hex64": lambda source: _mixed(source, 64, HEX),
    "base64": lambda source: _mixed(source, 43, ALNUM + "+/") + "=",
    "base40": lambda source: _mixed(source, 40, ALNUM + "+/"),
    "upper": lambda source: _mixed(source, 16, string.ascii_uppercase + "234567"),
    "lower": lambda source: _mixed(source, 36, string.ascii_lowercase + string.digits),
    "digits": lambda source: "".join(source.choices("123456789", k=10)),
    "pin": lambda source: "".join(source.choices("123456789", k=source.choice((4, 6)))),
    "uuid": lambda source: "-".join(_mixed(source, length, HEX) for length in (8, 4, 4, 4, 12)),
    "words": lambda source: " ".join(source.sample(_WORDS, 12)),
    "numbered": lambda source: " ".join(f"{n}. {word}" for n, word in enumerate(source.sample(_WORDS, 13), 2)),
    "row": lambda source: _mixed(source, 64, ALNUM + "+/"),
    "half": lambda source: _mixed(source, 30, ALNUM),
    "worded": lambda source: source.choice(
        (
            f"{source.choice(_WORDS)}-{source.randint(1, 99)}",
            f"{source.choice(_WORDS).title()}-2-{source.choice(_WORDS)}",
        )
    ),
    "plain": lambda source: source.choice(_WORDS),
    "phrase": lambda source: f"{source.choice(_WORDS)} {source.choice(_WORDS)}",
    "grouped": lambda source: f"{source.randint(100, 999)} {source.randint(100, 999)}",
    "card": lambda source: str(source.randint(100, 999)),
}
SLOT = re.compile("«(\\w+)»")

# By kind. `prefix` stands for letters that a scanner of this repository would take for the start of a key.
CODE: dict[str, tuple[str, ...]] = {
    "our own key": (
        "lep-«long»",
        "LEPORELLO_KEY=lep-«opaque»",
        "Authorization: Bearer lep-«opaque»",
        "x-api-key: lep-«hex»",
    ),
    "vendor key": (
        "AIzaSy«base35»",
        "ya29.a0«long»",
        "GOCSPX-«opaque»",
        "gsk_«long»",
        "xai-«long»«half»",
        "pplx-«long»",
        "r8_«hex40»",
        "hf_«base35»",
        "ghu_«alnum36»",
        "ghr_«alnum36»",
        "gloas-«long»",
        "gldt-«opaque»",
        "glrt-«opaque»",
        "glcbt-64_«opaque»",
        "xapp-1-A«upper»-«digits»-«hex64»",
        "xoxe.xoxp-1-«long»",
        "SG.«base22».«base43»",
        "npm_«alnum36»",
        "pypi-AgEIcHlwaS5vcmc«long»",
        "rk_" + "test_«opaque»",
        "sk_" + "live_«opaque»",
        "whsec_«base40»",
        "dop_v1_«hex64»",
        "doo_v1_«hex64»",
        "dapi«hex»",
        "dapi«hex»-2",
        "shpss_«hex»",
        "shpca_«hex»",
        "EAAA«long»",
        "hvs.«long»«half»",
        "hvb.«long»«half»",
        "dckr_pat_«base27»",
        "dckr_oat_«base32»",
        "ATATT3xFfGF0«long»«long»=«hex8»",
        "ATBB«base32»",
        "lin_api_«alnum40»",
        "lin_oauth_«hex64»",
        "secret_«alnum43»",
        "figd_«long»",
        "PMAK-«hex24»-«hex34»",
        "dp.st.prd.«alnum40»",
        "glsa_«base32»_«hex8»",
        "glc_eyJ«long»",
        "NRAK-«upper27»",
        "NRJS-«hex19»",
        "pscale_oauth_«long»",
        "pul-«hex40»",
        "rubygems_«hex48»",
        "nfp_«alnum40»",
        "sk-or-v1-«hex64»",
        "sk-ant-api03-«long»«half»AA",
        "sk-«base48»",
        "tvly-dev-«base32»",
        "fc-«hex»",
        "jina_«hex»«base32»",
        "nvapi-«long»",
        "fw_«alnum24»",
        "csk-«lower»«alnum12»",
        "COHERE_API_KEY=«alnum40»",
        "lsv2_pt_«hex»_«hex10»",
        "pcsk_«base5»_«long»",
        "sgp_«hex40»",
        "EZAK«alnum54»",
        "sbp_«hex40»",
        "sntryu_«hex64»",
        "tfp_«long»",
        "AccountKey=«base86»==",
        "shippo_live_«hex40»",
        "CFPAT-«base43»",
        "aio_«base28»",
        "ops_eyJ«long»«long»«long»",
        "A3-«upper6»-«upper6»«upper5»-«upper5»-«upper5»-«upper5»",
        "hooks.slack.com/services/T«upper9»/B«upper9»/«base24»",
        "https://discord.com/api/webhooks/«digits»«digits»/«base68»",
        "https://acme.webhook.office.com/webhookb2/«uuid»@«uuid»/IncomingWebhook/«hex»/«uuid»",
        "https://api.telegram.org/bot«digits»:AA«base33»/sendMessage",
        "«digits»:AA«base33»",
        "amzn.mws.«uuid»",
        "FwoGZXIvYXdz«base86»«base43»",
        "ABSKQmVkcm9ja0FQSUtleS«base86»==",
        "sq0csp-«base43»",
        "duffel_live_«base43»",
        "patAAAAAAA«base7».«hex64»",
        "cio-«hex»«hex»",
        "ctx7sk-«uuid»",
        "apify_api_«alnum36»",
        "BBDC-«base44»",
        "xkeysib-«hex64»-«alnum16»",
        "re_«alnum8»_«alnum24»",
        "phx_«alnum43»",
        "1//0g«long»",
        "hvr.«long»«half»",
        "tgp_v1_«alnum43»",
        "CLOJARS_«lower»«lower»",
        "napi_«lower»«lower»",
        "hcaik_«lower»«lower»",
        "dt0c01.«upper24».«upper64»",
        "pk_«digits»_«upper32»",
        "dG9rO«alnum52»=",
        "st.«hex24».«hex».«hex»",
        "snyk_uat.«hex8».«alnum64»",
        "sk.eyJ«alnum60».«alnum22»",
        "AAAAAAAAAAAAAAAAAAAAA«alnum30»%3D«alnum50»",
        "xaat-«uuid»",
        "pylf_v1_us_«alnum43»",
        "signkey-prod-«hex64»",
        "vercel_blob_rw_«alnum16»_«alnum30»",
        "sk-helicone-«alnum36»",
        "«hex52»AZDO«alnum8»",
        "«hex36»NRAL",
    ),
    "assignment": (
        "pass=«human»",
        "pass = «human»",
        "DB_PASS=«human»",
        "MYSQL_PWD=«human»",
        "user=bob pass=«human» host=db",
        "passwd: «human»",
        "smtp.pass=«human»",
        "redis.auth=«opaque»",
        "psk=«human»",
        "wpa_passphrase=«human»",
        "PGPASS='«human»'",
        "JWT_SECRET=«human»",
        "SESSION_SECRET: '«opaque»'",
        "NEXTAUTH_SECRET=«base64»",
        "DJANGO_SECRET_KEY='«strong»«strong»«strong»'",
        "ENCRYPTION_KEY=«hex64»",
        "export GITHUB_PAT=«opaque»",
        "HEROKU_API_KEY=«uuid»",
        "set API_TOKEN=«opaque»",
        "$env:API_KEY = '«opaque»'",
        "setx STRIPE_KEY «opaque»",
        "let apiToken = `«opaque»`;",
        'private static final String API_KEY = "«opaque»";',
        'var dbPassword = @"«human»";',
        '#define WIFI_PASSWORD "«human»"',
        "define('DB_PASSWORD', '«human»');",
        'define( "AUTH_KEY", "«strong»«strong»«strong»" );',
        "define('SECURE_AUTH_SALT', '«strong»«strong»«strong»');",
        'variable "db_password" { default = "«human»" }',
        'os.environ["API_SECRET"] = "«opaque»"',
        "os.environ.setdefault('SECRET_KEY', '«opaque»')",
        'props.setProperty("db.password", "«human»");',
        'client = Client(token="«opaque»")',
        'auth=("bob", "«human»")',
        "client_secret=«opaque»&grant_type=x",
        "?key=«base39»&q=1",
        "https://h/x?apikey=«opaque»",
        "https://h/x?X-Amz-Signature=«hex64»",
        "wss://h/ws?token=«opaque»",
        'private_key = "0x«hex64»"',
        "ETH_PRIVATE_KEY=«hex64»",
        "PrivateKey = «base64»",
        "PresharedKey = «base64»",
        '"auth": "«base40»"',
        "client-key-data: «base64»«base40»",
        "aws_secret_access_key = «base40»",
        "secret_access_key: «base40»",
        "storage_account_key: «base86»==",
        "-storepass «human» -keypass «human2»",
        "requirepass «human»",
        "masterauth «opaque»",
        '"Pwd":"«human»"',
        '<add key="ApiSecret" value="«opaque»" />',
        '<entry key="password">«human»</entry>',
        "<Password>«human»</Password>",
        '<property name="password" value="«human»"/>',
        "<secret type='x'>«opaque»</secret>",
        "passwort=«human»",
        '"contrasena": "«human»"',
        '{:password "«human»"}',
        'password => "«human»"',
        "password: !!str «human»",
        '{"name":"DB_PASSWORD","value":"«human»"}',
        "{'key': 'api_token', 'value': '«opaque»'}",
        "| Password | «human» |",
        "**Password**: `«human»`",
        "- API key: «opaque»",
        "Password\t«human»",
        '\\"apiKey\\":\\"«opaque»\\"',
        '{\\"password\\":\\"«human»\\"}',
    ),
    "command": (
        "mysql -uroot -p'«human»' shop",
        "mysqldump --password=«human» shop",
        'psql "user=bob password=«human»"',
        "redis-cli -a «human» ping",
        "curl -u 'bob:«human»' https://h",
        "curl --user bob:«human» https://h",
        'curl -H "X-Auth-Token: «opaque»" https://h',
        "curl -H 'PRIVATE-TOKEN: «opaque»' https://h",
        "wget --http-password=«human» https://h",
        "http -a bob:«human» h/x",
        "docker login -u bob -p «human» reg.example",
        "echo «human» | docker login -u bob --password-stdin",
        "echo '«human»' | sudo -S apt update",
        'echo "bob:«human»" | chpasswd',
        "sshpass -p'«human»' ssh bob@h",
        "helm install x --set auth.password=«human»",
        "kubectl create secret generic x --from-literal=password=«human»",
        "openssl enc -k «human» -in f",
        "openssl rsa -passin pass:«human» -in k.pem",
        "gpg --batch --passphrase «human» -d f.gpg",
        "zip -P «human» a.zip f",
        "7z x -p«human» a.7z",
        "net use z: \\\\h\\s «human» /user:bob",
        "az login --service-principal -u id -p «opaque» --tenant t",
        "gh secret set TOKEN --body «opaque»",
        "vault login «opaque»",
        "mongo --username bob --password «human» h",
        "sqlcmd -S h -U sa -P «human»",
        "ldapsearch -D cn=a -w «human» -b dc=x",
        '["mysql", "-p«human»", "shop"]',
        '["tool", "--token", "«opaque»"]',
        "snmpwalk -v3 -A «human» -X «human2» h",
        "rclone config create r s3 secret_access_key=«base40»",
        "htpasswd -b -c .htpasswd bob «human»",
        "vault operator unseal «base44»",
        "cargo login «alnum36»",
        "doctl auth init -t «hex64»",
        "poetry config http-basic.foo bob «human»",
        "poetry config pypi-token.pypi «alnum60»",
        "twine upload -u __token__ -p «alnum60» dist/*",
        "pulumi config set --secret dbPassword «human»",
        "rabbitmqctl add_user bob «human»",
        "redis-cli AUTH «strong»",
        'new SecretKeySpec("«alnum16»".getBytes(), "AES")',
        "set -gx DB_PASSWORD «human»",
        "wandb login «hex40»",
        "ngrok config add-authtoken «alnum48»",
        "curl -b 'session=«hex»' https://h",
        "username bob privilege 15 secret 0 «human»",
        "ParameterKey=DBPassword,ParameterValue=«human»",
    ),
    "header": (
        "Authorization: Basic «base40»",
        'authorization: Digest username="bob", response="«hex»"',
        "Proxy-Authorization: Basic «base24»==",
        "X-Vault-Token: «opaque»",
        "X-Api-Key: «hex»",
        "Ocp-Apim-Subscription-Key: «hex»",
        "Set-Cookie: sessionid=«lower»; HttpOnly",
        "Cookie: JSESSIONID=«hex»; a=b",
        "api-key: «hex»",
        "Authorization: ApiKey «base40»==",
        "Authorization: «hex»",
        "X-CSRF-Token: «opaque»",
        "Authorization: SSWS «opaque»",
        "Authorization: Zoho-oauthtoken 1000.«hex».«hex40»",
        "cookie: connect.sid=s%3A«opaque».«base43»",
    ),
    "address": (
        "postgres://bob:«human»@db/x",
        "redis://default:«opaque»@c:6379",
        "https://x-access-token:«opaque»@host/r.git",
        "https://«opaque»@sentry.example/42",
        "ftp://bob:«strong»@h/f",
        "jdbc:mysql://h/x?user=bob&password=«human»",
        "jdbc:oracle:thin:bob/«human»@h:1521:x",
        "smtp://bob%40h:«opaque»@mail:587",
        "mongodb://bob:«human»@a:1,b:2/x",
        "sqlserver://h;user=sa;password=«human»;",
        "db.example:5432:shop:bob:«human»",
        "WIFI:T:WPA;S:home;P:«human»;;",
        "otpauth://totp/x:bob?secret=«upper»&issuer=x",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«base86»==;",
        "Endpoint=sb://x/;SharedAccessKey=«base64»",
    ),
    "hashed": (
        "bob:$apr1$«base8»$«base22»",
        "root:$6$«base16»$«base86»:19000:0:99999:7:::",
        '"$2b$12$«base53»"',
        "$argon2id$v=19$m=65536,t=3,p=4$«base22»$«base43»",
        "bob:{SHA}«base27»=",
    ),
    "escaped": (
        '{"a": "\\u0070assword: \\u0022«human»\\u0022"}',
        '{"cmd": "export API_KEY=\\"«opaque»\\" \\u0026\\u0026 run"}',
        '{"t": "\\u5bc6\\u7801\\uff1a«human»"}',
        '{"body": "{\\"auth\\": {\\"client_secret\\": \\"«opaque»\\"}}"}',
        '{"x": "{\\\\\\"token\\\\\\": \\\\\\"«opaque»\\\\\\"}"}',
        '"DB_PASSWORD\\u003d«human»"',
        '{"log": "line\\npassword: «human»\\nend"}',
        "password=&quot;«human»&quot;",
        '{"u": "postgres:\\/\\/bob:«human»@db\\/x"}',
        '["\\u0070\\u0061\\u0073\\u0073\\u0077\\u006f\\u0072\\u0064=«human»"]',
    ),
}
LINES: dict[str, tuple[str, ...]] = {
    "sentence over lines": (
        "The password is:\n«human»",
        "The password is:\n\n«human»\n\nKeep it.",
        "Password:\n```\n«human»\n```",
        "Here is the API key:\n\n```text\n«opaque»\n```\nUse it.",
        "Token:\n    «opaque»",
        "password\n--------\n«human»\n",
        "Das Passwort lautet:\n«human»",
        "Le mot de passe est :\n«human»",
        "密码：\n«human»",
        "пароль:\n«human»\n",
        "La contraseña es:\n> «human»",
    ),
    "yaml": (
        "password: |\n  «human»\n",
        "password: >-\n  «human»\nuser: bob\n",
        "password:\n  «human»\n",
        "password: &pw «human»\n",
        "- name: DB_PASSWORD\n  value: «human»\n",
        'env:\n  - name: API_TOKEN\n    value: "«opaque»"\n',
        "secrets:\n  db:\n    password: «human»\n",
        "stringData:\n  password: «human»\n  user: bob\n",
        "data:\n  token: «base40»\n",
        "users:\n- name: a\n  user:\n    token: «opaque»\n",
        "auths:\n  host:\n    auth: «base40»\n",
    ),
    "json": (
        '{\n  "password":\n    "«human»"\n}',
        '{\n  "name": "API_KEY",\n  "value": "«opaque»"\n}',
        '{\n  "credentials": {\n    "secret": "«opaque»"\n  }\n}',
        '{"Name": "db-password",\n "Type": "SecureString",\n "Value": "«human»"}',
        '{\n "key": "client_secret",\n "type": "text",\n "value": "«opaque»"\n}',
    ),
    "xml": (
        "<password>\n  «human»\n</password>",
        "<key>password</key>\n<string>«human»</string>",
        "<name>db.password</name>\n<value>«human»</value>",
        "<td>Password</td>\n<td>«human»</td>",
        "<dt>API key</dt>\n<dd>«opaque»</dd>",
        "<server>\n <username>bob</username>\n <password>«human»</password>\n</server>",
        '<setting name="ApiKey">\n <value>«opaque»</value>\n</setting>',
    ),
    "table": (
        "| user | password |\n|---|---|\n| bob | «human» |\n| ada | «human2» |",
        "user,password\nbob,«human»\n",
        "name;token\nx;«opaque»\n",
        " name | api_key \n------+---------\n bob  | «opaque»\n",
        "| Key | Value |\n|---|---|\n| API token | «opaque» |\n| Region | eu |",
        "user\tpassword\nbob\t«human»",
        "| 用户 | 密码 |\n|---|---|\n| bob | «human» |",
        "<tr><th>User</th><th>Password</th></tr>\n<tr><td>bob</td><td>«human»</td></tr>",
    ),
    "shell": (
        "tool login \\\n  --user bob \\\n  --password «human» \\\n  --url h",
        "tool --token \\\n  «opaque»",
        "export API_KEY=\\\n«opaque»",
        "cat > .env <<EOF\nUSER=bob\nPASS=«human»\nEOF",
        "passwd bob <<EOF\n«human»\nEOF",
        "$ sudo passwd bob\nNew password: «human»\nRetype new password: «human»",
        "Username: bob\nPassword: «human»",
        "mysql> SET PASSWORD FOR bob =\n  '«human»';",
        "docker run \\\n  -e DB_PASSWORD=«human» \\\n  x",
        "cat > ~/.pgpass <<EOF\ndb:5432:shop:bob:«human»\nEOF",
        "machine h\nlogin bob\npassword «human»\n",
        'variable "db_password" {\n  type    = string\n  default = "«human»"\n}',
    ),
    "code over lines": (
        'API_KEY = (\n    "«half»"\n    "«half2»"\n)',
        'const token =\n  "«opaque»";',
        'client(\n  password=\n    "«human»",\n)',
        'String key = "«half»" +\n    "«half2»"; // api key\napiKey = "«half»" +\n    "«half2»";',
        "define(\n  'DB_PASSWORD',\n  '«human»'\n);",
        'token: "«half»\\\n  «half2»"',
    ),
    "key block": (
        "-----BEGIN " + "EC PRIVATE KEY-----\n«row»\n«row2»\n-----END EC " + "PRIVATE KEY-----",
        "  key: |\n    -----BEGIN " + "PRIVATE KEY-----\n    «row»\n    «row2»\n    -----END " + "PRIVATE KEY-----",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 2\n«row»\n«row2»\nPrivate-MAC: «hex64»",
        "> -----BEGIN " + "OPENSSH PRIVATE KEY-----\n> «row»\n> «row2»\n> -----END " + "OPENSSH PRIVATE KEY-----",
        "client-key-data: «row»\n  «row2»\n",
        "[Interface]\nPrivateKey = «base64»\nAddress = 10.0.0.2/32",
    ),
    "calls": (
        'user.set_password("«human»")',
        "withPassword('«human»')",
        'account.password("«strong»")',
        'var secret = []byte("«opaque»")',
        'token: Some("«opaque»"),',
        'passwords = [\n    "«human»",\n    "«human2»",\n]',
        "new PDO($dsn, 'root', '«human»')",
        '(setq my-api-key "«opaque»")',
        'login(\n    "bob",\n    "«human»",\n)',
        "encryption_key: !!binary «base64»",
        "SET PASSWORD FOR 'bob'@'%' = PASSWORD('«human»');",
        '{"SecretString": "«short»"}',
    ),
    "programs": (
        "net user bob «human» /add",
        "ssh-keygen -p -P «strong» -N «strong2»",
        "https://hooks.zapier.com/hooks/catch/5617483/«short»/",
        "mc alias set store https://store.example bob «opaque»",
        "nmcli dev wifi connect Home password «human»",
        "snmp-server community «human» RO",
        "bindpw «human»",
        "AUTH PLAIN «base40»",
        "334 UGFzc3dvcmQ6\n«base40»\n235 ok",
        "GenieKey «uuid»",
        "AC" + "0123456789abcdef" * 2 + " «hex»",
        '{"kty":"oct","k":"«opaque»","alg":"HS256"}',
        "$ openssl rand -hex 32\n«hex64»\n",
    ),
    "below a word": (
        "Password below\n```\n«human»\n```",
        "Enter passphrase for key '/home/bob/.ssh/id_ed25519':\n«human»\nIdentity added",
        "    password\n    --------\n    «human»\n    (1 row)",
        "API keys:\n- prod: «opaque»\n- staging: «opaque2»\n",
        "ada: can you send me the db password?\nbob: sure\nbob: «human»",
        "The login of the new colleague:\nbob@example.org\n«strong»\n",
        "Network: Guest\nKey: «human»",
        "SERVICE   USER   PASSWORD\nmysql     root   «human»\nredis     app    «human2»",
        "What's the password again?\nit's still «human»",
        "Backup codes\n«pin» 8417\n",
        "recovery codes\n1. «code»\n2. «code2»\n",
        "Write these words down:\n1. velvet «numbered»",
    ),
    "codes": (
        "Recovery codes:\n«code»\n«code2»\n«code3»\n",
        "Your backup codes are:\n1. «code»\n2. «code2»\n",
        "Seed phrase:\n«words»\n",
        "Unseal Key 1: «base64»\nInitial Root Token: hvs.«opaque»",
    ),
}
# Per language: sentences that give away a password, a key, a PIN.
CODE |= {
    "one-time code": (
        "TEST_OTP=«pin»",
        "MFA_CODE: «pin»",
        '{"email": "a@b.example", "otp": "«pin»"}',
        "cvc «card»",
        'card_cvv = "«card»"',
        "Your verification code is «grouped». It expires soon.",
        "2fa: «grouped»",
        "G-«digits» is your verification code.",
        "the backup codes are «code» and «code2»",
        "Backup codes (each works once): «pin», «digits»",
        "TOTP seed: «upper»",
        "Access code for the house: 4«upper4»",
    ),
    "words and a number": (
        "vault kv put secret/app api_key=«worded»",
        "creds: admin:«worded»",
        "db creds → app / «human»",
        "login is bob, pw «human»",
        "SESSION_SECRET: «worded»",
        "ssh-keygen -t ed25519 -N '«worded»' -f key",
        'Use password "«human»" for the demo user.',
        "use bob@b.example with password «human»",
        "the pw on staging changed, it's «human» now",
        "the admin user has «strong» as its password",
    ),
    "flags that take nothing else": (
        "mongosh -u admin -p «plain» --quiet",
        "docker login -u bob -p «plain» registry.example",
        "openssl enc -aes-256-cbc -k «plain» -in a -out b",
        "smbclient //srv/share -U 'bob%«human»'",
        "ssh bob@10.0.0.3 («strong»)",
    ),
}
LINES |= {
    "beside a user": (
        "machine ftp.example\n  login deploy\n  password «worded»",
        "[smtp]\npass: «worded»",
        "mail:\n  username: bot\n  password: «phrase»",
        "login: bob\npassword: «plain»",
    ),
    "column of one password": (
        "| user | password |\n|---|---|\n| root | «strong» |\n| app | «plain» |",
        "host,user,password\ndb1,root,«human»\ndb2,app,«plain»",
        "user\tpass\nbob\t«worded»",
    ),
    "PuTTY key cut off": ("PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n«row»",),
}
SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "The password is «human».",
        "password for the staging server is «human»",
        "the pw is «strong»",
        "Use «strong» as the password.",
        "type «strong» when it asks for the passphrase",
        "sudo asks for a password, just enter «strong»",
        "the password used to be «human» but now it's «strong»",
        "«opaque» # api token of the shop",
        "user/pass: root/«human»",
        "«strong» is the new root password",
        "the API key is «opaque», thanks",
        "your token: «opaque»",
        "My PIN is «pin»",
        "the door code is «pin»",
        "log in as bob with «strong» as password",
        "The wifi password changed to «human» yesterday",
        'I set my passphrase to "«human»"',
        "secret key — «opaque»",
        "verification code: «pin»",
        "creds: bob / «strong»",
    ),
    "de": (
        "Das Datenbankpasswort lautet «human».",
        "Das WLAN-Passwort ist «worded».",
        "Ihr Einmalpasswort lautet «grouped»",
        "Das Passwort lautet «human».",
        "Das neue Passwort für den Server ist «human»",
        "Kennwort: «human»",
        "Der API-Schlüssel ist «opaque».",
        "Mein PIN-Code lautet «pin»",
        "Das Token für die CI heißt «opaque»",
        "Bitte «strong» als Passwort nehmen.",
        "Zugangsdaten: bob / «strong»",
    ),
    "fr": (
        "J'ai changé le mot de passe en «worded»",
        "Le mot de passe est «human».",
        "Le nouveau mot de passe du serveur est « «human» »",
        "mdp : «human»",
        "La clé API est «opaque».",
        "Le code PIN est «pin»",
        "Le jeton d'accès est : «opaque»",
        "Utilise «strong» comme mot de passe.",
    ),
    "es": (
        "La contraseña es «human».",
        "La nueva contraseña del servidor es «human»",
        "clave: «strong»",
        "La clave de API es «opaque».",
        "El PIN es «pin»",
        "El token de acceso es «opaque»",
        "Usa «strong» como contraseña.",
    ),
    "pt": (
        "a senha do banco é «worded»",
        "A senha é «human».",
        "A nova senha do servidor é «human»",
        "palavra-passe: «human»",
        "A chave de API é «opaque».",
        "O PIN é «pin»",
        "O token de acesso é «opaque»",
    ),
    "it": (
        "La password è «human».",
        "La nuova password del server è «human»",
        "parola d'ordine: «strong»",
        "La chiave API è «opaque».",
        "Il PIN è «pin»",
        "Il token di accesso è «opaque»",
    ),
    "ru": (
        "Пароль: «human»",
        "Новый пароль от сервера — «human».",
        "Пароль для базы данных «strong»",
        "Ключ API: «opaque»",
        "ПИН-код «pin»",
        "Токен доступа — «opaque»",
    ),
    "zh": (
        "您的验证码为 «pin»,5分钟内有效",
        "密码是«human»。",
        "服务器的新密码为：«human»",
        "密码改成了 «human»",
        "API 密钥是 «opaque»",
        "PIN码是«pin»",
        "访问令牌：«opaque»",
    ),
    "ja": (
        "パスワードは «worded» です",
        "パスワードは«human»です。",
        "サーバーの新しいパスワードは「«human»」です",
        "パスワード：«human»",
        "APIキーは «opaque» です",
        "暗証番号は«pin»です",
        "アクセストークンは«opaque»",
    ),
    "ko": (
        "인증번호 [«pin»]",
        "비밀번호는 «human»입니다.",
        "서버의 새 비밀번호: «human»",
        "암호는 «strong» 이에요",
        "API 키는 «opaque»입니다",
        "PIN 번호는 «pin»입니다",
        "액세스 토큰: «opaque»",
    ),
    "pl": (
        "Hasło to «human».",
        "Nowe hasło do serwera: «human»",
        "hasło brzmi «human»",
        "Klucz API to «opaque».",
        "Kod PIN: «pin»",
        "Token dostępu to «opaque»",
    ),
    "tr": (
        "Yönetici parolası «worded» olarak değiştirildi",
        "Şifre: «human»",
        "Sunucunun yeni şifresi «strong».",
        "Parola «strong» olarak değişti",
        "API anahtarı: «opaque»",
        "PIN kodu: «pin»",
        "Erişim jetonu: «opaque»",
    ),
}
_SIZED = re.compile(r"(base|alnum|hex|upper)(\d+)$")
_ALPHABETS = {"base": ALNUM, "alnum": ALNUM, "hex": HEX, "upper": string.ascii_uppercase + "234567"}


def made_value(source: random.Random, name: str) -> str:
    if name.startswith("code"):
        return "-".join(_mixed(source, 5, string.ascii_lowercase + string.digits) for _ in range(2))
    if name in MAKERS:
        return MAKERS[name](source)
    sized = _SIZED.match(name)
    if sized and name not in ("human2", "half2", "row2"):
        length = int(sized[2])
        return (_mixed if length > 10 else _any)(source, length, _ALPHABETS[sized[1]])
    return MAKERS[name.rstrip("2")](source)


def _any(source: random.Random, length: int, alphabet: str) -> str:
    return "".join(source.choices(alphabet, k=length))


def filled(kind: str, language: str, template: str) -> Item:
    source = random.Random(f"{kind}{language}{template}")
    made: dict[str, str] = {}
    text = SLOT.sub(lambda slot: made.setdefault(slot[1], made_value(source, slot[1])), template)
    # Parts of an address that are no secret by themselves.
    values = [value for name, value in made.items() if name != "uuid" or "webhook" not in template]
    values = [
        value
        for value in values
        if len(value) > 3 and (not value.isdigit() or ("AA" not in template and "webhooks" not in template))
    ] or values
    if kind == "hashed":
        values = values[-1:]
    return Item(kind, language, text, tuple(values) + tuple(value[-_TAIL:] for value in values if len(value) >= _LONG))


def items() -> Iterator[Item]:
    for kind, templates in (*CODE.items(), *LINES.items()):
        yield from (filled(kind, "code", template) for template in templates)
    for language, templates in SENTENCES.items():
        yield from (filled("sentence", language, template) for template in templates)
