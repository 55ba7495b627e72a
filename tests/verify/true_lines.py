"""True lines about a session, as a model might write them: quoted, reworded, shortened, reformatted, translated.

They are made by program from what the session holds, so that each is known to be true. The wordings here were chosen
without looking at the verifier's word lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from leporello.ledger.calls import describe, exit_code, result_text
from leporello.ledger.units import sentences_of
from leporello.ledger.user_text import strip_injected
from leporello.messages import Message, ToolCall, calls_of, is_result, role_of, text_of
from leporello.summaries.handoff import Section
from leporello.turns import iter_groups


@dataclass(frozen=True, slots=True)
class TrueLine:
    """A line that the session supports, with the kind of rewording it went through."""

    text: str
    sources: tuple[int, ...]
    section: Section
    kind: str


# --- quoted ----------------------------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"^[A-Z`*].{25,260}[.!]$")


def quoted(messages: Sequence[Message]) -> Iterator[TrueLine]:
    """Sentences of the assistant as they stand, and requests of the user in quotation marks."""
    for number, message in enumerate(messages, 1):
        role = role_of(message)
        if role == "assistant":
            for sentence in sentences_of(text_of(message)):
                if _SENTENCE.match(sentence) and "[…]" not in sentence:
                    yield TrueLine(sentence, (number,), Section.DECISIONS, "verbatim")
        elif role == "user":
            for sentence in sentences_of(strip_injected(text_of(message)))[:3]:
                if 25 < len(sentence) < 220 and '"' not in sentence and "[…]" not in sentence:
                    yield TrueLine(f'The user said: "{sentence}"', (number,), Section.CRITICAL, "quotation")


# --- what was done ---------------------------------------------------------------------------------------------------


def answered(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall, str]]:
    """Every call with the number and text of its result."""
    for group in iter_groups(messages):
        calls = calls_of(messages[group.start])
        for position, answer in enumerate(group.answers):
            if answer is not None:
                yield answer + 1, calls[position], result_text(messages[answer])


LEAST_ROUNDED = 3.0
_TALLY = re.compile(r"(?:(\d+) failed, )?(\d+) passed in ([\d.]+)s")
_COMMIT = re.compile(
    r"\[(\S+) ([0-9a-f]{7,})\] (.+)\n ?(\d+) files? changed, (\d+) insertions?\(\+\), (\d+) deletions?"
)
_DEPLOYED = re.compile(r"deployed (\S+) to (\S+), ticket (\S+)")
_ERROR = re.compile(r"^(\w+(?:Error|Exception|Timeout|Refused)\w*): (.{8,90})$", re.MULTILINE)
_PORT = re.compile(r"(\S+-api)  Up .*0\.0\.0\.0:(\d+)->")
_TOOK = re.compile(r"(\w+)\.(\w+) (\w+)=(\d{4,}) .* took=(\d{3,})ms")


def actions(messages: Sequence[Message]) -> Iterator[TrueLine]:
    """Outcomes of calls, told in other words than the tools used."""
    for number, call, text in answered(messages):
        facts = describe(call)
        source = (number,)
        if facts.command and len(facts.command) < 120 and "\n" not in facts.command and "`" not in facts.command:
            code = exit_code(text)
            if code is not None:
                how = "succeeded" if code == 0 else "failed"
                yield TrueLine(
                    f"Ran `{facts.command}`, which {how} (exit code {code})", source, Section.COMPLETED, "outcome"
                )
        yield from _tallies(text, source)
        yield from _commits(text, source)
        for match in list(_ERROR.finditer(text))[:2]:
            yield TrueLine(f"Hit {match[1]}: {match[2]}", source, Section.BLOCKED, "error")
        for match in _DEPLOYED.finditer(text):
            release, region, ticket = match.groups()
            yield TrueLine(
                f"Release {release} was deployed to {region} under {ticket}", source, Section.COMPLETED, "reworded"
            )
            yield TrueLine(f"{release} 已部署到 {region}，工单 {ticket}", source, Section.COMPLETED, "translated")
        for match in _PORT.finditer(text):
            yield TrueLine(f"The container {match[1]} listens on port {match[2]}", source, Section.STATE, "reworded")
        if facts.path and facts.work == "read":
            yield TrueLine(f"Looked at {_short(facts.path)}", source, Section.FILES, "short path")
        if facts.path and facts.work == "edit":
            yield TrueLine(f"Edited {facts.path}", source, Section.COMPLETED, "action")
            yield TrueLine(f"{_short(facts.path)} was modified", source, Section.FILES, "short path")


def _tallies(text: str, source: tuple[int, ...]) -> Iterator[TrueLine]:
    for match in list(_TALLY.finditer(text))[:1]:
        failed, passed, seconds = match.groups()
        if failed:
            yield TrueLine(f"Test run: {failed} failed and {passed} passed", source, Section.STATE, "reworded")
            yield TrueLine(f"测试结果：{passed} 通过，{failed} 失败", source, Section.STATE, "translated")
        else:
            yield TrueLine(f"All {passed} tests passed in {seconds} seconds", source, Section.STATE, "reworded")
            yield TrueLine(f"测试全部通过（{passed} passed）", source, Section.STATE, "translated")
        if float(seconds) >= LEAST_ROUNDED:
            yield TrueLine(f"The test run took about {round(float(seconds))} s", source, Section.STATE, "rounded")


def _commits(text: str, source: tuple[int, ...]) -> Iterator[TrueLine]:
    for match in list(_COMMIT.finditer(text))[:1]:
        branch, commit, subject, files, added, removed = match.groups()
        yield TrueLine(f"Committed “{subject}” as {commit[:8]} on {branch}", source, Section.COMPLETED, "reworded")
        yield TrueLine(
            f"Commit {commit} touches {files} files ({added} insertions, {removed} deletions)",
            source,
            Section.STATE,
            "reworded",
        )
        yield TrueLine(f"已提交 {commit}：{subject}", source, Section.COMPLETED, "translated")


def _short(path: str) -> str:
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:])


# --- reworded sentences ----------------------------------------------------------------------------------------------

_PARAPHRASES: tuple[tuple[str, str], ...] = (
    (
        r"The (\w+) (\w+) drops (\w+) entries since this morning\..*",
        r"The user reports that since this morning the \1 \2 has been losing \3 entries",
    ),
    (
        r"Add a `(--\w+)` option to the (\w+) command and cover it with tests\.",
        r"The user asked for a `\1` flag on the \2 command, covered by tests",
    ),
    (
        r"Can you refactor `(\w+)` so that the (\w+) is no longer built twice\?",
        r"Requested: refactor `\1` so that the \2 is not built twice any more",
    ),
    (
        r"(\w+) reports that (\w+) exports lose the last row\. Please have a look at (\S+)\.",
        r"\1 found the last row missing from \2 exports; the place to look is \3",
    ),
    (r"Write a migration that moves (\w+) from (\w+) to (\w+)\.", r"The user wants \1 migrated from \2 to \3"),
    (
        r"The tests in (\S+) are flaky\. Make them deterministic\.",
        r"Tests in \1 are unstable and have to become deterministic",
    ),
    (
        r"`(\w+)` is called from two places; checking the second one in (\S+)\.",
        r"There are two callers of `\1`, the second is in \2",
    ),
    (
        r"The (\w+) (\w+) comes from the (\w+), not from the query\..*",
        r"It is the \3 and not the query that the \1 \2 comes from",
    ),
    (
        r"That confirms it: (\w+) is read before the (\w+) is filled\.",
        r"Confirmed that \1 gets read before the \2 is populated",
    ),
    (
        r"Done\. The (\w+) (\w+) now keeps (\w+) entries; `(\w+)` got a guard and two tests\..*",
        r"`\4` received a guard plus two tests, so the \1 \2 keeps \3 entries now",
    ),
    (r"Finished: `(--\w+)` works and is documented, tests pass\..*", r"`\1` is working and documented; tests pass"),
    (
        r"Fixed in (\S+)\. Cause: the (\w+) was flushed before (\w+) was set, so (\w+) rows were lost\.",
        r"Root cause in \1: flushing the \2 before \3 was set lost \4 rows",
    ),
    (r"Never push to (\S+) directly\.", r"The user forbids pushing directly to \1"),
    (r"Always run `([^`]+)` before you commit\.", r"`\1` has to be run ahead of every commit"),
    (r"Do not touch anything under (\S+)\.", r"Nothing under \1 may be touched"),
    (r"Keep every function in (\S+) under (\d+) lines\.", r"Functions in \1 stay under \2 lines"),
    (r"Let's run the (\w+) service on port (\d+)\.", r"The \1 service is to run on port \2"),
    (r"Decision: (\w+) records are kept for (\d+) days\.", r"Records of \1 are retained for \2 days"),
    (r"We go with version (\S+) of the (\w+) library\.", r"Version \1 of the \2 library was chosen"),
    (r"Name the new table (\w+)\.", r"The new table is called \1"),
    (r"No emojis in the (\w+) docs\.", r"The \1 docs must not contain emojis"),
    (r"You must not print (\w+) values in logs\.", r"Logs must not print \1 values"),
)


def reworded(messages: Sequence[Message]) -> Iterator[TrueLine]:
    """Sentences whose pattern is known, said differently."""
    patterns = [(re.compile(pattern), said) for pattern, said in _PARAPHRASES]
    for number, message in enumerate(messages, 1):
        role = role_of(message)
        if role not in ("user", "assistant") or is_result(message):
            continue
        text = text_of(message)
        for pattern, said in patterns:
            for match in pattern.finditer(text):
                section = (
                    Section.CONSTRAINTS
                    if role == "user" and pattern.pattern[:5] in _RULE_OPENINGS
                    else Section.CRITICAL
                )
                yield TrueLine(match.expand(said), (number,), section, "paraphrase")


_RULE_OPENINGS = ("Never", "Alway", "Do no", "Keep ", "No em", "You m")

# Words that mean the same in the prose of a work log.
_OTHER_WORDS: dict[str, str] = {
    "fixed": "repaired", "fix": "repair", "shows": "indicates", "issue": "problem", "problem": "issue",
    "bug": "defect", "function": "routine", "checks": "verifies", "check": "verify", "returns": "gives back",
    "creates": "makes", "created": "made", "uses": "employs", "used": "employed", "also": "additionally",
    "because": "since", "updated": "revised", "update": "revise", "removed": "took out", "correctly": "properly",
    "currently": "at the moment", "need": "have", "implemented": "built", "found": "spotted", "ensure": "guarantee",
    "directory": "folder", "file": "document", "several": "multiple", "similar": "comparable", "complete": "full",
    "entire": "whole", "handles": "deals with", "contains": "holds", "allows": "lets", "large": "big",
    "quickly": "fast",
}  # fmt: skip
_WORD = re.compile(r"(?<![\w.*-])[a-z]+(?![\w.*-])")


def substituted(messages: Sequence[Message], rng: Random) -> Iterator[TrueLine]:
    """Sentences of the assistant with a word or two replaced by others of the same meaning."""
    for line in quoted(messages):
        if line.kind != "verbatim" or set(line.text) & set('`/"“'):
            continue
        places = [match for match in _WORD.finditer(line.text) if match.group() in _OTHER_WORDS]
        if not places:
            continue
        text = line.text
        for match in sorted(rng.sample(places, min(2, len(places))), key=lambda m: -m.start()):
            text = text[: match.start()] + _OTHER_WORDS[match.group()] + text[match.end() :]
        yield TrueLine(text, line.sources, line.section, "synonyms")


_OPENING = re.compile(r"^(?P<first>[A-Z][^,;:.()`]{8,60}), (?P<rest>[a-z][^;:()]{15,140})\.$")


def reordered(messages: Sequence[Message]) -> Iterator[TrueLine]:
    """Sentences whose first part is moved to the end."""
    for line in quoted(messages):
        match = _OPENING.match(line.text) if line.kind == "verbatim" and '"' not in line.text else None
        if match and not re.match(r"(?:So|But|And|Yes|No|Well|Okay|Now)\b", match["first"]):
            text = f"{match['rest'][:1].upper()}{match['rest'][1:]}, {match['first'][:1].lower()}{match['first'][1:]}"
            yield TrueLine(text, line.sources, line.section, "reordered")


_BIG = re.compile(r"(?<![\w.,/:#-])(\d{4,6})(?![\w.,/:-])")


def reformatted(messages: Sequence[Message]) -> Iterator[TrueLine]:
    """Sentences with their large numbers written in another way."""
    styles: tuple[Callable[[int], str], ...] = (
        lambda n: f"{n:,}",
        lambda n: f"about {round(n, -len(str(n)) + 2):,}",
        lambda n: f"{n / 1000:.1f}k",
        lambda n: f"~{n / 1000:.1f}K",
    )
    count = 0
    for line in quoted(messages):
        match = _BIG.search(line.text) if line.kind == "verbatim" and "`" not in line.text else None
        if match and int(match[1]) not in range(1900, 2100) and not re.search(r"port|id|line|#|v\d", line.text, re.I):
            shown = styles[count % len(styles)](int(match[1]))
            count += 1
            yield TrueLine(
                line.text[: match.start()] + shown + line.text[match.end() :],
                line.sources,
                line.section,
                "number format",
            )
    for number, _, text in answered(messages):
        for match in list(_TOOK.finditer(text))[:1]:
            thing, verb, field, value, took = match.groups()
            shown = styles[count % 2 * 2](int(value))
            count += 1
            yield TrueLine(
                f"{thing}.{verb} logged {field} {shown}, taking {int(took) / 1000:g} s",
                (number,),
                Section.CRITICAL,
                "number format",
            )


TrueLines = Callable[[Sequence[Message], Random], Iterable[TrueLine]]
"""Makes the true lines of one kind."""


def _of(kind: str, make: Callable[[Sequence[Message]], Iterable[TrueLine]]) -> TrueLines:
    return lambda messages, _: (line for line in make(messages) if line.kind == kind)


TRUE_KINDS: dict[str, TrueLines] = {
    **{kind: _of(kind, quoted) for kind in ("verbatim", "quotation")},
    **{
        kind: _of(kind, actions)
        for kind in ("outcome", "error", "reworded", "translated", "short path", "action", "rounded")
    },
    "paraphrase": _of("paraphrase", reworded),
    "synonyms": substituted,
    "reordered": _of("reordered", reordered),
    "number format": _of("number format", reformatted),
}
