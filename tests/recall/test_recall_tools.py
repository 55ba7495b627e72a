"""The recovery tools as a model calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leporello.events import Span
from leporello.recall.base import ArchivedFold
from leporello.recall.memory import MemoryArchive
from leporello.recall.paging import full_text
from leporello.recall.tools import SCHEMAS, TOOL_NAMES, RecallTools, openai_tools
from leporello.tokens import TokenCounter

COUNT = TokenCounter.for_model(None).text


@pytest.fixture
def tools(messages: list[dict[str, Any]]) -> RecallTools:
    archive = MemoryArchive(messages)
    archive.add_fold(ArchivedFold("f1", Span(2, 7), "The parser was written."))
    archive.add_fold(ArchivedFold("f2", Span(2, 12), "Parser and port.", ("f1",)))
    return RecallTools(archive)


def run(tools: RecallTools, name: str, **args: Any) -> dict[str, Any]:
    answer = json.loads(tools.handle(name, args))
    assert isinstance(answer, dict)
    return answer


def test_grep_brings_windows_with_ids(tools: RecallTools) -> None:
    """The evidence comes with the id that opens it."""
    answer = run(tools, "lcm_grep", query="Which commit added the streaming parser?")
    hit = next(hit for hit in answer["results"] if "9ab3f1e" in hit["text"])
    assert (hit["id"], hit["role"], hit["tool"]) == ("m7", "tool", "terminal")


def test_grep_keeps_to_limit_and_budget(tools: RecallTools) -> None:
    """At most `limit` results; what else was found follows in short form; all of it within the tokens."""
    for budget in (200, 500, 1500):
        text = tools.handle("lcm_grep", {"query": "where is noise computed?", "limit": 2, "max_tokens": budget})
        answer = json.loads(text)
        assert COUNT(text) <= budget
        assert len(answer["results"]) <= 2
    assert len(answer["more"]) > 0
    assert all(entry.startswith("[m") for entry in answer["more"])


def test_grep_by_pattern(tools: RecallTools) -> None:
    """Mode regex finds exact texts and says whether it saw everything."""
    answer = run(tools, "lcm_grep", query=r"\[main [0-9a-f]{7}\]", mode="regex")
    assert [hit["id"] for hit in answer["results"]] == ["m7"]
    assert answer["complete"] is True
    assert run(tools, "lcm_grep", query="noise", mode="regex", limit=3)["complete"] is False


def test_grep_says_when_nothing_is_found(tools: RecallTools) -> None:
    """An empty result is no error and carries advice."""
    answer = run(tools, "lcm_grep", query="xylophone")
    assert answer["results"] == []
    assert "regex" in answer["hint"]


def test_describe_a_fold(tools: RecallTools) -> None:
    """Span, sizes, files, tools, what was asked and what failed."""
    answer = run(tools, "lcm_describe", id="f1")
    assert (answer["span"], answer["messages"]) == ("m2-m7", 6)
    assert answer["tools"] == {"read_file": 1, "terminal": 2}
    assert "src/parser.py" in answer["files"]
    assert answer["failures"] == [{"id": "m5", "text": "E   ValueError: line 7 has no separator"}]
    assert answer["tokens"] > 1000
    assert answer["answers"]
    assert run(tools, "lcm_expand", id="f1")["messages"]


def test_describe_a_message(tools: RecallTools) -> None:
    """A message knows the folds it is part of."""
    answer = run(tools, "lcm_describe", id="m3")
    assert answer["folded_in"] == ["f1", "f2"]
    assert answer["roles"] == {"tool": 1}


def test_the_printed_calls_work(tools: RecallTools) -> None:
    """Following `next` from page to page gives every message of the span, word for word."""
    archive_texts: dict[str, str] = {}
    page = 1
    while True:
        answer = run(tools, "lcm_expand", id="m1-m26", page=page, max_tokens=1000)
        assert COUNT(json.dumps(answer, ensure_ascii=False)) <= 1100
        for piece in answer["messages"]:
            archive_texts[piece["id"]] = archive_texts.get(piece["id"], "") + piece["text"]
        if "next" not in answer:
            break
        page += 1
        assert answer["next"] == f'lcm_expand("m1-m26", page={page}, max_tokens=1000)'
    assert page > 5
    assert list(archive_texts) == [f"m{number}" for number in range(1, 27)]


def test_expand_is_word_for_word(tools: RecallTools, messages: list[dict[str, Any]]) -> None:
    """What comes back is what was said."""
    (piece,) = run(tools, "lcm_expand", id="m8")["messages"]
    assert piece == {"id": "m8", "role": "user", "text": full_text(messages[7])}


@pytest.mark.parametrize("id", ["m10-m20", "m10-20", "[m10-m20]", "M10..M20", "10-20", "m10 to m20"])
def test_spans_as_models_write_them(tools: RecallTools, id: str) -> None:
    """Small differences of spelling don't matter."""
    assert run(tools, "lcm_describe", id=id)["span"] == "m10-m20"


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("lcm_expand", {"id": "m99"}, "messages are m1 to m26"),
        ("lcm_expand", {"id": "m0"}, "messages are m1 to m26"),
        ("lcm_expand", {"id": "m9-m3"}, "m3-m9"),
        ("lcm_expand", {"id": "f9"}, "the newest are f1, f2"),
        ("lcm_expand", {"id": "../etc"}, "is no id"),
        ("lcm_expand", {}, "is no id"),
        ("lcm_expand", {"id": None}, "is no id"),
        ("lcm_expand", {"id": ["m1"]}, "is no id"),
        ("lcm_expand", {"id": "m1", "page": 0}, "page must be"),
        ("lcm_expand", {"id": "m1", "page": 7}, "has 1 page"),
        ("lcm_expand", {"id": "m1", "page": "two"}, "page must be"),
        ("lcm_expand", {"id": "m1", "max_tokens": 3}, "max_tokens must be"),
        ("lcm_describe", {"id": "x" * 5000}, "is no id"),
        ("lcm_grep", {}, "query is missing"),
        ("lcm_grep", {"query": "  "}, "query is empty"),
        ("lcm_grep", {"query": "a", "mode": "fuzzy"}, "hybrid, words, regex"),
        ("lcm_grep", {"query": "a", "limit": True}, "limit must be"),
        ("lcm_grep", {"query": "(", "mode": "regex"}, "not a regular expression"),
        ("lcm_grab", {}, "there are lcm_grep"),
    ],
)
def test_wrong_calls_get_a_clear_error(tools: RecallTools, name: str, args: dict[str, Any], said: str) -> None:
    """The error says what is wrong and what would be right; nothing is raised."""
    assert said in json.loads(tools.handle(name, args))["error"]


def test_status(tools: RecallTools) -> None:
    """How much there is, and the folds that are in force."""
    answer = run(tools, "lcm_status")
    assert answer["messages"] == 26
    assert answer["folds"] == [{"id": "f2", "span": "m2-m12"}]


def test_empty_conversation() -> None:
    """Before the first message every tool answers sensibly."""
    tools = RecallTools(MemoryArchive())
    assert run(tools, "lcm_grep", query="x")["results"] == []
    assert run(tools, "lcm_grep", query="x", mode="regex")["results"] == []
    assert "no messages yet" in run(tools, "lcm_expand", id="m1")["error"]
    assert run(tools, "lcm_status")["messages"] == 0


def test_answers_can_be_sent_whatever_a_message_holds() -> None:
    """Half of a surrogate pair, as broken tools print it, comes back as it was and never stops a request."""
    said = "before \udc80 after the teapot"
    tools = RecallTools(MemoryArchive([{"role": "user", "content": said}]))
    answers = {
        "lcm_expand": tools.handle("lcm_expand", {"id": "m1"}),
        "lcm_grep": tools.handle("lcm_grep", {"query": "teapot"}),
        "lcm_describe": tools.handle("lcm_describe", {"id": "m1"}),
    }
    assert all(text.encode("utf-8") for text in answers.values())
    assert json.loads(answers["lcm_expand"])["messages"][0]["text"] == said
    assert json.loads(answers["lcm_grep"])["results"][0]["text"] == said
    assert json.loads(answers["lcm_describe"])["asked"][0]["text"] == said


def test_schemas_are_openai_tools() -> None:
    """Names, descriptions and strict object parameters."""
    assert [tool["type"] for tool in openai_tools()] == ["function"] * 4
    assert {"lcm_grep", "lcm_describe", "lcm_expand", "lcm_status"} == TOOL_NAMES
    for schema in SCHEMAS:
        assert schema["description"]
        assert set(schema["parameters"]["required"]) <= set(schema["parameters"]["properties"])


def test_several_questions_share_one_call(tools: RecallTools) -> None:
    """Each has its own answer; the whole stays within the budget, and nothing is shown twice."""
    asked = ["Which commit introduced the stream reader?", "At which address is the test machine reachable?"]
    text = tools.handle("lcm_grep", {"query": asked, "max_tokens": 600})
    answers = json.loads(text)["answers"]
    assert [answer["query"] for answer in answers] == asked
    assert "9ab3f1e" in json.dumps(answers[0])
    assert "10.1.2.3:8443" in text
    assert "m8" in {result["id"] for result in answers[1]["results"]}
    assert TokenCounter.for_model(None).text(text) <= 600
    shown = [result["text"] for answer in answers for result in answer["results"] if "role" in result]
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("query", [[], [""], [1], ["x"] * 9, {"a": 1}, None])
def test_wrong_lists_of_questions_are_told(tools: RecallTools, query: object) -> None:
    assert "error" in json.loads(tools.handle("lcm_grep", {"query": query}))


def test_a_list_of_one_is_one_question(tools: RecallTools) -> None:
    one = {"query": "DEFAULT_PORT"}
    assert tools.handle("lcm_grep", {"query": ["DEFAULT_PORT"]}) == tools.handle("lcm_grep", one)
