"""Measures how folds and search treat rules, changed values and pasted texts in sets of invented messages.

    python scripts/measure_sets.py tests/ledger/sets [--misses]
    python scripts/measure_sets.py tests/ledger/held_out    # for the last measurement only: do not read what it misses

The messages of a set are hidden as user messages in a generated conversation, which is then compacted again and again
in a window of 16,000 tokens. SET_DIR may hold:

- `rules.json`: `{language: {"rules": [...], "lookalikes": [...]}}`. Counted are rules under Constraints and
  anywhere, and look-alikes under Constraints.
- `values.json`: `{"pairs": [{"old", "new", "old_value", "new_value", "question"}], "near": [{"a", "b"}]}`. A search
  is right where the new statement comes first or the old one is marked; a fold where it holds the new value, and the
  old one is absent, marked, told to have ended, or shown together with the new one. Near pairs are about two things:
  the first may not be told as replaced; how often something said later stands behind it without a claim is counted too.
- `pastes.json`: `[{"message", "pasted", "own"}]`. Counted are pasted sentences under Constraints (none should
  be), and the user's own rules there.
"""

from __future__ import annotations

import argparse
import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import decompress

from leporello.bench.bank import fold, sentences_of
from leporello.bench.exam import replay
from leporello.bench.run import make_engine, make_search
from leporello.bench.states import FinalView, view_of
from leporello.ledger.values import LATER, MARK
from leporello.messages import Message
from leporello.summaries.handoff import ENDED, Section
from leporello.testing.sessions import SessionSpec, Style, generate

WINDOW = 16_000
LEAST_COMPACTIONS = 27
FILLER_MESSAGES = {Style.CODING: 480, Style.CHAT: 1_400}
SPOKEN = ("en", "zh", "de", "es", "ja")
"""Languages of the generator; beside the others people speak English."""
SEARCH_TOKENS = 4_000
BATCH = 20
"""Pairs or pasted texts in one conversation."""
UNSPACED, LONG_WORD = "\u2e80", 4


Measured = tuple[dict[str, int], list[str]]
"""Counts by what they count, and what was lost or is wrong."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A conversation with hidden messages, as it is shown in the end."""

    messages: list[Message]
    view: FinalView

    def constraints(self) -> list[str]:
        lines = (line.text for line in self.view.handoff[Section.CONSTRAINTS] if not line.text.startswith(ENDED))
        return [fold(text.split(MARK)[0].split(LATER)[0]) for text in lines]

    def is_rule(self, message: str) -> bool:
        """Whether a sentence of a message stands under Constraints."""
        said = [fold(sentence) for sentence in sentences_of(message)]
        return any(line in fold(message) or any(one in line for one in said) for line in self.constraints())

    def shows(self, message: str) -> bool:
        text = fold("\n".join(self.view.texts))
        return any(fold(sentence) in text for sentence in sentences_of(message))


def hide(texts: Sequence[str], style: Style, language: str = "en", seed: int = 11) -> Hidden:
    """The texts in the first two thirds of a conversation, in their order, each with a short answer."""
    spec = SessionSpec(
        seed=seed,
        messages=FILLER_MESSAGES[style],
        style=style,
        languages=(language,) if language in SPOKEN else ("en",),
        rules=0,
        images=0,
        secrets=0,
        huge_outputs=0,
    )
    filler = generate(spec).messages
    turns = [place for place, message in enumerate(filler) if message["role"] == "user"]
    turns = turns[1 : 1 + len(turns) * 2 // 3]
    places: dict[int, list[str]] = {}
    for index, text in enumerate(texts):
        places.setdefault(turns[index * len(turns) // len(texts)], []).append(text)
    messages: list[Message] = []
    for place, message in enumerate(filler):
        for text in places.get(place, ()):
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "OK."}]
        messages.append(message)
    engine = make_engine("compressor", WINDOW)
    final = replay(messages, engine)
    if final.compactions < LEAST_COMPACTIONS:
        raise SystemExit(f"only {final.compactions} compactions")
    return Hidden(messages, view_of(engine, final))


def mixed(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The texts of two lists in turns."""
    longest = max(len(first), len(second))
    return [texts[place] for place in range(longest) for texts in (first, second) if place < len(texts)]


def rules(language: str, texts: dict[str, list[str]]) -> Measured:
    hidden = hide(mixed(texts["rules"], texts["lookalikes"]), Style.CODING, language)
    found = {text for text in texts["rules"] if hidden.is_rule(text)}
    wrong = [text for text in texts["lookalikes"] if hidden.is_rule(text)]
    counts = {
        "rules": len(found),
        "of": len(texts["rules"]),
        "anywhere": sum(map(hidden.shows, texts["rules"])),
        "look-alikes": len(wrong),
    }
    lost = [f"lost: {text}" for text in texts["rules"] if text not in found]
    return counts, [*lost, *(f"wrong: {text}" for text in wrong)]


def pastes(cases: Sequence[dict[str, str]]) -> Measured:
    hidden = hide([case["message"] for case in cases], Style.CODING)
    wrong = [case["pasted"] for case in cases if case["pasted"] and hidden.is_rule(case["pasted"])]
    own = [case["own"] for case in cases if case["own"]]
    lost = [text for text in own if not hidden.is_rule(text)]
    counts = {"pasted as rules": len(wrong), "messages": len(cases), "own rules": len(own) - len(lost), "of": len(own)}
    return counts, [*(f"wrong: {text}" for text in wrong), *(f"lost: {text}" for text in lost)]


def changed(style: Style, pairs: Sequence[dict[str, Any]]) -> Measured:
    hidden = hide([*(pair["old"] for pair in pairs), *(pair["new"] for pair in pairs)], style)
    search = make_search("recall", hidden.messages)
    counts = {"search": 0, "fold": 0, "of": len(pairs)}
    misses = []
    for pair in pairs:
        answer = fold(search(pair["question"], SEARCH_TOKENS))
        right = {
            "search": newest_first(answer, fold(pair["old"]), fold(pair["new"])),
            "fold": new_value_shown(hidden.view, pair),
        }
        for what, found in right.items():
            counts[what] += found
            misses += [] if found else [f"{what}: {pair['old']} | {pair['new']}"]
    return counts, misses


def near(style: Style, pairs: Sequence[dict[str, Any]]) -> Measured:
    hidden = hide([*(pair["a"] for pair in pairs), *(pair["b"] for pair in pairs)], style)
    counts = {"told as changed": 0, "shown together": 0, "of": len(pairs)}
    misses = []
    for pair in pairs:
        lines = [line for line in lines_of(hidden.view) if fold(pair["a"]).rstrip(".") in line]
        told = any(fold(MARK) in line for line in lines)
        joined = not told and any(fold(LATER) in line for line in lines)
        counts["told as changed"] += told
        counts["shown together"] += joined
        misses += [f"{'told' if told else 'joined'}: {pair['a']} | {pair['b']}"] if told or joined else []
    return counts, misses


def newest_first(answer: str, old: str, new: str) -> bool:
    """Whether a search answer tells the new statement, and no old one before it without a mark."""
    old, new = old.rstrip(".。"), new.rstrip(".。")
    place, before = answer.find(new), answer.find(old)
    marked = any(answer.startswith(mark, before + len(old)) for mark in ENDINGS)
    return place >= 0 and (before < 0 or place < before or marked)


ENDINGS = tuple(f"{dot} ({word}" for dot in ("", ".", "。") for word in ("superseded", "later"))


def lines_of(view: FinalView) -> list[str]:
    return [fold(line) for text in view.texts for line in text.split("\n")]


def new_value_shown(view: FinalView, pair: dict[str, str]) -> bool:
    """Whether the lines about the pair give the new value, and each with the old one gives it too or is marked."""
    about = [line for line in lines_of(view) if content(pair["old"] + " " + pair["new"]) & content(line)]
    old, new = fold(pair["old_value"]), fold(pair["new_value"])
    stale = [line for line in about if old in line and fold(pair["old"]).rstrip(".。") in line and new not in line]
    return any(new in line for line in about) and all(
        any(mark in line for mark in map(fold, (MARK, LATER, ENDED))) for line in stale
    )


def content(text: str) -> set[str]:
    """The longer words of a text; of one without blanks, its pairs of letters."""
    words = "".join(letter if letter.isalnum() else " " for letter in fold(text)).split()
    pairs = {word[k : k + 2] for word in words for k in range(len(word) - 1) if word[k] > UNSPACED}
    return {word for word in words if len(word) >= LONG_WORD} | pairs


def added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {key: sum(one[key] for one in counts) for key in counts[0]}


def read(path: Path) -> Any:
    """A set; those that nobody who works on the readers should know are encoded."""
    return json.loads(decompress(b64decode(path.read_bytes())) if path.suffix == ".b64" else path.read_bytes())


def tasks(folder: Path) -> list[tuple[str, Callable[[], Measured]]]:
    """What is to be measured, each under a name; the counts of one name are added up."""
    found: list[tuple[str, Callable[[], Measured]]] = []
    sets = {path.stem: read(path) for path in (*folder.glob("*.json"), *folder.glob("*.b64"))}
    for language, texts in sets.get("rules", {}).items():
        found.append((f"rules, {language}", partial(rules, language, texts)))
    told = sets.get("values", {"pairs": [], "near": []})
    for style in (Style.CODING, Style.CHAT):
        for name, measure in (("pairs", changed), ("near", near)):
            parts = [told[name][start : start + BATCH] for start in range(0, len(told[name]), BATCH)]
            found += [(f"values, {name}, {style} filler", partial(measure, style, part)) for part in parts]
    cases = sets.get("pastes", [])
    found += [("pastes", partial(pastes, cases[start : start + BATCH])) for start in range(0, len(cases), BATCH)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="SET_DIR", type=Path)
    parser.add_argument("--only", default="", help="the beginning of the names that are measured")
    parser.add_argument("--misses", action="store_true", help="tell what was lost, and what is wrong")
    options = parser.parse_args()
    named = [(name, task) for name, task in tasks(options.folder) if name.startswith(options.only)]
    with ProcessPoolExecutor(2) as pool:
        results = [(name, future.result()) for name, future in [(name, pool.submit(task)) for name, task in named]]
    for name in dict.fromkeys(name for name, _ in results):
        counts = added([counts for known, (counts, _) in results if known == name])
        print(f"{name}: " + ", ".join(f"{what} {count}" for what, count in counts.items()))
        for miss in (miss for known, (_, misses) in results if known == name for miss in misses if options.misses):
            print("    " + " ".join(miss.split()))
    languages = [counts for name, (counts, _) in results if name.startswith("rules")]
    if languages:
        print("rules, all: " + ", ".join(f"{what} {count}" for what, count in added(languages).items()))


if __name__ == "__main__":
    main()
