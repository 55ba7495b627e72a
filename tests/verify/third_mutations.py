"""Still more kinds of planted errors, written when the second verifier was finished; they have improved the third."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tests.verify.mutations import Mutation
from tests.verify.true_lines import TrueLine

_CODE = re.compile(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\S*[/_]\S*")


def _replace_one(text: str, table: dict[str, str], rng: Random) -> str | None:
    """One of the words of a table, outside code and quotations, becomes another."""
    plain = _CODE.sub(lambda match: "\0" * len(match.group()), text)
    found = list(re.finditer("|".join(rf"\b{re.escape(word)}\b" for word in table), plain))
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + table[match.group()] + text[match.end() :]


def condition(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What holds under a condition is told as a fact."""
    match = re.search(r"^(?:If|When|Unless|Once) [^,]{6,80}, ([a-z].{15,})$", text)
    return f"{match[1][:1].upper()}{match[1][1:]}" if match else None


def reference(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another pull request, phase, step or line."""
    match = re.search(r"(?<!\w)(#|PR |phase |step |line |Phase |Step |Line )(\d+)\b", text)
    if match is None:
        return None
    return f"{text[: match.start(2)]}{int(match[2]) + rng.randrange(1, 4)}{text[match.end(2) :]}"


def link(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another address."""
    match = re.search(r"https?://[^\s)>`\"]+|\blocalhost:\d+", text)
    if match is None:
        return None
    wrong = re.sub(r"(\w)(?=\W|$)", lambda m: "x" if m[1] != "x" else "y", match.group(), count=2)
    return text[: match.start()] + wrong + text[match.end() :]


def comparison(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """More for less, faster for slower."""
    table = {
        "more than": "less than", "less than": "more than", "at least": "at most", "at most": "at least",
        "faster": "slower", "slower": "faster", "larger": "smaller", "smaller": "larger", "better": "worse",
        "higher": "lower", "lower": "higher", "longer": "shorter", "easier": "harder", "simpler": "more complex",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


def modal(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What must be may be; what can be can't."""
    table = {
        "must": "may", "should": "need not", "can": "cannot", "cannot": "can", "can't": "can", "won't": "will",
        "has to": "need not", "have to": "need not", "may": "must not", "doesn't": "does", "isn't": "is",
        "don't": "do",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


def ending(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """It went the other way."""
    table = {
        "successfully": "unsuccessfully", "without errors": "with errors", "no errors": "several errors",
        "correctly": "wrongly", "properly": "improperly", "works": "no longer works", "succeeded": "was aborted",
        "is working": "is broken", "is ready": "is unfinished", "complete": "incomplete", "passing": "failing",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


_JOINTS = (" was modified", " was deployed to ", " listens on port ", " touches ", " as ", ", which ", ": ")


def chimera(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The first half of one line with the second half of another one of its kind."""
    for joint in _JOINTS[1:]:
        if joint not in text or line.kind in ("combined", "quotation", "verbatim", "synonyms", "reordered"):
            continue
        first = text.split(joint, 1)[0]
        halves = sorted(
            {
                other.text.split(joint, 1)[1]
                for other in others
                if other.kind == line.kind and joint in other.text and not set(other.sources) & set(line.sources)
            }
        )
        made = [f"{first}{joint}{half}" for half in halves]
        false = [text for text in made if all(text != other.text for other in others)]
        if false:
            return rng.choice(false)
    return None


def chinese_status(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """已 becomes 未."""
    return text.replace("已", "尚未", 1) if "已" in text and line.kind == "translated" else None


def approval(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The user is said to have wanted it."""
    if line.section.value not in ("Completed Actions", "Relevant Files", "Blocked"):
        return None
    return text.rstrip(".") + rng.choice(
        (" (approved by the user)", ", as the user requested", "; the user agreed to it")
    )


def constant(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another constant or abbreviation."""
    match = re.search(r"\b[A-Z]{2,}(?:_[A-Z]+)+\b|\b[A-Z]{3,5}\b", text)
    if match is None or line.kind == "quotation":
        return None
    return text[: match.start()] + rng.choice(("SMTP", "LDAP", "MQTT", "SOAP")) + text[match.end() :]


def added_id(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """An id that nobody mentioned."""
    made = rng.choice(
        (f"#{rng.randrange(3000, 9000)}", f"JIRA-{rng.randrange(200, 999)}", f"build {rng.randrange(20000, 90000)}")
    )
    return f"{text.rstrip('.')} (see {made})" if line.kind != "quotation" else None


def sibling(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A thing of another kind."""
    table = {
        "branch": "tag", "container": "database", "library": "framework", "service": "cron job", "table": "view",
        "flag": "environment variable", "command": "endpoint", "Commit": "Branch", "exports": "backups",
        "query": "index", "function": "macro", "hook": "plugin", "package": "crate", "session": "invoice",
        "folder": "bucket",
    }  # fmt: skip
    return None if line.kind == "quotation" else _replace_one(text, table, rng)


def clock(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another date or time of day."""
    match = re.search(r"\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d)?\b(?!\d)", text)
    if match is None or line.kind == "quotation":
        return None
    value = match.group()
    return text[: match.start()] + value[:-1] + str((int(value[-1]) + 3) % 10) + text[match.end() :]


THIRD_KINDS: dict[str, Mutation] = {
    "condition": condition,
    "reference": reference,
    "link": link,
    "comparison": comparison,
    "modal": modal,
    "ending": ending,
    "chimera": chimera,
    "chinese status": chinese_status,
    "approval": approval,
    "constant": constant,
    "added id": added_id,
    "sibling": sibling,
    "clock": clock,
}
