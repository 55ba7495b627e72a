"""Shapes of texts around a secret: addresses, headers, forms, logins, markup. `shapes` reads with them.

Those of commands and code stand in `code_shapes`.
"""

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
    is_mixed,
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
    named: re.Pattern[str] | None = None
    """This must match there, too, where a word of `behind` may be part of another one."""


_QUOTE = r"""\\{0,3}["']?"""

TEXT_SHAPES: tuple[Shape, ...] = (
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
    # A user and a password with nothing but a sign between them.
    Shape(
        "login",
        ("log in", "login", "logging in", "sign in", "signing in"),
        lazy_regex(
            r"(?:log|sign)\w{0,4}[ ]?in\b[^\n.;]{0,30}?[ ](?:with|as|using)[ ]"
            r"(?!google/|github/|gitlab/|apple/|sso/)[\w.@-]{2,64}[/:|]([^\s\"'`,;/]{6,128})"
            r"(?=[\s.,;]|$)",
            re.I,
        ),
        lambda value: is_mixed(value) or is_strange(value) or is_worded(value),
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
        is_mixed,
    ),
    # A program asks, and this is what it is to be told.
    Shape(
        "login",
        (", type ", ", enter ", ", just type ", ", just enter "),
        lazy_regex(r",[ ](?:just[ ])?(?:type|enter)[ ][\"'`]?([^\s\"'`<>]{6,128}+)", re.I),
        is_mixed,
        behind=("asks", "asked", "prompts", "prompted"),
    ),
    Shape(
        "wifi",
        ("network:", "ssid:", "wifi:", "wi-fi:", "wlan:", "netzwerk:"),
        lazy_regex(r"[\w-]{4,8}:[^\n]{0,60}\r?\n[ \t*-]{0,8}key[ ]?:[ ]{0,2}(\S{6,64}+)", re.I),
        is_chosen,
    ),
    # A file of logins, and a network that is joined. "A login with password hashing" is neither.
    Shape(
        "login",
        ("machine ",),
        lazy_regex(r"machine\s{1,4}\S{1,128}\s{1,8}(?:login\s{1,4}\S{1,128}\s{1,8})?password\s{1,4}(\S{1,256}+)"),
        is_word_given,
    ),
    Shape(
        "login",
        ("login ",),
        lazy_regex(
            r"login\s{1,4}(?!(?:with|using|via|and|or|by|the|an?|your|my|our|to|is|form|page|route)\b)\S{1,128}"
            r"\s{1,8}password\s{1,4}(\S{1,256}+)"
        ),
        is_chosen,
    ),
    Shape(
        "login",
        ("wifi connect ",),
        lazy_regex(r"wifi connect [^\n]{1,80}?[ ]password[ ]{1,4}(\S{1,256}+)"),
        is_word_given,
    ),
    Shape(
        "cookie",
        (" -b ",),
        lazy_regex(r""" -b ["']?[\w.-]{1,64}=([^;\s"']{8,1024}+)"""),
        is_opaque_literal,
        behind=("curl ",),
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
