"""Fits the weights of `leporello.ledger.rule_score` to labelled messages.

    python scripts/fit_rule_score.py [SET.json[:SHARE] ...] [--check folds|set|language]

A set is `{language: {"rules": [...], "lookalikes": [...]}}`, each a message, or `[sentence, company]` where only a
sentence of it was labelled; those of `tests/ledger` are always among them. SHARE is how much a message of a set counts:
1 unless given, less for recorded sessions that no person labelled. `--check` leaves out a fifth of all messages, each
set, or each language in turn, and says how the rest reads them: the honest figures. Without it the weights are
written. Of a rule in several sentences the one that reads most like a rule has to be found, of a look-alike none.
"""

from __future__ import annotations

import argparse
import json
from base64 import b85encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from zlib import compress, crc32

import numpy as np

from leporello.ledger import rule_score
from leporello.ledger.language import language_of
from leporello.ledger.quoted import prose
from leporello.ledger.rule_score import PLACES, places_of, signs_of
from leporello.ledger.rules import LEAST_SCORE, company_of, rule_sentences, said_in
from leporello.testing.sessions.story import rule_words, slots
from tests.ledger import conflicts, corpus, phrasings

WEIGHTS = Path(rule_score.__file__).with_name("rule_weights.json")
SETS = Path(corpus.__file__).with_name("sets")
OURS = ("rules", "requests", "train", "standing", "everyday")
PIECES_RIDGE, SIGNS_RIDGE, BIAS_RIDGE = 8.0, 0.5, 1e-3
"""How strongly a weight is held at zero."""
PIECES_SCALE = 9.0
"""What the pieces of a sentence weigh together beside one sign."""
LEAST_SEEN = 5
GIVEN = "given "
ROUNDS, STEPS, REMEMBERED, ENOUGH = 2, 120, 12, 5e-5
FOLDS = 5

Row = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Example:
    source: str
    language: str
    rule: bool
    told: tuple[tuple[frozenset[str], frozenset[int]], ...]
    """The signs and pieces of each thing that is said in the message."""
    share: float = 1.0
    key: int = 0


def example(source: str, language: str, text: str | Sequence[str], rule: bool, share: float = 1.0) -> Example:
    sentences = rule_sentences(text) if isinstance(text, str) else [text[0]]
    company = company_of(sentences) if isinstance(text, str) else text[1]
    told = []
    for said in (piece for sentence in sentences for piece in said_in(sentence)):
        signs = signs_of(said, language) | ({company} - {""})
        told.append((signs, places_of(said, language, signs)))
    return Example(source, language, rule, tuple(told), share, crc32(str(text).encode()))


def of_set(source: str, languages: dict[str, dict[str, Sequence[str]]], share: float = 1.0) -> Iterator[Example]:
    for language, texts in languages.items():
        for name, rule in (("rules", True), ("lookalikes", False)):
            yield from (example(source, language, text, rule, share) for text in texts[name])


def of_tests() -> Iterator[Example]:
    told = {name: {"rules": corpus.RULES[name], "lookalikes": corpus.LOOK_ALIKES[name]} for name in corpus.RULES}
    yield from of_set("corpus", told)
    found = (*phrasings.ENGLISH, *phrasings.CHINESE, *phrasings.LATER, *phrasings.FURTHER, *phrasings.OTHER)
    others = (*phrasings.NOT_RULES, *phrasings.LATER_NOT_RULES, *phrasings.FURTHER_NOT_RULES)
    for texts, rule in ((found, True), (others, False)):
        yield from (example("phrasings", language_of(text), text, rule) for text in texts)
    for text in dict.fromkeys(
        (*(earlier for pair in (*conflicts.ENDED, *conflicts.KEPT) for earlier in pair[:1]), *plain())
    ):
        yield example("conflicts", language_of(text), text, rule=True)


def plain() -> Iterator[str]:
    """The rules of generated conversations, with names filled in."""
    for number, words in enumerate(words for words in rule_words() if words.plain and words.language in ("en", "zh")):
        yield words.filled(slots(Random(number), ("src/billing/load_cache.py", "lib/x/y.ts"), "release-2048")).text


def of_pastes(path: Path) -> Iterator[Example]:
    """What is left of messages with pasted texts: some have a rule of the user beside them."""
    for case in json.loads(path.read_text("utf-8")):
        yield example(path.name, language_of(case["own"] or case["message"]), prose(case["message"]), bool(case["own"]))


class Fit:
    """Logistic regression with a ridge, by the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno."""

    def __init__(self, examples: Sequence[Example]) -> None:
        seen = Counter(sign for one in examples for signs, _ in one.told for sign in signs)
        self.names = sorted(sign for sign, times in seen.items() if times >= LEAST_SEEN)
        self._place = {name: PLACES + place for place, name in enumerate((*self.names, "bias"))}
        self.weights = np.zeros(PLACES + len(self._place))
        ridge = np.full(len(self.weights), SIGNS_RIDGE)
        ridge[:PLACES], ridge[-1] = PIECES_RIDGE, BIAS_RIDGE
        rows = [(one, [self._row(*told) for told in one.told]) for one in examples if one.told]
        for _ in range(ROUNDS):
            picked = [
                (row, one)
                for one, all_rows in rows
                for row in ([max(all_rows, key=self._dot)] if one.rule else all_rows)
            ]
            self.weights = least(loss_of(picked, ridge), self.weights)

    def _row(self, signs: Iterable[str], places: frozenset[int]) -> Row:
        known = [self._place[sign] for sign in (*sorted(signs), "bias") if sign in self._place]
        scale = PIECES_SCALE / max(1, len(places)) ** 0.5
        return np.array([*sorted(places), *known]), np.array([scale] * len(places) + [1.0] * len(known))

    def _dot(self, row: Row) -> float:
        return float(self.weights[row[0]] @ row[1])

    def score(self, one: Example) -> float:
        """In hundredths; far below zero where nothing is said."""
        return max((100 * self._dot(self._row(*told)) for told in one.told), default=-1e6)

    def shipped(self) -> dict[str, object]:
        """The weights as whole numbers."""
        pieces = self.weights[:PLACES]
        largest = float(np.abs(pieces).max())
        rounded = np.rint(pieces / largest * 127).astype(np.int8)
        return {
            "fitted_by": "scripts/fit_rule_score.py",
            "signs": {name: round(100 * self.weights[place]) for name, place in self._place.items()},
            "step": round(largest / 127 * PIECES_SCALE * 100 * 1000),
            "pieces": b85encode(compress(rounded.tobytes(), 9)).decode(),
        }


def loss_of(
    picked: Sequence[tuple[Row, Example]], ridge: np.ndarray
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    where = np.concatenate([row[0] for row, _ in picked])
    value = np.concatenate([row[1] for row, _ in picked])
    lengths = np.array([len(row[0]) for row, _ in picked])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    owner = np.repeat(np.arange(len(picked)), lengths)
    rule = np.array([float(one.rule) for _, one in picked])
    share = np.array([one.share for _, one in picked])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        told = np.add.reduceat(weights[where] * value, starts)
        likely = 1 / (1 + np.exp(-told))
        total = (share * (np.logaddexp(0, told) - rule * told)).sum() + 0.5 * (ridge * weights**2).sum()
        slope = np.bincount(where, weights=(share * (likely - rule))[owner] * value, minlength=len(weights))
        return float(total), slope + ridge * weights

    return loss


def least(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], weights: np.ndarray) -> np.ndarray:
    """The weights of the least loss, from these on."""
    value, slope = loss(weights)
    steps: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(STEPS):
        way = -bent(slope, steps)
        length = 1.0
        while True:
            next_value, next_slope = loss(weights + length * way)
            if next_value <= value + 1e-4 * length * float(slope @ way) or length < 1e-8:
                break
            length /= 2
        weights = weights + length * way
        if float(way @ (next_slope - slope)) > 0:
            steps = [*steps, (length * way, next_slope - slope)][-REMEMBERED:]
        done = abs(value - next_value) < ENOUGH * max(1.0, abs(next_value))
        value, slope = next_value, next_slope
        if done:
            break
    return weights


def bent(slope: np.ndarray, steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The slope times the inverse of the curvature that the last steps showed."""
    if not steps:
        return slope / max(1.0, float(np.linalg.norm(slope)))
    way = slope.copy()
    shares = []
    for step, change in reversed(steps):
        shares.append(float(step @ way) / float(change @ step))
        way = way - shares[-1] * change
    step, change = steps[-1]
    way = way * (float(step @ change) / float(change @ change))
    for (step, change), share in zip(steps, reversed(shares), strict=True):
        way = way + step * (share - float(change @ way) / float(change @ step))
    return way


def told(name: str, read: Sequence[tuple[Example, float]]) -> None:
    """How many rules were found and look-alikes taken, and how often a rule scores above a look-alike."""
    rules = np.array([score for one, score in read if one.rule])
    others = np.array([score for one, score in read if not one.rule])
    above = float((rules[:, None] > others[None, :]).mean()) if len(rules) and len(others) else float("nan")
    print(
        f"{name}: rules {int((rules >= LEAST_SCORE).sum())} of {len(rules)},"
        f" look-alikes {int((others >= LEAST_SCORE).sum())} of {len(others)}, above {above:.3f}",
        flush=True,
    )


def check(examples: Sequence[Example], by: str) -> None:
    parts = {
        "folds": lambda one: str(one.key % FOLDS),
        "set": lambda one: one.source,
        "language": lambda one: one.language,
    }[by]
    read: list[tuple[Example, float]] = []
    for left in sorted(set(map(parts, examples))):
        fit = Fit([one for one in examples if parts(one) != left])
        read += [(one, fit.score(one)) for one in examples if parts(one) == left]
    for source in sorted({one.source for one in examples}):
        told(source, [(one, score) for one, score in read if one.source == source])
    ours = [(one, score) for one, score in read if not one.source.startswith(GIVEN)]
    for language in sorted({one.language for one in examples}):
        told(language, [(one, score) for one, score in ours if one.language == language])
    told("all of ours", ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET.json[:SHARE]")
    parser.add_argument("--check", choices=("folds", "set", "language"))
    options = parser.parse_args()
    examples = [*of_tests(), *of_pastes(SETS / "pastes.json")]
    for name in OURS:
        examples.extend(of_set(name, json.loads((SETS / f"{name}.json").read_text("utf-8"))))
    for given in options.sets:
        path, _, share = given.partition(":")
        source = f"{GIVEN}{Path(path).stem}"
        examples.extend(of_set(source, json.loads(Path(path).read_text("utf-8")), float(share or 1)))
    if options.check:
        check(examples, options.check)
    else:
        WEIGHTS.write_text(json.dumps(Fit(examples).shipped(), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
