"""A search marks values that were replaced, and brings the newest statement first."""

from __future__ import annotations

from leporello.recall.base import RecallQuery
from leporello.recall.memory import MemoryRecall

OLD = "The launch of the billing portal is on 12 May."
NEW = "The billing portal launch is on 19 May."
FILLER = [{"role": "assistant", "content": f"I cleaned up the fixtures of suite {name}."} for name in "abcdefgh"]


def conversation(*texts: str) -> MemoryRecall:
    messages = [message for text in texts for message in ({"role": "user", "content": text}, *FILLER)]
    return MemoryRecall(messages)


def test_a_replaced_value_is_marked_and_stands_behind_the_newest() -> None:
    found = conversation(OLD, NEW).search(RecallQuery("When is the launch of the billing portal?"))
    assert [window.message for window in found][:2] == [10, 1]
    assert found[1].text == f"{OLD} (superseded by m10)"
    assert found[0].score >= found[1].score


def test_a_mark_names_the_newest_of_several() -> None:
    found = conversation(OLD, NEW, "The billing portal launch is on 26 May.").search(
        RecallQuery("When is the launch of the billing portal?")
    )
    assert found[0].message == 19
    assert {window.message for window in found if "(superseded by m19)" in window.text} == {1, 10}


def test_what_the_user_said_last_about_the_same_words_stands_first() -> None:
    recall = conversation("The garden shed gets a flat roof.", "For the shed in the garden I like a gable roof best.")
    found = recall.search(RecallQuery("What kind of roof does the garden shed get?"))
    assert [window.message for window in found][:2] == [10, 1]
    assert "superseded" not in found[1].text


def test_another_value_told_later_in_other_words_stands_first_unmarked() -> None:
    recall = conversation(
        "The piano tuner comes on Tuesday.", "Leave the door open on Friday, the tuner wants an hour."
    )
    found = recall.search(RecallQuery("On which day does the piano tuner come?"))
    assert [window.message for window in found][:2] == [10, 1]
    assert "superseded" not in found[1].text


def test_values_of_different_things_are_not_marked() -> None:
    text = conversation("The worker timeout is 30 seconds.", "The client timeout is 60 seconds.").answer("the timeout")
    assert "superseded" not in text


def test_marks_stay_within_the_tokens_asked_for() -> None:
    recall = conversation(OLD, NEW)
    for tokens in (20, 40, 60, 80):
        found = recall.search(RecallQuery("launch of the billing portal", tokens))
        assert recall._count("\n".join(map(str, found))) <= tokens


def test_what_was_said_later_of_the_same_thing_stands_first_without_a_word_of_change() -> None:
    recall = conversation("Der Workshop findet am Montag statt.", "Für den Workshop am Mittwoch brauche ich Stifte.")
    found = recall.search(RecallQuery("Wann findet der Workshop statt?"))
    assert [window.message for window in found][:2] == [10, 1]
    assert found[1].text == "Der Workshop findet am Montag statt. (later: m10)"


def test_what_holds_now_stands_before_a_sentence_that_begins_with_what_was() -> None:
    recall = conversation(
        "The wedding is at Marlow Hall.", "Marlow Hall fell through, the wedding is at the Old Brewery."
    )
    assert recall.answer("Where is the wedding?").startswith("[m10] user: the wedding is at the Old Brewery\n")


def test_what_the_user_said_later_in_other_words_than_the_question_is_found() -> None:
    recall = conversation("Our build runs on Jenkins.", "I retired Jenkins, the pipeline is on Buildbot.")
    found = recall.search(RecallQuery("Where does our build run?"))
    assert [window.message for window in found][:2] == [10, 1]


def test_what_was_said_later_of_another_sentence_is_not_put_before_the_answer() -> None:
    """A message may say several things; only what is newer about the one that was asked for answers the question."""
    said = ["Count. Always answer in French. The backup host is called heron-7."]
    said += [text for k in range(1, 20) for text in (f"{k} un deux trois.", f"Count again, {k}.")]
    messages = [{"role": "assistant" if k % 2 else "user", "content": text} for k, text in enumerate(said)]
    first, *_ = MemoryRecall(messages).search(RecallQuery("What is the backup host called?"))
    assert first.message == 1


def test_a_question_says_nothing_newer() -> None:
    recall = conversation(
        "By the way, the staging server listens on port 8443.", "Which port does the staging server listen on?"
    )
    assert "later" not in recall.answer("Which port does the staging server listen on?")
