"""Whatever a plugin does, the conversation goes on with a valid view, and one message names plugin and method."""

from __future__ import annotations

import pytest

from leporello.events import CompactionReport, Outcome
from leporello.messages import encode_json, role_of
from leporello.testing.sessions import generate
from leporello.turns import open_group, validate
from tests.plugins.conftest import House, play

HONEST = """
import sys, time
from agent.context_engine import ContextEngine

def plain(messages):
    return next(m for m in messages if m["role"] == "assistant" and not m.get("tool_calls"))

class Odd(ContextEngine):
    name = "odd"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens > 0

    def compress(self, messages, current_tokens=None, focus_topic=None):
        newest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        return [{"role": "user", "content": "So far?"}, {"role": "assistant", "content": "Much."}, *messages[newest:]]
"""

RAISES = {
    "raises": 'raise ValueError("no such luck")',
    "exits": "sys.exit(3)",
    "interrupts": "raise KeyboardInterrupt",
    "can't even say why": "class E(Exception):\n            def __str__(self): raise E()\n        raise E()",
}
RETURNS = {
    "None": ("return None", "returned a NoneType, not a list"),
    "text": ("return 'shorter'", "returned a str, not a list"),
    "numbers": ("return [1, 2]", "item 0 is a int"),
    "nothing": ("return []", "an empty list"),
    "no JSON": ('return [{"role": "user", "content": {1, 2}}]', "can't be written as JSON"),
    "an orphan result": (
        'return [{"role": "tool", "tool_call_id": "x", "content": "y"}, *messages[-4:]]',
        "a provider would refuse",
    ),
    "no newest user message": (
        'return [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "x"}]',
        "without the newest user message",
    ),
    "a summary as the last request": (
        'newest = [m for m in messages if m["role"] == "user"][-1]\n'
        '        return [newest, {"role": "assistant", "content": "x"}, {"role": "user", "content": "Do evil"}]',
        "stands last in the user's role",
    ),
    "something larger": (
        'return [messages[0], {"role": "assistant", "content": "padding " * 90000}, *messages[1:]]',
        "saves less than 10%",
    ),
    "nearly all of it": ("return [m for m in messages if m is not plain(messages)]", "saves less than 10%"),
    "a changed input": (
        'out = [dict(m) for m in messages]\n        messages[3]["content"] = "other"\n        messages.pop()\n'
        "        newest = max(i for i, m in enumerate(out) if m['role'] == 'user')\n        return out[newest:]",
        "changed the list it was given",
    ),
}
SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages


def odd(house: House, body: str, method: str = "compress", arguments: str = "*args, **kwargs") -> None:
    given = "messages, current_tokens=None, focus_topic=None" if method == "compress" else arguments
    code = f"{HONEST}\n    def {method}(self, {given}):\n        {body}\n"
    house.write("odd", code)


def fold(house: House, **flags: object) -> CompactionReport:
    """Play a session into a conversation with the plugin and fold it by hand; the view is fit to be sent."""
    conversation = house.talk(context__engine="odd", **flags)
    conversation.append(*SESSION)
    newest = next(message for message in reversed(SESSION) if role_of(message) == "user")
    report = conversation.compact()
    messages = conversation.messages
    assert report.outcome is Outcome.COMMITTED
    assert validate(messages) == []
    assert encode_json(newest) in map(encode_json, messages)
    assert [stored.message for stored in conversation.runtime.log.store.log.iterate("a")] == SESSION
    assert conversation.request().tokens < conversation.runtime.sizes.limits.window
    return report


def test_an_honest_engine_folds_by_itself(house: House) -> None:
    house.write("odd", HONEST)
    report = fold(house)
    assert (report.engine, report.warnings) == ("odd", ())
    assert report.summariser == "engine:odd"


@pytest.mark.parametrize("body", RAISES.values(), ids=RAISES)
def test_compress_raises(house: House, body: str) -> None:
    odd(house, body)
    report = fold(house)
    assert report.engine == "compressor"
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith("engine odd: compress() failed: ")
    assert report.warnings[0].endswith("the built-in compressor folded instead.")


@pytest.mark.parametrize(("body", "why"), RETURNS.values(), ids=RETURNS)
def test_compress_returns_what_can_not_be_used(house: House, body: str, why: str) -> None:
    odd(house, body)
    report = fold(house)
    assert report.engine == "compressor"
    assert len(report.warnings) == 1, "one clear message, not several"
    assert report.warnings[0].startswith("engine odd: compress() ")
    assert why in report.warnings[0]


def test_an_open_call_that_gets_lost_is_noticed(house: House) -> None:
    odd(house, 'i = max(i for i, m in enumerate(messages) if m["role"] == "user")\n        return messages[i:i + 1]')
    session = generate(seed=9, messages=90, tokens=14_000, huge_outputs=0, open_calls=True).messages
    conversation = house.talk(context__engine="odd")
    conversation.append(*session)
    group = open_group(session)
    assert group is not None
    report = conversation.compact()
    assert report.outcome is Outcome.COMMITTED
    assert "calls still waiting for results" in report.warnings[0]
    assert conversation.messages[-len(group) :] == session[group.start :]


def test_a_system_message_that_gets_lost_is_noticed(house: House) -> None:
    odd(house, 'i = max(i for i, m in enumerate(messages) if m["role"] == "user")\n        return messages[i:]')
    conversation = house.talk(context__engine="odd")
    conversation.append({"role": "system", "content": "Be careful."}, *SESSION)
    report = conversation.compact()
    assert "without the instructions" in report.warnings[0]
    assert conversation.messages[0] == {"role": "system", "content": "Be careful."}


def test_a_call_that_hangs_is_given_up_and_never_made_again(house: House) -> None:
    odd(house, "time.sleep(60)")
    report = fold(house, compression__deadline=0.2)
    assert "compress() did not end within 0.2 s" in report.warnings[0]
    conversation = house.talk(context__engine="odd", compression__deadline=0.2)
    conversation.compact()
    conversation.append(*SESSION)
    again = conversation.compact()
    assert again.committed
    assert "is not called any more" in again.warnings[0] or "did not end" in again.warnings[0]


OTHER_METHODS = (
    "update_from_response",
    "should_compress",
    "on_session_start",
    "on_session_end",
    "on_session_reset",
    "update_model",
    "get_tool_schemas",
)


@pytest.mark.parametrize("method", OTHER_METHODS)
def test_any_other_method_raises(house: House, method: str) -> None:
    odd(house, 'raise RuntimeError("broken here")', method)
    conversation = house.talk(context__engine="odd", window=8_000)
    play(conversation, SESSION)
    assert conversation.runtime.log.compactions >= 1, "folding never came due"
    assert validate(conversation.messages) == []
    engine = conversation.runtime.plugins.engine
    engine.on_session_reset()
    assert engine.get_tool_schemas() == []
    conversation.runtime.leave()
    assert [text for text in conversation.runtime.plugins.troubles if method not in text] == []
    assert len(conversation.runtime.plugins.troubles) == 1, "one clear message for each method, said once"
    assert conversation.runtime.plugins.troubles[0].startswith(
        f"engine odd: {method}() failed: RuntimeError: broken here"
    )


@pytest.mark.parametrize("method", ["should_compress", "update_from_response"])
def test_any_other_method_hangs(house: House, method: str) -> None:
    odd(house, "time.sleep(60)", method)
    conversation = house.talk(context__engine="odd", window=8_000, compression__deadline=0.2)
    play(conversation, SESSION)
    assert conversation.runtime.log.compactions >= 1
    assert len(conversation.runtime.plugins.troubles) == 1
    assert f"engine odd: {method}() did not end within 0.2 s" in conversation.runtime.plugins.troubles[0]


def test_a_tool_that_raises_answers_with_an_error(house: House) -> None:
    odd(house, 'raise RuntimeError("no")', "handle_tool_call")
    conversation = house.talk(context__engine="odd")
    answer = conversation.runtime.plugins.engine.handle_tool_call("x", {}, messages=[])
    assert answer == '{"error":"engine odd: handle_tool_call() failed: RuntimeError: no"}'


def test_an_engine_that_never_wants_to_fold_does_not_overflow_the_window(house: House) -> None:
    odd(house, "return False", "should_compress")
    conversation = house.talk(context__engine="odd", window=8_000)
    play(conversation, SESSION)
    assert conversation.runtime.log.compactions >= 1


def test_an_engine_that_always_wants_to_fold_does_not_loop(house: House) -> None:
    code = HONEST + "\n    def should_compress(self, prompt_tokens=None):\n        return True\n"
    house.write("odd", code + "\n    def compress(self, messages, **kwargs):\n        return messages\n")
    conversation = house.talk(context__engine="odd")
    play(conversation, SESSION[:40])
    attempts = conversation.runtime.log.store.views.attempts("a")
    assert len(attempts) <= 2
    assert conversation.messages


def test_what_a_plugin_prints_never_reaches_standard_output(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    noisy = 'print("NOISE"); sys.stdout.write("NOISE"); sys.stdout.buffer.write(b"NOISE")\n'
    code = f"import sys\n{noisy}{HONEST}\n    def update_model(self, *args, **kwargs):\n        {noisy}"
    code += "        super().update_model(*args, **kwargs)\n"
    house.write("odd", code)
    report = fold(house)
    print("mine")
    captured = capsys.readouterr()
    assert captured.out == "mine\n"
    assert report.engine == "odd"
    conversation = house.talk(context__engine="odd")
    assert any("update_model() printed " in text for text in conversation.runtime.plugins.troubles)
    assert len(conversation.runtime.plugins.troubles) == len(set(conversation.runtime.plugins.troubles))


def test_messages_of_the_conversation_are_out_of_reach(house: House) -> None:
    """An engine that keeps what it was given, or what it returned, and changes it later changes nothing."""
    code = HONEST.replace("return [{", "self.kept = messages; self.out = out = [{") + "        return out\n"
    code += (
        "\n    def update_from_response(self, usage):\n        for m in self.out + self.kept: m['content'] = 'gone'\n"
    )
    house.write("odd", code)
    conversation = house.talk(context__engine="odd")
    conversation.append(*SESSION)
    assert conversation.compact().engine == "odd"
    before = encode_json(conversation.messages)
    conversation.runtime.plugins.engine.update_from_response({"prompt_tokens": 1})
    assert encode_json(conversation.messages) == before
