"""Foreign engines get what their own host would give them: plain messages, session ids as they are used to them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from leporello.conversation import Conversation
from leporello.engines.plugin_engine import PluginEngine
from leporello.engines.plugin_result import as_hosted
from leporello.events import Outcome
from leporello.messages import Message, role_of, text_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import ModelReply, ModelRequest
from leporello.summaries.model import SummaryModel
from leporello.testing.sessions import generate
from leporello.turns import validate
from leporello.usage import CanonicalUsage
from tests.plugins.conftest import House, play
from tests.plugins.environments import checkout

SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages
ENGINE = """
from agent.context_engine import ContextEngine

class Told(ContextEngine):
    name = "told"

    def __init__(self):
        super().__init__()
        self.given = []
        self.sessions = []

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None):
        self.given = messages
        self.compression_count += 1
        return [messages[0], {"role": "assistant", "content": "Much."}, *messages[self.start(messages):]]

    def start(self, messages):
        return max(i for i, m in enumerate(messages) if m["role"] == "user")

    def on_session_end(self, session_id, messages):
        self.sessions.append(["end", session_id, [type(m["content"]).__name__ for m in messages]])
"""
FOLLOWS = """
    def on_session_start(self, session_id, **kwargs):
        self.sessions.append(["start", session_id, kwargs.get("boundary_reason"), kwargs.get("old_session_id")])
"""
CARRIES = """
    def on_session_start(self, session_id, **kwargs):
        self.sessions.append(["start", session_id])

    def carry_over_new_session_context(self, old_session_id, new_session_id):
        self.sessions.append(["carry", old_session_id, new_session_id])
"""
NEITHER = """
    def on_session_start(self, session_id, **kwargs):
        self.sessions.append(["start", session_id])
"""

CUTS = """
    def start(self, messages):
        newest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        return max(i for i, m in enumerate(messages[:newest]) if m["role"] == "tool")
"""


def thinking(messages: list[Message]) -> list[Message]:
    """As Claude Code records it: content in parts, reasoning among them."""
    return [
        {
            **message,
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
                {"type": "text", "text": text_of(message) or "Well."},
            ],
        }
        if role_of(message) == "assistant"
        else message
        for message in messages
    ]


def told(conversation: Conversation) -> Any:
    engine = conversation.runtime.plugins.engine
    assert isinstance(engine, PluginEngine)
    return engine.hosted.engine


def test_content_is_text_and_reasoning_stands_in_its_own_field(house: House) -> None:
    house.write("told", ENGINE)
    conversation = house.talk(context__engine="told")
    conversation.append(*thinking(SESSION))
    report = conversation.compact()
    assert (report.outcome, report.engine, report.warnings) == (Outcome.COMMITTED, "told", ())
    given = told(conversation).given
    assert all(isinstance(message["content"], str) for message in given)
    assert any(message.get("reasoning") == "Hm." for message in given)
    assert "Hm." not in "".join(message["content"] for message in given)
    # What stays is what was said, with everything in it.
    assert conversation.messages[-1] in thinking(SESSION)


def test_images_become_a_word_and_other_messages_stay_as_they_are() -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert as_hosted({"role": "user", "content": parts}) == {"role": "user", "content": "Look:\n[image]"}
    plain = {"role": "assistant", "content": "Yes.", "tool_calls": []}
    assert as_hosted(plain) is plain
    assert as_hosted({"role": "assistant", "content": None}) == {"role": "assistant", "content": ""}
    # Half a character can't be stored by engines with a database.
    half: Message = {"role": "user", "content": "so \ud83d"}
    assert as_hosted(half) == as_hosted({"role": "user", "content": [{"type": "text", "text": "so \ud83d"}]})
    assert as_hosted(half)["content"].encode() == b"so ?"


def test_a_turn_that_was_cut_in_half_is_mended(house: House) -> None:
    """As Hermes does it: a result whose call was cut off goes."""
    house.write("told", ENGINE + CUTS)
    conversation = house.talk(context__engine="told")
    conversation.append(*SESSION)
    report = conversation.compact()
    assert report.warnings == ()
    assert report.engine == "told"
    assert validate(conversation.messages) == []


def ids(conversation: Conversation) -> list[str]:
    store = conversation.runtime.log.store
    return [step.session for step in store.views.generations(conversation.id)]


@pytest.mark.parametrize("code", [FOLLOWS, CARRIES, NEITHER], ids=["follows", "carries over", "neither"])
def test_session_ids_are_told_as_the_engine_can_use_them(house: House, code: str) -> None:
    house.write("told", ENGINE + code)
    conversation = house.talk(context__engine="told")
    conversation.append(*SESSION[:60])
    conversation.compact()
    conversation.append(*SESSION[60:])
    conversation.compact()
    conversation.runtime.leave()
    one, two, three = ids(conversation)
    seen = told(conversation).sessions
    assert {*seen[-1][2]} == {"str"}
    seen[-1] = seen[-1][:2]
    if code == FOLLOWS:
        switches = [["start", two, "compression", one], ["start", three, "compression", two]]
        assert seen == [["start", one, None, None], *switches, ["end", three]]
    elif code == CARRIES:
        switches = [["start", two], ["carry", one, two], ["start", three], ["carry", two, three]]
        assert seen == [["start", one], *switches, ["end", three]]
    else:
        assert seen == [["start", conversation.id], ["end", conversation.id]]


# -- the real thing


class Summary:
    """A summary model that quotes the beginning of what it is asked about."""

    def complete(self, request: ModelRequest, on_text: Any = None) -> ModelReply:
        text = "They worked on it: " + text_of(request.messages[-1])[-400:]
        return ModelReply({"role": "assistant", "content": text}, CanonicalUsage(9, 9), model="summary")


def test_hermes_lcm_compacts_ten_times_and_answers_about_the_first_hour(house: House) -> None:
    folder = checkout("hermes-lcm", "https://github.com/stephenschoettler/hermes-lcm", "v0.7.0")
    shutil.copytree(folder, house.home.plugins_dir / "context_engine" / "lcm")
    settings = house.settings(context__engine="lcm")
    host = PluginHost(settings)
    host.use_summary_models([SummaryModel(Summary(), "summary", 32_000)])
    session = thinking(generate(seed=41, messages=2_000, tokens=560_000, huge_outputs=0).messages)
    secret: list[Message] = [
        {"role": "user", "content": "The password of the harbour gate is blue heron nine."},
        {"role": "assistant", "content": "Noted."},
    ]
    conversation = Conversation.open("a", window=80_000, store=house.store, settings=settings, plugins=host)
    with conversation:
        play(conversation, [*session[:2], *secret, *session[2:]])
        made = conversation.runtime.log.store.views.attempts("a")
        committed = [attempt.report for attempt in made if attempt.report.committed]
        assert len(committed) >= 10
        assert [(report.engine, report.warnings) for report in committed] == [("lcm", ())] * len(committed)
        assert conversation.runtime.plugins.troubles == []
        status = json.loads(conversation.runtime.plugins.engine.handle_tool_call("lcm_status", {}))
        assert status["dag"]["total_nodes"] >= len(committed), "its tree of summaries is lost at each switch"
        found = conversation.search("password of the harbour gate")
        assert "blue heron nine" in "".join(str(line) for line in found)
