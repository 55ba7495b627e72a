"""Shapes of commands and code around a secret: flags, calls, fields that are filled, statements of a database."""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex
from leporello.redact.shape_table import Shape
from leporello.redact.spoken_values import is_typed
from leporello.redact.values import (
    is_chosen,
    is_literal,
    is_mixed,
    is_opaque_literal,
    is_password_literal,
    is_strange,
    is_word_given,
    is_worded,
)

_NO_PASS_BEFORE = "".join(
    rf"(?<!(?<![a-z]){word})(?<!{word.title()})(?<!(?<![A-Z]){word.upper()})"
    for word in ("by", "com", "encom", "over", "sur", "tres", "under")
)
_PASSWORD_NAME = lazy_regex(
    r"(?i:pwd|secret(?!ary|ari[ae]|ion|ive))"
    rf"|{_NO_PASS_BEFORE}(?i:pass(?!ing|enger|age|ion|ive|able|port|thr|(?:ed|es|over)(?![a-z])))"
)
"""`userpass`, `MYPASS`, but not `compass`, `bypass` or `passenger`."""

_SQL_PASSWORD_TEXT = (
    r"""[a-z]{1,64}\s{1,64}(?:with\s{1,4}\w{1,40}\s{1,4})?(?:by|password)(?:\s{1,4}for\s{1,4}[\w'"@%.]{1,64})?"""
    r"""\s{0,4}=?\s{0,8}(?:password\()?(?:'([^'\n]{1,256})'|"([^"\n]{1,256})")"""
)
_SQL_PASSWORD = lazy_regex(_SQL_PASSWORD_TEXT, re.I)
_SQL_VERBS = ("create", "alter", "grant", "connect", "set")
_SQL_USER = lazy_regex(
    r"""(?:(?:create|alter)(?:\s{1,8}or\s{1,8}replace)?\s{1,8}(?:user|role)(?:\s{1,8}if\s{1,8}(?:not\s{1,8})?exists)?"""
    r"""|set\s{1,8}role|grant\b[^;]{1,300}?\bto|connect\s{1,8}to|(?:create|alter)\s{1,8}user\b[^;]{1,300},)\s{1,8}"""
    r"""(?:"[^"\n;]{1,80}"|'[^'\n;]{1,80}'|`[^`\n;]{1,80}`|\{\{[^{}\n;]{1,80}\}\})?[^\s;]{0,128}"""
    r"""(?:\s{1,4}[+.&|]{1,2}\s{1,4}[^\s;]{1,80}){0,4}"""
    r"""(?:\s{1,8}(?:(?:default|temporary)\s{1,4}(?:tablespace|role)|quota\s{1,4}\w{1,12}\s{1,4}on|on\s{1,4}cluster|profile\s{1,4}\w"""
    r"""|account\s{1,4}(?:un)?lock|password\s{1,4}expire|container\s{0,4}=|--)[^;]{0,200})?"""
    r"""\s{1,8}$""",
    re.I,
)
"""A user in a statement of SQL, right before "identified"; clauses may stand between."""

CODE_SHAPES: tuple[Shape, ...] = (
    Shape(
        "call",
        ("login_with_api_key", "login_with_token"),
        lazy_regex(r"""\w{14,20}["']?,\s{0,20}["']params["']\s{0,4}:\s{0,4}\[\s{0,20}["']([^"'\s]{8,256}+)["']"""),
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
                "|ssh-keygen|cqlsh|twine |mosquitto|ncftp"
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
        ("login(", "credential(", "credentials(", "credentials::new(", "connect(", "connection(", "pdo("),
        lazy_regex(
            r"""(?:(?:connect|connection|pdo)\(\s{0,8}(?:["'][^"'\n]{0,80}["']|\$?\w{1,40})\s{0,8},\s{0,8}|(?:login|credentials?(?:::new)?)\(\s{0,8})"""
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
        lambda value: is_mixed(value) or is_strange(value),
    ),
    Shape(
        "call",
        ("url.create(",),
        lazy_regex(
            r"""url\.create\(\s{0,20}["'][^"'\n]{1,40}["']\s{0,4},\s{0,20}["'][^"'\n]{1,80}["']\s{0,4},\s{0,20}["']([^"'\n]{3,128})["']""",
            re.I,
        ),
        is_password_literal,
    ),
    # Keys that two ends share: of IPsec, of a network's logins, of a proxy.
    Shape(
        "command",
        (': psk "', ': eap "', ': xauth "', ": psk '"),
        lazy_regex(r""":[ ][a-z]{3,5}[ ]["']([^"'\n]{4,128}+)["']""", re.I),
        is_literal,
    ),
    Shape(
        "command",
        ("radius-server ", "tacacs-server "),
        lazy_regex(r"[a-z]{6}-server [^\n]{0,80}?\bkey (?:\d )?(\S{4,128}+)", re.I),
        lambda value: is_chosen(value) or is_opaque_literal(value),
    ),
    Shape(
        "command",
        ("enable secret ", "enable password "),
        lazy_regex(r"enable (?:secret|password) (?:\d )?(?!level\d)(\S{4,128}+)(?=[ \t]{0,8}(?:\r?\n|$))", re.I),
        is_typed,
    ),
    Shape(
        "command",
        ("socks5 ", "socks4 "),
        lazy_regex(
            r"socks[45][ \t]{1,4}[\w.:-]{3,80}[ \t]{1,4}\d{2,5}[ \t]{1,4}"
            r"(?!timeout\b|retry|retries)\S{1,64}[ \t]{1,4}(\S{3,128}+)",
            re.I,
        ),
        is_chosen,
    ),
    # What joins a wireless network or opens one.
    Shape(
        "wifi",
        ("wifi.begin(", "softap(", "wifimulti.addap("),
        lazy_regex(r"""[a-z.]{7,16}\(\s{0,8}["'][^"'\n]{1,64}["']\s{0,8},\s{0,8}["']([^"'\n]{4,64})["']""", re.I),
        is_password_literal,
    ),
    Shape(
        "sql",
        ("sp_addlogin ", "sp_password ", "sp_addlinkedsrvlogin "),
        lazy_regex(r"""sp_\w{8,20}[ ][^\n]{0,120}?,\s{0,4}(?:@\w{1,20}\s{0,2}=\s{0,2})?N?'([^'\n]{4,128})'""", re.I),
        is_password_literal,
    ),
    # What Go connects with has no scheme.
    Shape(
        "address",
        ("sql.open(", "sqlx.", "mysql.open("),
        lazy_regex(r"""[a-z.(]{5,11}[^\n@]{0,64}?["'`][\w.-]{1,64}:([^\s"'`]{1,128})@\w{0,4}\(""", re.I),
        is_password_literal,
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
        named=_PASSWORD_NAME,
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
            r"""["'`]([^"'`\n{]{3,256}|[^"'`\n]{3,256})(?:\{\w{2,12}\})?["'`][ ]?[,)]""",
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
    Shape("sql", ("with password", "encrypted password", "set password"), _SQL_PASSWORD, is_literal),
    # People say "identified by", too: in a statement a user stands before it, or it is written in capitals.
    Shape("sql", ("identified ",), _SQL_PASSWORD, is_literal, behind=_SQL_VERBS, lines=True, named=_SQL_USER),
    Shape("sql", ("identified ",), lazy_regex(rf"(?=(?-i:IDENTIFIED)){_SQL_PASSWORD_TEXT}", re.I), is_literal),
    Shape("sql", ("identified ",), _SQL_PASSWORD, is_strange),
    Shape(
        "sql",
        ("identified by ",),
        lazy_regex(
            r"""identified\s{1,8}by\s{1,8}([^\s'";,()]{4,128})(?=[ ]{0,4}(?:[;,"'`\\\r\n]|$)"""
            r"""|\s{1,8}(?:using|default|temporary|quota|profile|account|password|replace|container|with|require)\b)""",
            re.I,
        ),
        is_chosen,
        behind=_SQL_VERBS,
        lines=True,
        named=_SQL_USER,
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
        "command",
        ("secret ", "password "),
        lazy_regex(r"(?:secret|password) \d (\S{4,128}+)", re.I),
        is_literal,
        behind=("username ", "enable ", "neighbor ", "ppp ", "chap ", "ike"),
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
)
