"""Promise 7, nothing invented: identifiers, paths, numbers and quotations in a summary occur in what it covers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.compaction.pipeline import CompactionResult
from leporello.ledger.units import sentences_of
from leporello.messages import Message, role_of, text_of
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.handoff import HandoffLine, LineOrigin, Section
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.support import checks
from tests.support.rounds import fold_once
from tests.support.strategies import conversations

SESSION = generate(SessionSpec(seed=91, messages=40, tokens=7_000, images=0))
TRUE_LINES = tuple(
    dict.fromkeys(
        sentence
        for message in SESSION.messages
        if role_of(message) == "assistant"
        for sentence in sentences_of(text_of(message))
        if len(sentence) < 120
    )
)[:2]
INVENTED = (
    "Deployed commit 9f8e7d6c5b4a to production",
    "The server listens on port 48211",
    "Fixed src/imaginary/ghost_module.py",
    "The user asked to delete the whole database",
    'The log said "segmentation fault in the flux capacitor"',
    "Renamed `compute_phantom_total` everywhere",
    "Version 97.31.5 was released",
)


def summarised(lines: tuple[str, ...]) -> CompactionResult:
    text = "## Goal\n- " + TRUE_LINES[0] + "\n\n## Active State\n" + "\n".join(f"- {line}" for line in lines)
    provider = ScriptedProvider(lambda _: text)
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    return fold_once(SESSION.messages, 4_000, summariser=summariser)


@pytest.mark.fault(
    "every line of a model is believed",
    "summaries/verify/__init__.py",
    old="if source.supports(line, section):",
    new="if True:",
)
@given(st.lists(st.sampled_from((*TRUE_LINES, *INVENTED)), min_size=1, max_size=6, unique=True))
def test_lines_with_unknown_identifiers_are_dropped_and_counted(lines: list[str]) -> None:
    done = summarised(tuple(lines))
    shown = checks.context_text(done.messages)
    invented = [line for line in lines if line in INVENTED]
    for line in invented:
        assert checks.plain(line) not in shown
    assert done.report.summariser == "model:gpt-4.1", done.report.warnings
    assert done.report.verification.lines_dropped == len(invented)
    for line in set(lines) - set(INVENTED):
        assert checks.plain(line) in shown, "a line that the turns say was dropped"


def test_lines_that_are_supported_by_the_turns_stay() -> None:
    commit = next(fact.text for fact in SESSION.facts if re.fullmatch(r"[0-9a-f]{9}", fact.text))
    done = summarised((f"Committed as {commit}",))
    assert done.report.verification.lines_dropped == 0
    assert checks.holds(done.messages, f"Committed as {commit}")


@pytest.mark.fault(
    "quoted units are changed on the way",
    "ledger/units.py",
    old="line.strip() if len(line) <= MAX_UNIT_CHARS else",
    new='line.strip().replace("1", "2") if len(line) <= MAX_UNIT_CHARS else',
)
@given(conversations(longest=20), st.sampled_from((3_000, 6_000, 16_000)))
def test_without_a_model_every_quoted_line_is_a_piece_of_its_message(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if done.fold is None:
        return
    for section, line in done.fold.handoff.lines():
        if section in (Section.USER_SAID, Section.INDEX, Section.DECISIONS) and line.origin is not LineOrigin.PROGRAM:
            assert unquoted(line, messages) == [], f"{section} {line.sources}"


BESIDE = re.compile(r" \((?:see|later) m(\d+): ((?:[^()]|\([^()]*\))*)\)")
"""What a later message says of the same."""


def unquoted(line: HandoffLine, messages: list[Message]) -> list[str]:
    """Pieces of a line that do not occur in the message it names; the same for what is told beside it."""
    text = line.text.partition("\n")[2] if line.origin is LineOrigin.TOOL else line.text
    told = [(line.sources[0], BESIDE.sub("", text)), *((int(n), said.strip("…")) for n, said in BESIDE.findall(text))]
    return [
        piece
        for number, said in told
        for piece in re.split(r"\n|\s*\[…\]\s*| … |\[REDACTED\]", said)
        if checks.plain(piece) not in checks.context_text([messages[number - 1]])
    ]


@pytest.mark.fault(
    "a claim about the user needs no user message",
    "summaries/verify/__init__.py",
    old="if not self.speakers.rightly_named(line):",
    new="if False:",
)
def test_what_the_user_asked_must_be_a_users_words() -> None:
    """Everything in the line was said, but by the assistant: what it said may be quoted, as the assistant's."""
    said = TRUE_LINES[0]
    done = summarised((f'The user said: "{said}"',))
    checked = done.report.verification
    assert checked.lines_dropped + checked.lines_quoted == 1
    assert not checks.holds(done.messages, f'The user said: "{said}"')
