"""The held-out kinds of true lines: written when the verifier was finished, measured once, and not tuned on since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from leporello.ledger.calls import describe, exit_code
from leporello.ledger.units import sentences_of
from leporello.ledger.user_text import strip_injected
from leporello.messages import Message, role_of, text_of
from leporello.summaries.handoff import Section
from tests.verify.true_lines import TrueLine, TrueLines, actions, answered, quoted

_TALLY = re.compile(r"(\d+) failed, (\d+) passed in ([\d.]+)s")
_PASSED = re.compile(r"(?<!failed, )\b(\d+) passed in ([\d.]+)s")
_COMMIT = re.compile(r"\[(\S+) ([0-9a-f]{7,})\] (.+)\n ?(\d+) files? changed")
_RULE = re.compile(r"^(?:- )?((?:Never|Always|Do not|Don't|You must) .{10,120}\.)$")


def _worked(messages: Sequence[Message], work: str) -> Iterator[tuple[int, str]]:
    for number, call, _ in answered(messages):
        facts = describe(call)
        if facts.path and facts.work == work:
            yield number, facts.path


def labelled(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A file behind a label."""
    for number, path in _worked(messages, "edit"):
        yield TrueLine(f"**File edited:** `{path}`", (number,), Section.FILES, "labelled")


def by_the_assistant(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """Who edited."""
    for number, path in _worked(messages, "edit"):
        yield TrueLine(f"The assistant edited `{path}`.", (number,), Section.COMPLETED, "by the assistant")


def opened(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A file that was read."""
    for number, path in _worked(messages, "read"):
        yield TrueLine(f"Opened `{path}` and read it", (number,), Section.FILES, "opened")


def edited_list(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """Two files in one line."""
    for (one, path), (two, other) in pairwise(_worked(messages, "edit")):
        if path != other:
            yield TrueLine(f"Files changed: {path}, {other}", (one, two), Section.FILES, "edited list")


def fraction(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A tally as a table would have it."""
    for number, _call, text in answered(messages):
        for match in list(_TALLY.finditer(text))[:1]:
            said = f"Tests: {match[2]} passing, {match[1]} failing ({match[3]} s)"
            yield TrueLine(said, (number,), Section.STATE, "fraction")


def last_run(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A good run."""
    for number, _call, text in answered(messages):
        for match in list(_PASSED.finditer(text))[:1]:
            said = f"The test run finished with {match[1]} passed after {match[2]} s"
            yield TrueLine(said, (number,), Section.STATE, "last run")


def exited(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A command by its exit status."""
    for number, call, text in answered(messages):
        command, code = describe(call).command, exit_code(text)
        if command and len(command) < 100 and not set("\n`") & set(command) and code is not None:
            yield TrueLine(f"`{command}` exited with status {code}", (number,), Section.COMPLETED, "exited")


def commit_line(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A commit as a log would have it."""
    for number, _call, text in answered(messages):
        for match in list(_COMMIT.finditer(text))[:1]:
            said = f"Commit {match[2][:7]} on branch {match[1]}: {match[3]}"
            yield TrueLine(said, (number,), Section.COMPLETED, "commit line")


def stopped(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An error in code marks."""
    for line in actions(messages):
        if line.kind == "error" and "`" not in line.text:
            said = f"The output contains `{line.text.removeprefix('Hit ')}`"
            yield TrueLine(said, line.sources, Section.BLOCKED, "stopped")


def spanish(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An edit in Spanish."""
    for number, path in _worked(messages, "edit"):
        yield TrueLine(f"Se modificó el archivo {path}", (number,), Section.COMPLETED, "Spanish")


def japanese(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """An edit in Japanese."""
    for number, path in _worked(messages, "edit"):
        yield TrueLine(f"{path} を編集しました", (number,), Section.COMPLETED, "Japanese")


def according_to(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A statement of the assistant, told as its own."""
    for line in quoted(messages):
        if (
            line.kind == "verbatim"
            and re.match(r"[A-Z][a-z]", line.text)
            and not re.search(r"\b(?:I|me|my)\b", line.text)
        ):
            said = f"According to the assistant, {line.text[:1].lower()}{line.text[1:]}"
            yield TrueLine(said, line.sources, Section.DECISIONS, "according to")


def stated_rule(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A rule of the user, named as one."""
    for number, message in enumerate(messages, 1):
        for sentence in sentences_of(strip_injected(text_of(message))) if role_of(message) == "user" else ():
            match = _RULE.match(sentence)
            if match and '"' not in sentence and "[…]" not in sentence:
                yield TrueLine(f"User rule: {match[1]}", (number,), Section.CONSTRAINTS, "stated rule")


def without_lead(messages: Sequence[Message], _: Random) -> Iterator[TrueLine]:
    """A sentence without its first little words."""
    for line in quoted(messages):
        match = re.match(r"^(?:So|Now|Also|Then|Next|OK|Okay|Great|Good|Done)[,.:!]? ([a-zA-Z`].{25,})$", line.text)
        if match and line.kind == "verbatim":
            said = match[1][:1].upper() + match[1][1:]
            yield TrueLine(said, line.sources, line.section, "without lead")


HELD_OUT_TRUE_KINDS: dict[str, TrueLines] = {
    "labelled": labelled,
    "by the assistant": by_the_assistant,
    "opened": opened,
    "edited list": edited_list,
    "fraction": fraction,
    "last run": last_run,
    "exited": exited,
    "commit line": commit_line,
    "stopped": stopped,
    "Spanish": spanish,
    "Japanese": japanese,
    "according to": according_to,
    "stated rule": stated_rule,
    "without lead": without_lead,
}
