"""A fourth set of planted errors, written when the third verifier was finished; they have improved the fourth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tests.verify.mutations import Mutation
from tests.verify.true_lines import TrueLine

_NUMBER = re.compile(r"(?<![\w./,#:-])\d{2,}(?:\.\d+)?(?![\w/:-]|[.,]\d)")
_PATH = re.compile(r"(?<![\w./:])(?:[\w.-]+/)+[\w.-]+\.\w{1,5}\b")
_SYMBOL = re.compile(r"(?<![\w/.-])[a-z]+_[a-z_]+(?![\w/.-])|(?<![\w/.-])[a-z]+[A-Z]\w+(?![\w/.-])")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_CODE = re.compile(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\S*[/_]\S*")
_NEAR = 6
_SPOKEN = ("quotation",)
_WHOLE = ("quotation", "verbatim", "synonyms", "reordered")


def _swap(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _replace_one(text: str, table: dict[str, str], rng: Random) -> str | None:
    plain = _CODE.sub(lambda match: "\0" * len(match.group()), text)
    found = list(re.finditer("|".join(rf"\b{re.escape(word)}\b" for word in table), plain))
    if not found:
        return None
    match = rng.choice(found)
    return _swap(text, match, table[match.group()])


def _add(text: str, line: TrueLine, rng: Random, pieces: Sequence[str]) -> str | None:
    return None if line.kind in _SPOKEN else text.rstrip(".") + rng.choice(pieces)


# --- taken from beside -----------------------------------------------------------------------------------------------


def _nearby(pattern: re.Pattern[str], text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """One thing of a line becomes another one that the messages around speak of."""
    match = pattern.search(text)
    if match is None or not line.sources:
        return None
    near = {
        found.group()
        for other in others
        if other.sources and abs(other.sources[0] - line.sources[0]) <= _NEAR
        for found in pattern.finditer(other.text)
    }
    wrong = sorted(thing for thing in near if thing not in text and match.group() not in thing)
    return _swap(text, match, rng.choice(wrong)) if wrong else None


def number_nearby(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A number of a neighbouring message."""
    return None if line.kind in (*_SPOKEN, "rounded") else _nearby(_NUMBER, text, line, others, rng)


def name_nearby(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A symbol of a neighbouring message."""
    return None if line.kind in _SPOKEN else _nearby(_SYMBOL, text, line, others, rng)


def names_exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two names of a line change places."""
    found = [*_PATH.finditer(text), *_SYMBOL.finditer(text), *_HASH.finditer(text)]
    found.sort(key=lambda match: match.start())
    if len(found) < 2 or found[0].group() == found[1].group() or found[0].end() > found[1].start():
        return None
    if (
        line.kind in ("outcome", "quotation", "combined", "told otherwise", "Chinese outcome")
        or found[0].group() in found[1].group()
    ):
        return None
    one, two = found[0], found[1]
    return text[: one.start()] + two.group() + text[one.end() : two.start()] + one.group() + text[two.end() :]


# --- names -----------------------------------------------------------------------------------------------------------


def letters_exchanged(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two letters within a symbol change places."""
    match = _SYMBOL.search(text)
    if match is None:
        return None
    name = match.group()
    places = [k for k in range(1, len(name) - 2) if name[k] != name[k + 1] and name[k : k + 2].isalpha()]
    if not places:
        return None
    place = rng.choice(places)
    return _swap(text, match, name[:place] + name[place + 1] + name[place] + name[place + 2 :])


def level_dropped(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A path without one of its inner folders."""
    match = _PATH.search(text)
    parts = match.group().split("/") if match else []
    if match is None or len(parts) < 3:
        return None
    return _swap(text, match, "/".join(parts[:1] + parts[2:]))


def other_root(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A path below another folder."""
    match = _PATH.search(text)
    parts = match.group().split("/") if match else []
    if match is None or len(parts) < 2 or not parts[0].isalpha():
        return None
    return _swap(text, match, "/".join([rng.choice(("vendor", "scripts", "examples", "archive")), *parts[1:]]))


def hash_end(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A hash shortened at the wrong end."""
    match = _HASH.search(text)
    return _swap(text, match, match.group()[-7:]) if match and len(match.group()) > 7 else None


# --- numbers ---------------------------------------------------------------------------------------------------------


def decimal_shifted(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The point of a number in another place."""
    match = re.search(r"(?<![\w./,-])(\d{2,})\.(\d)(\d*)(?![\w.])", text)
    if match is None or line.kind in _SPOKEN:
        return None
    return _swap(text, match, f"{match[1][:-1]}.{match[1][-1]}{match[2]}{match[3]}")


def wrong_about(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A number rounded to something else."""
    match = _NUMBER.search(text)
    if match is None or line.kind in _SPOKEN or re.search(r"about|~|port|code|[vV]ersion|line", text):
        return None
    return _swap(text, match, f"about {max(1, round(float(match.group()) * 1.4))}")


def scale(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Thousands become millions."""
    match = re.search(r"(?<=\d)[kK](?![A-Za-z])", text)
    return _swap(text, match, "M") if match and line.kind not in _SPOKEN else None


# --- what happened ---------------------------------------------------------------------------------------------------


def weakened(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Not becomes hardly, never becomes rarely: what is forbidden happens at times."""
    table = {
        "is not": "is partly",
        "never": "rarely",
        "Never": "Sometimes",
        "must not": "should sometimes",
        "may be touched": "was touched",
        "no longer": "more and more often",
        "does not": "does at times",
        "doesn't": "occasionally does",
    }
    return None if line.kind in _SPOKEN else _replace_one(text, table, rng)


def other_deed(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Something else was done to it."""
    table = {
        "was modified": "was deleted",
        "Edited": "Deleted",
        "Looked at": "Renamed",
        "Committed": "Reverted",
        "was deployed to": "was rolled back from",
        "passed in": "were skipped in",
        "is called": "was dropped",
        "listens on": "was moved away from",
        "Hit": "Suppressed",
        "was chosen": "was uninstalled",
    }
    return None if line.kind in _SPOKEN else _replace_one(text, table, rng)


def chinese_deed(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Something else was done to it, in Chinese."""
    if line.kind != "translated":
        return None
    for old, new in (("已提交", "已撤销提交"), ("已部署到", "已从其回滚"), ("全部通过", "全部跳过")):
        if old in text:
            return text.replace(old, new, 1)
    return None


def called_fixed(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """An error is told as mended."""
    if line.kind == "error":
        return text.replace("Hit", "Fixed the", 1)
    if line.kind == "outcome" and "which failed" in text:
        return re.sub(r", which failed.*$", ", which now works", text)
    return None


def softened(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A failure becomes a success with remarks."""
    if "which failed" in text and line.kind == "outcome":
        return re.sub(r"which failed \(exit code \d+\)", "which succeeded with two warnings", text)
    return None


def called_done(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A wish is told as fulfilled."""
    for pattern, said in (
        (r"^The user wants (\w+) migrated from (\w+) to (\w+)$", r"Finished migrating \1 from \2 to \3"),
        (r"^The user asked for a (`--\w+`) flag on the (\w+) command.*$", r"The \2 command has a \1 flag now"),
        (r"^The (\w+) service is to run on port (\d+)$", r"The \1 service has been running on port \2 for a week"),
        (r"^Let me (check|look at|read|run|see) (.{10,80}?)\.?$", r"The \1 of \2 is complete"),
    ):
        if re.match(pattern, text):
            return re.sub(pattern, said, text)
    return None


def but_not(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """One of two is denied."""
    plain = _CODE.sub(lambda match: "\0" * len(match.group()), text)
    match = re.search(r"(?<=[a-z\0]) and (?!not\b)(?=[a-z\0])", plain)
    return _swap(text, match, " but not ") if match and line.kind not in _SPOKEN else None


def widened(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """One file becomes all of its kind."""
    match = re.match(r"^(Edited|Looked at) (\S+)/[^/\s]+$", text)
    if match:
        return f"{match[1]} every file under {match[2]}"
    match = re.match(r"^(\S+)/[^/\s]+ was modified$", text)
    return f"All files of {match[1]} were modified" if match else None


# --- who -------------------------------------------------------------------------------------------------------------


def by_the_user(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """What the agent did is told of the user."""
    match = re.match(r"^(Edited|Looked at|Ran|Committed) ", text)
    return f"The user {text[:1].lower()}{text[1:]}" if match else None


def agreed(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A thought of the assistant is told as the user's."""
    if line.kind not in ("verbatim", "reordered") or re.match(r"(?:Let|Now|I\b|I['’])", text):
        return None
    opening = rng.choice(("The user confirmed that", "The user insists that", "The user prefers that"))
    return f"{opening} {text[:1].lower()}{text[1:]}"


# --- added -----------------------------------------------------------------------------------------------------------


def reason_invented(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A cause that nobody gave."""
    return _add(
        text, line, rng, (" because the disk was full", " due to an expired certificate", " owing to a typhoon")
    )


def count_invented(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A number that nobody counted."""
    pieces = (f" across {rng.randrange(30, 90)} modules", f", the {rng.randrange(20, 60)}th attempt")
    return _add(text, line, rng, (*pieces, f" ({rng.randrange(21, 79)}% of the total)"))


def time_invented(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A time that nobody named."""
    return _add(text, line, rng, (" at 14:32", " on Tuesday evening", " on 3 March", " three weeks ago"))


def person_invented(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Somebody who had no part in it."""
    return _add(text, line, rng, (" (assigned to Viktor)", ", reviewed by Sandra", ", as Dr. Petrov suggested"))


def link_invented(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """A page that nobody opened."""
    return _add(text, line, rng, (" (https://wiki.example.org/runbook)", ", see docs/postmortem.md", " (see RFC 9110)"))


FOURTH_KINDS: dict[str, Mutation] = {
    "number nearby": number_nearby,
    "name nearby": name_nearby,
    "names exchanged": names_exchanged,
    "letters exchanged": letters_exchanged,
    "level dropped": level_dropped,
    "other root": other_root,
    "hash end": hash_end,
    "decimal shifted": decimal_shifted,
    "wrong about": wrong_about,
    "scale": scale,
    "weakened": weakened,
    "other deed": other_deed,
    "Chinese deed": chinese_deed,
    "called fixed": called_fixed,
    "softened": softened,
    "called done": called_done,
    "but not": but_not,
    "widened": widened,
    "by the user": by_the_user,
    "agreed": agreed,
    "reason invented": reason_invented,
    "count invented": count_invented,
    "time invented": time_invented,
    "person invented": person_invented,
    "link invented": link_invented,
}
