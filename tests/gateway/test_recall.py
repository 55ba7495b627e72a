"""Recall inside the proxy: what the model asks of its past is answered before the client hears of it."""

from __future__ import annotations

import itertools
import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from leporello.dialects import (
    ANTHROPIC,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Dialect,
    Target,
)
from leporello.gateway.auth import Keys
from leporello.gateway.proxy.recall import MOST_ROUNDS
from leporello.recall.tools import TOOL_NAMES
from leporello.testing.stub_server import Cut, Fail, Hold, Say, StreamError
from leporello.usage import CanonicalUsage

from .clerks import ChatClerk, ClaudeClerk, Model, ResponsesClerk, counted
from .house import House, opened, recorded
from .recalls import (
    ANSWER,
    CALLED,
    DIALECTS,
    ENDED,
    FACT,
    GREP,
    PATHS,
    READ,
    WAYS,
    ask,
    fields,
    folded,
    history,
    items,
    names,
    result,
    says,
)
from .rough import HEAD, rough
from .test_long_conversations import FOLD, without_marks

QUESTION = {"role": "user", "content": "Which port was it again?"}
SPOKEN = [says(GREP), says(text=ANSWER)]


def asked() -> list[Any]:
    return [*history(), QUESTION]


def valid(house: House) -> None:
    assert [seen.violations for seen in house.model_calls] == [()] * len(house.model_calls)


def one(house: House) -> str:
    (record,) = house.store.conversations.page().conversations
    return record.id


def post(house: House, dialect: Dialect, **more: Any) -> httpx2.Response:
    return httpx2.post(house.url + PATHS[dialect], json=fields(dialect, asked(), **more), timeout=60)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_is_answered_inside(tmp_path: Path, dialect: Dialect, way: str) -> None:
    """The client gets one answer, without the call; the model got the fact from the folded part of this conversation;
    what both calls used is told to the client and written down."""
    with folded(tmp_path, list(SPOKEN)) as house:
        reply = ask(house, dialect, way, asked())
        valid(house)
        first, second = house.model_calls
        assert (reply.text, reply.finish, reply.calls) == (ANSWER, ENDED[dialect], [])
        assert (reply.prompt, reply.output) == (200, 10)
        assert "lcm_" not in reply.raw.model_dump_json()
        assert names(first) == names(second) == ["read", *names(first)[1:]]
        assert set(names(first)[1:]) == TOOL_NAMES
        assert items(second)[: len(items(first))] == items(first)
        assert "48443" not in json.dumps(items(first))
        assert "48443" in json.dumps(items(second)[len(items(first)) :])
        assert recorded(house, one(house), 2).calls == 2
        assert house.store.log.count(one(house)) == len(asked())


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_next_request_has_the_same_beginning(tmp_path: Path, dialect: Dialect, way: str) -> None:
    """An inner exchange is no part of the client's history: the next request begins with the bytes of the last."""
    with folded(tmp_path, [*SPOKEN, says(text="You are welcome.")]) as house:
        reply = ask(house, dialect, way, asked())
        ask(house, dialect, way, [*asked(), *reply.turn, {"role": "user", "content": "Thanks."}])
        valid(house)
        first, _, third = house.model_calls
        assert items(third)[: len(items(first))] == items(first)
        assert json.dumps(third.body["tools"]) == json.dumps(first.body["tools"])
        assert "lcm_grep" not in json.dumps(items(third)[len(items(first)) :])


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_before_a_call(tmp_path: Path, dialect: Dialect, way: str) -> None:
    """What the model says before it looks something up reaches the client, once, and goes back to the model."""
    with folded(tmp_path, [says(GREP, text="Let me look."), says(GREP), says(text=ANSWER)]) as house:
        reply = ask(house, dialect, way, asked())
        valid(house)
        text = reply.text if dialect is not OPENAI_RESPONSES else reply.text.replace(".It", ".\n\nIt")
        assert text == f"Let me look.\n\n{ANSWER}"
        assert (reply.prompt, reply.output) == (300, 15)
        assert "Let me look." in json.dumps(items(house.model_calls[2]))


def wired(dialect: Dialect, *parts: dict[str, Any]) -> Say:
    """An answer of the model that is exactly these blocks (or items), opaque ones among them."""
    if dialect is ANTHROPIC:
        return Say(message=ANTHROPIC.decode_reply({"content": list(parts)}, Target("", "m")).message)
    if dialect is OPENAI_RESPONSES:
        return Say(message=OPENAI_RESPONSES.decode_reply({"output": list(parts)}, Target("", "m")).message)
    message = {"role": "assistant", "content": None, **parts[0]}
    choice = {"message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    return Say(message=OPENAI_CHAT.decode_reply({"choices": [choice]}, Target("", "m")).message)


def thinking(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


@pytest.mark.parametrize("way", WAYS)
def test_signed_thinking(tmp_path: Path, way: str) -> None:
    """Thinking goes back to the model as it was signed. The client keeps the thinking before the exchange, whose
    signature holds for its own history, and not the one behind it."""
    dialect = ANTHROPIC
    call = {"type": "tool_use", "id": "toolu_1", "name": GREP[0], "input": json.loads(GREP[1])}
    script = [
        wired(dialect, thinking("I must look.", "sig-1"), call),
        wired(dialect, thinking("Now I know.", "sig-2"), {"type": "text", "text": ANSWER}),
        says(text="Bye."),
    ]
    with folded(tmp_path, script) as house:
        budget = {"type": "enabled", "budget_tokens": 100}
        reply = ask(house, dialect, way, asked(), thinking=budget)
        assert reply.text == ANSWER
        assert [block["type"] for block in reply.turn[0]["content"]] == ["thinking", "text"]
        assert reply.turn[0]["content"][0] == thinking("I must look.", "sig-1")
        ask(house, dialect, way, [*asked(), *reply.turn, {"role": "user", "content": "Thanks."}], thinking=budget)
        valid(house)
        (turn,) = [item for item in items(house.model_calls[1]) if "sig-1" in json.dumps(item)]
        assert turn["content"] == [thinking("I must look.", "sig-1"), call]
        assert "sig-2" not in house.model_calls[2].raw.decode()


def reasoning(number: int) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"sealed-{number}"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", [False, True])
def test_sealed_reasoning(tmp_path: Path, way: str, stored: bool) -> None:
    """Reasoning that led to a recall goes back with it, and the client does not get it: without the call behind it the
    provider would refuse it. Reasoning that led to what the client sees is the client's."""
    dialect = OPENAI_RESPONSES
    call = {"type": "function_call", "call_id": "c1", "name": GREP[0], "arguments": GREP[1]}
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    script = [wired(dialect, reasoning(1), call), wired(dialect, reasoning(2), words), says(text="Bye.")]
    with folded(tmp_path, script) as house:
        more = {"store": True} if stored else {"include": ["reasoning.encrypted_content"]}
        reply = ask(house, dialect, way, asked(), **more)
        assert reply.text == ANSWER
        assert [item["type"] for item in reply.turn] == ["reasoning", "message"]
        assert reply.turn[0]["encrypted_content"] == "sealed-2"
        ask(house, dialect, way, [*asked(), *reply.turn, {"role": "user", "content": "Thanks."}], **more)
        valid(house)
        sent = items(house.model_calls[1])
        place = next(k for k, item in enumerate(sent) if item.get("type") == "reasoning")
        assert sent[place]["encrypted_content"] == "sealed-1"
        assert [item["type"] for item in sent[place:]] == ["reasoning", "function_call", "function_call_output"]


@pytest.mark.parametrize("way", ["whole", "stream"])
def test_reasoning_of_compatible_servers(tmp_path: Path, way: str) -> None:
    """Reasoning in fields of a chat message goes back to the model as it came."""
    call = {"id": "c1", "type": "function", "function": {"name": GREP[0], "arguments": GREP[1]}}
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "sig-1"}]
    first = {"tool_calls": [call], "reasoning_content": "I must look.", "reasoning_details": details}
    script = [wired(OPENAI_CHAT, first), says(text=ANSWER)]
    with folded(tmp_path, script, router=True) as house:
        assert ask(house, OPENAI_CHAT, way, asked()).text == ANSWER
        valid(house)
        turn = items(house.model_calls[1])[-2]
        assert turn["reasoning_content"] == "I must look."
        assert turn["reasoning_details"] == details


@pytest.mark.parametrize("order", [(GREP, READ), (READ, GREP), (GREP, READ, GREP, READ)])
@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_beside_the_clients_own(
    tmp_path: Path, dialect: Dialect, way: str, order: tuple[tuple[str, str], ...]
) -> None:
    """One answer with calls of ours and of the client's: the client gets its own, numbered from zero; when it comes
    back with its results, the model finds all of its calls answered, in their order, now and later."""
    script = [says(*order, text="Looking."), says(text="One."), says(text="Two.")]
    with folded(tmp_path, script) as house:
        said = asked()
        reply = ask(house, dialect, way, said)
        own = [call for call in order if call == READ]
        assert [(name, json.loads(text)) for name, text in reply.calls] == [(READ[0], json.loads(READ[1]))] * len(own)
        assert reply.finish == CALLED[dialect]
        said += reply.turn
        ids = _ids(reply.turn)
        if dialect is ANTHROPIC:
            blocks = [block for id in ids for block in result(dialect, id)["content"]]
            said.append({"role": "user", "content": blocks})
        else:
            said += [result(dialect, id) for id in ids]
        again = ask(house, dialect, way, said)
        assert again.text == "One."
        said += [*again.turn, {"role": "user", "content": "And?"}]
        assert ask(house, dialect, way, said).text == "Two."
        valid(house)
        _, second, third = house.model_calls
        assert called(second) == [name for name, _ in order]
        assert "48443" in json.dumps(items(second)[-2 * len(order) - 2 :])
        assert items(third)[: len(items(second))] == items(second)
        log = [stored.message for stored in house.store.log.iterate(one(house))]
        assert "lcm_" not in json.dumps(log)


def _ids(turn: list[Any]) -> list[str]:
    """Ids of the calls in a client's items."""
    found = []
    for item in turn:
        found += [call["id"] for call in item.get("tool_calls") or ()]
        found += [item["call_id"]] if item.get("type") == "function_call" else []
        content = item.get("content")
        blocks = content if isinstance(content, list) else []
        found += [block["id"] for block in blocks if block["type"] == "tool_use"]
    return found


def called(seen: Any) -> list[str]:
    """Names of all calls in a request, in order."""
    found = []
    for item in items(seen):
        found += [call["function"]["name"] for call in item.get("tool_calls") or ()]
        found += [item["name"]] if item.get("type") == "function_call" else []
        content = item.get("content")
        blocks = content if isinstance(content, list) and item.get("role") == "assistant" else []
        found += [block["name"] for block in blocks if block.get("type") == "tool_use"]
    return found


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rounds_are_bounded(tmp_path: Path, dialect: Dialect, way: str, own: bool) -> None:
    """A model that asks for ever is asked a last time without the tools; a server that lets it call them all the same
    ends the answer, and the client's library takes what there is."""
    with folded(tmp_path, [says(("lcm_status", "{}")) for _ in range(30)]) as house:
        reply = ask(house, dialect, way, asked(), **({} if own else {"tools": []}))
        valid(house)
        assert (reply.calls, reply.finish) == ([], ENDED[dialect])
        assert len(house.model_calls) == MOST_ROUNDS + 1
        last = house.model_calls[-1]
        if own:
            assert names(last) == ["read"]
        else:
            assert last.body["tool_choice"] in ("none", {"type": "none"})
        assert recorded(house, one(house), MOST_ROUNDS + 1).calls == MOST_ROUNDS + 1


LIMIT = Fail(429, {"error": {"message": "Slow down", "type": "rate_limit_error", "param": None, "code": None}})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_inner_call_fails(tmp_path: Path, dialect: Dialect, stream: bool) -> None:
    """Before the client has a byte, a failure between the rounds is an error with its status, in the provider's own
    words; what was counted until then is written down, and the conversation goes on."""
    with folded(tmp_path, [says(GREP), LIMIT, says(text="Fine.")]) as house:
        reply = post(house, dialect, stream=stream)
        assert (reply.status_code, reply.json()["error"]["message"]) == (429, "Slow down")
        assert reply.headers["x-leporello"] == "folded"
        assert recorded(house, one(house), 1).calls == 1
        assert ask(house, dialect, "whole", asked()).text == "Fine."


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_inner_call_fails_late(tmp_path: Path, dialect: Dialect) -> None:
    """Behind words that have gone out it is the last event of the stream."""
    broken = Cut(says(text=ANSWER * 9), after=3)
    told = StreamError(says(text="x"), 0, {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}})
    for number, failure in enumerate((LIMIT, broken, told)):
        with folded(tmp_path / str(number), [says(GREP, text="Let me look."), failure]) as house:
            reply = post(house, dialect, stream=True)
            assert reply.status_code == 200
            assert "Let me look." in reply.text
            last = json.loads(reply.text.strip().rpartition("data: ")[2])
            assert "error" in (last.get("type"), *last)
            assert (failure is not told) or "Busy" in json.dumps(last)
            assert "lcm_" not in reply.text


def sent(dialect: Dialect, say: Say) -> bytes:
    """An answer of the model's server as raw bytes of a stream."""
    message, finish = say.build(0)
    reply = dialect.encode_reply(message, target=Target("", "m"), finish_reason=finish, usage=say.usage)
    data = b""
    for event in dialect.reply_events(reply):
        name = b"" if dialect is OPENAI_CHAT else f"event: {event['type']}\n".encode()
        data += name + b"data: " + json.dumps(event).encode() + b"\n\n"
    return data


BAD: dict[str, tuple[list[bytes | str | None], int, str]] = {
    "reset": (["reset"], 502, "broke"),
    "stall": ([None], 504, "in time"),
    "page": ([b"HTTP/1.1 503 Busy\r\ncontent-length: 23\r\n\r\n<html>secret-host</html>"[:-1]], 503, "status 503"),
    "garbage": ([HEAD, b"\x00\x01"], 502, "no answer"),
    "another_form": (
        [b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"],
        502,
        "no answer",
    ),
    "nothing": ([HEAD], 502, "no answer"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_server_that_breaks_between_the_rounds(
    tmp_path: Path, dialect: Dialect, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Resets, silence, pages and garbage in place of the second answer: an error with a status while the client has
    nothing, an error event when it has; nothing leaks, and the log holds no word of anybody."""
    pieces, status, words = BAD[bad]
    flags: dict[str, object] = {"gateway.idle_timeout": 3.0} if bad == "stall" else {}
    asks, speaks = says(GREP), says(GREP, text="Let me look.")
    answers = [[HEAD, sent(dialect, asks)], pieces, [HEAD, sent(dialect, speaks)], pieces]
    caplog.set_level("INFO", "leporello.gateway")
    with rough(*answers) as server, folded(tmp_path, [], flags, upstream=server.url) as house:
        silent = post(house, dialect, stream=True)
        assert silent.status_code == status
        assert words in silent.json()["error"]["message"]
        spoken = post(house, dialect, stream=True)
        assert spoken.status_code == 200
        assert spoken.text.count("Let me look.") >= 1
        assert words in spoken.text.strip().rpartition("data: ")[2]
        assert "secret-host" not in silent.text + spoken.text
        assert FACT not in caplog.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_that_does_not_fit(tmp_path: Path, dialect: Dialect) -> None:
    """A result that makes the request too long is taken back, and the model is told so."""
    words = "This model's maximum context length is 9000 tokens. However, your messages resulted in 9100 tokens."
    too_long = Fail(400, {"error": {"message": words, "type": "invalid_request_error", "code": None, "param": None}})
    with folded(tmp_path, [says(GREP), too_long, says(text="I can't say.")]) as house:
        assert ask(house, dialect, "whole", asked()).text == "I can't say."
        valid(house)
        assert "48443" in house.model_calls[1].raw.decode()
        assert "no room" in house.model_calls[2].raw.decode()
        assert "48443" not in house.model_calls[2].raw.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_is_cut(tmp_path: Path, dialect: Dialect) -> None:
    """The output limit ends an answer in a call of ours: the client hears of the limit, not of the call."""
    cut = says(GREP, text="Let me", finish="length")
    with folded(tmp_path, [cut, cut]) as house:
        reply = ask(house, dialect, "whole", asked())
        assert reply.text == "Let me"
        assert reply.calls == []
        assert reply.finish in ("length", "incomplete", "max_tokens")
        stream = post(house, dialect, stream=True).text
        assert "Let me" in stream
        assert f'"{reply.finish}"' in stream
        assert "lcm_" not in stream
        assert len(house.model_calls) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_vanishes(tmp_path: Path, dialect: Dialect) -> None:
    """A client that hangs up between the rounds: the call to the model ends, and its place is free again."""
    release = threading.Event()
    script = [says(GREP, text="Let me look."), Hold(says(text="x"), release, after=None), says(text="Here.")]
    with folded(tmp_path, script, {"gateway.streams": 1}) as house:
        body = fields(dialect, asked(), stream=True)
        with httpx2.stream("POST", house.url + PATHS[dialect], json=body, timeout=60) as reply:
            pieces = reply.iter_bytes()
            next(pieces)
            while len(house.model_calls) < 2:
                threading.Event().wait(0.01)
        while (again := post(house, dialect)).status_code == 429:
            threading.Event().wait(0.02)
        release.set()
        assert "Here." in again.text
        assert recorded(house, one(house), 2).calls == 2


KEPT_OUT: dict[str, tuple[Dialect, dict[str, Any]]] = {
    "none": (OPENAI_CHAT, {"tool_choice": "none"}),
    "none_claude": (ANTHROPIC, {"tool_choice": {"type": "none"}}),
    "none_responses": (OPENAI_RESPONSES, {"tool_choice": "none"}),
    "several_answers": (OPENAI_CHAT, {"n": 2}),
    "logprobs": (OPENAI_CHAT, {"logprobs": True}),
    "prediction": (OPENAI_CHAT, {"prediction": {"type": "content", "content": "x"}}),
    "data_only": (OPENAI_CHAT, {"tools": [], "response_format": {"type": "json_object"}}),
    "data_only_responses": (OPENAI_RESPONSES, {"tools": [], "text": {"format": {"type": "json_object"}}}),
    "background": (OPENAI_RESPONSES, {"background": True}),
    "same_name": (
        ANTHROPIC,
        {"tools": [{"name": "lcm_grep", "input_schema": {"type": "object", "properties": {}}}]},
    ),
    "too_many": (
        ANTHROPIC,
        {"tools": [{"name": f"t{k}", "input_schema": {"type": "object", "properties": {}}} for k in range(125)]},
    ),
}


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
@pytest.mark.parametrize("case", KEPT_OUT)
def test_when_nothing_is_offered(tmp_path: Path, case: str, engine: str) -> None:
    """Where tools are forbidden, would be refused, could not be hidden or have a name twice, the client's tools stay
    alone, and the fold names no call that can't be made."""
    dialect, more = KEPT_OUT[case]
    with folded(tmp_path, [says(text="Fine."), says(text="Fine.")], {"context.engine": engine}) as house:
        reply = post(house, dialect)
        assert "lcm_expand(" in house.model_calls[0].raw.decode()
        reply = post(house, dialect, **more)
        assert reply.headers["x-leporello"] == "folded"
        seen = house.model_calls[1]
        given = fields(dialect, [], **more)["tools"]
        assert (seen.body.get("tools") or []) == given
        assert "lcm_expand(" not in seen.raw.decode()
        marks = [re.findall(r"<leporello-(\w+) ", call.raw.decode()) for call in house.model_calls]
        assert marks[0] == marks[1] != []


def test_a_tree_that_holds_its_state_names_no_call_that_cannot_be_made(tmp_path: Path) -> None:
    """With an answer of the assistant behind the summaries, state and summaries are one message."""
    # The list begins and the tail begins with the assistant: only the user's role is left between them.
    said = [*history()[1:], {"role": "user", "content": "Any news?"}, {"role": "assistant", "content": "No."}, QUESTION]
    with folded(tmp_path, [says(text="Fine."), says(text="Fine.")], {"context.engine": "lcm"}) as house:
        ask(house, OPENAI_CHAT, "whole", said)
        ask(house, OPENAI_CHAT, "whole", said, tool_choice="none")
        offered, alone = ([json.dumps(item) for item in items(call)] for call in house.model_calls)
        (tree,) = (text for text in offered if "<leporello-frontier " in text)
        assert "<leporello-state " in tree
        assert "lcm_expand(" in tree
        assert "lcm_" not in str(alone)
        assert [re.findall(r"<leporello-(\w+) ", text) for text in alone if text not in offered] == [
            ["frontier", "node", "state"]
        ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_inside_a_success(tmp_path: Path, dialect: Dialect) -> None:
    """A server that answers 200 with an error: the client gets it as it came."""
    told = {"error": {"message": "Not today", "code": 7}}
    with folded(tmp_path, [Fail(200, told)]) as house:
        reply = post(house, dialect)
        assert (reply.status_code, reply.json()) == (200, told)


class Curious(Model):
    """A model that looks behind its fold whenever it can and was not just told what it says."""

    counts = True

    def answer(self, seen: Any) -> Any:
        newest = items(seen)[-1]
        content = newest.get("content")
        told = newest.get("role") == "tool" or "output" in newest
        told = told or (isinstance(content, list) and any(block["type"] == "tool_result" for block in content))
        if not told and "lcm_grep" in names(seen) and counted(seen) <= self.window:
            found: Any = says(GREP, text="Let me look.", usage=CanonicalUsage(counted(seen), 60))
        else:
            found = super().answer(seen)
        return replace(found, usage=None) if isinstance(found, Say) and not self.counts else found


@pytest.mark.parametrize(("clerk", "counts"), [(ChatClerk, False), (ResponsesClerk, True), (ClaudeClerk, True)])
def test_a_long_conversation_that_recalls(tmp_path: Path, clerk: Any, counts: bool) -> None:
    """Recalled in every turn since the first fold, at servers that count and one that does not: all requests are valid,
    the client's fit, and between two folds each of them begins with the one before it."""
    model = Curious(10_000)
    model.counts = counts
    with opened(tmp_path, model.script(), window=10_000, flags={"gateway.recall": True}) as house:
        talker = clerk(house.url)
        for turn in range(40):
            text = f"Read {turn} please" if turn % 4 == 0 else f"Do part {turn}. " * 12
            assert "Answer" in talker.ask(text, turn % 2 == 0)
        valid(house)
        (record,) = house.store.conversations.page().conversations
        outer = [seen for seen in house.model_calls if "lcm_grep" not in called(seen)]
        assert max(map(counted, outer)) <= model.window
        assert len(house.model_calls) > len(outer) + 10
        broken = sum(
            json.dumps(without_marks(items(after)[: len(items(before))])) != json.dumps(without_marks(items(before)))
            for before, after in itertools.pairwise(outer)
        )
        # Folds are made beside the conversation: one may come after the last request, and no request shows it.
        made = int(FOLD.findall(outer[-1].raw)[-1])
        assert made >= 1
        assert record.generation - made in (0, 1)
        assert broken == made


def test_nothing_is_offered_before_a_fold(tmp_path: Path) -> None:
    """A conversation that is shown whole has nothing to recall: its bytes pass as they came."""
    with folded(tmp_path, [says(text="Hello.")]) as house:
        body = json.dumps(fields(OPENAI_CHAT, [QUESTION])).encode()
        httpx2.post(house.url + "/v1/chat/completions", content=body)
        assert house.model_calls[0].raw == body


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "read"}}])
def test_a_forced_call(tmp_path: Path, choice: Any) -> None:
    """A client that forces a call gets a call of its own tools; the tools stand in the request as in every other."""
    script = [says(GREP), says(READ)] if choice == "required" else [says(READ)]
    with folded(tmp_path, script) as house:
        reply = ask(house, OPENAI_CHAT, "whole", asked(), tool_choice=choice)
        assert reply.calls == [READ]
        assert {seen.body["tool_choice"] == choice for seen in house.model_calls} == {True}
        assert len({json.dumps(seen.body["tools"]) for seen in house.model_calls}) == 1


def test_keys_say_who_gets_it(tmp_path: Path) -> None:
    """It is a key's own right; without keys the setting decides, and it is off."""
    keys, plain = Keys().add("plain")
    keys, able = keys.add("able", recall=True)
    for number, (given, setting, expected) in enumerate(
        [(able, False, True), (plain, True, False), ("", False, False), ("", True, True)]
    ):
        script = [says(text="Fine.")]
        flags = {"gateway.recall": setting}
        with folded(tmp_path / str(number), script, flags, keys=keys if given else None) as house:
            client = openai.OpenAI(base_url=house.url + "/v1", api_key=given or "any", max_retries=0)
            with client:
                client.chat.completions.create(model="m", messages=asked())
            assert bool(names(house.model_calls[0])) is expected
            assert ("lcm_expand(" in house.model_calls[0].raw.decode()) is expected


def test_only_this_conversation(tmp_path: Path) -> None:
    """Another conversation of the same client is not searched."""
    other = [
        {**message, "content": message["content"].replace(FACT, "The harbour is closed.")} for message in history()
    ]
    with folded(tmp_path, [says(text="Fine."), says(GREP), says(text="I don't know.")]) as house:
        ask(house, OPENAI_CHAT, "whole", asked())
        ask(house, OPENAI_CHAT, "whole", [*other, QUESTION])
        assert "48443" not in house.model_calls[2].raw.decode()


def test_the_footer_works(tmp_path: Path) -> None:
    """The call a fold names, made as it is written, brings the folded words back."""
    with folded(tmp_path, [says(("lcm_expand", '{"id": "f1"}')), says(text="Fine.")]) as house:
        ask(house, ANTHROPIC, "stream", asked())
        first, second = house.model_calls
        assert 'lcm_expand(id=\\"f1\\")' in first.raw.decode() or 'lcm_expand(id="f1")' in first.raw.decode()
        assert "It is all in order so far." in json.dumps(items(second)[-1])


@pytest.mark.parametrize("arguments", ["", "[1]", '{"query": 7}', '{"query": "x", "limit": 1000000}', "{"])
def test_wrong_arguments(tmp_path: Path, arguments: str) -> None:
    """A call that makes no sense gets an error as its result, and the model goes on."""
    with folded(tmp_path, [says(("lcm_grep", arguments)), says(text="Sorry.")]) as house:
        assert ask(house, OPENAI_RESPONSES, "whole", asked()).text == "Sorry."
        assert '"error' in items(house.model_calls[1])[-1]["output"]


def test_a_restart_keeps_what_was_asked_beside(tmp_path: Path) -> None:
    """Calls beside the client's own are stored: another process shows them in the same place."""
    with folded(tmp_path, [says(GREP, READ)]) as house:
        reply = ask(house, OPENAI_CHAT, "whole", asked())
    with folded(tmp_path, [says(text="One.")]) as house:
        said = [*asked(), *reply.turn, *(result(OPENAI_CHAT, id) for id in _ids(reply.turn))]
        assert ask(house, OPENAI_CHAT, "whole", said).text == "One."
        valid(house)
        assert called(house.model_calls[0]) == ["lcm_grep", "read"]
