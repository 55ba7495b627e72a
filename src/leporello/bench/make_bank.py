"""Writes a question bank for a session by rule: facts that stand in it word for word, spread over its length."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.bench.bank import KINDS, Bank, ExamQuestion, decoded_texts_of, fold, texts_of
from leporello.bench.exam import without_thinking
from leporello.errors import InputError
from leporello.importers import load_session
from leporello.importers.source import SourceFile
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, ToolCall, calls_of, encode_json, parse_json, role_of, text_of
from leporello.redact import redact
from leporello.turns import iter_groups

LONGEST_GOLD = 160
_LONGEST_CUE = 90
_LONGEST_TYPED = 3_000
_SENTENCE = lazy_regex(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_RULE = lazy_regex(
    r"\b(don'?t|do not|never|always|must(?: not)?|make sure|only|instead of|should(?: not|n'?t)?|please use|avoid|"
    r"no need to|be sure|remember to)\b|不要|不能|必须|一定|务必|只能|请用",
    re.IGNORECASE,
)
_HARNESS = lazy_regex(r"^\s*(<[a-z_-]+>|\[Request interrupted|Caveat:)", re.IGNORECASE)
_REASON = lazy_regex(
    r"\b(because|since|so that|to avoid|in order to|rather than|instead of)\b|因为|为了", re.IGNORECASE
)
_ERROR = lazy_regex(
    r"^(?:[\w./-]+: )?"
    r"(?:[\w.]*(?:Error|Exception)|[Ee]rror(?:\[\w+\])?|ERROR|fatal|panic|FAIL(?:ED)?|Failed|E {2,}\w+): ?\S"
    r"|^[\w./:-]+: .*\b(?:No such file|not found|[Pp]ermission denied|cannot|can't|undefined|unable to|timed out)\b"
)
_OUTCOME = lazy_regex(
    r"\b\d+ (?:passed|failed|errors?|warnings?|tests?|files? changed|insertions?|deletions?|issues?|problems?)\b"
    r"|\bok\s+\S+\s+\d+\.\d+s|\b(?:in|took|after) \d+(?:\.\d+)?\s?(?:s|ms|seconds)\b",
    re.IGNORECASE,
)
_READING = lazy_regex(r"(?:\w*_)?(?:read|view|open|grep|glob|cat)", re.IGNORECASE)
_COMMIT = lazy_regex(r"^\[(\S+)(?: \(root-commit\))? ([0-9a-f]{7,12})\] (.{8,})$", re.MULTILINE)
_LOG_LINE = lazy_regex(r"^([0-9a-f]{7,12}) (\S.{12,})$", re.MULTILINE)
_GREP = lazy_regex(r"^((?:[\w.@+-]+/)*[\w.@+-]+\.\w{1,5}):(\d+)[:-]\s*(\S.{8,})$", re.MULTILINE)
_SETTING = lazy_regex(
    r"^[^\S\n]*\"?([A-Za-z][\w.-]{3,40})\"?\s{0,40}[:=]\s{0,40}\"?([\w./:@+-]{6,60})\"?,?$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class QuestionCandidate:
    """A question with its answer, and the message the answer stands in."""

    kind: str
    question: str
    gold: str
    index: int


def candidates(messages: Sequence[Message]) -> Iterator[QuestionCandidate]:
    """Everything that could be asked, in the order of the session."""
    asked_before = ""
    said_before = ""
    for group in iter_groups(messages):
        message = messages[group.start]
        role = role_of(message)
        # Only what a person wrote: not the program's own notes, not a pasted page.
        if role == "user" and len(text_of(message)) <= _LONGEST_TYPED and not _HARNESS.match(text_of(message)):
            yield from _from_user(group.start, text_of(message), asked_before, said_before)
            asked_before = text_of(message)
        elif role == "assistant":
            said_before = text_of(message) or said_before
            yield from _decisions(group.start, text_of(message))
            for call, answer in zip(calls_of(message), group.answers, strict=True):
                if answer is not None:
                    output = "\n".join(decoded_texts_of(messages[answer]))
                    yield from _from_output(answer, _what(call), output)


def _from_user(index: int, words: str, asked_before: str, said_before: str) -> Iterator[QuestionCandidate]:
    sentences = _sentences(words)
    for number, sentence in enumerate(sentences):
        if _RULE.search(sentence):
            around = sentences[number - 1] if number else _opening(said_before)
            if around:
                yield QuestionCandidate("rule", f"What did the user lay down after: “{_cue(around)}”?", sentence, index)
    if asked_before and sentences:
        cue = _cue(_opening(asked_before))
        yield QuestionCandidate("order", f"What did the user write next, after: “{cue}”?", sentences[0], index)


def _decisions(index: int, words: str) -> Iterator[QuestionCandidate]:
    for sentence in _sentences(words):
        reason = _REASON.search(sentence)
        if reason and reason.start() > 25 and len(sentence) - reason.end() > 15:
            before, after = sentence[: reason.start()].strip(), sentence[reason.start() :].strip()
            yield QuestionCandidate(
                "decision", f"What reason or aim was given for this: “{_cue(before)}”?", after, index
            )


def _from_output(index: int, what: str, output: str) -> Iterator[QuestionCandidate]:
    yield from _identifiers(index, what, output)
    for found in _GREP.finditer(output):
        question = f"In which file and on which line stands “{_cue(found[3])}”?"
        yield QuestionCandidate("path", question, f"{found[1]}:{found[2]}", index)
    if _READING.match(what):
        return  # a file that is read may contain such lines, and nothing happened
    for line in output.splitlines():
        line = line.strip()
        if not 12 <= len(line) <= LONGEST_GOLD:
            continue
        if _ERROR.search(line):
            yield QuestionCandidate("error", f"Which error did {what} report?", line, index)
        elif _OUTCOME.search(line):
            yield QuestionCandidate("outcome", f"With which figures did {what} end?", line, index)


def _identifiers(index: int, what: str, output: str) -> Iterator[QuestionCandidate]:
    for found in _COMMIT.finditer(output):
        yield QuestionCandidate("identifier", f"Which commit has the subject “{_cue(found[3])}”?", found[2], index)
    if " log" in what:
        for found in _LOG_LINE.finditer(output):
            yield QuestionCandidate("identifier", f"Which commit has the subject “{_cue(found[2])}”?", found[1], index)
    for found in _SETTING.finditer(output):
        if any(character.isdigit() for character in found[2]) and redact(found[0]) == found[0]:
            yield QuestionCandidate(
                "identifier", f"Which value has {found[1]} in the output of {what}?", found[2], index
            )


def _sentences(words: str) -> list[str]:
    parts = (part.strip(" \t-*#>`") for part in _SENTENCE.split(words))
    return [part for part in parts if 15 <= len(part) <= LONGEST_GOLD]


def _opening(words: str) -> str:
    return next(iter(_sentences(words)), words.strip()[:_LONGEST_CUE])


def _cue(words: str) -> str:
    """A short quotation that points at a place."""
    words = " ".join(words.split())
    return words if len(words) <= _LONGEST_CUE else words[:_LONGEST_CUE].rsplit(" ", 1)[0] + " …"


def _what(call: ToolCall) -> str:
    """A tool call in a few words: the tool and the argument that says most."""
    arguments = parse_json(call.arguments)
    if isinstance(arguments, dict):
        for key in ("command", "cmd", "pattern", "query", "path", "file_path", "url"):
            value = arguments.get(key)
            if isinstance(value, list):
                value = " ".join(str(item) for item in value)
            if isinstance(value, str) and value.strip():
                return f"{call.name} “{_cue(value)}”"
    return call.name or "the tool"


MOST_QUESTIONS = 25
MOST_PLACES = 3  # a fact that stands in more messages than this is no test of memory


def make_bank(path: Path, name: str = "", size: int = MOST_QUESTIONS) -> Bank:
    """A bank of at most `size` questions about the session in a file."""
    messages = without_thinking(load_session(path).messages)
    chosen = choose(_fair(candidates(messages), messages), len(messages), size)
    if not chosen:
        raise InputError("nothing could be asked about this session: no rules, errors, paths or ids in it", str(path))
    lines = SourceFile(path).text.split("\n")
    questions = tuple(
        ExamQuestion(
            id=f"q{number:02}",
            kind=candidate.kind,
            question=candidate.question,
            gold=candidate.gold,
            line=_line_of(candidate, lines),
            position=round(candidate.index / max(1, len(messages) - 1), 4),
        )
        for number, candidate in enumerate(chosen, 1)
    )
    return Bank(name or path.name, questions)


def choose(pool: Sequence[QuestionCandidate], length: int, size: int) -> list[QuestionCandidate]:
    """Kinds in turn, and within a kind the one farthest from all chosen so far."""
    by_kind: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in pool:
        by_kind[candidate.kind].append(candidate)
    chosen: list[QuestionCandidate] = []

    def distance(candidate: QuestionCandidate) -> int:
        return min((abs(candidate.index - other.index) for other in chosen), default=length - candidate.index)

    while len(chosen) < size and any(by_kind.values()):
        for kind in KINDS:
            if by_kind[kind] and len(chosen) < size:
                best = max(by_kind[kind], key=distance)
                by_kind[kind].remove(best)
                chosen.append(best)
    return sorted(chosen, key=lambda candidate: candidate.index)


def _fair(found: Iterable[QuestionCandidate], messages: Sequence[Message]) -> list[QuestionCandidate]:
    """Questions with one right answer that is not in the question and stands in few places."""
    folded = [fold("\n".join(texts_of([message]))) for message in messages]
    answers: dict[str, set[str]] = defaultdict(set)
    pool = []
    golds = set()
    for candidate in found:
        gold = fold(candidate.gold)
        answers[candidate.question].add(gold)
        words = f"{candidate.question}\n{candidate.gold}"
        if gold in golds or gold in fold(candidate.question) or redact(words) != words:
            continue
        golds.add(gold)
        pool.append(candidate)
    single = [candidate for candidate in pool if len(answers[candidate.question]) == 1]
    places = [sum(fold(candidate.gold) in text for text in folded) for candidate in single]
    return [candidate for candidate, count in zip(single, places, strict=True) if 0 < count <= MOST_PLACES]


def _line_of(candidate: QuestionCandidate, lines: Sequence[str]) -> int:
    """The line of the file where the answer first stands, counted from 1; 0 when it is spread over several."""
    written = encode_json(candidate.gold).decode()[1:-1]
    return next((number for number, line in enumerate(lines, 1) if candidate.gold in line or written in line), 0)
