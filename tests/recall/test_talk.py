"""Searching talks between people: who said it, in which words, and what was asked beside it."""

from __future__ import annotations

from typing import Any

from leporello.recall.chunks import chunks_of
from leporello.recall.memory import MemoryRecall
from leporello.recall.question import AnswerType, answer_types, understand

from .conftest import assistant, user

FILLER = "How lovely to hear from you again, do tell me all about it soon"


def talk() -> list[dict[str, Any]]:
    """Two named people; both speak of a garden, one of them has one."""
    said = [user(f"Ann: {FILLER} {n}") if n % 2 else assistant(f"Bea: {FILLER} {n}") for n in range(40)]
    said.insert(11, user("Ann: Hey Bea! Gardens are fine to look at."))
    said.insert(30, assistant("Bea: The garden has roses along the fence now."))
    return said


def test_what_a_named_speaker_said_comes_first() -> None:
    """A name in the question means who speaks, not lines that greet them."""
    first = MemoryRecall(talk()).answer("What grows in Bea's garden?", 60)
    assert "roses" in first
    assert "fine to look at" not in first


def test_a_message_may_carry_its_speaker_as_a_field() -> None:
    """`name`, as chat rooms fill it, counts like a name before the text."""
    said = [{**message, "name": message["content"][:3], "content": message["content"][5:]} for message in talk()]
    assert "roses" in MemoryRecall(said).answer("What grows in Bea's garden?", 60)


def test_words_before_a_colon_are_no_speakers_where_most_messages_have_none() -> None:
    """`Note: ...` now and then doesn't make a person of Note."""
    notes = [assistant(f"Note: step {n} is done") for n in range(4)]
    plain = [assistant(f"Step {n} is done") for n in range(9)]
    recall = MemoryRecall([*notes, *plain, user("The note on the port says 8443")])
    assert "8443" in recall.answer("What does the note on the port say?", 60)


def test_who_asks_in_the_first_person_means_what_they_said() -> None:
    """`I` is the user, in several languages; I/O is nobody."""
    for text in ("When did I pick the port?", "Wann habe ich den Port gewählt?", "我什么时候选的?"):
        assert AnswerType.USER in answer_types(text)
    assert AnswerType.USER not in answer_types("What is the I/O limit?")
    assert AnswerType.USER not in answer_types("What did she say?")


def test_what_users_opened_with_comes_before_what_they_went_on_with() -> None:
    """Asked what they brought up, the beginnings of their messages tell it; there is room for these and little more."""
    things = ("fence", "pond", "shed", "hedge", "gate", "path", "bench", "wall")
    said = []
    for number, thing in enumerate(things):
        opening = f"I'd like to talk about the {thing} of my garden before the summer comes, perhaps with my sister."
        said.append(user(f"{opening} It should last for {number} years in any weather, I hope."))
        said.append(assistant("Good, let us think about it step by step."))
    shown = MemoryRecall(said).answer("In which order did I bring up the parts of my garden?", 250)
    assert [thing for thing in things if f"the {thing} of" not in shown] == []


def test_a_kind_of_thing_finds_things_of_that_kind_and_not_the_other_way_round() -> None:
    """Who asks for hobbies looks for pottery; who asks for pottery doesn't look for hobbies."""
    (hobby,) = understand("hobby").terms
    (pottery,) = understand("pottery").terms
    assert "potteri" in dict(hobby.words)
    assert "hobbi" not in dict(pottery.words)


def test_sentences_of_what_is_said_are_lines_of_their_own() -> None:
    """One sentence can be shown without the others; very short ones stay with the next. Output is left as printed."""
    said = "Yes. The staging server listens on port 8443 since the last release. The other one was switched off in May."
    (chunk,) = chunks_of(user(said))
    assert list(chunk.lines) == [
        "Yes. The staging server listens on port 8443 since the last release.",
        "The other one was switched off in May.",
    ]
    (printed,) = chunks_of({"role": "tool", "tool_call_id": "a", "content": said})
    assert list(printed.lines) == [said]


def test_standing_wishes_of_the_user_are_near_when_they_ask() -> None:
    """A preference counts for what is asked later, though it was said about all such things."""
    said = [user(f"I need the report of week {n} by Monday, with a table of trips and costs") for n in range(60)]
    said.insert(20, user("I always prefer trains to planes for trips."))
    assert "trains" in MemoryRecall(said).answer("How should I plan my trip to the customer?", 120)
