"""Searching a conversation: the right lines come back, small, within the budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.recall.base import GAP, SEARCH_TOOLS, RecallMode, RecallQuery
from leporello.recall.memory import MemoryRecall
from leporello.recall.ranking import render
from leporello.recall.tools import TOOL_NAMES
from leporello.tokens import TokenCounter

from .conftest import assistant, call, result, session, user

COUNT = TokenCounter.for_model(None).text


@pytest.mark.parametrize(
    ("query", "evidence"),
    [
        ("Which commit introduced the stream reader?", "9ab3f1e"),
        ("How large was the change that added the parser?", "2 files changed, 41 insertions(+), 3 deletions(-)"),
        ("What error did the parser tests report?", "ValueError: line 7 has no separator"),
        ("What did the user forbid?", "Never touch the files under vendor/"),
        ("At which address is the test machine reachable, according to the user?", "10.1.2.3:8443"),
        ("In which file and line is the default port defined?", "src/net/server.py:88"),
        ("Why did the agent pick a streaming approach?", "because the files do not fit into memory"),
        ("How many connections were open?", "17"),
        ("DEFAULT_PORT", "src/net/client.py:12"),
        ("端口", "配置文件里的端口也要改成8443"),
        ("9ab3f1e", "Add the streaming parser"),
    ],
)
def test_questions_find_their_evidence(messages: list[dict[str, Any]], query: str, evidence: str) -> None:
    """Facts of many kinds are found by questions that use other words, within a small budget."""
    assert evidence in MemoryRecall(messages).answer(query, 400)


def test_a_bare_result_is_found_by_its_call(messages: list[dict[str, Any]]) -> None:
    """`17` shares no word with the question; the call that printed it does."""
    windows = MemoryRecall(messages).search(RecallQuery("count of connected sockets (ss -tn)", 300))
    assert any(window.text == "17" and window.tool == "terminal" for window in windows)


def test_windows_say_where_they_come_from(messages: list[dict[str, Any]]) -> None:
    """Each window carries id, role, tool and whether it is a call."""
    windows = MemoryRecall(messages).search(RecallQuery("DEFAULT_PORT"))
    headings = {window.heading for window in windows}
    assert "[m10] search_files" in headings
    assert "[m9] search_files call" in headings


def test_best_comes_first(messages: list[dict[str, Any]]) -> None:
    """Windows are in the order of their usefulness."""
    windows = MemoryRecall(messages).search(RecallQuery("staging server"))
    assert windows[0].message == 8
    assert [w.score for w in windows] == sorted((w.score for w in windows), reverse=True)


def test_lines_left_out_are_marked() -> None:
    """Between lines that do not follow each other stands a gap mark; neighbours stand side by side."""
    filler = [f"row {number} of the table" for number in range(30)]
    filler[3] = "the zebra eats"
    filler[4] = "a zebra sleeps"
    filler[25] = "one more zebra"
    (window,) = MemoryRecall([result("a", "\n".join(filler))]).search(RecallQuery("zebra", 30))
    assert "the zebra eats\na zebra sleeps\n" in window.text
    assert GAP in window.text.split("\n")


def test_the_same_line_is_shown_once() -> None:
    """A file read three times gives its line once, so that the budget is not spent on copies."""
    text = "the answer is forty-two"
    recall = MemoryRecall([result(str(n), text) for n in range(3)])
    assert recall.answer("answer").count(text) == 1


def test_bare_words_bring_no_padding(messages: list[dict[str, Any]]) -> None:
    """An identifier brings what speaks of it and leaves the rest of the budget unused."""
    assert "noise" not in MemoryRecall(messages).answer("DEFAULT_PORT")


def test_a_piece_of_a_name_is_found(messages: list[dict[str, Any]]) -> None:
    """What no word equals is looked for literally."""
    assert "DEFAULT_PORT" in MemoryRecall(messages).answer("AULT_PO")
    assert MemoryRecall(messages).answer("..") == ""


def test_nothing_matches_nothing(messages: list[dict[str, Any]]) -> None:
    """Unknown words and an empty conversation give no windows."""
    assert MemoryRecall(messages).search(RecallQuery("xylophone")) == []
    assert MemoryRecall().search(RecallQuery("anything")) == []
    assert MemoryRecall(messages).search(RecallQuery("")) == []


def test_roles_and_limit_narrow_a_search(messages: list[dict[str, Any]]) -> None:
    """Only the asked roles; at most so many windows."""
    recall = MemoryRecall(messages)
    assert {w.role for w in recall.search(RecallQuery("parser", roles=("assistant",)))} == {"assistant"}
    assert len(recall.search(RecallQuery("parser", limit=2))) == 2


def test_words_mode_finds_only_the_words(messages: list[dict[str, Any]]) -> None:
    """In words mode `select` does not find `chose`; in hybrid mode it does."""
    recall = MemoryRecall(messages)
    chosen = "I chose a streaming reader"
    assert chosen in recall.answer("was a reader picked?")
    assert recall.search(RecallQuery("picked", mode=RecallMode.WORDS)) == []


def test_growing_equals_building_at_once(messages: list[dict[str, Any]]) -> None:
    """Adding messages one by one gives the same answers as indexing them together."""
    growing = MemoryRecall()
    for number, message in enumerate(messages, 1):
        growing.add(number, message)
        growing.search(RecallQuery("parser port"))
    query = RecallQuery("Where is the port set, and why?")
    assert growing.search(query) == MemoryRecall(messages).search(query)


def test_reused_call_ids_pair_with_the_nearest_call() -> None:
    """Providers reuse ids; a result belongs to the step it stands in."""
    recall = MemoryRecall(
        [
            assistant("", call("x", "terminal", '{"command": "cat apples"}')),
            result("x", "11"),
            assistant("", call("x", "terminal", '{"command": "cat pears"}')),
            result("x", "22"),
        ]
    )
    assert [w.text for w in recall.search(RecallQuery("pears")) if not w.is_call][:1] == ["22"]


MESSAGES = st.lists(
    st.builds(user, st.text(st.characters(codec=None, exclude_categories=()), max_size=300))
    | st.builds(result, st.sampled_from("ab"), st.text(max_size=600))
    | st.builds(lambda t, a: assistant(t, call("a", "tool", a)), st.text(max_size=100), st.text(max_size=100))
    | st.sampled_from(session()),
    max_size=12,
)


@settings(deadline=None, max_examples=150)
@given(
    MESSAGES,
    st.text(max_size=60) | st.sampled_from(["Why did the parser fail?", "port", "noise_1"]),
    st.integers(0, 900),
)
def test_never_beyond_the_budget(messages: list[dict[str, Any]], query: str, budget: int) -> None:
    """Whatever is asked of whatever conversation: no error, and never more tokens than allowed."""
    windows = MemoryRecall(messages).search(RecallQuery(query, budget))
    assert COUNT(render(windows)) <= budget
    assert all(1 <= window.message <= len(messages) for window in windows)


def test_searches_made_before_are_not_found_again(messages: list[dict[str, Any]]) -> None:
    """Calls of the recall tools and what they brought, under any server's name, stand before no evidence."""
    query = "On which address does the staging server listen?"
    for number, name in enumerate(("lcm_grep", "mcp__leporello__lcm_expand")):
        messages.append(assistant("", call(f"s{number}", name, f'{{"query": "{query}"}}')))
        messages.append(result(f"s{number}", f'{{"query": "{query}", "text": "The staging server listens"}}'))
    windows = MemoryRecall(messages).search(RecallQuery(query))
    assert any("10.1.2.3:8443" in window.text for window in windows[:2])
    assert not any("lcm_" in window.tool for window in windows)


def test_the_question_itself_stands_behind_its_answer(messages: list[dict[str, Any]]) -> None:
    """Who asks the same again looks for the answer; who asks what the user asked looks for the question."""
    asked = "Where does the staging server listen?"
    messages += [user(asked), assistant("I will look."), user("Thanks.")]
    windows = MemoryRecall(messages).search(RecallQuery("the address where the staging server listens"))
    texts = [window.text for window in windows]
    assert any("10.1.2.3:8443" in text for text in texts[:2])
    assert asked in texts[2:]
    about_user = MemoryRecall(messages).search(RecallQuery("What did the user ask about the staging server?"))
    assert asked in [window.text for window in about_user[:2]]


ASKED = "On which port does the staging server of the team listen?"


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (f"{ASKED} 5433.", ASKED),
        (f"{ASKED} Yes.", ASKED),
        (f"{ASKED}\nIt is heron, write it down.", ASKED),
        (f"{ASKED}\nOn the port of the team.", ASKED),
        ("Is it true that the staging server of the team listens on port 5433?", ASKED),
        ("The staging server of the team listens on 5433, ok?", ASKED),
        ("The staging server of the team listens on the port heron, right?", ASKED),
        ("The staging server of the team listens on a port.", ASKED),
        ("Auf welchem Port lauscht der Testserver? Auf 7.", "Auf welchem Port lauscht der Testserver?"),
        ("预发布服务器监听哪个端口？五四三三", "预发布服务器监听哪个端口？"),
    ],
)
def test_who_asks_and_says_more_is_found_first(said: str, query: str) -> None:
    """The question's words with a fact beside them, whatever sentence it stands in, may be the answer."""
    noise = [assistant(f"Module {k} of the importer is tidy, the server is next.") for k in range(30)]
    windows = MemoryRecall([*noise, user(said), *noise]).search(RecallQuery(query))
    assert windows[0].message == len(noise) + 1


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (ASKED, ASKED),
        ("which port does the staging server listen on", "Which port does the staging server listen on?"),
        (f"Hi! {ASKED} Thank you.", ASKED),
        (f"**{ASKED}**", ASKED),
        ("Hallo, auf welchem Port lauscht der Testserver bitte? Danke!", "Auf welchem Port lauscht der Testserver?"),
        ("请问预发布服务器监听哪个端口？谢谢", "预发布服务器监听哪个端口？"),
    ],
)
def test_who_only_asks_again_is_found_last(said: str, query: str) -> None:
    texts = ("Der Testserver lauscht", "The staging server listens", "预发布服务器监听")
    answers = [assistant(f"{text}, part {k}") for text in texts for k in range(9)]
    windows = MemoryRecall([*answers, user(said), *answers]).search(RecallQuery(query))
    asking = next(window for window in windows if window.role == "user")
    assert asking.score == min(window.score for window in windows) < windows[0].score


def test_all_tools_that_search_are_known() -> None:
    assert SEARCH_TOOLS == TOOL_NAMES
