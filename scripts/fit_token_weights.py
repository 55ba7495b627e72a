"""Writes `src/leporello/tokens/weights.json`: how vocabularies without a local counter differ from o200k.

    python scripts/fit_token_weights.py CORPUS [--ctok FOLDER] [--out FILE]

CORPUS is a folder of folders of text files; each folder is a group (a language, a kind of code, recorded agent
sessions) and counts the same as any other; groups whose name begins with `session` count six times, because that is
what is counted in practice. Claude's counts come from `ctok`, a public reconstruction; Gemini's from the Gemma
vocabulary, which is the same. Needs numpy, scipy, regex and ctok (or --ctok with a folder that holds it).

A third of every group is held out, and the errors on it are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from leporello.tokens.families import KINDS, count, kind_counts

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "src" / "leporello" / "tokens" / "weights.json"
SESSION_WEIGHT = 6


def main() -> None:
    """Read, count, fit, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--ctok", type=Path, help="a folder that holds the ctok package")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    if arguments.ctok:
        sys.path.insert(0, str(arguments.ctok))
    groups, texts = read(arguments.corpus)
    features = np.array([row(text) for text in texts], float)
    rng = np.random.default_rng(0)
    held_out = rng.random(len(texts)) < 1 / 3
    fitted = {}
    for name, oracle in oracles().items():
        truth = np.array([oracle(text) for text in texts], float)
        charges = fit(features[~held_out], truth[~held_out], groups[~held_out])
        report(name, features[held_out] @ charges, truth[held_out], groups[held_out])
        fitted[name] = {
            key: round(float(value), 3) for key, value in zip(("o200k", *KINDS), charges, strict=True) if value > 0.0005
        }
    arguments.out.write_text(json.dumps(fitted, indent=1) + "\n")


def read(corpus: Path) -> tuple[np.ndarray, list[str]]:
    """Group names and texts."""
    files = sorted(corpus.glob("*/*"))
    pairs = [(path.parent.name, path.read_text("utf-8", "replace")) for path in files]
    pairs = [(group, text) for group, text in pairs if len(text) >= 40]
    return np.array([group for group, _ in pairs]), [text for _, text in pairs]


def row(text: str) -> list[float]:
    """The o200k count, then the kinds of characters."""
    counts = kind_counts(text)
    return [count("o200k_base", text), *counts, *[0] * (len(KINDS) - len(counts))]


def oracles() -> dict:
    """What stands for the truth, per family."""
    from ctok import main as ctok  # noqa: PLC0415 - may come from --ctok

    def claude(version: str):
        context = len(ctok.tokenize("", version))
        return lambda text: ctok.token_count(text, version) - context

    return {"claude-3": claude("3.0"), "claude-4.7": claude("4.8"), "gemini": lambda text: count("gemma3", text)}


def fit(features: np.ndarray, truth: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Charges of zero or more that make the relative error small; outliers pull less and less."""
    sizes = {group: (groups == group).sum() for group in set(groups)}
    weight = np.array([(SESSION_WEIGHT if g.startswith("session") else 1) / np.sqrt(sizes[g]) for g in groups])
    relative = features / truth[:, None]
    trust = np.ones(len(truth))
    for _ in range(10):
        scale = trust * np.sqrt(weight)
        charges = nnls(relative * scale[:, None], scale)[0]
        trust = np.sqrt(0.05 / np.maximum(abs(relative @ charges - 1), 0.05))
    return charges


def report(name: str, guess: np.ndarray, truth: np.ndarray, groups: np.ndarray) -> None:
    """Errors per text and per group, on what was held out."""
    error = abs(guess / truth - 1)
    print(f"{name}: per text median {np.median(error):.1%}, 90% below {np.quantile(error, 0.9):.1%}")
    for group in sorted(set(groups)):
        chosen = groups == group
        print(f"   {group:24} {guess[chosen].sum() / truth[chosen].sum() - 1:+.1%}")


if __name__ == "__main__":
    main()
