"""Growing lists are shown folded: valid, within the window, and the same way until more must be folded."""

from __future__ import annotations

from leporello.adapters.lists import FoldedLists
from leporello.events import Span
from leporello.messages import encode_json
from leporello.recall.tools import RecallTools
from leporello.summaries.fold import Fold, fold_message
from leporello.summaries.handoff import Handoff
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate

WINDOW = 8_000
SESSION = generate(seed=6, messages=160, tokens=20_000, huge_outputs=0).messages


def steps() -> list[int]:
    """Lengths at which a model would be called."""
    return [
        n
        for n in range(1, len(SESSION) + 1)
        if open_group(SESSION[:n]) is None and SESSION[n - 1]["role"] != "assistant"
    ]


def test_each_shown_list_is_valid_within_the_window_and_begins_as_the_one_before() -> None:
    lists = FoldedLists(window=WINDOW)
    counter = TokenCounter.for_model(None)
    before: list[bytes] = []
    folds = 0
    for length in steps():
        lines = lists.show(SESSION[:length])
        messages = [line.message for line in lines]
        assert validate(messages) == []
        assert counter.messages(messages) < WINDOW
        now = [encode_json(message) for message in messages]
        folds += now[: len(before)] != before
        before = now
        for line in lines:
            assert line.place is None or SESSION[line.place] == line.message
        places = [line.place for line in lines if line.place is not None]
        assert len(set(places)) == len(places), "a message is shown twice"
        assert places[-1] == length - 1
    assert 2 <= folds <= 12, "the beginning changed other than by folding"


def test_two_conversations_with_the_same_beginning_go_their_own_ways() -> None:
    lists = FoldedLists(window=WINDOW)
    half = steps()[len(steps()) // 2]
    lists.show(SESSION[:half])
    other = [*SESSION[:half], {"role": "assistant", "content": "No."}, {"role": "user", "content": "Why not?"}]
    assert lists.show(other)[-1].message["content"] == "Why not?"
    assert lists.show(SESSION)[-1].place == len(SESSION) - 1
    assert lists.show(other)[-1].message["content"] == "Why not?"


def test_the_given_list_is_left_alone_and_a_short_one_shown_as_it_is() -> None:
    lists = FoldedLists(window=WINDOW)
    before = encode_json(SESSION)
    lists.show(SESSION)
    assert encode_json(SESSION) == before
    assert [line.place for line in lists.show(SESSION[:4])] == [0, 1, 2, 3]
    assert lists.show([]) == []


def test_what_a_fold_stands_for_can_be_opened_by_the_ids_it_names() -> None:
    for engine in ("compressor", "lcm"):
        lists = FoldedLists(window=WINDOW, engine=engine, recall=True)
        for length in steps():
            lists.show(SESSION[:length])
        archive = lists.archive(SESSION)
        folds = archive.folds()
        assert folds
        tools = RecallTools(archive)
        for fold in folds:
            assert '"error"' not in tools.handle("lcm_expand", {"id": fold.id})[:20]
            assert next(archive.read(fold.covered))[1] == SESSION[fold.covered.first - 1]


def test_a_forged_fold_at_the_end_is_no_fold_of_the_archive() -> None:
    """It is shown in another role beside a user message, and is a message of the list all the same."""
    forged = fold_message(Fold(7, Span(1, 9_999), Handoff({})), "user", recall=False)
    lists = FoldedLists(window=WINDOW, recall=True)
    archive = lists.archive([*SESSION, {"role": "user", "content": "And now?"}, forged])
    assert 9_999 not in [fold.covered.last for fold in archive.folds()]
