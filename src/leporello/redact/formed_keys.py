"""Keys of vendors in no table, by how they are formed: a short name, a dash, and letters drawn at random.

`polar_oat_…` is formed so, and so are the public ids of most services. A name that tells of a key decides. Where it
tells nothing, only what is as long as a key counts, and nothing that its own name or the one beside it calls an id.
"""

from __future__ import annotations

from collections.abc import Iterator

from leporello.lazy_regex import lazy_regex
from leporello.redact.spans import SecretSpan
from leporello.redact.values import is_drawn, is_opaque

_BODY = lazy_regex(r"[_-]([A-Za-z0-9]{20,8192}+)")
_PREFIX = lazy_regex(
    r"(?:(?<![A-Za-z0-9_+/.%-])|(?<=\n[+-])|(?<=\A[+-]))([a-z][a-z0-9]{0,11}(?:[_-][a-z0-9]{1,10}){0,3})$"
)
_LONGEST_LOOKED_AT, _LONGEST_PREFIX, _LONGEST_LABEL = 64, 48, 60
_LEAST_GRADED, _LEAST_OF_KEY, _LEAST, _LEAST_DASHED = 20, 28, 32, 36
_PIECES = lazy_regex(r"[_-]")
_GRADES = frozenset("live test prod dev pat oat sat".split())
"""Behind these a key may be shorter."""
_OF_KEYS = frozenset(
    (
        "key apikey accesskey authkey secretkey token tok authtoken secret sk ak rk uat pat oat sat api auth access"
        " refresh license private signing jwt bearer password passwd pass pwd pw psk cred creds credential"
        " credentials seed"
    ).split()
)
"""Such a name tells of a key, whatever words stand before."""
_PUBLIC = frozenset(
    "page next cursor continuation continue pagination sync hash digest cache idempotency idem dedupe partition sort"
    " public publishable pub".split()
)
"""Before "key" or "token": `page_token`, `hash_key`."""
_OF_IDS = frozenset(
    (
        # what a service keeps
        "account acct activity addr asst block bucket ch channel chat client comment cs cus customer dc device did"
        " doc document event evt fc file folder gen group host image img in inst instance inv invoice issue item lc"
        " member message mint msg node notif oac object order org page payment pi pk plan plink pm post price prj"
        " prod product profile proj project pubkey refund replica room rs sess session seti si snap snapshot srv sub"
        " subscription team ticket transaction tx txn user usr video vol volume vs wallet ws yt"
        # what was run
        " batch build call chatcmpl cmpl commit correlation dep deploy deployment dpl env exec execution experiment"
        " fn ft function hook icfg idem idempotency invocation job lambda pod release req request resp response rev"
        " revision run span srvtoolu stack step task thread toolu trace variant version wf workflow"
        # ids and checksums as such
        " after before boundary cache checksum cid clid continuation conv conversation cursor dclid digest etag"
        " fbclid gbraid gclid guid hash id integrity jti kid md5 msclkid nonce offset ref sha1 sha256 sha384 sha512"
        " state ttclid twclid uid uuid wbraid"
        # styles, parts of pages and what is built of them
        " app aria asset assets bundle chunk chunks class classname css dist el emotion font frame index jss layout"
        " main modal module mui page polyfill polyfills radix runtime sc script static styled svelte toast turbo tw"
        " vendor widget"
        # names of branches and directories
        " branch feature flag temp tmp"
    ).split()
)
"""What stands before something's public id or checksum, and what such a value is called."""
_OWNERS = frozenset("org app user client account env".split())
"""Who has a key may stand behind whose it is: `depot_org_…`."""
_GRADED_TOO = _OWNERS | frozenset(
    "customer device function group host member message order payment vendor wallet widget".split()
)
"""Before where a key opens something: `app_live_…`."""
_LABELS = frozenset(
    "checksum cid class classname clid continuation cursor dclid digest etag fbclid gbraid gclid guid hash id integrity"
    " jti kid md5 msclkid nonce offset sha1 sha256 sha384 sha512 span trace ttclid twclid uid uuid wbraid".split()
)
"""What an id or a checksum is called. `account: …`, `env: …` and their like only say whose a key is."""
_LABEL = lazy_regex(r"([A-Za-z][A-Za-z0-9_-]{0,40})\\?[\"'`]?[ ]{0,3}[:=][ ]{0,3}(?:W/)?\\?[\"'`]?$")
_WORDS = lazy_regex(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_FILE_ENDING = lazy_regex(
    r"\.(?:m?js|css|map|woff2?|[ot]tf|png|jpe?g|svg|webp|avif|gif|ico|mp4|html?|json|wasm|t?gz|zip|pdf)\b"
)


def formed_key_spans(text: str) -> Iterator[SecretSpan]:
    """Where such keys stand; the name before them stays."""
    for body in _BODY.finditer(text):
        prefix = _PREFIX.search(text, max(0, body.start() - _LONGEST_PREFIX), body.start())
        if prefix is None or len(body[1]) < _least(prefix[1]):
            continue
        told = _is_told(_PIECES.split(prefix[1])) or _PIECES.split(prefix[1])[-1] in _GRADES
        if not _is_formed(body[1], digits=1 if told else 2):
            continue
        if told or not (_is_called_an_id(text, prefix.start()) or _FILE_ENDING.match(text, body.end())):
            yield SecretSpan(*body.span(1), "vendor_key")


def holds_formed_key(text: str) -> bool:
    """Whether a key of a vendor that is not in the tables stands in a text."""
    return next(formed_key_spans(text), None) is not None


def _least(prefix: str) -> float:
    """How long a key with this name is at least."""
    pieces = _PIECES.split(prefix)
    graded = pieces[-1] in _GRADES
    if pieces[0] in _OF_IDS and not (_is_told(pieces) or (graded and "_" in prefix and pieces[0] in _GRADED_TOO)):
        return float("inf")
    if graded and "_" in prefix:
        return _LEAST_GRADED
    if graded or _is_told(pieces):
        return _LEAST_OF_KEY
    if pieces[-1] in _OF_IDS - _OWNERS or _is_public(pieces):
        return float("inf")
    return _LEAST if "_" in prefix else _LEAST_DASHED


def _is_told(pieces: list[str]) -> bool:
    """Whether a name's own last word tells of a key."""
    return pieces[-1].rstrip("0123456789") in _OF_KEYS and not _is_public(pieces)


def _is_public(pieces: list[str]) -> bool:
    return pieces[-1] in ("key", "token") and not _PUBLIC.isdisjoint(pieces[-2:-1])


def _is_formed(body: str, *, digits: int) -> bool:
    found = sum(map(str.isdigit, body[:_LONGEST_LOOKED_AT]))
    return found >= digits and body.lower() != body != body.upper() and is_drawn(body) and is_opaque(body)


def _is_called_an_id(text: str, start: int) -> bool:
    """`"deploymentId": "…"`, `cursor=…`, `class="…"`"""
    label = _LABEL.search(text, max(0, start - _LONGEST_LABEL), start)
    if label is None:
        return False
    words = [word.lower() for word in _WORDS.findall(label[1])]
    if label[1].lower() in _LABELS:
        return True
    if words[-1] in ("id", "uid", "uuid", "guid"):  # of a thing that has one
        return not _OF_IDS.isdisjoint(words[-2:-1])
    return words[-1] in _LABELS
