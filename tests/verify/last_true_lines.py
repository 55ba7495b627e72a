"""The last kinds of true lines, written when the fourth verifier was finished; they have improved the fifth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from leporello.ledger.calls import describe
from leporello.messages import Message, role_of, text_of
from leporello.summaries.handoff import Section
from tests.verify.true_lines import TrueLine, TrueLines, actions, answered, quoted, reworded

_COMMIT = re.compile(r"\[(\S+) ([0-9a-f]{7,})\] (.+)\n ?(\d+) files? changed, (\d+) insertions")
_TALLY = re.compile(r"(\d+) failed, (\d+) passed in ([\d.]+)s")
_PASSED = re.compile(r"(?<!failed, )\b(\d+) passed in ([\d.]+)s")


def _edited(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    for number, call, _ in answered(messages):
        facts = describe(call)
        if facts.path and facts.work == "edit":
            yield number, facts.path


def emphasised(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """The name in bold and code."""
    for number, path in _edited(messages):
        yield TrueLine(f"**`{path}`** – edited", (number,), Section.FILES, "emphasised")


def dotted(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A path with dots for what is left out."""
    for number, path in _edited(messages):
        if path.count("/") > 1:
            yield TrueLine(f"Updated …/{path.rsplit('/', 1)[-1]}", (number,), Section.FILES, "dotted")


def chinese_edit(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An edit in Chinese."""
    for number, path in _edited(messages):
        yield TrueLine(f"修改了文件 {path}", (number,), Section.COMPLETED, "Chinese edit")


def french(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An edit in French."""
    for number, path in _edited(messages):
        yield TrueLine(f"Le fichier {path} est modifié", (number,), Section.COMPLETED, "French")


def minutes(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """Seconds told as minutes."""
    for number, _call, text in answered(messages):
        for match in list(_PASSED.finditer(text))[:1]:
            if float(match[2]) >= 60:
                said = f"The tests needed about {float(match[2]) / 60:.1f} minutes"
                yield TrueLine(said, (number,), Section.STATE, "minutes")


def without_failures(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A good test run, told by what it lacks."""
    for number, _call, text in answered(messages):
        for match in list(_PASSED.finditer(text))[:1]:
            said = f"Test suite is green ({match[1]} passed)"
            yield TrueLine(said, (number,), Section.STATE, "without failures")


def part_of_all(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A sum that the source doesn't give."""
    for number, _call, text in answered(messages):
        for match in list(_TALLY.finditer(text))[:1]:
            failed, passed = int(match[1]), int(match[2])
            said = f"{failed} of {failed + passed} tests failed"
            yield TrueLine(said, (number,), Section.STATE, "part of all")


def committed(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A commit told by branch, subject and size."""
    for number, _call, text in answered(messages):
        for match in list(_COMMIT.finditer(text))[:1]:
            branch, commit, subject, files, added = match.groups()
            said = f"{branch} now contains {commit} (“{subject}”)"
            yield TrueLine(said, (number,), Section.COMPLETED, "committed")
            if int(files) > 1:
                said = f"“{subject}” changed {files} files and added {added} lines"
                yield TrueLine(said, (number,), Section.STATE, "committed")


def seen(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An error by its name alone."""
    for line in actions(messages):
        if line.kind == "error":
            name = line.text.removeprefix("Hit ").split(":", 1)[0]
            yield TrueLine(f"A {name} came up during the run", line.sources, Section.BLOCKED, "error name")


def quoted_start(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A quotation that breaks off."""
    for line in quoted(messages):
        words = line.text.removeprefix('The user said: "').rstrip('"').split()
        if line.kind == "quotation" and len(words) > 8:
            said = f'The user wrote "{" ".join(words[:6])} …"'
            yield TrueLine(said, line.sources, Section.CRITICAL, "quoted start")


_ORDER = re.compile(
    r"^(?:Please |Now |Then )?(Fix|Add|Write|Run|Make|Update|Check|Remove|Create|Look at) (.{10,120}?)\.?$"
)


def indirect(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An order of the user, told indirectly."""
    for number, message in enumerate(messages, 1):
        if role_of(message) != "user":
            continue
        for sentence in text_of(message).split("\n")[:3]:
            match = _ORDER.match(sentence.strip())
            if match and not re.search(r"\b(?:my|me|I|you)\b|[.!?] ", sentence):
                said = f"The user asked to {match[1].lower()} {match[2]}"
                yield TrueLine(said, (number,), Section.CRITICAL, "indirect")


def pointed_out(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A reworded line behind an opening of the kind that models like."""
    for line in reworded(messages):
        if not line.text.startswith(("The user", "Requested", "Confirmed", "Root cause")):
            text = f"Note that {line.text[:1].lower() if line.text[:2].istitle() else line.text[:1]}{line.text[1:]}"
            yield TrueLine(text, line.sources, Section.CRITICAL, "pointed out")


LAST_TRUE_KINDS: dict[str, TrueLines] = {
    "emphasised": emphasised,
    "dotted": dotted,
    "Chinese edit": chinese_edit,
    "French": french,
    "minutes": minutes,
    "without failures": without_failures,
    "part of all": part_of_all,
    "committed": committed,
    "error name": seen,
    "quoted start": quoted_start,
    "indirect": indirect,
    "pointed out": pointed_out,
}
