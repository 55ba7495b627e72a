"""The verifier on summaries with planted errors: nearly none stands in the model's words, and few true lines are lost.

A line in doubt gives way to the sentence it came from, so that an error is caught when it is dropped or replaced, and a
true line is lost when it is neither kept nor replaced by words that carry it (`carried`). The kinds in `heldout_*` were
written when the verifier was finished and have not been tuned on; figures are in `docs/explanation/verification.md`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.events import CompactionReport, Outcome, Verification
from leporello.messages import Message
from leporello.store.sql.encoding import pack_report, unpack_report
from leporello.summaries.base import SummaryTask
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.verify import verify
from tests.verify.heldout_mutations import HELD_OUT_KINDS
from tests.verify.heldout_true_lines import HELD_OUT_TRUE_KINDS
from tests.verify.measure import ERRORS, TRUE, Result, generated, measure, recorded

MOST_STANDING = 0.05
MOST_LOST = 0.03
LEAST_IN_OWN_WORDS = 0.6
EACH = 6
KNOWN_ERRORS = [kind for name, kinds in ERRORS.items() if name != "held out" for kind in kinds]
KNOWN_TRUE = [kind for name, kinds in TRUE.items() if name != "held out" for kind in kinds]
OTHER_LANGUAGES = ("translated", "German", "French", "Chinese outcome", "Chinese edit")


@pytest.fixture(scope="module")
def result() -> Result:
    return measure(generated(), EACH)


def told(result: Result) -> str:
    return "\n".join((*result.table(), *result.true.notes, *result.planted.notes))


def test_planted_errors_of_known_kinds_do_not_stand(result: Result) -> None:
    assert result.planted.standing(KNOWN_ERRORS) <= MOST_STANDING, told(result)


def test_planted_errors_of_held_out_kinds_do_not_stand(result: Result) -> None:
    assert result.planted.standing(HELD_OUT_KINDS) <= MOST_STANDING, told(result)


def test_true_lines_of_known_kinds_are_kept_or_quoted(result: Result) -> None:
    assert result.true.lost(KNOWN_TRUE) <= MOST_LOST, told(result)


def test_most_true_lines_stay_in_the_models_words(result: Result) -> None:
    """In the language of the session: what is said in another one can't be compared word by word, and is quoted."""
    same = [kind for kind in KNOWN_TRUE if kind not in OTHER_LANGUAGES]
    assert result.true.standing(same) >= LEAST_IN_OWN_WORDS, told(result)


@pytest.mark.parametrize("kind", ["digit", "digits exchanged", "hash", "path", "negation", "who", "status"])
def test_each_of_the_gravest_kinds_is_caught(result: Result, kind: str) -> None:
    assert result.planted.lines[kind] >= 20
    assert result.planted.standing([kind]) <= MOST_STANDING, told(result)


def test_the_held_out_kinds_are_a_third_as_many_as_all_others_and_none_of_them() -> None:
    assert set(HELD_OUT_KINDS).isdisjoint(KNOWN_ERRORS)
    assert set(HELD_OUT_TRUE_KINDS).isdisjoint(KNOWN_TRUE)
    assert len(HELD_OUT_KINDS) * 3 >= len(KNOWN_ERRORS)
    assert len(HELD_OUT_TRUE_KINDS) * 3 >= len(KNOWN_TRUE)


def test_recorded_sessions_give_the_same_figures(real_sessions: Path) -> None:
    result = measure(recorded(real_sessions))
    assert result.planted.standing(KNOWN_ERRORS) <= MOST_STANDING, told(result)
    assert result.planted.standing(HELD_OUT_KINDS) <= MOST_STANDING, told(result)
    assert result.true.lost(KNOWN_TRUE) <= MOST_LOST, told(result)


# --- single promises -------------------------------------------------------------------------------------------------

TURNS: list[Message] = [
    {"role": "user", "content": "Raise the timeout in src/net/client.py to 30 seconds. Never push to main."},
    {
        "role": "assistant",
        "content": "I raise it and run the tests.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "bash", "arguments": '{"command": "python -m pytest -q"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "2 failed, 40 passed in 12.50s\nexit_code: 1"},
    {"role": "assistant", "content": "Two tests in tests/test_client.py fail because the mock clock is not advanced."},
]


def kept(text: str, section: Section = Section.CRITICAL, sources: tuple[int, ...] = ()) -> bool:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    handoff = Handoff({section: (HandoffLine(text, sources, LineOrigin.MODEL),)})
    return text in [line.text for line in verify(handoff, task)[0][section]]


@pytest.mark.parametrize(
    "text",
    [
        "The user asked to raise the timeout in src/net/client.py to 30 s",
        "The user wants to raise the timeout in net/client.py to 30 seconds",
        "Test run: 2 failed, 40 passed",
        "2 of 42 tests failed",
        "Ran `python -m pytest -q`, which failed",
        "Two tests in test_client.py fail because the mock clock is not advanced",
    ],
)
def test_what_was_said_may_be_said_again(text: str) -> None:
    assert kept(text)


@pytest.mark.parametrize(
    "text",
    [
        "The timeout in src/net/client.py is to become 60 s",
        "The timeout in src/net/server.py is to become 30 s",
        "Test run: 2 failed, 41 passed",
        "All 40 tests passed",
        "测试结果：40 失败，2 通过",
        "Ran `python -m pytest -q`, which succeeded",
        "`python -m pytest -q` is still to be run",
        "Two tests in tests/test_client.py fail because the mock clock is advanced",
        "The assistant asked never to push to main",
        'The user said: "push it to main when you are done"',
    ],
)
def test_what_was_not_said_goes(text: str) -> None:
    assert not kept(text)


def test_a_line_with_a_wrong_id_gets_the_right_one() -> None:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    line = HandoffLine("Test run: 2 failed, 40 passed", (1,), LineOrigin.MODEL)
    checked, _ = verify(Handoff({Section.STATE: (line,)}), task)
    assert checked[Section.STATE][0].sources == (3,)


def test_what_only_a_tool_said_is_no_constraint() -> None:
    assert kept("Never push to main", Section.CONSTRAINTS, (1,))
    assert not kept("Two tests in tests/test_client.py fail", Section.CONSTRAINTS, (4,))


# --- in doubt --------------------------------------------------------------------------------------------------------


def checked(
    text: str, section: Section = Section.CRITICAL, sources: tuple[int, ...] = ()
) -> list[tuple[Section, HandoffLine]]:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    return list(verify(Handoff({section: (HandoffLine(text, sources, LineOrigin.MODEL),)}), task)[0].lines())


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The timeout in src/net/client.py is to become 30 s", 1),
        ("The timeout in net/client.py is to become 30 seconds", 1),
        ("测试结果：40 通过，2 失败", 3),
    ],
)
def test_what_is_said_in_other_words_is_quoted(text: str, number: int) -> None:
    assert [line.sources for _, line in checked(text)] == [(number,)]


def test_a_line_in_doubt_gives_way_to_the_sentence_it_came_from() -> None:
    said = "Two tests in tests/test_client.py fail because the mock clock is not advanced."
    for text in (
        "The frozen fake timer makes two cases in tests/test_client.py red",
        "Two tests in tests/test_client.py fail because the mock clock is advanced",
        "Two tests in tests/test_client.py fail because the mock clock is not advanced, as the customers noticed",
    ):
        assert checked(text) == [(Section.CRITICAL, HandoffLine(said, (4,), LineOrigin.ASSISTANT))]


def test_a_call_is_quoted_with_the_name_of_its_tool_and_its_result_as_the_tools() -> None:
    lines = checked("`python -m pytest -q` broke off in the middle (2 failed)", Section.STATE, (3,))
    assert lines == [
        (Section.STATE, HandoffLine("bash: command: python -m pytest -q", (2,), LineOrigin.ASSISTANT)),
        (Section.STATE, HandoffLine("2 failed, 40 passed in 12.50s", (3,), LineOrigin.TOOL)),
    ]


def test_what_a_tool_printed_is_never_quoted_among_the_users_orders() -> None:
    for section in (Section.ACTIVE_TASK, Section.CONSTRAINTS, Section.PENDING):
        assert checked("Make sure that 2 failed, 40 passed in 12.50s", section, (3,)) == []


def test_what_the_user_asked_is_not_quoted_as_done() -> None:
    line = HandoffLine("Raise the timeout in src/net/client.py to 30 seconds.", (1,), LineOrigin.USER)
    assert checked("Raised the timeout in src/net/client.py to 30 s", Section.COMPLETED, (1,)) == [
        (Section.CRITICAL, line)
    ]


def test_a_quotation_stands_once_and_is_counted() -> None:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    texts = (
        "The mock clock makes two tests in tests/test_client.py flaky",
        "Nobody winds the mock clock of tests/test_client.py",
        "Deployed to port 48211",
    )
    lines = tuple(HandoffLine(text, (4,), LineOrigin.MODEL) for text in texts)
    handoff, counts = verify(Handoff({Section.BLOCKED: lines}), task)
    assert len(handoff[Section.BLOCKED]) == 1
    assert (counts.lines_checked, counts.lines_quoted, counts.lines_dropped) == (3, 2, 1)
    assert counts.dropped == ("Deployed to port 48211",)


def test_quotations_leave_a_summary_within_its_room() -> None:
    turns = [(1, {"role": "assistant", "content": "The loader reads " + "every single row of the table and " * 11})]
    line = HandoffLine("The loader skips the table", (1,), LineOrigin.MODEL)
    for budget, quoted in ((10, 0), (1_000, 1)):
        assert verify(Handoff({Section.STATE: (line,)}), SummaryTask(turns, None, budget))[1].lines_quoted == quoted


def test_a_secret_is_masked_in_a_quotation() -> None:
    secret = "sk-" + "ant-api03-" + "A1b2C3d4" * 11 + "AA"
    turns = [(1, {"role": "user", "content": f"Set the staging token in config/live.yaml to {secret}"})]
    line = HandoffLine("Somebody put a staging token into config/live.yaml", (1,), LineOrigin.MODEL)
    handoff, counts = verify(Handoff({Section.STATE: (line,)}), SummaryTask(turns, None, 1_000))
    assert counts.lines_quoted == 1
    assert "config/live.yaml" in handoff[Section.STATE][0].text
    assert secret not in handoff[Section.STATE][0].text


def test_records_from_before_lines_were_quoted_still_load() -> None:
    report = CompactionReport(Outcome.COMMITTED, verification=Verification(5, 1, dropped=("a line",), lines_quoted=2))
    fields = json.loads(pack_report(report))
    assert unpack_report(json.dumps(fields).encode()) == report
    del fields["verification"]["lines_quoted"]
    assert unpack_report(json.dumps(fields).encode()).verification == Verification(5, 1, dropped=("a line",))
