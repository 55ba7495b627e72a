"""Words from which projects, code, logs and talk are composed. Invented for this purpose; no real project is meant."""

from __future__ import annotations

from random import Random

PROJECTS = ("harbour", "quillet", "marrow", "lintel", "fennel", "tessera", "brackish", "cinder", "halyard", "ostrich")
DOMAINS = (
    "invoice", "ledger", "session", "shipment", "tenant", "voucher", "payout", "catalog", "booking", "message",
    "upload", "webhook", "profile", "thread", "sensor", "reading", "report", "budget", "license", "refund",
)  # fmt: skip
THINGS = (
    "cache", "queue", "worker", "parser", "router", "schema", "index", "cursor", "batch", "limiter", "retry", "token",
    "window", "snapshot", "digest", "filter", "loader", "mapper", "policy", "registry", "scheduler", "gateway",
)  # fmt: skip
VERBS = (
    "load", "merge", "parse", "flush", "resolve", "apply", "collect", "encode", "expire", "rotate", "validate",
    "normalise", "dispatch", "reserve", "release", "split", "stitch", "rank", "trim", "probe",
)  # fmt: skip
ADJECTIVES = (
    "stale", "pending", "partial", "nested", "orphaned", "shared", "frozen", "late", "empty", "broken", "signed",
    "remote", "local", "cached", "missing", "open",
)  # fmt: skip
FIELDS = (
    "amount", "currency", "created_at", "owner_id", "status", "region", "attempts", "payload", "checksum", "limit",
    "offset", "locale", "priority", "deadline", "parent_id", "label", "ratio", "weight", "origin", "version",
)  # fmt: skip
ERRORS = (
    "ValueError", "KeyError", "TimeoutError", "AssertionError", "TypeError", "IntegrityError", "ConnectionResetError",
    "PermissionError", "UnicodeDecodeError", "RuntimeError",
)  # fmt: skip
REGIONS = ("eu-west-3", "us-east-2", "ap-south-1", "sa-east-1", "ca-central-1")
NAMES = ("Ines", "Tomasz", "Mei", "Arjun", "Olga", "Farid", "Bea", "Kenji", "Luca", "Noor")
HEX = "0123456789abcdef"
BASE62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def digits(rng: Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


def hexes(rng: Random, count: int) -> str:
    """Hexadecimal text: commit ids, container ids, checksums. Always holds a letter, as real ones nearly always do."""
    text = "".join(rng.choices(HEX, k=count))
    return text if not text.isdigit() else "e" + text[1:]


def letters(rng: Random, count: int) -> str:
    """Random letters and digits, as in keys and tokens."""
    return "".join(rng.choices(BASE62, k=count))


def name(rng: Random) -> str:
    """A function-like name: verb_adjective_noun."""
    return f"{rng.choice(VERBS)}_{rng.choice(ADJECTIVES)}_{rng.choice(DOMAINS)}"


def type_name(rng: Random) -> str:
    return rng.choice(DOMAINS).title() + rng.choice(THINGS).title()


def version(rng: Random) -> str:
    return f"{rng.randrange(0, 9)}.{rng.randrange(0, 40)}.{rng.randrange(0, 20)}"


def stamp(rng: Random) -> str:
    return (
        f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T"
        f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}Z"
    )
