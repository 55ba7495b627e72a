"""The held-out planted errors: written when the verifier was finished, measured once, and not tuned on since."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tests.verify.mutations import Mutation
from tests.verify.true_lines import TrueLine

_NUMBER = re.compile(r"(?<![\w./,#:-])\d{2,6}(?![\w/:%-]|[.,]\d)")
_PATH = re.compile(r"(?<![\w./:])(?:[\w.-]+/)+[\w.-]+\.\w{1,5}\b")
_SYMBOL = re.compile(r"(?<![\w/.-])[a-z]+_[a-z_]+(?![\w/.=-])")
_COMMAND = re.compile(r"(?<=`)[a-z.][^`]* [^`]+(?=`)")
_SAID = re.compile(r"(?<=\")[^\"]{20,}(?=\")|(?<=“)[^”]{12,}(?=”)")


def _thing(pattern: re.Pattern[str], change: Callable[[str, Random], str | None]) -> Mutation:
    """One thing of a line becomes another."""

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        found = list(pattern.finditer(text))
        if not found or re.search(r"about|~|exit", text):
            return None
        match = rng.choice(found)
        wrong = change(match.group(), rng)
        return None if wrong in (None, match.group()) else f"{text[: match.start()]}{wrong}{text[match.end() :]}"

    return mutate


def _form(*forms: tuple[str, str]) -> Mutation:
    """A line of a known form tells something else."""

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        fitting = [(pattern, said) for pattern, said in forms if re.search(pattern, text)]
        if not fitting or line.kind == "combined":
            return None
        pattern, said = rng.choice(fitting)
        return re.sub(pattern, said, text, count=1)

    return mutate


def _more(*pieces: str, unless: str = "quotation") -> Mutation:
    """Something is added."""

    def mutate(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
        return None if line.kind == unless or not text.isascii() else text.rstrip(".") + rng.choice(pieces)

    return mutate


def _camel(name: str, rng: Random) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _word_dropped(said: str, rng: Random) -> str | None:
    words = said.split()
    place = rng.randrange(1, len(words) - 1) if len(words) > 4 else 0
    return " ".join(words[:place] + words[place + 1 :]) if place and len(words[place]) > 3 else None


def _word_changed(said: str, rng: Random) -> str | None:
    words = said.split()
    long = [k for k, word in enumerate(words) if len(word) > 4 and word.isalpha() and word.islower()]
    if not long:
        return None
    words[rng.choice(long)] = rng.choice(("calendar", "harbour", "violet", "seldom"))
    return " ".join(words)


def instead_of(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Another file of the session is said to have been meant."""
    match = re.match(r"^(Edited|Looked at) (\S+)$", text)
    paths = sorted({m.group() for other in others for m in _PATH.finditer(other.text)})
    wrong = [path for path in paths if match and path.rsplit("/", 1)[-1] not in text]
    return f"{match[1]} {rng.choice(wrong)} instead of {match[2]}" if match and wrong else None


def caused(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """Two facts are told as cause and effect."""
    near = [other.text for other in others if other.kind == "error" and other.sources != line.sources]
    if line.kind not in ("action", "reworded", "short path") or not near:
        return None
    return f"{text.rstrip('.')}, which caused the {rng.choice(near).removeprefix('Hit ').split(':')[0]}"


def two_in_one(text: str, line: TrueLine, others: Sequence[TrueLine], rng: Random) -> str | None:
    """The outcome of one command is told of another one as well."""
    commands = sorted({m[1] for other in others if (m := re.match(r"^Ran (`[^`]+`), which failed", other.text))})
    match = re.match(r"^Ran (`[^`]+`), which succeeded", text)
    wrong = [command for command in commands if match and command != match[1]]
    return f"Both {match[1]} and {rng.choice(wrong)} succeeded" if match and wrong else None


HELD_OUT_KINDS: dict[str, Mutation] = {
    # Numbers.
    "count to share": _thing(_NUMBER, lambda number, rng: f"{number}%" if int(number) < 100 else None),
    "range": _thing(_NUMBER, lambda number, rng: f"between {int(number) + 3} and {int(number) + 9}"),
    "lower bound": _thing(_NUMBER, lambda number, rng: f"at least {2 * int(number)}"),
    "thousands": _thing(_NUMBER, lambda number, rng: f"{number}k"),
    "digits turned": _thing(_NUMBER, lambda number, rng: number[::-1] if number[-1] != "0" else None),
    "other exit code": _form((r"exit code 0", "exit code 3"), (r"exit code [1-9]\d*", "exit code 137")),
    "average": _form((r"took about (\d+) s", r"took \1 s on average over five runs")),
    "each": _form((r"passed in ([\d.]+) seconds", r"passed in \1 seconds each")),
    # Names.
    "extension": _thing(_PATH, lambda path, rng: path.rsplit(".", 1)[0] + rng.choice((".rb", ".lua", ".cfg"))),
    "plural": _thing(_SYMBOL, lambda name, rng: f"{name}s" if not name.endswith("s") else None),
    "camel case": _thing(_SYMBOL, _camel),
    "underscore": _thing(_SYMBOL, lambda name, rng: f"_{name}"),
    "line added": _thing(_PATH, lambda path, rng: f"{path}:{rng.randrange(3000, 9000)}"),
    "other branch": _form((r"\brelease-(\d+)", r"hotfix-\1"), (r" on main\b", " on staging")),
    "other tracker": _form((r"\bOPS-(\d+)", r"BUG-\1")),
    "option added": _thing(_COMMAND, lambda command, rng: command + rng.choice((" --force", " --dry-run", " --all"))),
    "argument dropped": _thing(_COMMAND, lambda command, rng: command.rsplit(" ", 1)[0]),
    "instead of": instead_of,
    # What happened.
    "only read": _form((r"^Edited (\S+)$", r"Read \1 without changing it"),
                       (r"^(\S+) was modified$", r"\1 was left as it was")),
    "from a template": _form((r"^Edited (\S+)$", r"Generated \1 from a template"),
                             (r"^Changes were applied to (\S+)$", r"\1 was imported from another project")),
    "collected only": _form((r"^All (\d+) tests passed.*$", r"\1 tests were collected but none was executed")),
    "after a retry": _form((r"tests passed in", "tests passed after a retry in"),
                           (r", which succeeded", ", which succeeded at the third try")),
    "as expected": _form((r", which failed \(", ", which failed on purpose (")),
    "hung": _form((r", which succeeded.*$", ", which hung until it was stopped"),
                  (r" went through \(.*$", " never returned")),
    "other direction": _form((r"comes from", "leads to"), (r"moves? (\w+) from", r"copies \1 to"),
                             (r"is called from", "calls into"), (r"is read before", "is read long after")),
    "two in one": two_in_one,
    "caused": caused,
    # Who.
    "linter asks": _form((r"^The user (?:asked for|wants|reports that)", "The linter complains about")),
    "assistant refuses": _form((r"^The assistant (?:has|will|intends to)", "The assistant refused to")),
    "disputed": _form((r"^The user reports that", "The user disputes that"),
                      (r"^The user said:", "The user quoted somebody who said:")),
    "only there": _form((r"^Nothing under (\S+) may be touched", r"Only what is under \1 may be touched"),
                        (r"^The user forbids pushing", "The user advises against pushing")),
    "quoted word dropped": _thing(_SAID, _word_dropped),
    "quoted word changed": _thing(_SAID, _word_changed),
    # Added.
    "blocked": _more(", so the release is blocked", " and has to wait for the auditors"),
    "verdict": _more(", the root cause of the outage", ", a known limitation of the framework"),
    "follow-up": _more(" and needs a follow-up migration", "; documentation is still missing"),
    "audience": _more(" for mobile users only", " in the German version"),
    "condition added": _more(" unless the cache is warm", " as long as nobody is logged in"),
    "Chinese addition": _form((r"^((?:已提交|修改了|测试).*)$", r"\1，但客户尚未确认"),
                              (r"^(运行 .*)$", r"\1，并通知了运维团队")),
    "German denial": _form((r"wurde geändert", "wurde gelöscht"), (r"ist erstellt", "ist verworfen"),
                           (r"est modifié", "n'est pas modifié")),
}  # fmt: skip
