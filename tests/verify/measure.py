"""Measuring the verifier: how many planted errors it catches, how many true lines it loses, how many it quotes.

    python -m tests.verify.measure            # on generated sessions
    python -m tests.verify.measure FOLDER     # on recorded sessions, one sub-folder per format

prints the table of `docs/explanation/verification.md`; `--show` adds the lines it got wrong.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from leporello.errors import InputError
from leporello.importers import load_session
from leporello.messages import Message
from leporello.summaries.base import SummaryTask
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.verify import CoveredTurns, verify
from leporello.testing.sessions import SessionSpec, Style, generate
from tests.verify.carried import carries
from tests.verify.fifth_mutations import FIFTH_KINDS
from tests.verify.fourth_mutations import FOURTH_KINDS
from tests.verify.heldout_mutations import HELD_OUT_KINDS
from tests.verify.heldout_true_lines import HELD_OUT_TRUE_KINDS
from tests.verify.last_true_lines import LAST_TRUE_KINDS
from tests.verify.more_true_lines import MORE_TRUE_KINDS
from tests.verify.mutations import KINDS, Mutation
from tests.verify.second_mutations import SECOND_KINDS
from tests.verify.third_mutations import THIRD_KINDS
from tests.verify.true_lines import TRUE_KINDS, TrueLine, TrueLines

CITED = 0.7
"""The share of lines that carry the id of their source."""
ROOM = 1_000_000
"""Tokens: all the lines stand in one handoff."""
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
    "held out": HELD_OUT_KINDS,
}
TRUE: dict[str, Mapping[str, TrueLines]] = {
    "first": TRUE_KINDS,
    "more": MORE_TRUE_KINDS,
    "last": LAST_TRUE_KINDS,
    "held out": HELD_OUT_TRUE_KINDS,
}


@dataclass(slots=True)
class Score:
    """Counts by kind: all lines, those that stand in their own words, those replaced by words that carry the same."""

    lines: Counter[str] = field(default_factory=Counter)
    stand: Counter[str] = field(default_factory=Counter)
    quoted: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def standing(self, kinds: Iterable[str] | None = None) -> float:
        """The share of the lines of these kinds that stand in their own words."""
        return self._share(self.stand, kinds)

    def carried(self, kinds: Iterable[str] | None = None) -> float:
        """The share that was replaced by the words it came from."""
        return self._share(self.quoted, kinds)

    def lost(self, kinds: Iterable[str] | None = None) -> float:
        """The share that neither stands nor was replaced by words that carry its essentials."""
        chosen = list(self.lines if kinds is None else kinds)
        return 1.0 - self.standing(chosen) - self.carried(chosen)

    def _share(self, counts: Counter[str], kinds: Iterable[str] | None) -> float:
        chosen = list(self.lines if kinds is None else kinds)
        return sum(counts[kind] for kind in chosen) / max(1, sum(self.lines[kind] for kind in chosen))


@dataclass(slots=True)
class Result:
    """What was measured, over all sessions."""

    true: Score = field(default_factory=Score)
    planted: Score = field(default_factory=Score)

    def table(self, *, whole: bool = True) -> Iterator[str]:
        """The lines of a Markdown table; `whole` gives every kind a line."""
        yield "| kind | set | lines | in its own words | in the words of the source | gone |"
        yield "|---|---|---:|---:|---:|---:|"
        for title, score, sets in (("true lines", self.true, TRUE), ("planted errors", self.planted, ERRORS)):
            for name, kinds in sets.items():
                if whole:
                    yield from (_row(kind, name, score, [kind]) for kind in kinds if score.lines[kind])
                yield _row(f"**{title}: {name}**", name, score, kinds)
            yield _row(f"**{title}: all**", "", score, list(score.lines))


def _row(title: str, name: str, score: Score, kinds: Iterable[str]) -> str:
    kinds = list(kinds)
    lines = sum(score.lines[kind] for kind in kinds)
    shares = (score.standing(kinds), score.carried(kinds), score.lost(kinds))
    return f"| {title} | {name} | {lines} | {' | '.join(f'{abs(share):.1%}' for share in shares)} |"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the summary under test: true, or made false in one way; `places` are all messages that say it."""

    kind: str
    line: HandoffLine
    section: Section
    origin: str
    false: bool
    places: frozenset[int]


def entries(messages: Sequence[Message], rng: Random, each: int) -> list[Entry]:
    """True lines and planted errors of a session, at most so many of each kind."""
    by_kind: dict[str, list[TrueLine]] = {}
    places: dict[str, set[int]] = {}
    for kind, make in ((kind, make) for kinds in TRUE.values() for kind, make in kinds.items()):
        made = list(make(messages, rng))
        for line in made:
            places.setdefault(line.text, set()).update(line.sources)
        by_kind[kind] = list({line.text: line for line in made}.values())
    everything = [line for lines in by_kind.values() for line in lines]
    true = {_bare(line.text) for line in everything}
    found = []
    material: list[tuple[TrueLine, tuple[int, ...]]] = []
    for kind, lines in by_kind.items():
        for line in rng.sample(lines, min(each, len(lines))):
            sources = line.sources if rng.random() < CITED else ()
            material.append((line, sources))
            found.append(_entry(kind, line, line.text, sources, places))
    for kind, mutate in ((kind, mutate) for kinds in ERRORS.values() for kind, mutate in kinds.items()):
        planted = []
        for line, sources in material:
            text = mutate(line.text, line, everything, rng)
            if text is not None and _bare(text) not in true:
                planted.append(_entry(kind, line, text, sources, places))
        found.extend(rng.sample(planted, min(each, len(planted))))
    return found


def _entry(
    kind: str, line: TrueLine, text: str, sources: tuple[int, ...], places: Mapping[str, Collection[int]]
) -> Entry:
    shown = HandoffLine(text, sources, LineOrigin.MODEL)
    return Entry(kind, shown, line.section, line.text, text != line.text, frozenset(places[line.text]))


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
        task = SummaryTask(list(enumerate(messages, 1)), None, ROOM)
        checked = list(verify(handoff, task)[0].lines())
        source = CoveredTurns(task)
        for entry in chosen:
            _count(result, entry, checked, source, messages)
    return result


def _count(
    result: Result,
    entry: Entry,
    checked: Sequence[tuple[Section, HandoffLine]],
    source: CoveredTurns,
    messages: Sequence[Message],
) -> None:
    score = result.planted if entry.false else result.true
    score.lines[entry.kind] += 1
    if any(section is entry.section and line.text == entry.line.text for section, line in checked):
        score.stand[entry.kind] += 1
        if entry.false:
            score.notes.append(f"STANDS {entry.kind}: {entry.line.text} {list(entry.line.sources)} <- {entry.origin}")
        return
    quotations = [line for _, line in source.quoted(entry.line, entry.section)]
    there = [line for line in quotations if any(_same(line, other) for _, other in checked)]
    if len(there) == len(quotations) and carries(entry.origin, entry.places, there, messages):
        score.quoted[entry.kind] += 1
    if not entry.false:
        why = source.why_not(entry.line, entry.section)
        lost = "LOST" if not carries(entry.origin, entry.places, there, messages) else "QUOTED"
        said = [f"{line.text} {list(line.sources)}" for line in quotations]
        score.notes.append(f"{lost} {entry.kind}: {entry.line.text} {list(entry.line.sources)} ({why}) -> {said}")


def _same(one: HandoffLine, other: HandoffLine) -> bool:
    """Whether two lines say the same of the same message; one of them may be the model's verbatim copy."""
    return one.sources == other.sources and one.text.rstrip(".").casefold() == other.text.rstrip(".").casefold()


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
        print(*result.true.notes, *result.planted.notes, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
