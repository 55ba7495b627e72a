"""What users and assistants say: requests, rules, changes of mind, comments, in several languages.

The sentences stand in `speech.yaml`. Their `{slots}` are filled with names of the invented project.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

import yaml

from leporello.testing.sessions.vocabulary import ADJECTIVES, DOMAINS, FIELDS, NAMES, THINGS, VERBS, digits, name


@dataclass(frozen=True, slots=True)
class RuleWords:
    """One way to state a rule, to take it back, and to ask for it."""

    language: str
    text: str
    revoke: str
    question: str
    plain: bool = True

    def filled(self, values: dict[str, str]) -> RuleWords:
        return RuleWords(
            self.language,
            self.text.format(**values),
            self.revoke.format(**values),
            self.question.format(**values),
            self.plain,
        )


@dataclass(frozen=True, slots=True)
class DecisionWords:
    """A decision, ready to be said, changed and asked for. `value` is what it settles, `new_value` what replaces it."""

    first: str
    change: str
    question: str
    value: str
    new_value: str


@cache
def _phrases() -> dict[str, Any]:
    loaded = yaml.safe_load(files(__package__).joinpath("speech.yaml").read_text("utf-8"))
    return dict(loaded)


@cache
def rule_words() -> tuple[RuleWords, ...]:
    return tuple(RuleWords(**entry) for entry in _phrases()["rules"])


def slots(rng: Random, paths: tuple[str, ...], branch: str) -> dict[str, str]:
    return {
        "thing": rng.choice(THINGS),
        "domain": rng.choice(DOMAINS),
        "adjective": rng.choice(ADJECTIVES),
        "field": rng.choice(FIELDS),
        "function": name(rng),
        "person": rng.choice(NAMES),
        "path": rng.choice(paths),
        "dir": rng.choice(paths).rsplit("/", 1)[0],
        "branch": branch,
        "number": digits(rng, 2),
    }


def ask(rng: Random, language: str, values: dict[str, str]) -> str:
    by_language: dict[str, list[str]] = _phrases()["asks"]
    return rng.choice(by_language.get(language, by_language["en"])).format(**values)


def _say(rng: Random, kind: str, values: dict[str, str]) -> str:
    sentences: list[str] = _phrases()[kind]
    return rng.choice(sentences).format(**values)


def comment(rng: Random, values: dict[str, str]) -> str:
    """A short remark of the assistant between tool calls."""
    return _say(rng, "comments", values)


def report(rng: Random, values: dict[str, str]) -> str:
    return _say(rng, "reports", values)


def chatter(rng: Random, values: dict[str, str]) -> str:
    """A question that needs no tool."""
    return _say(rng, "chatter", values)


def nudge(rng: Random) -> str:
    """A short user message that asks for nothing new."""
    return _say(rng, "nudges", {})


def essay(rng: Random, sentences: int) -> str:
    return " ".join(
        f"The {rng.choice(ADJECTIVES)} {rng.choice(THINGS)} has to {rng.choice(VERBS)} its {rng.choice(DOMAINS)} "
        f"before {rng.choice(FIELDS)} is read, otherwise the {rng.choice(DOMAINS)} stays {rng.choice(ADJECTIVES)}."
        for _ in range(sentences)
    )


def decision(rng: Random, values: dict[str, str]) -> DecisionWords:
    """A decision with a value that occurs nowhere else, and the change of mind that may follow."""
    words: dict[str, str] = rng.choice(_phrases()["decisions"])
    table = f"{values['domain']}_{values['thing']}_{digits(rng, 3)}"
    old = {"table": table, **_numbers(rng)}
    new = {"table": f"{table}_v2", **_numbers(rng)}
    settled = next(key for key in old if "{" + key + "}" in words["first"])
    return DecisionWords(
        words["first"].format(**values, **old),
        words["change"].format(**values, **new, old=old[settled]),
        words["question"].format(**values),
        old[settled],
        new[settled],
    )


def _numbers(rng: Random) -> dict[str, str]:
    return {
        "port": str(rng.randrange(10_000, 65_000)),
        "days": digits(rng, 4),
        "version": f"{digits(rng, 2)}.{digits(rng, 2)}.{digits(rng, 1)}",
    }
