"""The table of shapes: addresses, headers, commands, calls and markup around a secret. `shapes` reads with it."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.redact.values import (
    is_card,
    is_chosen,
    is_chosen_in_prose,
    is_literal,
    is_opaque_literal,
    is_pair,
    is_password_literal,
    is_strange,
    is_word_given,
    is_worded,
)

_TELLING = "(?:passw|passphrase|secret|token|api_?-?key|pwd)"


class Shape(Struct, frozen=True):
    """One rule: where `word` stands (in small letters), `pattern` is tried from there; group 1 is the secret."""

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    behind: tuple[str, ...] = ()
    """One of these must stand on the same line within a few hundred characters before."""
    lines: bool = False
    """It may also stand on a line before."""


def _is_mixed(value: str) -> bool:
    """Chosen, and with more than one number at the end of a word."""
    return is_chosen(value) and value.lower() != value != value.upper() and sum(map(str.isdigit, value)) > 1


_QUOTE = r"""\\{0,3}["']?"""

SHAPES: tuple[Shape, ...] = (
    Shape(
        "webhook",
        ("hooks.slack.com/",),
        lazy_regex(r"[\w.]{1,100}/(?:services|workflows|triggers)/([A-Za-z0-9_/-]{20,200}+)", re.I),
    ),
    Shape("webhook", ("/api/webhooks/",), lazy_regex(r"/api/webhooks/\d{5,25}/([A-Za-z0-9_-]{20,200}+)", re.I)),
    Shape(
        "webhook", (".office.com/webhook",), lazy_regex(r"[\w.]{1,40}/webhook\w{0,3}/([A-Za-z0-9@/-]{40,300}+)", re.I)
    ),
    Shape(
        "webhook",
        ("/hooks/catch/", "/with/key/", ".make.com/"),
        lazy_regex(r"(?:/hooks/catch/\d{4,12}/|/with/key/|\.make\.com/)([A-Za-z0-9_-]{6,100}+)", re.I),
        lambda value: any(map(str.isdigit, value)),
    ),
    Shape(
        "authorization",
        ("authorization",),
        lazy_regex(
            rf"authorization{_QUOTE}[ \t]{{0,3}}[:=,][ \t]{{0,3}}{_QUOTE}"
            rf"(?:[A-Za-z][\w-]{{1,30}}[ \t]{{1,3}})?([A-Za-z0-9._~+/=:|-]{{6,4096}}+)",
            re.I,
        ),
        is_opaque_literal,
    ),
    Shape("authorization", ("geniekey ",), lazy_regex(r"geniekey ([0-9a-f-]{20,64}+)", re.I), is_opaque_literal),
    # A mail server is told the password; what asks for it is "Password:" in base64.
    Shape(
        "authorization", ("auth plain ",), lazy_regex(r"auth plain ([A-Za-z0-9+/=]{8,512}+)", re.I), is_opaque_literal
    ),
    Shape(
        "authorization",
        ("334 ugfzc3dvcmq6",),
        lazy_regex(r"334 ugfzc3dvcmq6\r?\n[A-Z: ]{0,4}([A-Za-z0-9+/=]{4,512}+)", re.I),
    ),
    Shape("digest", ('response="',), lazy_regex(r'response="([0-9a-f]{32,128})"', re.I)),
    Shape(
        "bearer", ("bearer",), lazy_regex(r"bearer,?[ \t]{1,3}([A-Za-z0-9._~+/=|-]{8,4096}+)", re.I), is_opaque_literal
    ),
    Shape("basic", ("basic ",), lazy_regex(r"basic[ ]{1,3}([A-Za-z0-9+/]{8,1024}+={0,2})", re.I), is_pair),
    # scheme://user:password@host: the last @ before a slash ends the password, which may hold one behind no port.
    Shape(
        "address",
        ("://",),
        lazy_regex(
            r"""://[^\s/:@'"<>`]{0,128}:([^\s/'"<>`]{1,8192}|(?!\d{1,5}/)[^\s'"<>`@]{1,256}|[A-Za-z0-9+/=]{64,8192})"""
            r"""@(?=[\w\[.$%{-])"""
        ),
        is_password_literal,
    ),
    # Forms and dumps: a name and, on a line below it or before it, its value.
    Shape(
        "form",
        ('name="',),
        lazy_regex(
            rf"""name="[\w.-]{{0,40}}{_TELLING}[\w.-]{{0,40}}"[^\n]{{0,80}}\r?\n(?:[\w-]{{1,40}}:[^\n]{{0,80}}\r?\n){{0,3}}"""
            r"""\r?\n([^\r\n]{4,256}+)""",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "form",
        ("value",),
        lazy_regex(
            r"""value["']?[ \t]{0,3}[:=][ \t]{0,3}["']?([^\s"',;{}<>]{4,256})["']?,?\s{0,40}"""
            rf"""["']?(?:name|key|id)["']?[ \t]{{0,3}}[:=][ \t]{{0,3}}["']?[\w.-]{{0,40}}{_TELLING}""",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "dump",
        ("string(",),
        lazy_regex(r"""string\(\d{1,6}\)[ ]"([^"\n]{3,256}+)\""""),
        is_literal,
        behind=tuple(f'{name}"]=>' for name in ("password", "passwd", "pass", "pwd", "secret", "token", "key")),
        lines=True,
    ),
    Shape(
        "text",
        ('= """', "= '''"),
        lazy_regex(r"""=[ ](?:\"{3}|'{3})[ \t]{0,4}\r?\n[ \t]{0,40}(\S{4,256}?)[ \t]{0,8}\r?\n?(?:\"{3}|'{3})"""),
        is_literal,
        behind=("password", "passwd", "passphrase", "secret", "token", "api_key"),
    ),
    Shape(
        "address",
        ("://",),
        lazy_regex(r"""://([A-Za-z0-9_.-]{16,256})(?::x-oauth-basic)?@(?=[\w\[.])"""),
        is_opaque_literal,
    ),
    Shape("address", (":thin:",), lazy_regex(r""":thin:[\w.]{1,64}/([^\s@'"]{2,128})@""", re.I), is_literal),
    Shape(
        "signature",
        tuple(
            "sig= signature= security-token= accountkey= sharedaccesskey= credential= ?key= &key= ?code= &code=".split()
        ),
        lazy_regex(r"[?&a-z-]{1,64}=([A-Za-z0-9%+/=_-]{16,8192}+)", re.I),
        is_opaque_literal,
    ),
    Shape("totp", ("secret=",), lazy_regex(r"secret=([A-Z2-7]{12,128}={0,6})(?![A-Za-z0-9])")),
    Shape("wifi", ("wifi:",), lazy_regex(r"wifi:(?:[TSHR]:[^;\n]{0,64};){0,4}P:([^;\n]{4,64});", re.I), is_literal),
    # host:port:database:user:password
    Shape(
        "password file",
        (":5432:", ":*:", ":5433:", ":6432:", ":3306:"),
        lazy_regex(r""":(?:\d{4}|\*):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:'"]{3,128}+)(?=['"]?(?:\s|$))"""),
        is_literal,
    ),
    Shape(
        "password hash",
        ("$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$7$", "$8$", "$9$", "$apr1$"),
        lazy_regex(r"\$(?:2[aby]\$\d\d|[156789y]|apr1)\$(?:rounds=\d{1,9}\$)?([A-Za-z0-9./$]{20,200}+)"),
    ),
    Shape(
        "password hash",
        ("$argon2", "$scrypt$", "$pbkdf2"),
        lazy_regex(r"\$[a-z0-9-]{5,16}\$([A-Za-z0-9+/$=,.-]{20,300}+)"),
    ),
    Shape(
        "password hash",
        ("$krb5",),
        lazy_regex(r"\$krb5[a-z]{2,6}\$\d\d\$(?:[\w.@*/$-]{1,120}?[:*]\$?)?([0-9a-f]{32}\$[0-9a-f]{32,8192}+)", re.I),
    ),
    # What Facebook and Kubernetes hand out has a form of its own.
    Shape(
        "app token",
        ("facebook", "fb_"),
        lazy_regex(r"\w{3,8}[^\n|]{0,60}?\d{13,17}\|([\w-]{27})(?![\w-])", re.I),
    ),
    Shape(
        "bootstrap token",
        ("bootstrap-token", "bootstrap_token", "bootstrap token", "kubeadm join"),
        lazy_regex(
            r"""(?:bootstrap[-_ ]token|kubeadm[ ]join[^\n]{0,120}--token)["']?[ :=]{1,4}["']?"""
            r"""([a-z0-9]{6}\.[a-z0-9]{16})(?![\w.-])""",
            re.I,
        ),
        lambda value: any(map(str.isdigit, value)),
    ),
    Shape(
        "call",
        ("login_with_api_key", "login_with_token"),
        lazy_regex(r"""\w{14,20}["']?,\s{0,20}["']params["']\s{0,4}:\s{0,4}\[\s{0,20}["']([^"'\s]{8,256}+)["']"""),
    ),
    Shape(
        "login",
        ("sonar.login", "sonarlogin", "reporter_id"),
        lazy_regex(r"""[a-z_.]{10,11}["']?[ =:,]{1,4}["']{0,2}([0-9a-f]{40,64}+)""", re.I),
        is_opaque_literal,
    ),
    Shape("header", ("jenkins-crumb",), lazy_regex(r"jenkins-crumb[:=][ ]?([0-9a-f]{32,64}+)", re.I)),
    Shape("password hash", ("{sha}", "{ssha}"), lazy_regex(r"\{s?sha\}([A-Za-z0-9+/]{20,64}={0,2})", re.I)),
    Shape(
        "password hash",
        ("pbkdf2_sha", "scrypt:"),
        lazy_regex(r"[a-z0-9_]{6,16}[$:]\d{4,8}[$:]([A-Za-z0-9+/=$:.]{20,300}+)"),
    ),
    Shape(
        "command",
        (" -u", " --user", " -a "),
        lazy_regex(r"""\s(?:-u|--user|-a)[ =]{0,2}["']?[^\s:"'$]{1,128}["']?:["']?([^\s"']{1,256})"""),
        is_literal,
        behind=("curl", "http", "wget"),
    ),
    # A key alone: a user without a password, or a password without a user.
    Shape(
        "command",
        (" -u", " --user"),
        lazy_regex(r"""\s(?:-u|--user)[ =]{0,2}["']?(?::([^\s"'$:]{6,256})|([^\s:"'$]{8,256}):(?=["'\s]))"""),
        is_chosen,
        behind=("curl",),
    ),
    Shape("command", ("sshpass -p",), lazy_regex(r"""sshpass -p\s{0,2}["']?([^\s"']{2,128}+)"""), is_literal),
    Shape(
        "command",
        (" -p",),
        lazy_regex(r"""\s-p["']?([^\s"'$-][^\s"']{2,128}+)"""),
        is_literal,
        behind=("mysql", "mariadb", "7z ", "rar "),
    ),
    Shape(
        "command",
        (" -p ", " -w ", " -a ", " -k ", " -x ", " -n ", " -pw "),
        lazy_regex(r"""\s-(?:pw|[pPwaAkKxXN])[ ]["']?([^\s"'$<{(-][^\s"']{3,128}+)"""),
        lambda value: is_chosen(value) or is_worded(value),
        behind=tuple(
            (
                "docker login|podman login|helm registry login|az login|redis-cli|sqlcmd|bcp |ldap"
                "|openssl|zip |snmp|plink|putty"
                "|pscp|psexec|winrs|ipmitool|impacket|kinit|oc login|cf login|influx|mongo|rdesktop|useradd|usermod"
                "|ssh-keygen|cqlsh|twine "
            ).split("|")
        ),
    ),
    # Where the flag can be nothing else, a plain word is a password too.
    Shape(
        "command",
        (" -p ", " -k "),
        lazy_regex(r"""\s-[pPk][ ]["']?([^\s"'$<{(-][^\s"']{2,128}+)"""),
        is_word_given,
        behind=(
            *("docker login", "podman login", "registry login", "az login", "oc login", "cf login", "twine upload"),
            *("mongo ", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport", "sqlcmd", "unzip"),
            *("openssl enc", "openssl aes", "psexec", "winrs "),
        ),
    ),
    Shape(
        "command",
        (" -u ",),
        lazy_regex(r"""\s-U[ ]{0,2}["']?[\w\\/.@-]{1,64}%([^\s"']{3,128}+)"""),
        is_literal,
        behind=("smbclient", "rpcclient", "smbget", "winexe", "wmic", "net ads"),
    ),
    Shape(
        "command",
        ("ssh ",),
        lazy_regex(
            r"""ssh [^\n()"']{0,80}\b[\w.-]{1,40}@[\w.-]{1,80}[ ]{0,2}(?:\(|[/,|][ ]|[-–—][ ])([^\s()"'`]{6,64}+)"""
        ),
        is_strange,
    ),
    Shape("command", ("pass:",), lazy_regex(r"pass:([^\s\"']{3,128}+)"), is_literal, behind=("openssl",)),
    Shape(
        "command",
        ("vault login ",),
        lazy_regex(r"vault login (?:-\S{1,40} ){0,3}(?:token=)?([A-Za-z0-9._-]{8,128}+)"),
        is_opaque_literal,
    ),
    Shape(
        "command",
        (" --body", " -b"),
        lazy_regex(r"""\s(?:--body|-b)[ =]?["']?([^\s"']{6,256}+)"""),
        is_opaque_literal,
        behind=("secret set",),
    ),
    Shape(
        "command",
        ("net use ",),
        lazy_regex(r"""net use [^\n]{1,40}?\\\\\S{1,80} (?:/user:\S{1,80} )?([^\s/"'*]{3,128}+)"""),
        is_literal,
    ),
    Shape("command", ("net user ",), lazy_regex(r"""net user [\w.-]{1,64} ([^\s/"'*]{3,128}+)""", re.I), is_chosen),
    Shape(
        "command",
        ("mc alias set ",),
        lazy_regex(r"""mc alias set \S{1,64} \S{1,200} \S{3,128} ["']?([^\s"'$]{8,256}+)"""),
        is_literal,
    ),
    Shape("command", ("community ",), lazy_regex(r"community (\S{4,64}+)"), is_chosen, behind=("snmp", "ro", "rw")),
    Shape(
        "command",
        ("sqlplus ", "sqlldr ", "expdp ", "impdp "),
        lazy_regex(r"""\w{5,8}[ ](?:-\w{1,8}[ ]){0,3}["']?[\w.]{1,64}/([^\s@"'/]{2,128})(?=[@"'\s])"""),
        is_literal,
    ),
    Shape(
        "command",
        ("--from-literal", "--secret-string"),
        lazy_regex(
            r"""--[a-z-]{12,13}[= ]["']?(?:[\w.-]{1,80}=|\{[^\n:]{1,80}:[ ]?\\?["'])?([^\s"'\\{}]{4,4096}+)""", re.I
        ),
        is_literal,
    ),
    Shape(
        "command",
        ("--value ", "--value="),
        lazy_regex(r"""--value[ =]["']?([^\s"']{4,4096}+)"""),
        is_chosen,
        behind=("put-parameter", "keyvault secret", "secret set", "secrets set"),
    ),
    Shape(
        "command",
        ("rclone obscure ", "vault kv put ", "wpa_passphrase ", "convertto-securestring ", "lftp -u ", "winexe -u "),
        lazy_regex(
            r"""(?:rclone[ ]obscure|vault[ ]kv[ ]put[ ]\S{1,80}[ ][\w.-]{1,64}=?|wpa_passphrase[ ]\S{1,64}"""
            r"""|convertto-securestring(?:[ ]-string)?|lftp[ ]-u[ ][\w.@-]{1,64},|winexe[ ]-U[ ][\w/.\\-]{1,64}%)"""
            r"""[ =]?["']?([^\s"'$]{4,128}+)""",
            re.I,
        ),
        is_chosen,
    ),
    Shape(
        "command",
        ("<<< ", "<<<", "-command"),
        lazy_regex(r"""(?:<<<[ ]?|-command[ =]["']?echo[ ])["']?(?:[\w.-]{1,64}:)?([^\s"'$]{4,256}+)"""),
        is_chosen,
        behind=("kinit", "passwd", "login", "sudo ", "cryptsetup", "gpg ", "restic", "borg", "secret", "password"),
    ),
    Shape("command", ("<(echo ",), lazy_regex(r"""<\(echo ["']?([^\s"')$]{4,128}+)"""), is_chosen),
    Shape(
        "command",
        ("assword",),
        lazy_regex(r"""assword[:?*\s"'};]{0,8}[\s{]{0,8}(?:exp_)?send[ ](?:--[ ])?"([^"\\\n$]{3,128}+)"""),
        is_literal,
    ),
    Shape(
        "call",
        ("login(", "credential(", "connect(", "connection(", "pdo("),
        lazy_regex(
            r"""(?:(?:connect|connection|pdo)\(\s{0,8}(?:["'][^"'\n]{0,80}["']|\$?\w{1,40})\s{0,8},\s{0,8}|(?:login|credential)\(\s{0,8})"""
            r"""["'][^"'\n]{1,80}["']\s{0,8},\s{0,8}["']([^"'\n\s]{4,128})["']""",
            re.I,
        ),
        is_chosen,
    ),
    # Others take a user and a password among other things.
    Shape(
        "call",
        (
            "ftp(",
            "ftps(",
            "ftp_tls(",
            "telnet(",
            "auth(",
            "authenticate(",
            "bind(",
            "bind_s(",
            "signin(",
            "sign_in(",
            "credentials(",
        ),
        lazy_regex(
            r"""[a-z_]{3,12}\(\s{0,8}(?:(?:["'][^"'\n]{0,80}["']|\$?\w{1,40})\s{0,8},\s{0,8})?"""
            r"""["'][^"'\n]{1,80}["']\s{0,8},\s{0,8}["']([^"'\n\s]{6,128})["']""",
            re.I,
        ),
        _is_mixed,
    ),
    # A user and a password that become a header.
    Shape(
        "call",
        ("btoa(", "b64encode(", "base64encode(", "encodetostring("),
        lazy_regex(r"""[a-z0-9]{4,14}\([ ]?b?["'][^"':\n]{1,64}:([^"'\s]{4,128})["']""", re.I),
        is_chosen,
    ),
    # Letter by letter, as Java and C take it.
    Shape(
        "letters",
        ("{'",),
        lazy_regex(r"""\{('[^'\n]'(?:,[ ]?'[^'\n]'){5,64}+)"""),
        behind=("pass", "pwd", "secret"),
    ),
    # The value of an entry among secrets.
    Shape(
        "entry",
        ("value",),
        lazy_regex(r"""value["']?[ \t]{0,3}[:=][ \t]{0,3}["']?([^\s"',;{}<>]{6,4096}+)""", re.I),
        is_strange,
        behind=(
            'secrets"',
            "secrets:",
            "secrets =",
            "secrets {",
            'credentials"',
            "credentials:",
            'passwords"',
            "passwords:",
        ),
        lines=True,
    ),
    # A user and a password: nothing else is given to these.
    Shape(
        "call",
        ("credential(", "directoryentry(", "passwordauthentication(", "usernamepasswordcredentials("),
        lazy_regex(
            r"""[a-z]{8,27}\((?:\s{0,20}["']\w{2,6}://[^"'\n]{0,120}["']\s{0,4},)?\s{0,20}(?:["'][^"'\n]{1,80}["']\s{0,4},\s{0,20}){1,2}"""
            r"""["']([^"'\n\s]{4,128})["']\s{0,20}[,)]""",
            re.I,
        ),
        is_password_literal,
    ),
    # What a browser is told to type: `fill('#password', '...')`, `get_by_label("Password").fill("...")`.
    Shape(
        "field",
        ("pass", "pwd", "otp", "secret", "token"),
        lazy_regex(
            r"""\w{2,24}[^\n"'`]{0,24}["'`][ \]})]{0,8}\.(?:fill|type|send_?keys|press_sequentially|set_?value)\([ ]?"""
            r"""["'`]([^"'`\n]{3,256})["'`][ ]?[,)]""",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "field",
        ("fill(", "type(", "fill_in(", "value("),
        lazy_regex(
            r"""\w{4,8}\([ ]?["'`][^\n"'`]{0,60}(?:pass|pwd|otp|secret|token)[^\n"'`]{0,24}["'`],[ ]?"""
            r"""["'`]([^"'`\n]{3,256})["'`]""",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "call",
        ("hmac.new(", "createhmac(", "fernet(", ")('", ')("'),
        lazy_regex(r"""(?:[a-z.]{6,12}\((?:["'][\w-]{1,16}["'],[ ]?)?|\)\()b?["']([^"'\n\s]{8,512})["']""", re.I),
        is_opaque_literal,
    ),
    # An account's id and, beside it, its key.
    Shape(
        "key of an id",
        ("akia", "asia"),
        lazy_regex(r"A[KS]IA[A-Z0-9]{16}[^\n]{0,60}?(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{38,44})(?![A-Za-z0-9/+=])"),
    ),
    Shape(
        "key file",
        ('"d"', '"k"', '"p"', '"q"', '"dp"', '"dq"', '"qi"'),
        lazy_regex(r'"\w{1,2}"\s{0,4}:\s{0,4}"([A-Za-z0-9_-]{20,4096}+)"'),
        is_opaque_literal,
        behind=('"kty"',),
        lines=True,
    ),
    Shape(
        "link",
        ("?t=", "&t=", "?token=", "?k="),
        lazy_regex(r"[?&]\w{1,5}=([A-Za-z0-9._~-]{16,2048}+)", re.I),
        is_opaque_literal,
        behind=("reset", "invit", "verif", "magic", "confirm", "login", "sign", "auth"),
    ),
    Shape(
        "seed",
        ("seed", "totp", "2fa", "mfa", "authenticator"),
        lazy_regex(r"[a-z0-9]{3,13}[\w :=-]{0,24}?[ :=]([A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15})(?![A-Za-z0-9])", re.I),
        lambda value: value.isupper() and any(map(str.isdigit, value)),
    ),
    Shape(
        "licence",
        ("license", "licence", "serial", "product key", "lizenz"),
        lazy_regex(r"[a-z ]{6,12}[\w ]{0,16}[:= ][ ]?((?:[A-Z0-9]{4,6}-){3,6}[A-Z0-9]{4,6})(?![A-Za-z0-9-])", re.I),
        lambda value: value.isupper() and any(map(str.isdigit, value)),
    ),
    Shape(
        "card",
        ("card", "visa", "karte", "tarjeta", "carte", "cartão"),
        lazy_regex(r"\w{4,7}[^\n\d]{0,40}(\d{4}(?:[ -]?\d{4}){2}[ -]?\d{2,4})(?!\d)", re.I),
        lambda value: is_card([int(digit) for digit in value if digit.isdigit()]),
    ),
    # A user and, beside it, the password.
    Shape(
        "login",
        ("login", "log in as", "creds", "credentials", "zugangsdaten", "identifiants", "credenciales", "credenziali"),
        lazy_regex(
            r"(?:log[ ]in[ ]as|\w{5,12})(?:[ ]?[:=]|[ ](?:are|is|sind|son|sono|sont|mit|als|with|as))?[ ]"
            r"[\w.@-]{2,64}[ ]?(?:[/:|]|and|und|et|with|mit|y|e)[ ]([^\s\"'`,;]{4,128})(?=[\s.,;]|$)",
            re.I,
        ),
        is_chosen_in_prose,
    ),
    Shape(
        "login",
        (
            *("log in", "logging in", "logged in", "sign in", "signing in", "signed in", "einloggen", "anmelden"),
            *("connecte", "inicia sesión", "entra ", "entre ", "accedi", "inloggen", "zaloguj", "войди", "зайди"),
        ),
        lazy_regex(
            r"(?:(?:log|sign)\w{0,4}[ ]in|inicia[ ]sesión|\w{5,10}[ -]{0,2}(?:toi|vous|się)?)"
            r"(?:[ ](?!(?:with|as|using|mit|als|avec|con|com|met|jako|как|под)[ ])[\w.-]{1,24}){0,4}"
            r"[ ](?:with|as|using|mit|als|avec|con|com|met|jako|как|под)[ ][\w.@-]{2,64}"
            r"[ ]?(?:[/:|]|and|und|et|with|mit|avec|con|com|y|e|en|i|и|с)[ ]([^\s\"'`,;]{4,128})(?=[\s.,;]|$)",
            re.I,
        ),
        is_chosen_in_prose,
    ),
    Shape(
        "command",
        ("username ",),
        lazy_regex(r"username \S{1,64} (?:privilege \d{1,2} )?(?:secret|password) (?:\d{1,2} )?(\S{4,256}+)"),
        is_chosen,
    ),
    # Calls that are given one.
    Shape(
        "call",
        ("jwt.sign(", "jwt.verify(", "jwt.encode(", "jwt.decode("),
        lazy_regex(r"""jwt\.\w{4,6}\((?:\{[^{}\n]{0,200}\}|[^,\n]{1,80}),\s{0,8}b?["']([^"'\n]{4,256}+)["']""", re.I),
        is_chosen,
    ),
    Shape(
        "call",
        (
            *("bcrypt.", "hashpw(", "password_hash(", "password_verify(", "check_password(", "make_password("),
            *("set_password(", "argon2.", "generate_password_hash("),
        ),
        lazy_regex(
            r"""[\w.]{4,40}\(\s{0,8}(?:["'][^"'\n]{1,60}["']\s{0,8},\s{0,8}){0,2}b?["']([^"'\n]{4,256}+)["']""", re.I
        ),
        is_chosen,
    ),
    Shape(
        "command",
        ("add-generic-password", "add-internet-password", "rclone config"),
        lazy_regex(r"""[\w -]{13,21}[^\n]{0,120}?[ ](?:-w|pass)[ =]["']?([^\s"']{4,256}+)"""),
        is_literal,
    ),
    Shape(
        "wifi",
        ("wifi", "wi-fi", "wlan"),
        lazy_regex(r"w(?:i-?fi|lan)[^\n.:;]{0,40}?[ ]key(?:[ ](?:is|was)|[ ]?[:=])[ ]{0,2}([^\s\"'`,;]{6,64}+)", re.I),
        is_chosen,
    ),
    Shape(
        "login",
        ("u: ", "user: "),
        lazy_regex(r"(?:u|user):[ ][\w.@-]{1,64}[ ,;/]{1,3}p(?:w|ass)?:[ ]([^\s\"'`,;]{4,128})", re.I),
        is_chosen,
    ),
    Shape(
        "login",
        ("user/", "username/", "login/"),
        lazy_regex(r"\w{4,8}/(?:pass\w{0,6}|pw|pwd)[ ]?[:=]?[ ]{1,2}[\w.@-]{1,64}[ ]?/[ ]?([^\s\"'`,;]{4,128})", re.I),
        is_chosen,
    ),
    # An address of mail and, below it, the password.
    Shape(
        "login",
        ("login", "password", "credential", "zugang"),
        lazy_regex(
            r"\w{5,10}[^\n]{0,80}\r?\n(?:[^\n@]{0,80}\r?\n){0,2}[ \t]{0,8}[\w.+-]{1,64}@[\w.-]{3,80}\s{0,4}\n"
            r"[ \t]{0,8}(\S{6,64}+)(?=\s{0,4}(?:\n|$))",
            re.I,
        ),
        is_strange,
    ),
    # The same as a list, whatever the user is called.
    Shape(
        "login",
        ("login", "credential", "user-pass", "zugangsdaten", "identifiants", "credenciales", "credenziali"),
        lazy_regex(
            r"[a-z-]{5,13}[^\n:]{0,40}:[ \t]{0,4}\r?\n[ \t]{0,8}(?:[-*•][ ])?[\w.@-]{2,64}[ \t]{0,4}\r?\n"
            r"[ \t]{0,8}(?:[-*•][ ])?([^\s:]{6,64}+)(?=\s{0,4}(?:\n|$))",
            re.I,
        ),
        _is_mixed,
    ),
    # A program asks, and this is what it is to be told.
    Shape(
        "login",
        (", type ", ", enter ", ", just type ", ", just enter "),
        lazy_regex(r",[ ](?:just[ ])?(?:type|enter)[ ][\"'`]?([^\s\"'`<>]{6,128}+)", re.I),
        _is_mixed,
        behind=("asks", "asked", "prompts", "prompted"),
    ),
    Shape(
        "wifi",
        ("network:", "ssid:", "wifi:", "wi-fi:", "wlan:", "netzwerk:"),
        lazy_regex(r"[\w-]{4,8}:[^\n]{0,60}\r?\n[ \t*-]{0,8}key[ ]?:[ ]{0,2}(\S{6,64}+)", re.I),
        is_chosen,
    ),
    # What is piped into a program that asks for a password.
    Shape(
        "command",
        ("echo ", "printf "),
        lazy_regex(
            r"""(?:echo|printf)(?:[ ]-[ne]{1,2})?[ ]["']?(?:%s(?:[^'"\n]{0,4}["'])?[ ]["']?)?"""
            r"""(?:[a-z_][\w-]{0,31}:)?([^\s"'|$]{4,65536}+)["']?"""
            r"""(?=[^|\n]{0,10}\|[^|\n]{0,80}(?:-stdin|sudo[ ]-S|passwd|gpg[ ]|kinit|wg[ ]|secrets?[ ]create"""
            r"""|login|cryptsetup|base64[ ]-{1,2}[dD])"""
            r"""|[ ]?>{1,2}[ ]?\S{0,80}(?:pass|secret|token|key|cred))"""
        ),
        is_literal,
    ),
    Shape(
        "login",
        ("password ",),
        lazy_regex(r"password\s{1,4}(\S{1,256}+)"),
        is_word_given,
        behind=("login ", "machine ", "wifi connect "),
    ),
    Shape(
        "sql",
        ("identified ", "with password", "encrypted password", "set password"),
        lazy_regex(
            r"""[a-z]{1,64}\s{1,64}(?:with\s{1,4}\w{1,40}\s{1,4})?(?:by|password)(?:\s{1,4}for\s{1,4}[\w'"@%.]{1,64})?\s{0,4}=?\s{0,8}(?:password\()?(?:'([^'\n]{1,256})'|"([^"\n]{1,256})")""",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "sql",
        ("identified by ",),
        lazy_regex(r"""identified\s{1,8}by\s{1,8}([^\s'";,()]{4,128})(?=[\s;]|$)""", re.I),
        is_chosen,
    ),
    Shape("sql", ("password '",), lazy_regex(r"password '([^'\n]{1,256})'", re.I), is_chosen),
    Shape(
        "command",
        (" -u",),
        lazy_regex(r"\s-U[ ]?[\w\\]{1,64}%(\S{3,128}+)", re.I),
        is_literal,
        behind=("smb", "rpcclient"),
    ),
    Shape("command", (" /p:",), lazy_regex(r" /p:(\S{3,128}+)", re.I), is_literal, behind=("freerdp", "mstsc", "net ")),
    Shape(
        "command",
        (" /rp ", " /pass:", " /pass "),
        lazy_regex(r""" /(?:rp|pass)[ :]["']?([^\s"'%$/]{3,128}+)""", re.I),
        is_literal,
        behind=("schtasks", "cmdkey", "psexec", "runas", "winrs", "net "),
    ),
    Shape(
        "call",
        ("keystore", "truststore", "keyprotection(", "keymanager", "pbekeyspec("),
        lazy_regex(r"""\w{8,20}[.(][^\n"]{0,80}"([^"\n]{4,128})"\.tochararray\(\)""", re.I),
        is_password_literal,
    ),
    Shape(
        "command",
        ("htpasswd -",),
        lazy_regex(
            r"htpasswd (?=(?:-\S{1,8} ){0,4}-\w{0,6}b)(?:-\S{1,8} ){1,5}+\S{1,80} \S{1,64} [\"']?([^\s\"']{3,128}+)"
        ),
        is_literal,
    ),
    Shape(
        "command",
        (" login ", " unseal ", "authtoken ", "-token.pypi ", "auth init -"),
        lazy_regex(
            r"(?: login| unseal|authtoken|-token\.pypi|auth init) (?:--?[\w-]{1,20}[ =])?([A-Za-z0-9_+/=.-]{20,256}+)",
            re.I,
        ),
        is_opaque_literal,
    ),
    Shape(
        "command",
        ("rabbitmqctl ", "http-basic."),
        lazy_regex(
            r"(?:rabbitmqctl (?:add_user|change_password|authenticate_user)|http-basic\.\S{1,64})"
            r""" \S{1,64} ["']?([^\s"']{3,128}+)"""
        ),
        is_literal,
    ),
    Shape("command", ("auth ",), lazy_regex(r"(?-i:AUTH) (?:[\w-]{1,32} )?(\S{6,128}+)"), is_strange),
    Shape("call", ("secretkeyspec(",), lazy_regex(r"""secretkeyspec\(["']([^"'\n]{8,128}+)["']""", re.I), is_literal),
    Shape(
        "cookie",
        (" -b ",),
        lazy_regex(r""" -b ["']?[\w.-]{1,64}=([^;\s"']{8,1024}+)"""),
        is_opaque_literal,
        behind=("curl ",),
    ),
    Shape(
        "command",
        ("secret ", "password "),
        lazy_regex(r"(?:secret|password) \d (\S{4,128}+)", re.I),
        is_literal,
        behind=("username ", "enable ", "neighbor ", "ppp ", "chap ", "ike"),
    ),
    Shape(
        "markup",
        tuple("password> passwd> passphrase> secret> apikey> api-key> token> pwd> pass> privatekey>".split()),
        lazy_regex(
            r"(?<![\s<])[a-z-]{1,64}>\s{0,40}([^<>\s]{1,65536}+)\s{0,40}</|(?<=<)[a-z-]{1,64}>\s{0,40}([^<>\s]{1,65536}+)\s{0,40}</",
            re.I,
        ),
        is_literal,
    ),
    Shape(
        "pair",
        ("auth",),
        lazy_regex(
            r"""auth\w{0,12}\s{0,2}[=(]\s{0,2}\(?\s{0,2}["'][^"'\n]{1,64}["']\s{0,2},\s{0,2}["']([^"'\n\s]{4,128})["']""",
            re.I,
        ),
        is_chosen,
    ),
    Shape(
        "key file",
        ("private-lines:",),
        lazy_regex(r"private-lines:[ ]\d{1,4}\s{1,44}((?:[A-Za-z0-9+/=]{4,80}+(?:\s{1,44}|$)){1,100}+)", re.I),
    ),
    Shape("key file", ("private-mac:",), lazy_regex(r"private-mac:[ ]([0-9a-f]{40,64})", re.I)),
    Shape(
        "words",
        ("phrase", "mnemonic"),
        lazy_regex(
            r"(?:phrase|mnemonic)[\w\"'*]{0,6}[ \t]{0,4}(?:is|=|:)?[ \t:=]{0,4}[\s\"'`>]{0,8}"
            r"((?:[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})"
        ),
    ),
    Shape(
        "words",
        ("1. ", "1) "),
        lazy_regex(r"1[.)][ ]([a-z]{3,8}(?:[\s,;]{1,3}\d{1,2}[.)][ ][a-z]{3,8}){11,23})(?![a-z])"),
        behind=("words", "phrase", "mnemonic", "seed", "wallet", "recovery"),
        lines=True,
    ),
)
