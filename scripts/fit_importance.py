"""Fits the weights of `leporello.ledger.importance` on recorded sessions and question banks.

    python scripts/fit_importance.py --sessions DIR --banks DIR [--check]

A unit counts as needed when it holds the gold text of a question. The model is a ridge logistic regression, fitted here
by Newton's method (numpy only). `--check` leaves one session out at a time and prints the share of gold texts kept in
several token budgets: the honest figure. Without it the weights are written to the package.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np

from leporello.importers import load_session
from leporello.ledger import importance
from leporello.ledger.calls import result_text
from leporello.ledger.ledger import Ledger
from leporello.ledger.line_features import identifiers, lines_of, sentences_of
from leporello.messages import text_of
from leporello.tokens import TokenCounter

RIDGE = 3.0
POSITIVE_WEIGHT = 30.0
BUDGETS = (4_000, 8_000, 10_000, 13_000, 16_000)
TARGET = Path(__file__).parent.parent / "src/leporello/ledger/weights.json"


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


def units_of(messages: list[dict]) -> list[dict]:
    """All units of a session with their features, in the shape the ledger computes them."""
    ledger = Ledger()
    for number, message in enumerate(messages, 1):
        ledger.add(number, message)
    rows = []
    seen: dict[str, int] = {}
    for number, message in enumerate(messages, 1):
        facts = ledger.facts[number]
        if not facts.role:
            continue
        work = facts.answers.work if facts.answers else ""
        for text, position, total in all_units(facts.role, message):
            bare = text.strip()
            seen[bare] = seen.get(bare, 0) + 1
            names = identifiers(text)
            later = importance.Later(
                cited=sum(ledger.occurrences.cited.get(name, 0) > number for name in names),
                reused=sum(ledger.occurrences.reused.get(name, 0) > number for name in names),
                rarity=max((1.0 / max(1, ledger.occurrences.frequency[name]) for name in names), default=0.0),
                repeats=seen[bare],
            )
            features = importance.text_features(text, facts.role, position, total, work)
            features |= importance.later_features(facts.role, len(names), later)
            rows.append({"text": bare, "role": facts.role, "features": features})
    return rows


def all_units(role: str, message: dict) -> list[tuple[str, int, int]]:
    if role == "tool":
        return list(lines_of(result_text(message)))
    sentences = sentences_of(text_of(message))
    return [(sentence, position, len(sentences)) for position, sentence in enumerate(sentences)]


def fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Ridge logistic regression by Newton steps on scaled features."""
    scale = x.std(0) + 1e-3
    xs = x / scale
    w = np.zeros(x.shape[1])
    sample = np.where(y > 0, POSITIVE_WEIGHT, 1.0)
    penalty = RIDGE * POSITIVE_WEIGHT
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(xs @ w, -30, 30)))
        gradient = xs.T @ (sample * (p - y)) + penalty * w
        hessian = (xs * (sample * p * (1 - p))[:, None]).T @ xs + penalty * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        w -= step
        if np.abs(step).max() < 1e-4:
            break
    return w / scale


def kept(rows: list[dict], score: np.ndarray, golds: list[str], budget: int) -> int:
    tokens = np.array([row["tokens"] for row in rows])
    order = np.argsort(
        -(1 / (1 + np.exp(-score)) / tokens**importance.COST_POWER + 10 * np.array([r["role"] == "user" for r in rows]))
    )
    used, chosen = 0, {}
    for index in order:
        row = rows[index]
        if row["text"] in chosen or used + tokens[index] > budget:
            continue
        chosen[row["text"]] = None
        used += tokens[index]
    pile = "\n".join(folded(text) for text in chosen)
    return sum(gold in pile for gold in golds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--banks", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    counter = TokenCounter.for_model(None)
    data = []
    for path in sorted(options.banks.glob("*.json")):
        bank = json.loads(path.read_text())
        rows = units_of(load_session(options.sessions / bank["session"]).messages)
        golds = [folded(question["gold"]) for question in bank["questions"]]
        for row in rows:
            row["tokens"] = counter.text(row["text"]) + 1
        data.append((rows, golds))
    names = sorted({name for rows, _ in data for row in rows for name in row["features"]})
    index = {name: k for k, name in enumerate(names)}
    matrices = []
    for rows, golds in data:
        x = np.zeros((len(rows), len(names)))
        y = np.zeros(len(rows))
        hits: dict[str, int] = dict.fromkeys(golds, 0)
        for r, row in enumerate(rows):
            for name, amount in row["features"].items():
                x[r, index[name]] = amount
            text = folded(row["text"])
            for gold in golds:
                if gold in text and hits[gold] < 4:
                    hits[gold] += 1
                    y[r] = 1
        matrices.append((x, y))
    if options.check:
        totals = dict.fromkeys(BUDGETS, 0)
        for out, (rows, golds) in enumerate(data):
            x = np.vstack([m[0] for k, m in enumerate(matrices) if k != out])
            y = np.hstack([m[1] for k, m in enumerate(matrices) if k != out])
            score = matrices[out][0] @ fit(x, y)
            for budget in BUDGETS:
                totals[budget] += kept(rows, score, golds, budget)
        questions = sum(len(golds) for _, golds in data)
        print("left-out sessions:", {budget: round(total / questions, 3) for budget, total in totals.items()})
        return
    w = fit(np.vstack([m[0] for m in matrices]), np.hstack([m[1] for m in matrices]))
    table = {name: round(float(weight), 3) for name, weight in zip(names, w, strict=True) if abs(weight) >= 0.0005}
    TARGET.write_text(
        json.dumps({"fitted_by": "scripts/fit_importance.py", "ridge": RIDGE, "weights": table}, indent=1) + "\n"
    )
    print(f"{len(table)} weights written")


if __name__ == "__main__":
    main()
