"""More kinds of true lines, written when the third verifier was finished; they have improved the fourth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from leporello.ledger.calls import describe, exit_code
from leporello.messages import Message
from leporello.summaries.handoff import Section
from tests.verify.true_lines import TrueLine, TrueLines, actions, answered, quoted

_COMMIT = re.compile(r"\[(\S+) ([0-9a-f]{7,})\] (.+)\n ?(\d+) files? changed")
_TALLY = re.compile(r"(\d) failed, (\d+) passed in ")
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def hash_shortened(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A commit by the first seven characters of its id."""
    for number, _call, text in answered(messages):
        for match in list(_COMMIT.finditer(text))[:1]:
            yield TrueLine(f"Made commit {match[2][:7]}", (number,), Section.COMPLETED, "hash shortened")


def file_name(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An edited file by its name alone."""
    for number, call, _text in answered(messages):
        facts = describe(call)
        if facts.path and facts.work == "edit":
            name = facts.path.rsplit("/", 1)[-1]
            yield TrueLine(f"Made changes to `{name}`", (number,), Section.FILES, "file name")


def german(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """The same in German."""
    for number, call, text in answered(messages):
        facts = describe(call)
        if facts.path and facts.work == "edit":
            yield TrueLine(f"Die Datei {facts.path} wurde geändert", (number,), Section.COMPLETED, "German")
        for match in list(_COMMIT.finditer(text))[:1]:
            said = f"Der Commit {match[2]} auf {match[1]} ist erstellt"
            yield TrueLine(said, (number,), Section.COMPLETED, "German")


def chinese_outcome(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """How a command ended, in Chinese."""
    for number, call, text in answered(messages):
        command = describe(call).command
        code = exit_code(text)
        if command and len(command) < 90 and not set("\n`") & set(command) and code is not None:
            how = "失败" if code else "成功"
            said = f"运行 `{command}` {how}，退出码 {code}"
            yield TrueLine(said, (number,), Section.COMPLETED, "Chinese outcome")


def number_words(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A small number in words."""
    for number, _call, text in answered(messages):
        for match in list(_TALLY.finditer(text))[:1]:
            said = f"{_WORDS[int(match[1])].title()} of the tests failed, the other {match[2]} passed"
            yield TrueLine(said, (number,), Section.STATE, "number words")


def told_otherwise(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """What was done, told from the other side."""
    for line in actions(messages):
        if line.kind == "action":
            path = line.text.removeprefix("Edited ")
            yield TrueLine(f"Changes were applied to {path}", line.sources, line.section, "told otherwise")
        match = re.match(r"^Ran (`.+`), which (failed|succeeded) \(exit code (\d+)\)$", line.text)
        if match:
            ended = "went through" if match[3] == "0" else "did not succeed"
            yield TrueLine(f"{match[1]} {ended} (exit {match[3]})", line.sources, line.section, "told otherwise")


def combined(messages: Sequence[Message], rng: Random) -> Iterator[TrueLine]:
    """Two facts in one line, with the ids of both."""
    lines = [line for line in actions(messages) if line.kind in ("action", "reworded", "error")]
    for one, two in zip(lines[::3], lines[1::3], strict=False):
        text = f"{one.text}; {two.text[:1].lower() + two.text[1:] if two.kind != 'error' else two.text}"
        sources = tuple(dict.fromkeys((*one.sources, *two.sources)))
        yield TrueLine(text, sources, Section.CRITICAL, "combined")


_TAIL = re.compile(r"^([A-Z][^,;:()]{30,160}), (?:and|so|which) [^,;]{10,120}\.$")


def clipped(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """The main clause of a sentence without what follows."""
    for line in quoted(messages):
        match = _TAIL.match(line.text) if line.kind == "verbatim" else None
        if match and not re.search(r"\b(?:if|when|unless|once|not)\b", line.text, re.IGNORECASE):
            yield TrueLine(match[1] + ".", line.sources, line.section, "clipped")


_PERSONS = (
    (re.compile(r"^I(?:['’]ve| have) (\w+ed) (.{15,})$"), r"The assistant has \1 \2"),
    (re.compile(r"^I(?:['’]ll| will) (\w+) (.{15,})$"), r"The assistant will \1 \2"),
    (re.compile(r"^(?:Now )?[Ll]et me (\w+) (.{15,})$"), r"The assistant intends to \1 \2"),
)


def third_person(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """What the assistant said of itself, told of it."""
    for line in quoted(messages):
        if line.kind != "verbatim" or re.search(r"[^`]\b(?:I|my|me|we|our|you|your)\b", line.text[8:]):
            continue
        for pattern, said in _PERSONS:
            if pattern.match(line.text):
                yield TrueLine(pattern.sub(said, line.text), line.sources, line.section, "third person")
                break


_ALIKE = {
    "simple": "straightforward", "instead of": "rather than", "shows": "displays", "correct": "right",
    "find": "locate", "start": "begin", "important": "crucial", "failing": "broken",
    "whole": "entire", "adding": "introducing", "however": "though",
    "wrong": "incorrect", "details": "particulars", "existing": "current",
    "understand": "grasp",  "mainly": "primarily",
    "default": "standard", "provides": "offers", "required": "necessary", "works": "functions", "called": "invoked",
    "comes from": "originates in", "reads": "loads", "two places": "two spots", "checking": "inspecting",
    "built": "constructed", "asked": "requested", "lost": "dropped",
}  # fmt: skip
_ALIKE_WORD = re.compile("|".join(rf"(?<![\w.*/`-]){re.escape(word)}(?![\w.*/`-])" for word in _ALIKE))


def other_words(messages: Sequence[Message], rng: Random) -> Iterator[TrueLine]:
    """A sentence of the assistant with one word for another that means the same there."""
    for line in quoted(messages):
        if line.kind != "verbatim" or '"' in line.text:
            continue
        found = list(_ALIKE_WORD.finditer(line.text))
        if found:
            match = rng.choice(found)
            text = line.text[: match.start()] + _ALIKE[match.group()] + line.text[match.end() :]
            yield TrueLine(text, line.sources, line.section, "other words")


MORE_TRUE_KINDS: dict[str, TrueLines] = {
    "hash shortened": hash_shortened,
    "file name": file_name,
    "German": german,
    "Chinese outcome": chinese_outcome,
    "number words": number_words,
    "told otherwise": told_otherwise,
    "combined": combined,
    "clipped": clipped,
    "third person": third_person,
    "other words": other_words,
}
