"""How a session goes: tasks with exploring, editing, testing and committing; between them rules, decisions, asides.

What users and assistants say stands in `speech.yaml`, in several languages. The `{slots}` of its sentences are filled
with names of the invented project.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

import yaml

from leporello.testing.sessions.runs import ToolRuns, screenshot
from leporello.testing.sessions.spec import Fact, FactKind, SessionSpec, Style, ToolRun, Writer
from leporello.testing.sessions.world import World, digits, fill


@dataclass(frozen=True, slots=True)
class RuleWords:
    """One way to state a rule, to take it back, and to ask for it."""

    language: str
    text: str
    revoke: str
    question: str
    plain: bool = True

    def filled(self, values: dict[str, str]) -> RuleWords:
        told = {key: getattr(self, key).format(**values) for key in ("text", "revoke", "question")}
        return replace(self, **told)


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
    return dict(yaml.safe_load(files(__package__).joinpath("speech.yaml").read_text("utf-8")))


@cache
def rule_words() -> tuple[RuleWords, ...]:
    return tuple(RuleWords(**entry) for entry in _phrases()["rules"])


def slots(rng: Random, paths: tuple[str, ...], branch: str) -> dict[str, str]:
    return {
        **{slot: fill(rng, f"<{slot}>") for slot in ("thing", "domain", "adjective", "field", "function", "person")},
        "path": rng.choice(paths),
        "dir": rng.choice(paths).rsplit("/", 1)[0],
        "branch": branch,
        "number": digits(rng, 2),
    }


_ESSAY = (
    "The <adjective> <thing> has to <verb> its <domain> before <field> is read, "
    "otherwise the <domain> stays <adjective>."
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


@dataclass(slots=True)
class Story:
    """Drives the writer until the session is long enough."""

    spec: SessionSpec
    world: World
    writer: Writer
    tools: ToolRuns
    due: dict[str, list[int]] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    revocations: list[tuple[int, Fact, str]] = field(default_factory=list)
    changes: list[tuple[int, Fact, DecisionWords]] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.spec.messages
        counts = {
            "rule": self.spec.rules if self.spec.rules is not None else min(20, 3 + count // 60),
            "decision": max(1, count // 80),
            "huge": self.spec.huge_outputs if self.spec.huge_outputs is not None else self._usual_huge(),
            "image": self.spec.images if self.spec.images is not None else count // 200,
            "secret": self.spec.secrets,
        }
        # Planted evenly with some scatter, all within the first nine tenths, so that each is there to be asked for.
        for kind, number in counts.items():
            step = count * 0.9 / max(1, number)
            self.due[kind] = sorted(int(step * (position + self.rng.random())) for position in range(number))

    def _usual_huge(self) -> int:
        usual = self.spec.messages // 250
        # One of them holds about 60,000 tokens: they must not eat up a small target.
        return usual if self.spec.tokens is None else min(usual, self.spec.tokens // 200_000)

    @property
    def rng(self) -> Random:
        return self.world.rng

    def tell(self) -> None:
        if self.spec.style is Style.CHAT:
            self._chat()
        elif self.spec.style in (Style.ONE_ASK, Style.ALL_TOOL):
            self._alone()
        else:
            self._tasks()
        if self.spec.open_calls and self.spec.style is not Style.CHAT:
            self.writer.open_turn(None, [self.tools.read_file(), self.tools.search()])

    # --- styles -------------------------------------------------------------------------------------------------

    def _tasks(self) -> None:
        while not self.writer.full:
            self._user_turn()
            self._work(self.rng.randrange(4, 14))
            if self.rng.random() < 0.7 and not self.writer.full:
                subject = f"{self.rng.choice(('Fix', 'Add', 'Drop'))} {self._values()['thing']} {digits(self.rng, 4)}"
                self.writer.turn(None, [self.tools.commit(subject)])
            self.writer.assistant(self._say("reports"))

    def _chat(self) -> None:
        while not self.writer.full:
            self._user_turn(tools=False)
            self.writer.assistant(" ".join(fill(self.rng, _ESSAY) for _ in range(self.writer.lines(2, 14))))

    def _alone(self) -> None:
        rules = [self._rule() for _ in self.due["rule"]]
        request = self._say("asks", "en")
        for words in rules:
            self._plant_rule(words)
        self.writer.plant(FactKind.ASK, request, "What was asked for?")
        self.writer.user("\n".join([request, "", *(f"- {words.text}" for words in rules)]) if rules else request)
        self.due["rule"] = []
        while not self.writer.full:
            self._work(self.rng.randrange(4, 14), silent=self.spec.style is Style.ALL_TOOL)
        if self.spec.style is Style.ONE_ASK and not self.spec.open_calls:
            self.writer.assistant(self._say("reports"))

    # --- parts --------------------------------------------------------------------------------------------------

    def _values(self) -> dict[str, str]:
        return slots(self.rng, self.world.paths, self.world.branch)

    def _say(self, kind: str, language: str = "") -> str:
        values = self._values()
        sentences: Any = _phrases()[kind]
        if language:
            sentences = sentences.get(language, sentences["en"])
        return str(self.rng.choice(sentences)).format(**values)

    def _is_due(self, kind: str) -> bool:
        queue = self.due[kind]
        if queue and queue[0] <= len(self.writer.messages):
            queue.pop(0)
            return True
        return False

    def _user_turn(self, tools: bool = True) -> None:
        """One user message: what is due of rules, decisions and changes, then a request or a nudge."""
        lines = [*self._ends(), *self._new_rules(), *self._new_decisions()]
        language = self.spec.languages[0] if self.rng.random() < 0.7 else self.rng.choice(self.spec.languages)
        if self.rng.random() < 0.12 and self.writer.messages and not lines:
            lines.append(self.rng.choice(_phrases()["nudges"]))
        else:
            request = self._say("asks", language) if tools else self._say("chatter")
            self.writer.plant(FactKind.ASK, request, "What was asked for?", language=language)
            lines.insert(0 if self.rng.random() < 0.5 else len(lines), request)
        image = screenshot(self.rng) if self._is_due("image") else None
        self.writer.user((" " if self.rng.random() < 0.3 else "\n").join(lines), image)

    def _ends(self) -> list[str]:
        """Rules that are taken back now, and decisions that are changed."""
        lines = []
        now = len(self.writer.messages)
        for entry in [entry for entry in self.revocations if entry[0] <= now]:
            self.revocations.remove(entry)
            self.writer.end(entry[1])
            lines.append(entry[2])
        for change in [change for change in self.changes if change[0] <= now]:
            self.changes.remove(change)
            _, fact, words = change
            self.writer.end(fact, replaced_by=words.new_value)
            self.writer.plant(FactKind.DECISION, words.new_value, words.question)
            lines.append(words.change)
        return lines

    def _new_rules(self) -> list[str]:
        lines = []
        while self._is_due("rule"):
            words = self._rule()
            fact = self._plant_rule(words)
            if self.rng.random() < 0.2:
                self.revocations.append((len(self.writer.messages) + self.rng.randrange(40, 200), fact, words.revoke))
            lines.append(words.text)
        return lines

    def _plant_rule(self, words: RuleWords) -> Fact:
        return self.writer.plant(FactKind.RULE, words.text, words.question, language=words.language, plain=words.plain)

    def _rule(self) -> RuleWords:
        choices = [words for words in rule_words() if words.language in self.spec.languages]
        while True:
            words = self.rng.choice(choices).filled({**self._values(), "branch": f"release-{digits(self.rng, 4)}"})
            if words.text not in self.said:
                self.said.add(words.text)
                return words

    def _new_decisions(self) -> list[str]:
        lines = []
        while self._is_due("decision"):
            words = decision(self.rng, self._values())
            fact = self.writer.plant(FactKind.DECISION, words.value, words.question)
            if self.rng.random() < 0.4:
                self.changes.append((len(self.writer.messages) + self.rng.randrange(20, 150), fact, words))
            lines.append(words.first)
        return lines

    def _work(self, turns: int, silent: bool = False) -> None:
        """Some turns of tool calls: look around, change, test, mend."""
        target = self.rng.choice(self.world.paths)
        for turn in range(turns):
            if self.writer.full:
                break
            text = None if silent or self.rng.random() < 0.4 else self._say("comments")
            self.writer.turn(text, self._step(turn, target))

    def _step(self, turn: int, target: str) -> list[ToolRun]:
        if self._is_due("huge"):
            return [self.tools.service_log(huge=True)]
        if self._is_due("secret"):
            return [self.tools.leak()]
        if turn == 0:
            width = self.rng.choice((1, 2, 2, 3, 5))
            return [self.tools.search(), *(self.tools.read_file() for _ in range(width))]
        if self.rng.random() < 0.12:
            self.world.break_test()
            return [self.tools.tests()]
        if self.world.failing and self.rng.random() < 0.5:
            self.world.failing.pop(0)
            return [self.tools.patch(target), self.tools.tests()]
        if self.rng.random() < 0.1:
            return [self.tools.read_again()]
        return [self.tools.any() for _ in range(self.rng.choice((1, 1, 1, 1, 2, 3)))]
