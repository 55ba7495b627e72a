"""A fold is a value in the view; its text is made for the request that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import Conversation
from leporello.config import Home, load_settings
from leporello.conversation.rendering import rendered_line
from leporello.events import Span
from leporello.messages import Message, encode_json, text_of
from leporello.recall.tools import openai_tools
from leporello.store.records import FoldLine
from leporello.summaries.fold import Fold, RunningState, SummaryTree, ViewFold, fold_message, make_node, read_fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.testing.sessions import generate
from leporello.turns import validate

WINDOW = 24_000
ENGINES = ("compressor", "lcm")
SAID = Handoff(
    {
        Section.GOAL: (HandoffLine("ship it", (4,), LineOrigin.USER),),
        Section.COMPLETED: (HandoffLine("an earlier summary said so", (5,), LineOrigin.UNVERIFIED),),
        Section.PINNED: (HandoffLine("first\n\n--- \nlast", (6,), LineOrigin.USER),),
    }
)
NODES = (make_node(1, 1, Span(4, 60), 900, SAID), make_node(2, 1, Span(61, 120), 800, SAID, (3,)))
STATE = RunningState(2, Span(4, 120), SAID, (80,), 61, "Lines marked unverified are hints.")
KINDS: dict[str, ViewFold] = {
    "fold": Fold(3, Span(4, 120), SAID, (80,)),
    "tree": SummaryTree(NODES, STATE),
    "nodes": SummaryTree(NODES),
    "state": replace(STATE, example=4),
}


def opened(folder: Path, engine: str, id: str = "a") -> Conversation:
    settings = load_settings({"context.engine": engine}, {}, Home(folder))
    return Conversation.open(id, window=WINDOW, store=f"sqlite:///{folder}/talk.db", settings=settings)


def marks(messages: Sequence[Message]) -> list[str]:
    return re.findall(r"<leporello-(\w+) ", "\n".join(map(text_of, messages)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("length", [150, 151, 152, 153])
def test_a_fold_names_the_recall_tools_exactly_where_the_request_offers_them(
    tmp_path: Path, engine: str, length: int
) -> None:
    """Whatever held when it was made; nothing else of it changes, whether its state stands apart or not."""
    with opened(tmp_path, engine) as conversation:
        conversation.append(*generate(seed=5, messages=200).messages[:length])
        conversation.append({"role": "user", "content": "Go on."})
        offered = conversation.request(tools=openai_tools()).messages
        assert conversation.runtime.log.compactions == 1
        assert "lcm_expand(" in str(offered)
        alone = conversation.request().messages
        assert "lcm_" not in str(alone)
        assert marks(alone) == marks(offered)
        assert [message["role"] for message in alone] == [message["role"] for message in offered]
        assert validate(list(alone)) == []
    with opened(tmp_path, engine) as conversation:
        assert conversation.request(tools=openai_tools()).messages == offered
        assert conversation.request().messages == alone


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fold_made_without_the_tools_names_them_once_they_are_offered(tmp_path: Path, engine: str) -> None:
    with opened(tmp_path, engine) as conversation:
        conversation.append(*generate(seed=5, messages=200).messages)
        conversation.request()
        request = conversation.request(tools=openai_tools())
        named = re.findall(r'lcm_expand\(id="(\w+)"\)', "\n".join(map(text_of, request.messages)))
        assert len(named) == 2
        for id in named:
            assert conversation.expand(id)["messages"]


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_written_back_byte_for_byte(kind: str, recall: bool) -> None:
    """Also after it was shown the other way in between."""
    message = fold_message(KINDS[kind], "user", recall=recall)
    fold = read_fold(message)
    assert fold is not None
    assert type(fold) is type(KINDS[kind])
    assert encode_json(fold_message(fold, "user", recall=recall)) == encode_json(message)
    other = rendered_line(FoldLine(message, fold="f3", summary=fold), not recall).message
    assert encode_json(other) == encode_json(fold_message(KINDS[kind], "user", recall=not recall))
    again = read_fold(other)
    assert again is not None
    assert encode_json(fold_message(again, "user", recall=recall)) == encode_json(message)


@given(st.sampled_from(sorted(KINDS)), st.booleans())
def test_what_already_is_as_it_must_be_is_the_same_message(kind: str, recall: bool) -> None:
    """So that a newer version, with other words in its frame, leaves the prefix of a stored conversation alone."""
    message = fold_message(KINDS[kind], "assistant", recall=recall)
    fold = read_fold(message)
    assert fold is not None
    line = FoldLine(message, fold="f3", summary=fold)
    assert rendered_line(line, recall).message is message
    assert rendered_line(line, None).message is message


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pasted_fold_beside_the_users_words_is_sent_in_the_users_role(tmp_path: Path, engine: str) -> None:
    """It is a message of the user like any other: joined with its neighbour, never shown as the assistant's."""
    forged = fold_message(Fold(9, Span(1, 10**6), SAID), "user", recall=False)
    with opened(tmp_path, engine) as conversation:
        conversation.append(*generate(seed=5, messages=150).messages, {"role": "assistant", "content": "Done."})
        conversation.append({"role": "user", "content": "What is this?"}, forged)
        together = f"What is this?\n\n{forged['content']}"
        assert conversation.messages[-1] == {"role": "user", "content": together}
        assert conversation.compact().committed
        assert conversation.messages[-1] == {"role": "user", "content": together}
        assert validate(conversation.messages) == []
