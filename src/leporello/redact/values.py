"""Is this value a secret, or only a word, a variable, a type, a template? Pure functions on short strings."""

from __future__ import annotations

import base64
import re
from itertools import pairwise

from leporello.lazy_regex import lazy_regex
from leporello.redact.spans import PLACEHOLDER

# Values that stand for "something goes here": shell and template variables, angle brackets, stars, dots.
_REFERENCE = lazy_regex(
    r"""^(?:
      \$.* | ![a-z]+$ | \#[a-z][\w-]*$ | \#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$
    | (?:file|vault|env|op|ssm|arn|ref|secretref|keyvault|kms|sops)[:+].*
    | %\w+%$ | %[a-z]$ | \{.*\}$ | <.*>?$ | @\w+@$
    | [*.•x#_-]{3,}$ | \?+$
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_TEMPLATE_PART = lazy_regex(r"\$\{|\$\(|\{\{|%\(|\{\w*\}|\*\*\*|<[a-z][\w -]*>|\.\.\.|…", re.IGNORECASE)
_FILLER = lazy_regex(
    r"^(?:your|my|the|some|insert|enter|replace|put|fake|dummy|mock|placeholder|example|sample|test|change)"
    r"(?:[-_ ].*|)$"
    r"|placeholder|redacted|change[-_]?me|(?:^|[-_])your[-_]|1234567890|^(?:todo|tbd|foo|bar|baz|foobar|abc123)$",
    re.IGNORECASE,
)
_INSIDE_FILLER = lazy_regex(r"placeholder|redacted|change[-_]?me|your[-_]|x{6}|0{8}|1234567890ab", re.IGNORECASE)
_CODE = lazy_regex(
    r"""^(?:
      [A-Za-z_$][\w$]*(?:(?:\.|\?\.|::|->)[A-Za-z_$][\w$]*)+[(\[]?.*    # result.accessToken, os.environ[..]
    | [A-Za-z_$][\w$.:?!]*[(\[{].*                                      # get_password(), Optional[str]
    | (?:await|new|lambda|not|yield|typeof|return|if|async|function|fn|def|class)$
    | [&*]+[A-Za-z_].*                                                   # &str, *string
    )$""",
    re.VERBOSE | re.DOTALL,
)
_NO_SECRETS = frozenset(
    (
        "any array auto bearer blob bool boolean byte bytes char date default disabled double email empty enabled enum "
        "error expired false field file float hash hashed hidden http https id input int integer invalid json key "
        "label list localhost long map missing name never nil no none not null number object off ok on one oneof "
        "optional oauth other param password path plain prompt public query required restricted reference ref secret "
        "self set sha1 sha256 sha512 string str struct text the this token true type undefined unknown unset uri url "
        "user username uuid valid value var varchar void yes"
    ).split()
)
_ENOUGH = 256
"""So many characters tell what the rest is."""
_WORDY = lazy_regex(r"^[^\W\d_]+$")
_PART = lazy_regex(r"^(?:[A-Za-z]+|v?\d{1,3}|)$")
_SPLIT = lazy_regex(r"[-_./:+]")
_NUMERIC = lazy_regex(r"^[-+~≈$€£]?[\d_.,]+(?:[eE][-+]?\d+)?[a-zA-Z%]{0,2}$|^0[xX][0-9a-fA-F]{1,16}$")
_DATE = lazy_regex(r"^\d{4}-\d\d-\d\d")
_FILE = lazy_regex(
    r"^[\w./@-]{1,80}\.(?:[jt]sx?|py|ya?ml|json|toml|ini|md|txt|env|pem|key|pub|crt|html?|css|go|rs|rb|sh|sql|xml|cfg|conf|log|csv|lock)$"
)
_PREFIXED_ID = lazy_regex(r"^[a-z]{2,12}_[A-Za-z0-9]{12,}$")
_FEW_SIGNS = 5
_LABELS = frozenset(
    (
        "passwort kennwort wachtwoord contraseña senha hasło haslo parola şifre sifre пароль 密码 密碼"
        " パスワード 비밀번호 암호 lösenord adgangskode salasana heslo jelszó"
    ).split()
)
_MANUAL_WORDS = frozenset("pass passwd password pw pwd secret token key mypassword apikey user".split())
_FILE_ENDING = lazy_regex(r"\.[A-Za-z]{1,6}$")
_HEX_OR_ID = lazy_regex(r"^[0-9a-fA-F-]{16,}$")
_VARIABLE_WORDS = frozenset(
    (
        "arg args body cfg config cred credential credentials data env hash input key opts options param params pass "
        "passwd password pw pwd req request res result row secret settings str token user val value"
    ).split()
)
_LONG_PART = 20
_RUNS = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORD_ENDINGS = ("password", "passwd", "pwd", "token", "secret")


def is_reference(value: str) -> bool:
    """Variables, templates and fillers: they say where the secret goes, not what it is."""
    cleaned = value.strip().strip("\"'`\\")
    return (
        not any(character.isalnum() for character in cleaned)
        or cleaned.startswith(PLACEHOLDER)
        or cleaned.lower() in _NO_SECRETS
        or _REFERENCE.match(cleaned) is not None
        or _TEMPLATE_PART.search(cleaned) is not None
    )


def is_literal(value: str) -> bool:
    """The value itself, not a variable or template for it."""
    return not is_reference(value)


def is_opaque_literal(value: str) -> bool:
    return not is_reference(value) and is_opaque(value)


def is_filler(value: str) -> bool:
    """`your-api-key`, `changeme-placeholder`: text that people put where a key belongs."""
    return _FILLER.search(value) is not None or "EXAMPLE" in value or (len(value) > 7 and len(set(value.lower())) < 3)


def is_drawn(value: str) -> bool:
    """Drawn at random: not `xxxx…`, not a name in small letters, not the example of a manual."""
    return (
        len(set(value)) > _FEW_SIGNS
        and not (value.islower() and value.isalpha())
        and "EXAMPLE" not in value.upper()
        and _INSIDE_FILLER.search(value) is None
    )


def is_hex_or_id(value: str) -> bool:
    """A hash, a UUID, an id with a prefix: long and drawn, and no secret by itself."""
    return _HEX_OR_ID.match(value) is not None or _PREFIXED_ID.match(value) is not None


def is_file_name(value: str) -> bool:
    """`config2.yml`, `auth2.js`."""
    return _FILE.match(value) is not None


def is_password_literal(value: str) -> bool:
    """A literal that stands where only a password can; the words of manuals are none."""
    return is_literal(value) and value.lower() not in _MANUAL_WORDS


def is_word_given(value: str) -> bool:
    """A literal behind `login bob password`; a word of a sentence is none, nor are numbers of ports."""
    plain = value.lower().rstrip(".,;:!?")
    return is_password_literal(value) and plain not in _SENTENCE_WORDS and not plain.replace(":", "").isdigit()


def is_name_like(value: str) -> bool:
    """`Starling`, `blackcap`: one plain word that neither describes a password nor is a type."""
    lowered = value.lower()
    return (
        len(value) > 4
        and value.isascii()
        and value.isalpha()
        and value[1:].islower()
        and lowered not in _SENTENCE_WORDS
        and lowered not in _NO_SECRETS
        and not is_filler(value)
        and not is_label(value)
        and not lowered.endswith(("ed", "ing", "able", "field", "type", "word"))
    )


def is_label(value: str) -> bool:
    """`Passwort`, `userPassword`: what a field is called, in the interface or in code."""
    return value.lower() in _LABELS or (not any(map(str.isdigit, value)) and is_variable_like(value))


def is_code(value: str) -> bool:
    """An expression of a programming language rather than a literal value; keys have dots between drawn parts, too."""
    if _CODE.match(value) is None:
        return False
    parts = value[:_ENOUGH].split(".")
    return len(parts) == 1 or not any(map(_is_drawn_part, parts))


def _is_drawn_part(part: str) -> bool:
    """Whether a piece between dots is no name: those of code are in one case where they have underscores."""
    if len(part) < _LONG_PART or not part.replace("_", "").replace("-", "").isalnum():
        return False
    return is_opaque(part) and not ("_" in part and part in (part.upper(), part.lower()))


def is_plain_word(value: str) -> bool:
    """Letters only, as in `required` or `string`."""
    return _WORDY.match(value) is not None


def is_made_of_words(value: str) -> bool:
    """`db-password-name`, `oauth2`: a name of something, not its value."""
    return len(value) < 40 and all(_PART.match(part) for part in _SPLIT.split(value)) and not is_opaque(value)


_CAMEL_WORDS = lazy_regex(r"[A-Z]{1,6}(?![a-uw-z])|[A-Z]?[a-uw-z][a-z]+|[Vv](?=\d)|[Vv][a-z]+|\d+|.")
_VERSION = lazy_regex(r"\d|1[0-9]|32|64|128|224|256|384|512|1024|2048|4096|8601|509|25519")
_VOWELS = frozenset("aeiouy")
_WITHOUT_VOWELS = frozenset(
    "http https ftp sftp smtp html xml grpc mqtt tls ssl dns jwt jwk ssh rpc sql css pkcs".split()
)


def is_type_name(value: str) -> bool:
    """`OAuth2Bearer`, `SecretManagerV2`, `Sha256Digest`: words in CamelCase and the number of a version or a size."""
    if not value.isascii() or not value.isalnum():
        return False
    pieces = _CAMEL_WORDS.findall(value[:_ENOUGH])
    numbers = [piece for piece in pieces if piece.isdigit()]
    words = [piece for piece in pieces if piece.isalpha() and piece not in "Vv"]
    return (
        len(numbers) == 1
        and _VERSION.fullmatch(numbers[0]) is not None
        and max(map(len, words), default=0) > 3
        and all(word.isupper() or (len(word) > 1 and _is_spoken(word.lower())) for word in words)
        and sum(map(len, words)) > 3 * len(words)
    )


def _is_spoken(word: str) -> bool:
    return not _VOWELS.isdisjoint(word) or word in _WITHOUT_VOWELS


def is_number(value: str) -> bool:
    """A count, a size, a version, a date."""
    return _NUMERIC.match(value) is not None or _DATE.match(value) is not None


def is_variable_like(value: str) -> bool:
    """An identifier whose words speak of values, as in `new_password` or `apiKeyValue`."""
    if not value.isidentifier():
        return False
    words = [word.lower() for word in _RUNS.findall(value)]
    return any(word in _VARIABLE_WORDS or word.endswith(_WORD_ENDINGS) for word in words)


def is_opaque(value: str) -> bool:
    """Long enough, mixed enough and not made of words: what a generated key looks like."""
    value = value[:_ENOUGH]
    if len(value) < 8 or is_number(value) or _is_path(value):
        return False
    if _HEX_OR_ID.match(value):
        return any(character.isdigit() for character in value)
    parts = _SPLIT.split(value.rstrip("="))
    if all(_PART.match(part) for part in parts):
        # Words joined by dashes. One unbroken run that changes case often is no word of any language.
        return len(parts) == 1 and len(value) >= 16 and _case_changes(value) >= 5 and not _reads_like_words(value)
    if value.isidentifier() and _reads_like_words(value):
        return False
    return any(character.isdigit() for character in value) or _case_changes(value) >= 5


def _reads_like_words(value: str) -> bool:
    """`Uint8Array`, `base64_decode`: words of three letters and more with one short number among them."""
    runs = _RUNS.findall(value)
    numbers = [run for run in runs if run.isdigit()]
    least = 2 if "_" in value and value.islower() else 3
    return len(numbers) <= 1 and all(len(run) <= 3 if run.isdigit() else len(run) >= least for run in runs)


_BASE64 = lazy_regex(
    r"/(?:[A-Za-z0-9+]{0,64}/){0,4}(?=[A-Z0-9+]{0,20}[a-z])(?=[a-z0-9+]{0,20}[A-Z])(?=[A-Za-z+]{0,20}\d)[A-Za-z0-9+]{20,}+"
    r"[A-Za-z0-9+/]*+={0,2}$"
)
"""It may begin with a slash; no part of a path is as mixed."""


def _is_path(value: str) -> bool:
    if value.startswith(("./", "../", "~/", "http:", "https:")):
        return True
    if value.startswith("/"):
        return _BASE64.match(value) is None
    return "/" in value and _FILE_ENDING.search(value) is not None


def _case_changes(value: str) -> int:
    return sum(
        1 for left, right in pairwise(value) if left.isalpha() and right.isalpha() and left.isupper() != right.isupper()
    )


# What is said of passwords, not what they are: words of sentences, labels and messages.
_SENTENCE_WORDS = frozenset(
    (
        "after again all also an and any are as at be because been before being but by can cannot change changed "
        "characters chars check choose confirm contain contains correctly current digits do does doesn't don't empty "
        "encrypted enter expired field for forgot from has hash hashed have here hidden i if in incorrect input inside "
        "into invalid is it it's its kept last least length letters like long longer match matching may mismatch "
        "missing more most must my need needed needs never new no not now of old on one only optional or our per "
        "please present prompt read repeat required reset same sent set shared short shorter should show so stored "
        "string strong such than that the their then there they this to too two type unset until up update use used "
        "user username using valid value via wants was weak were when where which while will with without wrong yet "
        "you your"
    ).split()
)
_SECRET_WORD = lazy_regex(r"passw|passphrase|token|secret|credential", re.IGNORECASE)
_TERM = lazy_regex(
    r"^(?:base\d+|b64|sha\d*|md\d|argon2\w*|pbkdf2|utf\d*|oauth2?|x509|aes\d*|pkcs\d+|ed25519|rsa\d*|[bs]?crypt\d*|[tms2]fa"
    r"|[12]fa|varchar\d*|secp\w*|ecies\S*|[ex]25519|curve25519|chacha20\S*|[rhe]s256|n?char\d*|u?int\d*|float\d*|h?otp|i18n|s3|ec2|k8s|p12|v\d+|python\d*|1password|keepass\w*)(?:$|[^A-Za-z0-9])",
    re.IGNORECASE,
)
_MAIL_ADDRESS = lazy_regex(r"^[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}$")
_NUMBERED = lazy_regex(r"^(?:[a-z]+\d|[^\W_]*+_\w*|[A-Z]?[a-z]+\d?(?:[A-Z][a-z]{2,})+\d?)$")
"""`password2`, `new_password_2`: how code names a second one."""
_WORDS_AND_NUMBER = lazy_regex(
    r"^(?:[A-Z][a-z]{2,12}[-_./+]|[a-z]{8,16}[-_.]|[a-z]{3,12}[-_.][A-Za-z]{2,12}[-_.])(?:[A-Za-z]{2,12}[-_.]){0,3}\d{2,4}$"
    r"|^[A-Za-z]{3,12}-\d{2,4}-[A-Za-z]{3,12}$"
)
"""`Copper-kestrel-77`, `lanternfish-77`, `copper-77-kestrel`"""
_SIGNS = frozenset("!@#$%^&*+?~|§€£")
_LEAST_CHOSEN = 4
_LEAST_DIGITS = 6
_LEAST_STRANGE = 8
_PHRASE_LENGTH = range(2, 25)


def is_chosen(value: str) -> bool:
    """What a person picks as a password: letters with digits or signs among them, or many digits."""
    behind = value[1:]
    # The plain words of a sentence are asked first, and are the most.
    if _SIGNS.isdisjoint(behind) and not any(map(str.isdigit, behind)):
        return False
    if not _LEAST_CHOSEN <= len(value) <= _ENOUGH or is_reference(value) or is_filler(value):
        return False
    if is_variable_like(value) and _NUMBERED.match(value):
        return False
    if value.isdigit():
        return len(value) >= _LEAST_DIGITS
    if not any(map(str.isalpha, value)):
        return False
    if is_code(value) or is_number(value) or is_term(value):
        return False
    return not is_made_of_words(value) or _WORDS_AND_NUMBER.match(value) is not None


def is_chosen_in_prose(value: str) -> bool:
    """The same where a sentence may end behind it: a plain word with a question mark is a plain word."""
    word = value.rstrip("?!")
    return is_chosen(word if word.isalpha() and word.islower() else value)


_WORDED = lazy_regex(
    r"^(?:[A-Za-z]{3,16}[-_]){1,4}\d{1,4}$|^(?:[A-Za-z]{3,16}[-_]){1,3}\d{1,4}(?:[-_][A-Za-z]{3,16}){1,3}$"
)
_COUNTED_WORDS = frozenset(
    (
        "case chapter column day draft error example exit figure file issue item level line month node option page "
        "part phase plan port release revision round row rule section sprint stage step table task test ticket tier "
        "variant version week year iso rfc utf sha aes rsa oauth totp"
    ).split()
)


def is_worded(value: str) -> bool:
    """`zwaluw-9`, `Rookery-2-nest`: words and one number, none of which counts something or describes a password."""
    value = value.rpartition(":")[2]  # admin:...
    if _WORDED.match(value) is None or is_filler(value) or is_term(value):
        return False
    words = {word.lower() for word in _SPLIT.split(value.replace("_", "-")) if not word.isdigit()}
    return max(map(len, words)) > 3 and words.isdisjoint(
        _COUNTED_WORDS | _VARIABLE_WORDS | _SENTENCE_WORDS | _NO_SECRETS | _MANUAL_WORDS
    )


def is_one_time_code(value: str) -> bool:
    """`851527`, `493 027`, `77pd-x0ra`: what is typed once."""
    return _ONE_TIME.match(value) is not None


_ONE_TIME = lazy_regex(
    r"^(?:\d{4,10}|\d{3,4}[ -]\d{3,4}(?:[ -]\d{3,4}){0,2}|(?=[A-Za-z-]*\d)[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,5})$"
)


def is_dashed_phrase(value: str) -> bool:
    """`correct-horse-battery`: words that no sentence joins."""
    words = value.lower().split("-")
    if len(words) < 3 or not all(word.isalpha() and len(word) > 2 for word in words):
        return False
    return _SENTENCE_WORDS.isdisjoint(word for word in words[1:-1] if word != "and") and _SENTENCE_WORDS.isdisjoint(
        (words[0], words[-1])
    )


def is_strange(value: str) -> bool:
    """So mixed that no sentence has it: letters, digits and signs, or generated through and through."""
    if not is_chosen(value):
        return False
    if value.isalnum():
        return is_opaque(value)
    if not any(character.isdigit() for character in value):
        return False
    if "_" in value and not any(character in "!@#%^&" for character in value[1:-1]):
        return False
    both_cases = value.lower() != value != value.upper()
    return any(character in _SIGNS for character in value) or (both_cases and len(value) >= _LEAST_STRANGE)


def is_pass_phrase(value: str) -> bool:
    """Several words that say nothing: `correct horse battery`, but neither a message nor a label."""
    words = value.split()
    if len(words) not in _PHRASE_LENGTH or is_reference(value) or is_filler(value) or _SECRET_WORD.search(value):
        return False
    if value[0].isupper() and all(word.isalpha() for word in words):
        return False
    if any(character in "()[]{}=<>:;," for character in value):
        return False
    return not any(word.strip(".,!?").lower() in _SENTENCE_WORDS for word in words)


def is_phrase_word(word: str, *, first: bool) -> bool:
    """A word that may belong to a pass phrase. The first one says what follows: `derived ...` begins a sentence."""
    lowered = word.lower()
    return lowered not in _SENTENCE_WORDS and not (first and lowered.endswith(("ed", "ing"))) and word == lowered


def is_term(value: str) -> bool:
    """`base64-encoded`, `sha256`, a mail address, a path: what is said of passwords, with a digit in it."""
    return _TERM.match(value) is not None or _MAIL_ADDRESS.match(value) is not None or _is_path(value)


_STANDARD = lazy_regex(r"^(?:1password\d?|(?:iso|nist|rfc|fips|pci|cve|ieee)-?\d[\d.-]*)$", re.IGNORECASE)


def is_standard(value: str) -> bool:
    """`ISO27001`, `1Password7`: in a sentence about passwords. Behind `pw:` it is what somebody chose."""
    return _STANDARD.match(value) is not None


def is_card(digits: list[int]) -> bool:
    """Whether the last digit of a card's number is the one that the others give."""
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def is_pair(value: str) -> bool:
    """Whether these are a user's name and password in base64."""
    try:
        return _PAIR.fullmatch(base64.b64decode(value, validate=True).decode()) is not None
    except ValueError:
        return False


_PAIR = lazy_regex(r"[^\s:]{1,128}:[ -~]{3,512}")


def is_mixed(value: str) -> bool:
    """Chosen, and with more than one number at the end of a word."""
    return is_chosen(value) and value.lower() != value != value.upper() and sum(map(str.isdigit, value)) > 1
