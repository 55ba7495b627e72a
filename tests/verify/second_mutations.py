"""More kinds of planted errors, written when the first verifier was finished; they have improved the second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tests.verify.mutations import Mutation
from tests.verify.true_lines import TrueLine


def _replace_one(text: str, table: dict[str, str], rng: Random) -> str | None:
    """One of the words of a table, outside code and quotations, becomes another."""
    plain = re.sub(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\S*[/_]\S*", lambda m: "\0" * len(m.group()), text)
    found = list(re.finditer("|".join(rf"\b{re.escape(word)}\b" for word in table), plain))
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + table[match.group()] + text[match.end() :]


def quantity(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """All for some, both for one, two for three."""
    table = {
        "All": "Some of the", "all": "some of the", "both": "only one of the", "Both": "Only one of the",
        "every": "hardly any", "each": "no", "two": "three", "twice": "three times", "None": "All", "several": "no",
        "Nothing": "Everything",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


_INVENTED = (
    ", and the customer was notified by email",
    ", which doubled the throughput of the nightly import",
    " and was rolled out to the Berlin office",
    "; the old dashboard was retired as well",
    ", after a call with the security team",
    " and the licence was renewed",
)


def invented_clause(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A clause that has nothing to do with the session."""
    return None if line.kind == "quotation" else text.rstrip(".") + rng.choice(_INVENTED)


_NAMES = ("Ines", "Tomasz", "Mei", "Arjun", "Olga", "Farid", "Bea", "Kenji", "Luca", "Noor")


def person(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Somebody else's name."""
    known = [name for name in _NAMES if re.search(rf"\b{name}\b", text)]
    if not known:
        return None
    return re.sub(rf"\b{known[0]}\b", rng.choice([name for name in _NAMES if name not in known]), text, count=1)


def suffix(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The same file in another language."""
    match = re.search(r"(?<=\w)\.(py|ts|go|sql|yaml|js|md|rs|tsx|json)\b(?![\w(])", text)
    if match is None or "/" not in text:
        return None
    wrong = rng.choice([ending for ending in ("py", "ts", "go", "rs", "rb") if ending != match[1]])
    return f"{text[: match.start()]}.{wrong}{text[match.end() :]}"


def magnitude(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Ten times as much, or a tenth of it."""
    match = re.search(r"(?<![\w./,#:-])(\d{2,6})(?:(\.\d+)?)(?![\w,/:-]|\.\d)", text)
    if match is None or line.kind == "quotation":
        return None
    return text[: match.start()] + match[1] + "0" + (match[2] or "") + text[match.end() :]


def certainty(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What was a guess is told as a fact."""
    if line.kind == "quotation":
        return None
    made = re.sub(r"\b(?:might|may|could) be\b", "is", text, count=1)
    made = re.sub(r"\b(?:probably|likely|possibly|perhaps|maybe) ", "", made, count=1) if made == text else made
    return made if made != text else None


def command(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another command was run."""
    table = (
        ("git commit", "git push"),
        ("pytest", "unittest"),
        ("python -m", "node"),
        ("go test", "go vet"),
        ("grep", "sed"),
    )
    for old, new in (*table, ("docker ps", "docker rm"), ("journalctl", "systemctl"), ("git log", "git reset")):
        if f"`{old}" in text or (f" {old} " in text and "`" in text):
            return text.replace(old, new, 1)
    return None


def error_class(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another kind of error."""
    match = re.search(r"\b(\w+)(Error|Exception)\b", text)
    if match is None:
        return None
    wrong = rng.choice([name for name in ("Value", "Key", "Type", "Index", "Lookup") if name != match[1]])
    return f"{text[: match.start()]}{wrong}{match[2]}{text[match.end() :]}"


def place(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another region, branch or ticket."""
    for pattern, wrong in (
        (r"\b(?:eu-west-3|us-east-2|ap-south-1|sa-east-1|ca-central-1)\b", ("eu-north-1", "us-west-2")),
        (r"\brelease-\d{4}\b", ("release-0007", "main", "develop")),
        (r"\bOPS-\d+\b", ("OPS-10", "SEC-4471")),
    ):
        if re.search(pattern, text):
            return re.sub(pattern, rng.choice(wrong), text, count=1)
    return None


def when(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """At another time, or in another order."""
    table = {
        "this morning": "last week", "second": "third", "already": "not yet", "still": "no longer",
        "now": "formerly", "ahead of": "well after", "again": "for the first time", "next": "previous",
        "later": "earlier", "once": "twice",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


def words_exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two nouns of a reworded line change places."""
    if line.kind != "paraphrase":
        return None
    for pattern in (
        r"(the )(\w+)( before )(\w+)( was set)",
        r"(that )(\w+)( gets read before the )(\w+)( is)",
        r"(migrated from )(\w+)( to )(\w+)($)",
        r"(It is the )(\w+)( and not the )(\w+)( that)",
    ):
        match = re.search(pattern, text)
        if match and match[2] != match[4]:
            return text[: match.start()] + match[1] + match[4] + match[3] + match[2] + match[5] + text[match.end() :]
    return None


SECOND_KINDS: dict[str, Mutation] = {
    "quantity": quantity,
    "invented clause": invented_clause,
    "person": person,
    "suffix": suffix,
    "magnitude": magnitude,
    "certainty": certainty,
    "command": command,
    "error class": error_class,
    "place": place,
    "when": when,
    "words exchanged": words_exchanged,
}
