"""Promise 17, tool channel intact: kept tool text is a piece of the original, arguments are never faked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import Message, calls_of, text_of
from leporello.testing.sessions import SessionSpec, Style, generate
from tests.support import checks
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import any_conversation, conversations

FILLER = generate(SessionSpec(seed=172, messages=20, tokens=4_000, images=0)).messages
WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000))


@pytest.mark.fault(
    "pointers paraphrase",
    "compaction/prune.py",
    old='note = f"[{facts.heading} → {ended(message)}; output cleared here, kept as m{number}]"',
    new='note = "Everything went well."',
)
@given(any_conversation(longest=20), WINDOWS)
def test_texts_are_whole_or_visibly_cut_or_pointers(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    assert checks.invented_texts(messages, done.messages) == []


@pytest.mark.fault(
    "shortened values carry a marker that could be copied into a file",
    "compaction/prune.py",
    old='omitted[key] = f"{length:,} characters{deed}"',
    new='kept[key] = f"{str(value)[:40]}... [truncated]"',
)
@given(any_conversation(longest=20), WINDOWS)
def test_argument_values_are_the_originals_or_absent(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if done.report.committed:
        assert checks.invented_arguments(messages, done.messages) == []


@given(conversations(longest=20), WINDOWS)
def test_arguments_stay_json_objects(messages: list[Message], window: int) -> None:
    for message in fold_once(messages, window).messages:
        for call in calls_of(message):
            assert not call.arguments or isinstance(json.loads(call.arguments), dict)


@pytest.mark.fault(
    "cut text leaves no mark",
    "compaction/prune.py",
    old="cut = clean[:front] + _CUT_LINE + clean[-max(1, shown - front) :]",
    new="cut = clean[:front] + clean[-max(1, shown - front) :]",
)
@given(
    st.sampled_from(("log line 4711\n", "word ", "不要推送。", '{"a": 1}\n', "x")),
    st.integers(1_500, 3_000),
    st.sampled_from((1_500, 3_000)),
)
def test_a_huge_answer_at_the_end_is_visibly_cut(piece: str, count: int, window: int) -> None:
    answer = "".join(f"{number} {piece}" for number in range(count))
    messages: list[Message] = [*FILLER, {"role": "user", "content": "Why?"}, {"role": "assistant", "content": answer}]
    done = fold_once(messages, window)
    assert done.report.committed, done.report.reason
    assert checks.invented_texts(messages, done.messages) == []
    shown = text_of(done.messages[-1])
    assert len(shown) < len(answer)
    assert shown.startswith(answer[:50])
    assert shown.endswith(answer[-50:])


@pytest.mark.parametrize("style", [Style.CODING, Style.ALL_TOOL])
def test_through_eight_rounds_of_a_session(style: Style) -> None:
    session = generate(SessionSpec(seed=171, messages=250, tokens=60_000, style=style, huge_outputs=1))
    for done in rounds(session.messages, 16_000, 6):
        assert checks.invented_texts(session.messages[: done.seen], done.after) == []
        assert checks.invented_arguments(session.messages[: done.seen], done.after) == []
