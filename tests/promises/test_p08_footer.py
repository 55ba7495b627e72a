"""Promise 8, the footer works: the call printed in a fold returns the folded text; without a tool, no footer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from leporello.conversation import Conversation
from leporello.messages import text_of
from leporello.recall.tools import openai_tools
from leporello.testing.sessions import SessionSpec, generate
from tests.support.checks import fold_in

SESSION = generate(SessionSpec(seed=81, messages=120, tokens=30_000, images=0)).messages
CALL = re.compile(r'(lcm_\w+)\(id="(\w+)"\)')
NEXT = re.compile(r'(lcm_\w+)\("([\w-]+)", page=(\d+)')


def open_filled(folder: Path) -> Conversation:
    conversation = Conversation.open("a", window=12_000, store=f"sqlite:///{folder}/store.db")
    conversation.append(*SESSION)
    return conversation


def shown_fold(conversation: Conversation) -> str:
    """The text of the fold as the model sees it."""
    found = fold_in(conversation.messages)
    assert found is not None, "nothing was folded"
    return text_of(conversation.messages[found[0]])


def run(conversation: Conversation, name: str, **arguments: Any) -> dict[str, Any]:
    """A call as the model makes it."""
    return dict(json.loads(conversation.runtime.recall_tools.handle(name, arguments)))


@pytest.mark.fault(
    "the footer names another fold",
    "summaries/fold.py",
    old='return prompt("footer").replace("{fold}", fold)',
    new='return prompt("footer").replace("{fold}", "f99")',
)
@pytest.mark.fault(
    "the footer names a message that stands in plain sight",
    "summaries/fold.py",
    old='.replace("{first}", f"m{first}")',
    new='.replace("{first}", "m120")',
)
def test_the_printed_calls_return_what_was_folded(tmp_path: Path) -> None:
    """Each call as it is printed; the pages that an answer names are opened as it names them."""
    with open_filled(tmp_path) as conversation:
        conversation.request(tools=openai_tools())
        calls = CALL.findall(shown_fold(conversation))
        assert [name for name, _ in calls] == ["lcm_expand", "lcm_expand"]
        covered = conversation.runtime.log.store.views.folds("a")[-1].covered
        (name, fold), (_, message) = calls
        text, answer = "", run(conversation, name, id=fold)
        while True:
            text += "".join(piece["text"] for piece in answer.get("messages", ()))
            following = NEXT.search(str(answer.get("next", "")))
            if following is None:
                break
            answer = run(conversation, following[1], id=following[2], page=int(following[3]))
        for number in range(covered.first, covered.last + 1):
            assert text_of(SESSION[number - 1]) in text, f"m{number} is not in what the footer's call returns"
        assert covered.first <= int(message.removeprefix("m")) <= covered.last
        assert [piece["id"] for piece in run(conversation, name, id=message)["messages"]] == [message]


@pytest.mark.fault(
    "the footer is printed for everybody",
    "summaries/fold.py",
    old="    if recall:\n        body += _FOOTER_STARTS",
    new="    if True:\n        body += _FOOTER_STARTS",
)
def test_without_a_tool_no_call_is_printed(tmp_path: Path) -> None:
    with open_filled(tmp_path) as conversation:
        conversation.request()
        assert "lcm_" not in shown_fold(conversation)


@pytest.mark.fault(
    "a fold stays as it was written",
    "conversation/rendering.py",
    old="if not isinstance(line, FoldLine) or recall is None or line.summary.recall in (recall, None):",
    new="if True:",
)
def test_the_footer_follows_the_tools_of_each_request(tmp_path: Path) -> None:
    """The same fold, sent with the tool and without it."""
    with open_filled(tmp_path) as conversation:
        conversation.request(tools=openai_tools())
        assert "lcm_expand" in shown_fold(conversation)
        conversation.request()
        assert "lcm_" not in shown_fold(conversation)
        conversation.request(tools=openai_tools())
        assert "lcm_expand" in shown_fold(conversation)
