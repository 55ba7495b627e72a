"""The words that announce a secret: names in code and settings, and what people call it in their languages."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

from leporello.lazy_regex import lazy_regex
from leporello.text_features.rare import RarePattern


class Strength(IntEnum):
    """How much a value must look like a secret to be taken for one."""

    PIN = 0
    """`otp`, `pin`, `recovery_code`: only what looks like a code."""
    TOKEN = 1
    """`token`, `secret`, `auth`: honest words of code. Only an opaque value counts."""
    KEY = 2
    """`api_key`, `client_secret`, `accessToken`: any literal that is not made of words."""
    PASSWORD = 3
    """`password` and its kin: any literal."""


def _after(words: str, blank: str = "[ ]") -> str:
    """A pattern for the place behind one of these words."""
    return "(?:" + "|".join(f"(?<={word}{blank})" for word in words.split()) + ")"


# How people call it, one line per language: en, de, fr, es, pt, it, nl, ru, pl, tr, zh, ja, ko.
PASSWORDS = (
    "password|passwd|passphrase|pass phrase|passcode|pass|pwd|pw|credentials|creds"
    "|passwort|kennwort|zugangsdaten|passphrase"
    r"|mot de passe|mdp|identifiants|code(?=[ ](?:du[ ]|de[ ]la[ ])?(?:wi-?fi|box)\b)"
    "|contraseña|contrasena|credenciales"
    "|senha|palavra-passe|palavra passe|credenciais"
    "|parola d'ordine|parola d’ordine|parola chiave|credenziali"
    "|wachtwoord|lösenord(?:et)?|passord(?:et)?|adgangskoden?|salasana|heslo|jelszó|geslo|lozinka|парола"
    "|mật khẩu|kata sandi|κωδικός(?: πρόσβασης)?|كلمة (?:المرور|السر)|رمز عبور|סיסמה|הסיסמה|पासवर्ड|รหัสผ่าน|"
    + _after("wifi wi-fi wlan network wpa wpa2 wpa3")
    + "key"
    r"|(?:clave|chave|chiave|clé)"
    r"(?=[ ]d\w{1,3}[ ](?:la[ ])?(?:wi-?fi|wlan|red|rede|rete|box|usu[aá]rio|utente|correo|acceso))"
    r"|парол\w{1,3}"
    r"|hasł\w{1,3}|haslo"
    r"|şifre\w{0,8}|parola\w{0,8}"
    "|密码|密碼|口令|パスワード|パスフレーズ|비밀번호|암호|패스워드|비번"
)
KEYS = (
    _after(
        "api access secret license encryption signing master account service private unseal deploy wif openai anthropic"
        " mistral groq cohere gemini openrouter deepseek stripe sendgrid mailgun twilio datadog azure aws",
        "[ -]",
    )
    + r"key(?:[ ]\d{1,2})?|(?:api|access|secret|auth|private)keys?(?=[ ]\w)|token|secret|jwt|pat|"
    + _after("totp otp 2fa mfa authenticator", "[ -]")
    + "seed|"
    + _after("vapid wireguard wg ed25519 x25519 curve25519", "[ -]")
    + "private"
    "|(?:api-|geheim)?schlüssel|zugangstoken|zugriffstoken|geheimnis"
    "|clé(?: secrète)?(?: d['’]?api| api)?"
    "|clave(?: de api| api| secreta)?|llave(?: de api)?|secreto"
    "|chave(?: de api| da api| api| secreta)?|segredo"
    "|chiave(?: api| segreta)?|segreto"
    "|ключ|токен|секрет"
    "|klucz(?: api)?|sekret"
    r"|anahtar\w{0,6}|jeton\w{0,6}"
    "|密钥|密鑰|令牌|秘钥|キー|トークン|シークレット|鍵|키|토큰|시크릿"
)
PINS = (
    r"pin(?:[ -](?:code|number|nummer|kod\w{0,4}|numara\w{0,4}|numer|コード|番号|코드|번호|码))?"
    "|pin码|pinコード|pin번호|puk|otp|cvc|cvv|2fa|einmal(?:passwort|kennwort)|one-time pass(?:word|code)|"
    + _after(
        "security verification door gate garage lobby access entry alarm safe sms 2fa auth login"
        " one-time backup recovery unlock your"
    )
    + "codes?|combination(?=[ ](?:of|to|for)[ ](?:the|my|our|his|her|their)[ ]"
    "(?:[a-z]{1,12}[ ])?(?:safe|lock|padlock|vault|door))|" + _after("safe lock padlock vault locker") + "combination"
    r"|(?:sicherheits|bestätigungs|zugangs|tür|einmal|wiederherstellungs)codes?"
    r"|digicode|codes?[ ](?:pin|secrets?|d['’](?:entrée|accès)"
    r"|de[ ](?:la[ ]porte|déverrouillage|sécurité|vérification|secours))"
    r"|códigos?[ ](?:pin|secreto|de[ ](?:seguridad|verificación|acceso|segurança|verificação|acesso|recuperación))"
    r"|codic[ei][ ](?:pin|segreto|di[ ](?:sicurezza|verifica|accesso))"
    r"|пин(?:[ -]?код)?(?:[ ](?:карты|телефона|двери|сейфа))?|(?<=ваш[ ])код"
    r"|код[ ](?:доступа|подтверждения|безопасности)"
    r"|kod[ ](?:pin|dostępu|weryfikacyjny|bezpieczeństwa)|güvenlik[ ]kodu|doğrulama[ ]kodu"
    r"|暗証番号|验证码|驗證碼|認証コード|確認コード|인증[ ]?(?:번호|코드)"
)
TO = frozenset("to auf en a para in na на naar till til".split())
CHANGED = lazy_regex(
    r"(?:re|zurück)?(?:chang|rotat|set$|updat|geänder|gesetzt|umgestell|cambi|modific|modifié|actualiz|alter|mud(?:a|ou)"
    r"|troca|atualiza|redefini|imposta|aggiorna|réinitialis|измен|смен|обновл|установл|zmienion|ustawion|gewijzig"
    r"|verander|ändra|bytt|endre|skift|změn|nastav)",
    re.IGNORECASE,
)
"""What says that it was changed: what it was changed to stands behind `TO`."""
CHANGES = lazy_regex(
    r"\b(?:chang|rotat|reset|set |updat|geänder|änder|setz|gesetz|cambi|mis|pus|mud|alter|troqu|impost|помен|измен"
    r"|смени|zmien|ustaw|verander|wijzig|ändr|byt|skift|endr)[\w ]{0,24}$",
    re.IGNORECASE,
)
"""Behind what is told to be changed, `TO` stands before the value; in some languages it says much else."""
STEMS = frozenset(
    "pass|pwd|pw|creds|credentials|kennwort|zugangs|mdp|identifiants|contrase|credenciales|senha|palavra|credenciais|parola|credenziali"
    "|wachtwoord|haslo|key|token|secret|jwt|geheim|zugriff|jeton|clave|llave|chave|chiave|segret|segredo|sekret|klucz|anahtar|pin|puk|otp|cvc|cvv|2fa|seed|private|one-time|apikey|accesskey|authkey"
    "|pat |pat:|pat=|code|combination|sicherheits|einmal|wiederherstellungs|codic|kod |mot de passe"
    "|lösenord|парол|hasł|şifre|密|口令|パス|暗証|비밀|비번|암호|패스|schlüssel|api-schlüssel|clé|ключ|токен|секрет|令牌|秘钥|キー|トークン"
    "|シークレット|鍵|키|토큰|시크릿|códig|пин|код"
    "|passord|adgangskode|salasana|heslo|jelszó|geslo|lozinka|mật khẩu|kata sandi|κωδικός"
    "|كلمة|رمز عبور|סיסמה|הסיסמה|पासवर्ड|รหัสผ่าน"
    "|bestätigungs|tür|güvenlik|doğrulama|验证码|驗證碼|認証|確認|인증".split("|")
)
"""What people call it begins with one of these."""

HINTS = frozenset(
    "pass pwd psw -pw _pw secret token key cred auth psk _pat salt senha contrasen haslo parola sifre mdp kennwort"
    " wachtwoord dsn bindpw rootpw otp pin puk cvv cvc 2fa mfa _code -code mnemonic 密码 密碼 口令 密钥 密鑰"
    " пароль ключ токен パスワード キー トークン 비밀번호 토큰 hasło şifre contraseña clé".split()
)
"""One of these stands in every telling name."""

_ENDING = (
    r"(?:[_\-.]?(?:\d{1,3}|old|new|prod|production|staging|stage|dev|test|live|value|plain|raw|b64|base64|default|admin"
    r"|root|data|enc|stdin|base|primary|secondary|backup|main|next|previous|current|(?<=_)[ab]))?"
)
_PASSWORD = lazy_regex(
    rf"(?:passw(?:or)?d|passwort|pass[_-]?phrase|passcode|pwd|psw|[_-]pw|(?<=.)[_\-.]pass|^pass"
    r"|(?:pg|db|ssh|store|key|require|user|admin|root|smtp|mysql|mail|ftp)pass|(?:bind|root)pw"
    r"|kennwort|wachtwoord|senha|contrase[nñ]a|has[lł]o|parola|[sş]ifre|^mdp|_mdp|(?:^|[_.-])psk"
    rf"|密码|密碼|口令|пароль|パスワード|비밀번호){_ENDING}s?$"
)
_PIN = lazy_regex(
    r"(?:(?:^|[_.-])(?:[th]?otp|pin|puk|2fa|mfa|cvv2?|cvc2?)|(?:mfa|2fa|otp|totp|pin|sms|auth|login|security|verification|confirmation|recovery"
    r"|backup|one[_-]?time|unlock|access)[_-]?codes?|(?:otp|pin|mfa|2fa)[_-]?(?:value|number|token))$"
)
_CAMEL_PASS = lazy_regex(r"[a-z]Pass$")
_CAPITAL_KEY = lazy_regex(r"[a-z]KEY$")
_KEY = lazy_regex(
    r"(?:(?:api|access|account|secret|signing|encryption|master|shared|sharedaccess|storage|subscription|webhook|hmac|jwt|deploy"
    r"|facebook|twitter|google|mapbox|algolia|datadog|sendgrid|mailgun|twilio|postmark|newrelic|sentry|cloudflare|heroku|azure|aws"
    r"|admin|service|license|private|auth|client|consumer|application|app|stripe|openai|anthropic|preshared|unseal|ssh|tls|logged_in"
    r"|nonce|aes|cipher|session|cookie|crypt|host|sas|functions)[_\-.]?(?:secret[_\-.]?)?(?:access[_\-.]?)?key"
    r"|(?:access|auth|refresh|api|bot|session|bearer|id|oauth|personal|private|deploy|app|service|client|security|login|root|csrf|xsrf"
    r"|registration|registry|user|github|gitlab|gh|slack|npm|hf|vault|discord|telegram)[_\-.]?(?:api[_\-.]?)?token"
    r"|(?:client|app|shared|consumer|webhook|oauth|jwt|session|cookie|signing|api|totp|otp|nextauth|auth)[_\-.]?secret"
    r"|secret[_\-.]?(?:string|binary|text)"
    r"|(?:^|[_.-])pat|(?:[th]?otp|mfa|2fa|wallet)[_\-.]?(?:seed|mnemonic)|(?:auth|nonce|logged_in|secret|password)[_\-.]?salt|masterauth|(?:^|[_.])dsn"
    rf"|密钥|密鑰){_ENDING}s?$"
)
_TOKEN = lazy_regex(
    rf"(?:secret|token|creds?|credentials?|[_.-]auth|^auth|[_-]key|^key|ключ|токен|キー|トークン|토큰|clé){_ENDING}$"
)
_NO_KEY = lazy_regex(
    r"(?:public|primary|foreign|partition|sort|cache|idempotency|dedupe|hash|routing|range|translation|i18n|object|s3|row|group|"
    r"lock|unique|composite|surrogate|shard)[_\-.]?key\w{0,20}$|restore-keys$|(?:next|page|continuation|cursor|sync|pagination|continue)[_\-.]?token$"
)


_TELLING = RarePattern(lazy_regex("|".join(sorted(map(re.escape, (HINTS - {"_pat"}) | {"pat"})))))
"""Stands in every name that one of the patterns above matches: most names are passed over without asking them."""
_LONGEST = 60


@lru_cache(4096)
def strength_of(name: str) -> Strength | None:
    """How surely a name announces a secret; None when it does not."""
    # What tells stands at the end, and none of the patterns is that long: a whole line of code is no name.
    name = name[-_LONGEST:]
    lowered = name.lower()
    if not _TELLING.may_match(lowered):
        return None
    if _PASSWORD.search(lowered) or _CAMEL_PASS.search(name):
        return Strength.PASSWORD
    if _PIN.search(lowered):
        return Strength.PIN
    if _NO_KEY.search(lowered):
        return None
    if _KEY.search(lowered):
        return Strength.KEY
    return Strength.TOKEN if _TOKEN.search(lowered) or _CAPITAL_KEY.search(name) else None


def is_shell_name(name: str) -> bool:
    """`DB_PASSWORD`: capitals throughout, as environment variables are written."""
    return name.isupper() and len(name) > 2
