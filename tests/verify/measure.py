"""Measuring the verifier: how many planted errors it catches, how many true lines it drops.

    python -m tests.verify.measure            # on generated sessions
    python -m tests.verify.measure FOLDER     # on recorded sessions, one sub-folder per format

prints the table of `docs/verification.md`; `--show` adds the lines it got wrong.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from leporello.errors import InputError
from leporello.importers import load_session
from leporello.messages import Message
from leporello.summary.base import SummaryTask
from leporello.summary.handoff import Handoff, Line, Origin, Section
from leporello.summary.verify import Source, verify
from leporello.testing.sessions import SessionSpec, Style, generate
from tests.verify.fifth_mutations import FIFTH_KINDS
from tests.verify.fourth_mutations import FOURTH_KINDS
from tests.verify.last_true_lines import LAST_TRUE_KINDS
from tests.verify.more_true_lines import MORE_TRUE_KINDS
from tests.verify.mutations import KINDS, Mutation
from tests.verify.second_mutations import SECOND_KINDS
from tests.verify.third_mutations import THIRD_KINDS
from tests.verify.true_lines import TRUE_KINDS, TrueLine, TrueLines

CITED = 0.7
"""The share of lines that carry the id of their source."""
EACH = 10
"""The most lines of one kind from one session: no kind outweighs the others."""
SEEDS = (1, 2, 3, 4, 5)
MOST_MESSAGES = 400
LEAST_MESSAGES = 30
PER_FOLDER = 2

ERRORS: dict[str, Mapping[str, Mutation]] = {
    "first": KINDS,
    "second": SECOND_KINDS,
    "third": THIRD_KINDS,
    "fourth": FOURTH_KINDS,
    "fifth": FIFTH_KINDS,
}
TRUE: dict[str, Mapping[str, TrueLines]] = {"first": TRUE_KINDS, "more": MORE_TRUE_KINDS, "last": LAST_TRUE_KINDS}


@dataclass(slots=True)
class Score:
    """Counts by kind, of true lines that were dropped or of planted errors that were caught."""

    lines: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def share(self, kinds: Iterable[str] | None = None) -> float:
        """How many of the lines of these kinds went."""
        chosen = list(self.lines if kinds is None else kinds)
        return sum(self.gone[kind] for kind in chosen) / max(1, sum(self.lines[kind] for kind in chosen))


@dataclass(slots=True)
class Result:
    """What was measured, over all sessions."""

    true: Score = field(default_factory=Score)
    planted: Score = field(default_factory=Score)

    def table(self) -> Iterator[str]:
        """The lines of a Markdown table."""
        yield "| kind | set | lines | dropped or caught |"
        yield "|---|---|---:|---:|"
        for title, score, sets in (("true lines", self.true, TRUE), ("planted errors", self.planted, ERRORS)):
            for name, kinds in sets.items():
                yield from (_row(kind, name, score, [kind]) for kind in kinds if score.lines[kind])
                yield _row(f"**{title}: {name}**", name, score, kinds)
            yield _row(f"**{title}: all**", "", score, list(score.lines))


def _row(title: str, name: str, score: Score, kinds: Iterable[str]) -> str:
    kinds = list(kinds)
    return f"| {title} | {name} | {sum(score.lines[kind] for kind in kinds)} | {score.share(kinds):.1%} |"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the summary under test: true, or made false in one way."""

    kind: str
    line: Line
    section: Section
    origin: str
    false: bool


def entries(messages: Sequence[Message], rng: Random, each: int) -> list[Entry]:
    """True lines and planted errors of a session, at most so many of each kind."""
    by_kind = {
        kind: list({line.text: line for line in make(messages, rng)}.values())
        for kinds in TRUE.values()
        for kind, make in kinds.items()
    }
    everything = [line for lines in by_kind.values() for line in lines]
    true = {_bare(line.text) for line in everything}
    found = []
    material: list[tuple[TrueLine, tuple[int, ...]]] = []
    for kind, lines in by_kind.items():
        for line in rng.sample(lines, min(each, len(lines))):
            sources = line.sources if rng.random() < CITED else ()
            material.append((line, sources))
            found.append(Entry(kind, Line(line.text, sources, Origin.MODEL), line.section, line.text, false=False))
    for kind, mutate in ((kind, mutate) for kinds in ERRORS.values() for kind, mutate in kinds.items()):
        made = []
        for line, sources in material:
            text = mutate(line.text, line, everything, rng)
            if text is not None and _bare(text) not in true:
                made.append(Entry(kind, Line(text, sources, Origin.MODEL), line.section, line.text, false=True))
        found.extend(rng.sample(made, min(each, len(made))))
    return found


def _bare(text: str) -> str:
    """A line with its paths shortened to their last part, to see whether a planted error happens to be true."""
    return re.sub(r"[\w.-]+(?:/[\w.-]+)+", lambda match: match.group().rsplit("/", 1)[1], text)


def measure(sessions: Iterable[Sequence[Message]], each: int = EACH) -> Result:
    """Check true lines and planted errors of every session in one handoff, and count."""
    result = Result()
    for seed, messages in enumerate(sessions):
        chosen = entries(messages, Random(seed), each)
        handoff = Handoff(
            {
                section: tuple(entry.line for entry in chosen if entry.section is section)
                for section in dict.fromkeys(entry.section for entry in chosen)
            }
        )
        task = SummaryTask(list(enumerate(messages, 1)), None, 10_000)
        kept = {(section, line.text) for section, line in verify(handoff, task)[0].lines()}
        source = Source(task)
        for entry in chosen:
            score = result.planted if entry.false else result.true
            stands = (entry.section, entry.line.text) in kept
            score.lines[entry.kind] += 1
            score.gone[entry.kind] += not stands
            if stands == entry.false:
                why = f"<- {entry.origin}" if entry.false else f"({source.why_not(entry.line, entry.section)})"
                score.wrong.append(f"{entry.kind}: {entry.line.text} {list(entry.line.sources)} {why}")
    return result


def generated() -> Iterator[Sequence[Message]]:
    """Sessions of our own making."""
    for seed in SEEDS:
        style = Style.ALL_TOOL if seed == SEEDS[-1] else Style.CODING
        yield generate(SessionSpec(seed=seed, messages=200, tokens=50_000, style=style)).messages


def recorded(folder: Path) -> Iterator[Sequence[Message]]:
    """The largest sessions of each format in a folder."""
    for part in sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "fixtures"):
        files = sorted((path for path in part.iterdir() if path.is_file()), key=lambda path: -path.stat().st_size)
        for path in files[:PER_FOLDER]:
            try:
                messages = list(load_session(path).messages)[:MOST_MESSAGES]
            except InputError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            if len(messages) >= LEAST_MESSAGES:
                yield messages


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    folders = [Path(argument) for argument in arguments if argument != "--show"]
    result = measure(recorded(folders[0]) if folders else generated())
    print("\n".join(result.table()))
    if "--show" in arguments:
        print("\nDropped though true:", *result.true.wrong, "\nKept though false:", *result.planted.wrong, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
