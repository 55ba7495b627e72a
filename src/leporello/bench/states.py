"""State banks: does a handoff tell what holds at a moment, each thing in its section?

A session is cut after so many lines and labelled with texts of it: the task at hand, open and done requests, rules and
what only looks like one, values that changed, decisions, newest outcomes, files of the open work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.bench.bank import WordIndex, read_json_file, session_file, texts_of
from leporello.bench.exam import Replayed, SearchFactory, SessionScore, replay, share, without_thinking
from leporello.engines.base import ContextEngine
from leporello.engines.compressor import ContextCompressor
from leporello.errors import InputError
from leporello.importers import ImportedSession, load_session
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, is_result, text_of
from leporello.summaries.handoff import ENDED, Handoff, Section, joined, parse

LABELS = {
    "active_task": "the task at hand, under Active Task",
    "finished": "finished work: Active Task says None.",
    "pending": "open requests, under Pending or Active Task",
    "not_pending": "done requests, shown as pending",
    "rules": "rules in force, under Constraints",
    "rules_anywhere": "rules in force, anywhere",
    "not_rules": "no rules, shown under Constraints",
    "new_values": "new values",
    "replaced": "new values, the old one absent or marked",
    "only_old": "old values without the new one",
    "decisions": "decisions",
    "outcomes": "newest outcomes",
    "files": "files of the open work",
}
"""What is counted, in words."""
FAULTS = frozenset({"not_pending", "not_rules", "only_old"})  # labels whose texts should not be found
_MARKED = lazy_regex(
    r"\b(?:was; since m\d+|no longer|replaced|superseded|outdated|obsolete|formerly|previously|until m\d+)\b",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+(?!\(was;)")  # a mark in brackets belongs to the sentence before it
_FINISHED = lazy_regex(r"^\W{0,9}active task\W{0,9}\n\W{0,9}none\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that was `old` once and is `new` now."""

    subject: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class StateBank:
    """What holds after the first `lines` lines of a session."""

    session: str
    lines: int
    active_task: tuple[str, ...]
    pending: tuple[str, ...]
    not_pending: tuple[str, ...]
    rules: tuple[str, ...]
    not_rules: tuple[str, ...]
    values: tuple[ChangedValue, ...]
    decisions: tuple[str, ...]
    outcomes: tuple[str, ...]
    files: tuple[str, ...]
    path: Path


def load_state(path: Path) -> StateBank:
    value = read_json_file(path)
    if not isinstance(value, dict) or not isinstance(value.get("lines"), int):
        raise InputError('is not a state bank: {"session", "lines", "active_task", ...} is expected', str(path))

    def texts(key: str) -> tuple[str, ...]:
        given = value.get(key, [])
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise InputError(f"{key} is not a list of texts", str(path))
        return tuple(given)

    labels = ("active_task", "pending", "not_pending", "rules", "not_rules", "decisions", "files")
    return StateBank(
        session=str(value.get("session") or ""),
        lines=value["lines"],
        values=tuple(_value(raw, path) for raw in value.get("values", [])),
        outcomes=texts("state"),
        path=path,
        **{label: texts(label) for label in labels},
    )


def _value(raw: Any, path: Path) -> ChangedValue:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(key), str) for key in ("old", "new")):
        raise InputError('values are objects {"subject", "old", "new"}', str(path))
    return ChangedValue(str(raw.get("subject", "")), raw["old"], raw["new"])


@dataclass(frozen=True, slots=True)
class StateAnswer:
    """Whether one labelled text was found where it is looked for."""

    label: str
    text: str
    found: bool


@dataclass(frozen=True, slots=True)
class StateExam:
    """A state bank, and the folder its session stands in."""

    bank: StateBank
    sessions: Path

    @property
    def id(self) -> str:
        return self.bank.path.stem

    @property
    def session(self) -> str:
        """The session, and after how many lines it was cut."""
        return f"{self.bank.session}@{self.bank.lines}"

    def sit(self, engine: ContextEngine, make_search: SearchFactory) -> SessionScore[StateAnswer]:
        """Every label against the final view; nothing is searched for."""
        path = session_file(self.bank.session, self.sessions, self.bank.path)
        final = replay(without_thinking(first_lines(path, self.bank.lines).messages), engine)
        view = view_of(engine, final)
        lines = {section.value: len(lines) for section, lines in view.handoff.sections.items()}
        return final.score(self.session, tuple(check(self.bank, view)), lines)


def first_lines(path: Path, count: int) -> ImportedSession:
    """The session as its first lines tell it."""
    with TemporaryDirectory() as folder:
        cut = Path(folder) / path.name
        cut.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:count]))
        return load_session(cut)


@dataclass(frozen=True, slots=True)
class FinalView:
    """The final context as it is looked at: its handoff by section, and all of its text."""

    handoff: Handoff
    finished: bool
    """Whether it says that there is no active task."""
    texts: tuple[str, ...]

    def section(self, *sections: Section) -> WordIndex:
        """What stands in these sections; rules that are told to have ended do not count."""
        return WordIndex(
            line.text for section in sections for line in self.handoff[section] if not line.text.startswith(ENDED)
        )


def view_of(engine: ContextEngine, final: Replayed) -> FinalView:
    """The typed handoff where the engine has one; else the sections that headings in the text begin."""
    shown = engine.shown if isinstance(engine, ContextCompressor) else ()
    folds = [item.fold.handoff for item in shown if item.fold]
    if folds:
        handoff = joined(*folds)
        return FinalView(handoff, not handoff[Section.ACTIVE_TASK], tuple(texts_of(final.messages)))
    return written_view(final.messages)


def written_view(messages: Sequence[Message]) -> FinalView:
    """By the sections that headings in the text begin."""
    said = "\n".join(text_of(message) for message in messages if not is_result(message))
    handoff = parse(said)
    finished = not handoff[Section.ACTIVE_TASK] and bool(_FINISHED.search(said))
    return FinalView(handoff, finished, tuple(texts_of(messages)))


def check(bank: StateBank, view: FinalView) -> Iterator[StateAnswer]:
    """Every label of a bank, looked for where it belongs."""
    everything = WordIndex(view.texts)
    task = view.section(Section.ACTIVE_TASK)
    if bank.active_task:
        yield StateAnswer("active_task", bank.active_task[0], any(map(task.has, bank.active_task)))
    else:
        yield StateAnswer("finished", "None.", view.finished)
    rules = view.section(Section.CONSTRAINTS)
    places: Sequence[tuple[str, Iterable[str], WordIndex]] = (
        ("pending", bank.pending, view.section(Section.PENDING, Section.ACTIVE_TASK)),
        ("not_pending", bank.not_pending, view.section(Section.PENDING)),
        ("rules", bank.rules, rules),
        ("rules_anywhere", bank.rules, everything),
        ("not_rules", bank.not_rules, rules),
        ("decisions", bank.decisions, everything),
        ("outcomes", bank.outcomes, everything),
        ("files", bank.files, everything),
    )
    for label, texts, place in places:
        for text in texts:
            yield StateAnswer(label, text, place.has(text))
    in_force = WordIndex(_unmarked(view.texts))
    for value in bank.values:
        new, old = everything.has(value.new), in_force.has(value.old)
        yield StateAnswer("new_values", value.new, new)
        yield StateAnswer("replaced", value.new, new and not old)
        yield StateAnswer("only_old", value.old, old and not new)


def _unmarked(texts: Iterable[str]) -> Iterator[str]:
    """The sentences that are not marked as replaced, nor part of a line that is told to have ended."""
    for text in texts:
        for line in text.splitlines():
            if ENDED not in line:
                yield from (sentence for sentence in _SENTENCE_END.split(line) if not _MARKED.search(sentence))


def state_rates(answers: Sequence[StateAnswer]) -> dict[str, Any]:
    found = {label: [one.found for one in answers if one.label == label] for label in LABELS}
    return {label: {"found": sum(one), "of": len(one), "share": share(one)} for label, one in found.items()}


def state_misses(answers: Sequence[StateAnswer]) -> list[dict[str, Any]]:
    """Every text that is not where it should be, or stands where it should not."""
    return [
        {"kind": answer.label, "text": answer.text, "found": answer.found}
        for answer in answers
        if answer.found is (answer.label in FAULTS)
    ]
