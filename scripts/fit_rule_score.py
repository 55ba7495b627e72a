"""Fits the weights of `leporello.ledger.rule_score` to labelled sentences.

    python scripts/fit_rule_score.py SET.json[:SHARE] ... [--check]

A set is `{language: {"rules": [...], "lookalikes": [...]}}`, each a message; those of `tests/ledger` are always among
them. SHARE is how much a message of a set counts: 1 unless given, less for recorded sessions that no person labelled.
The fit begins with the weights that are there and leaves them only as far as the sets ask for it, so what earlier sets
taught is not lost. `--check` leaves out each set in turn, then each language, and says how the rest reads it; without
it the weights are written. Of a rule in several sentences the one that reads most like a rule has to be found, of a
look-alike none.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leporello.ledger import rule_score
from leporello.ledger.quoted import prose
from leporello.ledger.rules import LEAST_SCORE, company_of, language_of, rule_sentences
from tests.ledger import corpus, phrasings

SIGNS = Path(rule_score.__file__).with_name("rule_signs.json")
RIDGE = 4.0
"""How strongly a weight is held where it is."""
SETS = Path(corpus.__file__).with_name("sets")
LEAST_SEEN = 5
ROUNDS, STEPS = 3, 12


@dataclass(frozen=True, slots=True)
class Example:
    source: str
    language: str
    rule: bool
    signs: tuple[frozenset[str], ...]
    share: float = 1.0


def example(source: str, language: str, text: str, rule: bool, share: float = 1.0) -> Example:
    sentences = rule_sentences(text) or [text]
    company = company_of(sentences)
    signs = tuple(rule_score.signs_of(said, language, company) for said in sentences)
    return Example(source, language, rule, signs, share)


def of_set(source: str, languages: dict[str, dict[str, Sequence[str]]], share: float = 1.0) -> Iterable[Example]:
    for language, texts in languages.items():
        for name, rule in (("rules", True), ("lookalikes", False)):
            yield from (example(source, language, text, rule, share) for text in texts[name])


def of_tests() -> Iterable[Example]:
    told = {name: {"rules": corpus.RULES[name], "lookalikes": corpus.LOOK_ALIKES[name]} for name in corpus.RULES}
    yield from of_set("corpus", told)
    found = (*phrasings.ENGLISH, *phrasings.CHINESE, *phrasings.LATER, *phrasings.FURTHER, *phrasings.OTHER)
    others = (*phrasings.NOT_RULES, *phrasings.LATER_NOT_RULES, *phrasings.FURTHER_NOT_RULES)
    for texts, rule in ((found, True), (others, False)):
        yield from (example("phrasings", language_of(text), text, rule) for text in texts)


def of_pastes(path: Path) -> Iterable[Example]:
    """What is left of messages with pasted texts: some have a rule of the user beside them."""
    for case in json.loads(path.read_text("utf-8")):
        yield example(path.name, language_of(case["own"] or case["message"]), prose(case["message"]), bool(case["own"]))


class Fit:
    """Logistic regression with a ridge, by Newton's method."""

    def __init__(self, examples: Sequence[Example], names: Sequence[str]) -> None:
        self.names = list(names)
        self._place = {name: place for place, name in enumerate(self.names)}
        rows = [(one, [self._row(signs) for signs in one.signs]) for one in examples]
        known = json.loads(SIGNS.read_text("utf-8"))["weights"]
        self.held = np.array([known.get(name, 0.0) for name in (*self.names, "bias")])
        self.weights = self.held.copy()
        for _ in range(ROUNDS):
            picked = [
                (row, one.rule, one.share)
                for one, all_rows in rows
                for row in ([max(all_rows, key=lambda row: row @ self.weights)] if one.rule else all_rows)
            ]
            x, y, share = (np.array(column, dtype=float) for column in zip(*picked, strict=True))
            self._newton(x, y, share)

    def _newton(self, x: np.ndarray, y: np.ndarray, share: np.ndarray) -> None:
        ridge = np.full(x.shape[1], RIDGE)
        ridge[-1] = 1e-3
        for _ in range(STEPS):
            likely = 1 / (1 + np.exp(-x @ self.weights))
            slope = x.T @ (share * (likely - y)) + ridge * (self.weights - self.held)
            bend = (x * (share * likely * (1 - likely))[:, None]).T @ x + np.diag(ridge)
            self.weights = self.weights - np.linalg.solve(bend, slope)

    def _row(self, signs: Iterable[str]) -> np.ndarray:
        row = np.zeros(len(self.names) + 1)
        row[[self._place[sign] for sign in signs if sign in self._place]] = 1
        row[-1] = 1
        return row

    def reads(self, one: Example) -> bool:
        return max(float(self._row(signs) @ self.weights) for signs in one.signs) >= LEAST_SCORE


def told(name: str, fit: Fit, examples: Sequence[Example]) -> None:
    read = Counter((one.rule, fit.reads(one)) for one in examples)
    print(
        f"without {name}: rules {read[True, True]} of {read[True, True] + read[True, False]},"
        f" look-alikes {read[False, True]} of {read[False, True] + read[False, False]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET.json[:SHARE]")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    examples = list(of_tests())
    for given in (*(str(SETS / f"{name}.json") for name in ("rules", "requests")), *options.sets):
        path, _, share = given.partition(":")
        examples.extend(of_set(path, json.loads(Path(path).read_text("utf-8")), float(share or 1)))
    examples.extend(of_pastes(SETS / "pastes.json"))
    seen = Counter(sign for one in examples for signs in one.signs for sign in signs)
    names = sorted(sign for sign, times in seen.items() if times >= LEAST_SEEN and sign != "-")
    if options.check:
        for key in ("source", "language"):
            for left in sorted({getattr(one, key) for one in examples}):
                rest = [one for one in examples if getattr(one, key) != left]
                told(left, Fit(rest, names), [one for one in examples if getattr(one, key) == left])
        return
    fit = Fit(examples, names)
    data = json.loads(SIGNS.read_text("utf-8"))
    data["weights"] = {
        name: round(float(weight), 2) for name, weight in zip([*names, "bias"], fit.weights, strict=True)
    }
    SIGNS.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
