"""A fifth set of planted errors, written when the fourth verifier was finished; they have improved the fifth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tests.verify.mutations import Mutation
from tests.verify.true_lines import TrueLine

_NUMBER = re.compile(r"(?<![\w./,#:-])\d{2,6}(?![\w/:-]|[.,]\d)")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_PATH = re.compile(r"(?<![\w./:])(?:[\w.-]+/)+[\w.-]+\.\w{1,5}\b")
_CODE = re.compile(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\S*[/_]\S*")


def _in_place(pattern: re.Pattern[str], change: Callable[[str, Random], str | None]) -> Mutation:
    """One thing of a kind becomes another one."""

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        match = pattern.search(text)
        wrong = change(match.group(), rng) if match and not re.search(r"about|~", text) else None
        if match is None or wrong is None or wrong == match.group():
            return None
        return text[: match.start()] + wrong + text[match.end() :]

    return mutate


def _words(table: dict[str, str]) -> Mutation:
    """One of some words, outside code and quotations, becomes another."""
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in table))

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        found = list(pattern.finditer(_CODE.sub(lambda match: "\0" * len(match.group()), text)))
        if not found or line.kind == "quotation":
            return None
        match = rng.choice(found)
        return text[: match.start()] + table[match.group()] + text[match.end() :]

    return mutate


def _rewritten(*forms: tuple[str, str]) -> Mutation:
    """A line of a known form says something else."""
    patterns = [(re.compile(pattern), said) for pattern, said in forms]

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        fitting = [(pattern, said) for pattern, said in patterns if pattern.search(text)]
        if not fitting or line.kind == "combined":
            return None
        pattern, said = rng.choice(fitting)
        return pattern.sub(said, text, count=1)

    return mutate


def _added(*pieces: str) -> Mutation:
    """Something is added that nobody said."""

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        return None if line.kind == "quotation" else text.rstrip(".") + rng.choice(pieces)

    return mutate


def _hash_letters(value: str, rng: Random) -> str | None:
    places = [k for k in range(1, len(value) - 1) if value[k] != value[k + 1]]
    place = rng.choice(places) if places else 0
    return value[:place] + value[place + 1] + value[place] + value[place + 2 :] if places else None


def _stem_cut(path: str, rng: Random) -> str | None:
    folder, _, name = path.rpartition("/")
    parts = name.split("_")
    return f"{folder}/{'_'.join(parts[1:])}" if len(parts) > 1 else None


def _folders_exchanged(path: str, rng: Random) -> str | None:
    parts = path.split("/")
    return "/".join([parts[1], parts[0], *parts[2:]]) if len(parts) > 2 else None


FIFTH_KINDS: dict[str, Mutation] = {
    # Numbers.
    "digit added": _in_place(_NUMBER, lambda number, rng: number + rng.choice("123456789")),
    "digit dropped": _in_place(_NUMBER, lambda number, rng: number[:-1] if len(number) > 2 else None),
    "doubled": _in_place(_NUMBER, lambda number, rng: str(2 * int(number))),
    "one more": _in_place(_NUMBER, lambda number, rng: str(int(number) + 1)),
    # Hashes and paths.
    "hash letters": _in_place(_HASH, _hash_letters),
    "hash start": _in_place(_HASH, lambda value, rng: ("0" if value[0] != "0" else "1") + value[1:]),
    "stem cut": _in_place(_PATH, _stem_cut),
    "hyphen": _in_place(_PATH, lambda path, rng: path.replace("_", "-")),
    "folders exchanged": _in_place(_PATH, _folders_exchanged),
    "test file": _in_place(_PATH, lambda path, rng: re.sub(r"/([^/]+)$", r"/test_\1", path)),
    "folder added": _in_place(_PATH, lambda path, rng: re.sub(r"/([^/]+)$", r"/internal/\1", path)),
    "flag negated": _in_place(re.compile(r"(?<!\w)--(?!no-)[a-z][\w-]+"), lambda flag, rng: f"--no-{flag[2:]}"),
    # Denied.
    "could not": _words({"was deployed": "could not be deployed", "was modified": "could not be modified",
                         "passed in": "did not finish in", "listens on": "does not answer on",
                         "keeps": "still does not keep", "is working": "is not working yet"}),
    "without": _words({"with": "without", "without": "with", "including": "except for",
                       "covered by": "not covered by"}),
    "nobody": _words({"The user": "Nobody", "everything": "nothing", "Everything": "Nothing", "something": "nothing"}),
    "does not want": _words({"The user wants": "The user does not want", "The user asked for": "The user declined",
                             "The user forbids": "The user allows", "The user reports": "The user denies"}),
    "Chinese not": _rewritten((r"已提交", "未能提交"), (r"已部署", "没有部署"), (r"全部通过", "没有全部通过")),
    # Who.
    "somebody else": _words({"The user": "A reviewer", "The assistant": "A colleague"}),
    "error of the user": _rewritten((r"^Hit (\w+: .*)$", r"The user reported \1")),
    "Chinese user": _rewritten((r"^(已提交|测试)", r"用户要求：\1")),
    # When.
    "planned": _rewritten(
        (r"^Edited (\S+)$", r"The plan is to edit \1"),
        (r"^(\S+) was modified$", r"\1 is scheduled for modification"),
        (r"^Committed (.*)$", r"About to commit \1"),
        (r" was deployed to ", " is scheduled to be deployed to "),
        (r"^Looked at (\S+)$", r"Next, look at \1"),
    ),
    "still running": _rewritten((r"^Ran (`.+`), which .*$", r"\1 is still running"),),
    "half done": _rewritten(
        (r"^Edited (\S+)$", r"Began to edit \1 but gave up"),
        (r"^Committed (.*)$", r"Tried to commit \1 in vain"),
    ),
    "long ago": _rewritten((r"^(Edited|Looked at|Ran|Committed) (.*)$", r"\1 \2 before this session began")),
    # Added.
    "everywhere": _added(" in all environments", " on every customer's machine"),
    "result invented": _added(", which halved memory use", ", which made the dashboard load instantly"),
    "tool invented": _added(" using Terraform", " with the help of Ansible", " through Jenkins"),
    "damage invented": _added(" and broke the login page", ", which corrupted the billing records"),
    "order invented": _added(
        ", so the firewall must be restarted before each release", "; always notify the auditors first"
    ),
    "language invented": _added(" in Haskell", " (written in COBOL)", ", ported to Kotlin"),
    "speed invented": _added(", eleven times faster than before", ", at 9 requests per second"),
    "place invented": _added(" in the Frankfurt data centre", " at the Osaka office"),
}  # fmt: skip
