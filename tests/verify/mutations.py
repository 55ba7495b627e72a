"""Planted errors: one true line made false, in one way. None when the line has nothing of that kind to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tests.verify.true_lines import TrueLine

Mutation = Callable[[str, TrueLine, Sequence[TrueLine], Random], str | None]
"""Text of the line, the line, the other lines of the session, a random source; gives the false text."""

_DIGITS = re.compile(r"(?<![\w./-])\d[\d,]*\d|(?<![\w./-])[2-9](?![\w./-])")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_PATH = re.compile(r"(?<![\w./:])(?:[\w.-]+/)+[\w.-]+\.\w{1,5}\b")
_SYMBOL = re.compile(r"\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w+\b")
_FLAG = re.compile(r"(?<!\w)--[a-z][\w-]+")
_VERSION = re.compile(r"\b\d+\.\d+\.\d+\b")


def _swap(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _pick(pattern: re.Pattern[str], text: str, rng: Random) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return rng.choice(found) if found else None


def digit(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another digit in a number."""
    match = _pick(_DIGITS, text, rng)
    if match is None or "about" in text or "~" in text:
        return None
    places = [k for k, c in enumerate(match.group()) if c.isdigit()]
    place = rng.choice(places[1:] or places)
    wrong = rng.choice([c for c in "123456789" if c != match.group()[place]])
    return _swap(text, match, match.group()[:place] + wrong + match.group()[place + 1 :])


def digits_exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two neighbouring digits change places."""
    for match in _DIGITS.finditer(text):
        number = match.group()
        for k in range(len(number) - 1):
            if number[k] != number[k + 1] and number[k : k + 2].isdigit() and "about" not in text and "~" not in text:
                return _swap(text, match, number[:k] + number[k + 1] + number[k] + number[k + 2 :])
    return None


def hash_(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another character in a hash."""
    match = _pick(_HASH, text, rng)
    if match is None:
        return None
    value = match.group()
    place = rng.randrange(len(value))
    return _swap(
        text,
        match,
        value[:place] + rng.choice([c for c in "0123456789abcdef" if c != value[place]]) + value[place + 1 :],
    )


def path(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another folder or another file name in a path."""
    match = _pick(_PATH, text, rng)
    if match is None:
        return None
    parts = match.group().split("/")
    place = rng.randrange(len(parts))
    stem, dot, suffix = parts[place].partition(".")
    parts[place] = f"{stem}{rng.choice(('s', '_old', '2', '_helper'))}{dot}{suffix}" if stem else f"x{parts[place]}"
    return _swap(text, match, "/".join(parts))


def symbol(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another part in the name of a symbol."""
    match = _pick(_SYMBOL, text, rng)
    if match is None or "/" in text[max(0, match.start() - 1) : match.end() + 1]:
        return None
    parts = re.findall(r"_|[A-Z]?[a-z]+|[A-Z]+|\d+", match.group())
    words = [k for k, part in enumerate(parts) if part != "_"]
    place = rng.choice(words)
    new = rng.choice(("reset", "update", "legacy", "inner", "flush"))
    parts[place] = new.title() if parts[place][:1].isupper() else new
    made = "".join(parts)
    return _swap(text, match, made) if made != match.group() else None


def flag(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another option."""
    match = _pick(_FLAG, text, rng)
    return _swap(text, match, rng.choice(("--force", "--all-targets", "--no-verify", "--quiet"))) if match else None


def version(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another version."""
    match = _pick(_VERSION, text, rng)
    if match is None:
        return None
    parts = match.group().split(".")
    place = rng.randrange(3)
    parts[place] = str(int(parts[place]) + rng.randrange(1, 4))
    return _swap(text, match, ".".join(parts))


_NEGATE = re.compile(r"\b(is|are|was|were|has|have|will|can|does|must|should|did)\b(?! not\b|n't| no )")
_NEGATED = re.compile(
    r"\b(is|are|was|were|has|have|will|can|does|do|must|should|did) not\b|\bnever\b|\bnot\b|\bNever\b|\bDo not\b"
)


def negation(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A "not" more, or one less."""
    if line.kind in ("quotation",):
        return None
    match = _NEGATED.search(text)
    if match:
        kept = match.group(1) or ""
        made = _swap(text, match, kept).replace("  ", " ").strip()
        return made[:1].upper() + made[1:]
    match = _pick(_NEGATE, text, rng)
    return _swap(text, match, f"{match.group()} not") if match else None


_OPPOSITES = {
    "passed": "failed", "failed": "passed", "passes": "fails", "fails": "passes", "succeeded": "failed",
    "added": "removed", "removed": "added", "add": "remove", "remove": "add", "enabled": "disabled",
    "disabled": "enabled", "before": "after", "after": "before", "increase": "decrease", "increased": "decreased",
    "reduced": "increased", "always": "never", "Always": "Never", "Never": "Always", "never": "always",
    "allows": "forbids", "forbids": "allows", "includes": "excludes", "keeps": "loses", "keep": "drop",
    "losing": "keeping", "lost": "kept", "first": "last", "last": "first", "valid": "invalid", "invalid": "valid",
    "correct": "incorrect", "missing": "present", "exists": "is missing", "insertions": "deletions",
    "deletions": "insertions", "started": "stopped", "true": "false", "false": "true", "opened": "closed",
    "success": "failure", "successful": "unsuccessful", "unstable": "stable", "under": "over", "通过": "失败",
    "失败": "通过", "installed": "uninstalled", "shows": "hides", "required": "optional", "public": "private",
    "local": "remote", "all": "none of the", "All": "None of the", "supported": "unsupported", "works": "breaks",
    "more": "less", "new": "old", "old": "new", "read": "written", "deterministic": "random",
}  # fmt: skip
_OPPOSITE = re.compile("|".join(rf"\b{re.escape(word)}\b" if word.isascii() else word for word in _OPPOSITES))


def opposite(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A word becomes its opposite."""
    if line.kind == "quotation":
        return None
    plain = re.sub(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\S*[/_]\S*", lambda m: "\0" * len(m.group()), text)
    match = _pick(_OPPOSITE, plain, rng)
    return _swap(text, match, _OPPOSITES[match.group()]) if match else None


def who(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Somebody else said it."""
    if text.startswith("The user said"):
        return text.replace(
            "The user said", rng.choice(("The assistant said", "The tool output said", "The log said")), 1
        )
    if re.match(r"The user (?:asked|wants|reports|forbids)", text):
        return text.replace("The user", rng.choice(("The assistant", "The test output")), 1)
    if line.kind == "verbatim" and line.section.value == "Key Decisions":
        return f"The user decided: {text[:1].lower()}{text[1:]}"
    if line.kind == "error":
        return f"The user asked for this: {text}"
    return None


_DONE_TO_PLAN = (
    (re.compile(r"^Edited (\S+)$"), r"\1 will be edited next"),
    (re.compile(r"^Committed (“[^”]+”) as (\S+) on (\S+)$"), r"\1 will be committed as \2 on \3"),
    (re.compile(r" was deployed to "), " will be deployed to "),
    (re.compile(r"^(\S+) was modified$"), r"\1 is going to be modified"),
    (re.compile(r"^Looked at (\S+)$"), r"\1 still has to be looked at"),
    (re.compile(r"^Ran (`[^`]+`), which (?:succeeded|failed) .*$"), r"\1 has yet to be run"),
    (re.compile(r"^The user wants (\w+) migrated from (\w+) to (\w+)$"), r"\1 was migrated from \2 to \3"),
    (
        re.compile(r"^The user asked for a (`--\w+`) flag on the (\w+) command, covered by tests$"),
        r"Added a \1 flag to the \2 command, covered by tests",
    ),
    (
        re.compile(r"^Requested: refactor (`\w+`) so that the (\w+) is not built twice any more$"),
        r"Refactored \1 so that the \2 is not built twice any more",
    ),
    (
        re.compile(r"^Tests in (\S+) are unstable and have to become deterministic$"),
        r"Tests in \1 were unstable and have been made deterministic",
    ),
    (re.compile(r"\bwill (\w+?)e?\b(?= )"), r"has \1ed"),
)


def status(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What was done becomes a plan; what was asked for becomes done."""
    if line.kind in ("quotation", "verbatim", "synonyms", "reordered"):
        return None
    for pattern, said in _DONE_TO_PLAN:
        if pattern.search(text):
            return pattern.sub(said, text, count=1)
    return None


def exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What happened to one thing is told of another one of the session."""
    if text.startswith("Looked at"):
        # Who edits a file has looked at it, too.
        return None
    for pattern in (_PATH, _HASH, _SYMBOL):
        match = _pick(pattern, text, rng)
        if match is None:
            continue
        known = {m.group() for other in others for m in pattern.finditer(other.text)}
        near = {
            m.group()
            for other in others
            if set(other.sources) & set(line.sources)
            for m in pattern.finditer(other.text)
        }
        wrong = sorted(name for name in known - near if name not in text and match.group() not in name)
        true = {other.text for other in others}
        made = [_swap(text, match, name) for name in wrong]
        false = [text for text in made if text not in true]
        if false:
            return rng.choice(false)
    return None


def quotation(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A quotation that nobody said."""
    invented = rng.choice(
        (
            "we should rewrite all of it",
            "the cache is never invalidated",
            "ship it on Friday",
            "this has been broken for years",
        )
    )
    match = re.search(r"“[^”]+”|\"[^\"]+\"", text)
    return _swap(text, match, f'"{invented}"') if match else f'{text.rstrip(".")} ("{invented}")'


_UNITS = {
    "seconds": "minutes",
    "s": "ms",
    "ms": "s",
    "days": "hours",
    "minutes": "hours",
    "MB": "GB",
    "KB": "MB",
    "lines": "files",
    "hours": "minutes",
    "%": " ms",
}
_UNIT = re.compile(r"(?<=\d)(\s?)(seconds|s|ms|days|minutes|MB|KB|lines|hours|%)(?![A-Za-z])")


def unit(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The same number in another unit."""
    match = _pick(_UNIT, text, rng)
    return _swap(text, match, f"{match.group(1)}{_UNITS[match.group(2)]}") if match else None


def figures_exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two numbers of a line change places."""
    found = [match for match in _DIGITS.finditer(text)]
    if len(found) < 2 or found[0].group() == found[1].group() or "about" in text or "~" in text:
        return None
    one, two = found[0], found[1]
    return text[: one.start()] + two.group() + text[one.end() : two.start()] + one.group() + text[two.end() :]


KINDS: dict[str, Mutation] = {
    "digit": digit,
    "digits exchanged": digits_exchanged,
    "hash": hash_,
    "path": path,
    "symbol": symbol,
    "flag": flag,
    "version": version,
    "negation": negation,
    "opposite": opposite,
    "who": who,
    "status": status,
    "exchanged": exchanged,
    "quotation": quotation,
    "unit": unit,
    "figures exchanged": figures_exchanged,
}
